"""The command as people and programs use it: what it says, how it ends, and what is odd about pages."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.rendering.looking import RED, picture, pixels, require
from tests.clients.rendering.story import Story
from tests.daemon_process import Workspace, eventually


@pytest.fixture
def story(workspace: Workspace) -> Story:
    """The third turn, with all files where they were made."""
    told = Story(workspace)
    told.first_turns()
    told.third_turn()
    return told


def test_people_are_told_the_path_and_the_number_and_notices_on_the_side(story: Story, tmp_path: Path) -> None:
    (tmp_path / "p.html").write_text("<h1>Hi</h1><img src=turn_1/files/none.png>[[S:9]]")
    ran = story.command("pptx", str(tmp_path / "p.html"), "-o", "deck.pptx")
    assert ran.code == 0
    assert ran.out.startswith("turn_3/files/deck.pptx  ")
    assert ran.out.strip().endswith(" bytes")
    steps = ran.err.splitlines()
    assert [step.partition(" ")[0].rstrip(":,") for step in steps] == [
        "gathering", "drawing", "writing", "tool_call_error.missing_assets", "tool_call_warning.missing_sources",
    ]  # fmt: skip


def test_a_path_of_another_turn_is_written_in_the_open_one_and_that_is_noticed(story: Story) -> None:
    answer = story.command("pptx", "-", "-o", "turn_1/files/d.pptx", "--json", text="# Hi").answer
    assert answer["artifact"]["physical_path"] == "turn_3/files/d.pptx"
    assert [said["code"] for said in answer["notices"]] == ["protocol_violation.path_rewritten"]
    assert answer["lock"] == []


@pytest.mark.parametrize(
    ("arguments", "text", "code", "kind"),
    [
        (("pptx", "turn_1/files/none.md", "-o", "x.pptx"), "", 66, "not_found"),
        (("pptx", "../x.md", "-o", "x.pptx"), "", 65, "unsafe_path"),
        (("pptx", "turn_1/files/logo.png", "-o", "x.pptx"), "", 65, "bad_page"),
        (("pptx", "-", "-o", "../x.pptx"), "x", 65, "unsafe_path"),
        (("pptx", "-", "-o", "x.pptx", "--mime", "text/css"), "x", 65, "bad_page"),
        (("pptx", "-", "-o", "x.pptx", "--tool-call-id", "tc_1"), "x", 77, "not_permitted"),
        (("png", "-", "-o", "x.png", "--width", "0"), "x", 64, "usage"),
        (("png", "-", "-o", "x.png"), "x", 69, "no_browser"),
    ],
)
def test_what_goes_wrong_has_a_kind_and_an_exit_code_and_writes_nothing(
    story: Story, arguments: tuple[str, ...], text: str, code: int, kind: str
) -> None:
    ran = story.command(*arguments, "--json", text=text, ARTIFACT_RENDER_BROWSER="/nowhere/chromium")
    assert ran.code == code, ran.err
    assert json.loads(ran.out)["error"]["kind"] == kind
    assert "Traceback" not in ran.err
    assert not list(story.workspace.out_dir.glob("turn_3/files/x.*"))


def test_without_a_daemon_or_a_workspace_that_is_said(tmp_path: Path, story: Story) -> None:
    ran = story.command("pptx", "-", "-o", "x.pptx", OUT_DIR="")
    assert (ran.code, "no workspace is named" in ran.err) == (69, True)
    ran = story.command("pptx", "-", "-o", "x.pptx", ARTIFACT_SIDECAR_SOCKET=str(tmp_path / "none"))
    assert (ran.code, "nobody answers" in ran.err) == (69, True)
    assert story.command("gif", "-", "-o", "x.gif").code == 64


def test_what_is_not_of_the_renderers_role_is_refused(story: Story) -> None:
    ran = story.command("pptx", "-", "-o", "x", ARTIFACT_SIDECAR_SOCKET=str(story.workspace.socket("exec")), text="x")
    assert ran.code == 77
    assert "not_permitted" in ran.err


def test_a_style_sheet_and_its_picture_come_along_and_code_is_left_alone(story: Story) -> None:
    require("chromium")
    story.workspace.write("turn_1/files/css/s.css", ".c{width:120px;height:80px;background:url(../red.png)}")
    story.workspace.write("turn_1/files/red.png", picture(RED))
    page = '<link rel=stylesheet href="turn_1/files/css/s.css"><div class=c></div><code>[[S:77]]</code>'
    answer = story.command("png", "-", "-o", "x.png", "--json", "--mime", "text/html", text=page).answer
    assert answer["notices"] == []
    assert pixels(story.made(answer).read_bytes(), RED) == 9600
    assert [one["path"] for one in answer["lock"]] == ["turn_1/files/css/s.css", "turn_1/files/red.png"]


def test_terminated_it_ends_the_browser_and_removes_what_it_made(story: Story, tmp_path: Path) -> None:
    require("chromium")
    page = "<svg width=9000 height=9000><filter id=f><feTurbulence baseFrequency=.05 numOctaves=9 /></filter>"
    page += "<rect width=9000 height=9000 filter=url(#f) />" * 300
    folder = Path(story.environment()["OUT_DIR"]).parent / "t"
    folder.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-m", "artifact_render", "png", "-", "-o", "x.png", "--mime", "text/html"],
        env=story.environment(TMPDIR=str(folder)),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdin is not None
    assert running.stderr is not None
    running.stdin.write(page.encode())
    running.stdin.close()
    while b"drawing" not in running.stderr.readline():
        assert running.poll() is None
    eventually(lambda: list(folder.glob("*/browser.log")))
    running.send_signal(signal.SIGTERM)
    assert running.wait(10) == 130
    running.stderr.close()
    assert list(folder.iterdir()) == []
