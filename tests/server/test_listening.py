"""The daemon's sockets and its lock, on a real folder."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.server import bridge, listening


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "sockets" / "0123456789abcdef")


@pytest.fixture
def lock(folder: str) -> Iterator[int]:
    descriptor = listening.take_lock(folder)
    yield descriptor
    os.close(descriptor)


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.mark.rule("cli.one-daemon-per-workspace")
def test_a_second_daemon_is_told_who_was_first(folder: str, lock: int) -> None:
    with pytest.raises(listening.AlreadyServed, match=f"process {os.getpid()}"):
        listening.take_lock(folder)


def test_the_lock_is_free_when_its_holder_has_died(folder: str) -> None:
    code = f"import os; from sidecar.server import listening; listening.take_lock({folder!r}); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert listening.holder(folder) is None
    os.close(listening.take_lock(folder))


def test_the_holder_of_the_lock_is_known(folder: str, lock: int) -> None:
    assert listening.holder(folder) == os.getpid()


def test_nobody_holds_what_is_not_there(folder: str) -> None:
    assert listening.holder(folder) is None


def test_the_lock_is_not_given_to_children(lock: int) -> None:
    assert not os.get_inheritable(lock)


@pytest.mark.rule("roles.each-socket-lies-alone")
def test_each_role_has_a_socket_in_a_folder_of_its_own_that_is_ours_alone(folder: str, lock: int) -> None:
    mask = os.umask(0)  # the modes must not depend on it
    try:
        sockets = listening.bind(folder, bridge.ROLES)
    finally:
        os.umask(mask)
    for role in bridge.ROLES:
        assert mode(f"{folder}/{role}") == 0o700
        assert mode(f"{folder}/{role}/s.sock") == 0o600
        dialled, (accepted, _) = bridge.dial(folder, role), sockets[role].accept()
        dialled.sendall(role.encode())
        assert accepted.recv(100) == role.encode()
        dialled.close()
        accepted.close()
    assert mode(folder) == 0o700
    listening.unbind(folder, sockets)


def test_a_role_opened_to_another_uid_is_the_only_one_that_is_wider(folder: str, lock: int) -> None:
    sockets = listening.bind(folder, bridge.ROLES, allowed={"exec": {12345}, "editor": set()})
    assert (mode(f"{folder}/exec"), mode(f"{folder}/exec/s.sock")) == (0o711, 0o666)
    assert (mode(f"{folder}/editor"), mode(f"{folder}/editor/s.sock")) == (0o700, 0o600)
    listening.unbind(folder, sockets)


def test_a_stale_socket_is_replaced(folder: str, lock: int) -> None:
    for sock in listening.bind(folder, ["exec"]).values():
        sock.close()
    with pytest.raises(ConnectionRefusedError):
        bridge.dial(folder, "exec")
    sockets = listening.bind(folder, ["exec"])
    bridge.dial(folder, "exec").close()
    listening.unbind(folder, sockets)


def test_nobody_answers_after_the_end(folder: str, lock: int) -> None:
    listening.unbind(folder, listening.bind(folder, ["exec"]))
    with pytest.raises(FileNotFoundError):
        bridge.dial(folder, "exec")


def test_a_folder_whose_path_is_too_long_for_a_socket_address_will_do(tmp_path: Path) -> None:
    long = str(tmp_path / ("x" * 150) / "0123456789abcdef")
    lock = listening.take_lock(long)
    sockets = listening.bind(long, ["exec"])
    assert len(f"{long}/exec/s.sock") > bridge.LONGEST_ADDRESS
    bridge.dial(long, "exec").close()
    listening.unbind(long, sockets)
    os.close(lock)


def test_a_link_in_the_place_of_a_roles_folder_is_refused(folder: str, lock: int, tmp_path: Path) -> None:
    os.symlink(tmp_path, f"{folder}/exec")
    with pytest.raises(OSError, match="exec"):
        listening.bind(folder, ["exec"])
    assert not (tmp_path / "s.sock").exists()


def test_a_folder_that_others_may_enter_is_refused(folder: str) -> None:
    os.makedirs(folder)
    os.chmod(folder, 0o755)
    with pytest.raises(bridge.Hopeless, match="ours alone"):
        listening.take_lock(folder)


def test_stdin_and_stdout_are_kept_for_the_protocol_alone() -> None:
    code = (
        "import os, subprocess; from sidecar.server.listening import claim_stdio; stdio = claim_stdio();"
        "print('stray', flush=True); assert os.read(0, 10) == b'';"
        "subprocess.run(['sh', '-c', 'cat; echo child']);"
        "os.write(stdio.sink, os.read(stdio.source, 100))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"frames", capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"frames", b"stray\nchild\n")


def test_binding_needs_none_of_the_heavy_modules() -> None:
    code = "import sys; from sidecar.server import listening; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=_ROOT)
    assert set(loaded.stdout.split()).isdisjoint({"asyncio", "pydantic", "pygls", "orjson", "logging", "json"})


_ROOT = Path(listening.__file__).parents[2]


def test_a_listening_socket_never_blocks(folder: str, lock: int) -> None:
    sockets = listening.bind(folder, ["exec"])
    with pytest.raises(BlockingIOError):
        sockets["exec"].accept()
    assert sockets["exec"].family == socket.AF_UNIX
    listening.unbind(folder, sockets)
