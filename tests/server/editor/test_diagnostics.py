"""What is wrong is said once, at its place, and never tells of what may not be seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.daemon_process import Workspace
from tests.server.editor.conftest import Told
from tests.server.editor.desk import CEILING, Desk, desk_of, story


@pytest.mark.rule("editor.diagnostics-say-what-is-wrong", "editor.positions-in-the-agreed-encoding")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("é😀 [[S:1,98-99,97]]", [("unknown_source", "[[S:1,98-99,97]]")]),
        ("😀[[S:98-99]] [[S:1-99]]", [("unknown_source", "[[S:98-99]]")]),
        ("so:sources_pool[1,97]", [("unknown_source", "so:sources_pool[1,97]")]),
        ("sources_pool[98]", [("unknown_source", "sources_pool[98]")]),
        ("`[[S:99]]`", []),
        ("😀 turn_1/files/nothing.md", [("unknown_path", "turn_1/files/nothing.md")]),
        ("fi:logs/nothing.log", [("unknown_path", "fi:logs/nothing.log")]),
        ("tc:turn_9.x.result", [("unknown_path", "tc:turn_9.x.result")]),
        ("turn_1/files/../../x", [("unsafe_path", "turn_1/files/../../x")]),
        ("src/files/x.py turn_1/files/*.md turn_1/files/…", []),
        ("😀 turn_1/files/report.md", [("newer_exists", "turn_1/files/report.md")]),
        ("turn_2/files/report.md turn_1/files/plan (final).md turn_1/files/data.csv", []),
    ],
)  # fmt: skip
def test_what_is_wrong_is_published(desk: Desk, text: str, expected: list[tuple[str, str]]) -> None:
    desk.open(f"{text}\n[[S:96]]")  # something is always wrong, so that something is always published
    assert desk.diagnostics() == [*expected, ("unknown_source", "[[S:96]]")]


def test_a_page_misses_its_pictures(desk: Desk) -> None:
    name = "turn_1/files/page.md"
    desk.open(
        "![a](nothing.png) [b](data.csv) [c](no.md) ![d](../../../x) <img src='e.png'> turn_1/files/report.md", name
    )
    assert desk.diagnostics(name) == [
        ("missing_asset", "nothing.png"),
        ("missing_asset", "no.md"),
        ("unsafe_path", "../../../x"),
        ("missing_asset", "e.png"),
    ]  # and it is not told of a turn that came after its own


def test_each_has_a_severity_a_source_and_data(desk: Desk) -> None:
    desk.open("[[S:98,99]] turn_1/files/report.md turn_1/files/../../x turn_1/files/nothing.md")
    found = desk.published()
    assert {one["source"] for one in found} == {"artifact-sidecar"}
    assert [one["severity"] for one in found] == [2, 3, 1, 2]
    assert found[0]["message"] == "There are no sources 98, 99."
    assert [one["data"] for one in found] == [
        {"sids": [98, 99]},
        {"path": "fi:turn_1.files/report.md", "by": "turn_2/files/report.md"},
        {},
        {"path": "fi:turn_1.files/nothing.md"},
    ]


@pytest.mark.rule("editor.shows-only-what-the-role-may-see")
def test_what_is_internal_is_said_to_be_unknown_in_the_same_words(desk: Desk) -> None:
    desk.open("turn_1/files/secret.md turn_1/files/nothing.md")
    secret, nothing = desk.published()
    assert secret["message"] == nothing["message"]
    assert (secret["code"], secret["severity"]) == (nothing["code"], nothing["severity"])


def test_an_older_spelling_and_an_absent_file(workspace: Workspace) -> None:
    story(workspace)
    runtime = workspace.connect("runtime", ceiling=CEILING)
    workspace.write("turn_1/attachments/x.txt", "x")
    runtime.call("workspace/sync")
    (workspace.out_dir / "turn_1/files/data.csv").unlink()
    runtime.call("workspace/sync")
    with desk_of(workspace) as desk:
        desk.open("fi:turn_1.attachments/x.txt fi:turn_1.user.attachments/x.txt turn_1/files/data.csv")
        older, absent = desk.published()
    assert (older["code"], older["data"]["by"]) == ("older_spelling", "fi:turn_1.user.attachments/x.txt")
    assert (absent["code"], absent["severity"]) == ("not_on_disk", 3)


def test_a_text_that_is_too_long_is_not_judged(sit: Callable[..., Desk], told: Told) -> None:
    desk = sit()
    desk.open("[[S:99]]" + " " * 2 * 1024 * 1024, "long.md").open("[[S:99]]")
    assert desk.published()
    desk.client.call("workspace/status")
    assert not [one for one in desk.client.mail.notifications if one["params"].get("uri") == desk.uri("long.md")]
