"""What the README promises works: its commands exist, and the session it shows runs as shown.

A fenced block tagged `sh` holds commands, one tagged `python` a program, and the block tagged `text` right after one of
them is what it prints; `…` in it stands for anything.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon_process import Workspace
from tests.tidy.tools import run_module
from tests.tidy.tree import PROJECT

pytestmark = pytest.mark.rule("house.readme-commands-run")

README = PROJECT / "README.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:python\S* -m sidecar|artifact-sidecar) ([a-z]+)")


def blocks(language: str) -> list[str]:
    return [body for tag, body in FENCE.findall(README.read_text("utf-8")) if tag == language]


def commands() -> Iterator[list[str]]:
    """Every command line of the `sh` blocks, comments and continued lines put right."""
    for block in blocks("sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield words


def programs_with_output() -> list[tuple[str, str]]:
    """Each `python` block with the `text` block that follows it, or an empty one."""
    fences = FENCE.findall(README.read_text("utf-8"))
    following = [*fences[1:], ("", "")]
    return [
        (body, after if next_tag == "text" else "")
        for (tag, body), (next_tag, after) in zip(fences, following, strict=True)
        if tag == "python"
    ]


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) < 150


def test_every_command_it_shows_exists() -> None:
    shown = set(COMMAND.findall(README.read_text("utf-8")))
    known = run_module("sidecar", "--help")
    assert shown
    assert [name for name in shown if not re.search(rf"\b{name}\b", known)] == []


def test_every_file_it_links_to_exists() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", README.read_text("utf-8"))
    assert [link for link in links if not (PROJECT / link).exists()] == []


def test_the_two_commands_for_a_fresh_machine_stand_in_it() -> None:
    lines = [" ".join(words) for words in commands()]
    assert any("demo" in line for line in lines), "one command runs the main job"
    assert any("pytest" in line or "test" in line for line in lines), "one command passes the tests"


def test_the_session_runs_as_shown(workspace: Workspace, tmp_path: Path) -> None:
    here = os.pathsep.join([str(PROJECT), str(PROJECT / "clients/python")])
    environment = {**os.environ, "OUT_DIR": str(workspace.out_dir), "PYTHONPATH": here}
    environment["ARTIFACT_SIDECAR_SOCKET"] = str(workspace.socket("exec"))
    environment["ARTIFACT_SIDECAR_SOCKET_DIR"] = str(workspace.socket_dir)  # where the loop's door finds the daemon
    assert programs_with_output()
    for program, shown in programs_with_output():
        script = tmp_path / "session.py"
        script.write_text(program, "utf-8")
        done = subprocess.run(
            [sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        expected = ".*?".join(map(re.escape, shown.strip().split("…")))
        assert re.fullmatch(expected, done.stdout.strip(), re.DOTALL), f"printed\n{done.stdout}\nshown as\n{shown}"
