"""The daemon's life, as a real process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sidecar.server.daemon import what_is_missing
from tests.daemon_process import PROJECT, Workspace, eventually


def test_this_system_lacks_nothing() -> None:
    assert what_is_missing() == ""


@pytest.mark.parametrize(("system", "release"), [("darwin", "23.0"), ("linux", "5.4.0-generic"), ("linux", "4.19")])
def test_a_system_that_lacks_something_is_told(monkeypatch: pytest.MonkeyPatch, system: str, release: str) -> None:
    monkeypatch.setattr("sidecar.server.daemon.sys.platform", system)
    monkeypatch.setattr("sidecar.server.daemon.os.uname", lambda: type("Uname", (), {"release": release}))
    assert what_is_missing()


def test_a_second_daemon_says_so_and_exits_75(workspace: Workspace) -> None:
    second = workspace.serve()
    assert second.wait(20) == 75
    assert "served already" in workspace.tail()


def test_sigterm_ends_it_in_order(workspace: Workspace) -> None:
    with closing(workspace.connect("runtime")) as client:
        client.call("turn/begin", {"turn_id": "turn_1"})
    assert workspace.stop() == 0
    assert (workspace.out_dir / "timeline.json").exists()
    assert not workspace.answers()


def test_nobody_left_means_the_end_after_a_while(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace(options=("--idle-exit", "0.5")).start()
    daemon = workspace.daemon
    assert daemon is not None
    assert daemon.wait(20) == 0


def test_an_open_call_keeps_it_awake(make_workspace: Callable[..., Workspace]) -> None:
    workspace = make_workspace(options=("--idle-exit", "0.3")).start()
    daemon = workspace.daemon
    assert daemon is not None
    with closing(workspace.connect("runtime")) as client:
        client.call("turn/begin", {"turn_id": "turn_1"})
        client.call("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    with pytest.raises(subprocess.TimeoutExpired):
        daemon.wait(1.5)
    with closing(workspace.connect("runtime")) as client:
        client.call("call/end", {"tool_call_id": "tc_1"})
    assert daemon.wait(20) == 0


def test_exit_ends_the_session_and_not_the_daemon(workspace: Workspace) -> None:
    workspace.connect("exec").close()  # `shutdown`, then `exit`
    assert workspace.connect("exec").call("workspace/status")["clients"]


def test_a_signal_at_rest_is_as_good_as_one_at_work(workspace: Workspace) -> None:
    daemon = workspace.daemon
    assert daemon is not None
    daemon.send_signal(signal.SIGINT)
    eventually(lambda: daemon.poll() is not None, ceiling=15)
    assert daemon.returncode == 0


@pytest.mark.rule("roles.the-daemon-cannot-be-dumped")
def test_nobody_else_of_our_uid_can_read_its_memory(workspace: Workspace) -> None:
    assert workspace.daemon is not None
    secrets = Path("/proc", str(workspace.daemon.pid), "environ")
    if os.geteuid() == 0:
        # Root may read everything; the kernel shows by the owner of the files that nobody else may.
        program = "import ctypes; from sidecar.server import daemon; daemon._hide_memory(); "
        program += "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
        asked = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
        assert asked.stdout.strip() == "0"
    else:
        with pytest.raises(PermissionError):
            secrets.read_bytes()
