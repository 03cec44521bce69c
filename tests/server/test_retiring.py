"""A newer door gets a newer daemon, once the older one has nothing in flight."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sidecar import __version__
from sidecar.server.retiring import SIGNAL, ask_older, is_newer, tell_version, told_version
from tests.daemon_process import PROJECT, Workspace, environment, eventually

pytestmark = pytest.mark.rule("sockets.a-newer-door-retires-an-older-daemon")


@pytest.mark.parametrize(
    ("one", "other", "newer"),
    [("0.2.0", "0.1.9", True), ("0.1.0", "0.1.0", False), ("0.1.0", "0.2.0", False), ("0.10.0", "0.9.0", True)],
)
def test_versions_compare_by_number(one: str, other: str, newer: bool) -> None:
    assert is_newer(one, other) is newer


def test_the_version_is_read_back(tmp_path: Path) -> None:
    assert told_version(str(tmp_path)) == ""
    tell_version(str(tmp_path), "1.2.3")
    assert told_version(str(tmp_path)) == "1.2.3"


def test_nobody_is_asked_where_nobody_serves(tmp_path: Path) -> None:
    tell_version(str(tmp_path), "0.0.1")
    assert ask_older(str(tmp_path), "9.0.0") is False


def folder_of(workspace: Workspace) -> str:
    return str(workspace.socket("exec").parent.parent)


def test_a_daemon_tells_its_version(workspace: Workspace) -> None:
    assert told_version(folder_of(workspace)) == __version__


def test_a_daemon_of_our_own_version_is_left_alone(workspace: Workspace) -> None:
    assert ask_older(folder_of(workspace), __version__) is False
    assert workspace.answers()


def test_an_older_daemon_makes_room_for_a_newer_door(workspace: Workspace) -> None:
    older = workspace.daemon
    assert older is not None
    tell_version(folder_of(workspace), "0.0.1")
    door = subprocess.run(
        [sys.executable, "-m", "sidecar", "connect", *workspace.arguments],
        cwd=PROJECT, env=environment(), stdin=subprocess.DEVNULL, timeout=30, check=False,
    )  # fmt: skip
    assert door.returncode == 0
    assert older.wait(10) == 0
    assert told_version(folder_of(workspace)) == __version__
    stop = [sys.executable, "-m", "sidecar", "stop", *workspace.arguments]
    subprocess.run(stop, cwd=PROJECT, env=environment(), timeout=30, check=True, capture_output=True)
    workspace.daemon = None


def test_an_open_call_is_something_in_flight(workspace: Workspace) -> None:
    daemon = workspace.daemon
    assert daemon is not None
    tell_version(folder_of(workspace), "0.0.1")
    with closing(workspace.connect("runtime")) as client:
        client.call("turn/begin", {"turn_id": "turn_1"})
        client.call("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
        os.kill(daemon.pid, SIGNAL)
        client.call("call/end", {"tool_call_id": "tc_1"})
        client.drop()
    eventually(lambda: daemon.poll() is not None, ceiling=10)
    assert daemon.returncode == 0
