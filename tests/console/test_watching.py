"""`watch` in a real terminal and in a pipe, beside a daemon that is real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.console import watching
from tests.console.terminal import CEILING, Terminal
from tests.daemon_process import PROJECT, Workspace, environment, eventually

HEADINGS = ["time", "turn", "call", "path", "size", "type", "sid", "where", "ver"]
Open = Callable[..., Terminal]


@pytest.fixture
def terminal(workspace: Workspace) -> Iterator[Open]:
    """Opens `watch` on the workspace in a terminal; all of them are closed afterwards."""
    opened: list[Terminal] = []

    def watch(*words: str, **size: Any) -> Terminal:
        opened.append(Terminal("watch", *workspace.arguments, *words, **size))
        opened[-1].shows("watcher ok")
        return opened[-1]

    yield watch
    for one in opened:
        one.close()


class Pipe:
    """`watch` with its output in a pipe."""

    def __init__(self, workspace: Workspace, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sidecar", "watch", *workspace.arguments, *words],
            cwd=PROJECT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.out, self.err = self.process.stdout, self.process.stderr

    def until(self, so: Callable[[str], object]) -> str:
        """Read lines until one is so."""
        for line in self.out:
            if so(line):
                return line
        raise AssertionError(f"it ended: {self.err.read()}")

    def interrupt(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=CEILING)
        return self.process.returncode, err


@pytest.fixture
def pipe(workspace: Workspace) -> Iterator[Callable[..., Pipe]]:
    opened: list[Pipe] = []

    def watch(*words: str) -> Pipe:
        before = len(workspace_clients(workspace))
        opened.append(Pipe(workspace, *words))
        eventually(lambda: len(workspace_clients(workspace)) > before, ceiling=CEILING)
        return opened[-1]

    yield watch
    for one in opened:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def workspace_clients(workspace: Workspace) -> list[Any]:
    asking = workspace.connect("runtime", ceiling=CEILING)
    try:
        return [one for one in asking.call("workspace/status")["clients"] if one["role"] == "runtime"]
    finally:
        workspace._clients.remove(asking)
        asking.close()


def rows(terminal: Terminal) -> list[list[str]]:
    """The rows of the table, below its headings."""
    heading = next((at for at, line in enumerate(terminal.lines) if "path" in line.split()), None)
    return [] if heading is None else [line.split() for line in terminal.lines[heading + 1 : -2] if line]


def headings(terminal: Terminal) -> list[str]:
    return next((line.split() for line in terminal.lines if "path" in line.split()), [])


# On a terminal


@pytest.mark.rule("cli.watch-is-a-live-table")
def test_what_lands_is_seen_at_once_and_the_newest_on_top(workspace: Workspace, terminal: Open) -> None:
    screen = terminal()
    runtime = workspace.connect("runtime", ceiling=CEILING)
    runtime.call("turn/begin", {"turn_id": "turn_1"})
    runtime.call("call/begin", {"tool_call_id": "call_7", "tool_id": "exec", "params": {}})
    workspace.write("turn_1/files/first.md", "one")
    runtime.call("call/end", {"tool_call_id": "call_7"})
    screen.shows("fi:turn_1.files/first.md")
    workspace.write("turn_1/files/second.png", b"\x89PNG\r\n\x1a\n" + bytes(3000))
    screen.shows("fi:turn_1.files/second.png")
    assert headings(screen) == HEADINGS
    screen.until(lambda: "hosted" in rows(screen)[1])
    second, first = rows(screen)
    assert second[3:6] == ["fi:turn_1.files/second.png", "2.9", "KiB"]
    assert first[1:] == ["turn_1", "call_7", "fi:turn_1.files/first.md", "3", "text/markdown", "1", "hosted", "1"]
    screen.shows("2 artifacts")
    screen.shows("turn turn_1 is open")
    assert "● store folder ok" in screen.text


def test_another_version_is_another_row_and_another_state_is_the_same_row(workspace: Workspace, terminal: Open) -> None:
    screen = terminal()
    file = workspace.write("turn_1/files/a.md", "one")
    screen.shows("fi:turn_1.files/a.md")
    file.write_text("another")
    screen.until(lambda: len(rows(screen)) == 2)
    assert [row[-1] for row in rows(screen)] == ["2", "1"]
    file.unlink()
    screen.shows("kept, deleted")
    assert len(rows(screen)) == 2


def test_what_is_hosted_says_so(workspace: Workspace, terminal: Open) -> None:
    screen = terminal()
    runtime = workspace.connect("runtime", ceiling=CEILING)
    runtime.call("turn/begin", {"turn_id": "turn_1"})
    workspace.write("turn_1/files/a.md", "one")
    runtime.call("turn/end", {"turn_id": "turn_1", "completion": {"text": "done"}})
    screen.until(lambda: rows(screen) and rows(screen)[0][-2:] == ["hosted", "1"])


def test_the_table_begins_with_what_was_there(workspace: Workspace, terminal: Open) -> None:
    workspace.write("turn_1/files/old.md", "one")
    workspace.connect("runtime", ceiling=CEILING).call("workspace/sync")
    terminal().shows("fi:turn_1.files/old.md")


def test_a_table_is_no_higher_and_no_wider_than_the_terminal(workspace: Workspace, terminal: Open) -> None:
    screen = terminal(columns=120, rows=12)
    for number in range(40):
        workspace.write(f"turn_1/files/{'long-' * 20}{number:02}.md", "x")
    screen.shows("40 artifacts")
    screen.until(lambda: "39.md" in screen.text)
    assert len(rows(screen)) == 5
    assert screen.lines[0].startswith("artifact-sidecar")
    assert headings(screen) == HEADINGS
    screen.resize(58, 20)
    screen.until(lambda: len(rows(screen)) == 13)
    found = headings(screen)
    assert found == [name for name in HEADINGS if name in found], "they keep their order"
    assert {"path", "where"} <= set(found)
    assert not {"call", "type", "turn"} & set(found)
    screen.resize(26, 20)
    screen.until(lambda: headings(screen) == ["path"])
    assert any(line.startswith("…") and line.endswith("39.md") for line in screen.lines), screen.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_terminal_is_as_before_when_it_ends(terminal: Open, number: signal.Signals) -> None:
    screen = terminal()
    assert screen.screen.other
    assert screen.signal(number) == 128 + number
    assert screen.as_before()
    assert "Traceback" not in screen.text


@pytest.mark.rule("cli.watch-outlives-the-daemon")
def test_a_table_outlives_the_daemon(workspace: Workspace, terminal: Open) -> None:
    screen = terminal()
    workspace.write("turn_1/files/a.md", "one")
    screen.shows("fi:turn_1.files/a.md")
    workspace.kill9()
    screen.shows("the daemon is away")
    workspace.write("turn_1/files/meanwhile.md", "two")
    workspace.start()
    screen.shows("the daemon is back")
    screen.shows("fi:turn_1.files/meanwhile.md")
    assert "fi:turn_1.files/a.md" in screen.text
    assert screen.interrupt() == 130


def test_a_name_that_would_move_the_cursor_is_shown_escaped(workspace: Workspace, terminal: Open) -> None:
    screen = terminal()
    workspace.write("turn_1/files/x[red]\u202ey.md", "one")
    screen.shows("fi:turn_1.files/x[red]\\u202ey.md")


# In a pipe


@pytest.mark.rule("cli.watch-prints-plain-lines-elsewhere")
def test_a_pipe_gets_a_line_of_columns_for_each_artifact(workspace: Workspace, pipe: Callable[..., Pipe]) -> None:
    watch = pipe()
    workspace.write("turn_1/files/a tab.md", "one")
    line = watch.until(lambda line: line.startswith("artifact\t"))
    kind, ts, *rest = line.rstrip("\n").split("\t")
    assert (kind, ts[-1]) == ("artifact", "Z")
    assert rest == ["turn_1", "-", "fi:turn_1.files/a tab.md", "3", "text/markdown", "1", "1", "external", "kept"]
    assert watch.interrupt() == (130, "")


def test_json_is_one_object_per_line(workspace: Workspace, pipe: Callable[..., Pipe]) -> None:
    watch = pipe("--json")
    workspace.write("turn_1/files/a.md", "one")
    told = json.loads(watch.until(lambda line: "artifacts/changed" in line))
    assert told["method"] == "artifacts/changed"
    assert told["params"]["artifacts"][0]["artifact_path"] == "fi:turn_1.files/a.md"


def test_json_on_a_terminal_turns_no_line_around(workspace: Workspace) -> None:
    screen = Terminal("watch", *workspace.arguments, "--json", "--since", "0", columns=200)
    try:
        workspace.write("turn_1/files/a\u202eb.md", "one")
        screen.shows("u202eb")
        assert "\u202e" not in screen.text
    finally:
        screen.close()


def test_since_begins_with_what_changed_after_a_revision(workspace: Workspace, pipe: Callable[..., Pipe]) -> None:
    runtime = workspace.connect("runtime", ceiling=CEILING)
    workspace.write("turn_1/files/a.md", "one")
    since = runtime.call("workspace/sync")["revision"]
    workspace.write("turn_1/files/b.md", "one")
    runtime.call("workspace/sync")
    watch = pipe("--since", str(since))
    assert "fi:turn_1.files/b.md" in watch.out.readline()
    assert watch.out.readline().split("\t")[:3] == ["source", "2", "fi:turn_1.files/b.md"]
    workspace.write("turn_1/files/c.md", "one")
    assert "fi:turn_1.files/c.md" in watch.until(lambda line: line.startswith("artifact"))


@pytest.mark.rule("cli.watch-outlives-the-daemon")
def test_lines_go_on_with_the_next_daemon_and_nothing_is_missed(
    workspace: Workspace, pipe: Callable[..., Pipe]
) -> None:
    watch = pipe()
    workspace.write("turn_1/files/a.md", "one")
    watch.until(lambda line: "files/a.md" in line)
    workspace.kill9()
    assert watch.err.readline() == "artifact-sidecar: the daemon is away; waiting for the next one\n"
    workspace.write("turn_1/files/meanwhile.md", "two")
    workspace.start()
    workspace.connect("runtime", ceiling=CEILING).call("workspace/sync")
    watch.until(lambda line: line.startswith("artifact") and "meanwhile" in line)
    assert watch.interrupt() == (130, "artifact-sidecar: the daemon is back\n")


def test_a_reader_that_has_enough_ends_it_quietly(workspace: Workspace, pipe: Callable[..., Pipe]) -> None:
    watch = pipe()
    workspace.write("turn_1/files/a.md", "one")
    watch.until(lambda line: True)
    os.close(watch.out.fileno())
    assert watch.process.wait(CEILING) == 0
    assert watch.err.read() == ""
    watch.process.stdout = None


def test_a_workspace_that_cannot_be_served_ends_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sidecar", "watch", "--out-dir", str(tmp_path / "none"), "--since", "x"],
        cwd=PROJECT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (64, "")


# What a state is called


@pytest.mark.parametrize(
    ("artifact", "state"),
    [
        ({"physical_path": "a", "on_disk": True}, "kept"),
        ({"physical_path": "a", "on_disk": False}, "kept, deleted"),
        ({"physical_path": "a", "on_disk": True, "kept": False}, "disk only"),
        ({"physical_path": "a", "on_disk": True, "rn": "x"}, "hosted"),
        ({"on_disk": False}, None),
    ],
)
def test_where_bytes_are_is_what_the_daemon_says(artifact: dict[str, Any], state: str | None) -> None:
    assert watching.where(artifact) == state
