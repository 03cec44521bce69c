"""Whoever still writes to a file is noticed, and asking harms nobody."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.core.inventory import StatKey
from sidecar.stores import lease
from sidecar.stores.lease import SETTLE_SECONDS, Settling, ignore_lease_signal, racy_ns, writers
from sidecar.stores.opens import held

PROJECT = Path(__file__).resolve().parents[2]
KEY = StatKey(1, 2, 3, 4, 5)
OTHER = KEY._replace(ctime_ns=6)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file on a disk where leases work."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 5000)
    with held(os.open(path, os.O_RDONLY)) as fd:
        if writers(fd) == "unknown":
            pytest.skip("leases do not work on this disk")
    return path


@pytest.fixture
def fd(file: Path) -> Iterator[int]:
    with held(os.open(file, os.O_RDONLY)) as opened:
        yield opened


def test_a_closed_file_has_no_writers(fd: int) -> None:
    assert writers(fd) == "none"


def test_readers_do_not_count(file: Path, fd: int) -> None:
    with file.open("rb"):
        assert writers(fd) == "none"


def test_a_writer_counts_until_it_closes(file: Path, fd: int) -> None:
    with file.open("ab"):
        assert writers(fd) == "some"
    assert writers(fd) == "none"


def test_a_writer_in_another_process_counts(file: Path, fd: int) -> None:
    holding = [sys.executable, "-c", "import sys; f = open(sys.argv[1], 'ab'); print(flush=True); input()", str(file)]
    with subprocess.Popen(holding, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert writers(fd) == "some"
        writer.communicate(b"\n")
    assert writers(fd) == "none"


def test_a_writable_map_counts_after_its_file_is_closed(file: Path, fd: int) -> None:
    with file.open("r+b") as opened:
        mapped = mmap.mmap(opened.fileno(), 0)
    assert writers(fd) == "some"
    mapped.close()
    assert writers(fd) == "none"


def test_the_lease_is_given_back_at_once(file: Path, fd: int) -> None:
    assert writers(fd) == "none"
    # O_NONBLOCK would fail if a lease were still held.
    with held(os.open(file, os.O_WRONLY | os.O_NONBLOCK)):
        assert writers(fd) == "some"


BROKEN = """
import fcntl, os, signal, sys
from sidecar.stores import lease
fd = os.open(sys.argv[1], os.O_RDONLY)
assert signal.getsignal(signal.SIGIO) is signal.SIG_DFL
give_back, lease.fcntl.fcntl = lease.fcntl.fcntl, lambda fd, command, argument=0: hold(fd, command, argument)
def hold(fd, command, argument):
    if (command, argument) == (fcntl.F_SETLEASE, fcntl.F_UNLCK):
        print("held", flush=True)
        input()
    return give_back(fd, command, argument)
assert lease.writers(fd) == "none"
print("lived")
"""


def test_a_writer_that_comes_while_the_lease_is_held_does_not_end_us(file: Path, fd: int) -> None:
    holding = [sys.executable, "-c", BROKEN, str(file)]
    with subprocess.Popen(holding, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as us:
        assert us.stdout is not None
        assert us.stdout.readline() == b"held\n"
        with pytest.raises(BlockingIOError):
            os.open(file, os.O_WRONLY | os.O_NONBLOCK)  # breaks the lease, and the kernel tells its holder
        assert us.communicate(b"\n")[0] == b"lived\n"
    assert us.returncode == 0


def test_a_refused_lease_says_unknown(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(lease.fcntl, "fcntl", refused)
    assert writers(fd) == "unknown"


def test_the_signal_of_a_broken_lease_can_be_ignored_for_the_whole_process() -> None:
    before = signal.getsignal(signal.SIGIO)
    try:
        ignore_lease_signal()
        os.kill(os.getpid(), signal.SIGIO)
        assert signal.getsignal(signal.SIGIO) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGIO, before)


# Without leases --------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_file_settles_when_two_looks_apart_saw_the_same() -> None:
    clock = Clock()
    settling = Settling(clock)
    answers = []
    for step, key in ((0.0, KEY), (SETTLE_SECONDS / 2, KEY), (SETTLE_SECONDS / 2, KEY)):
        clock.now += step
        answers.append(settling.has_settled("a", key))
    assert answers == [False, False, True]


def test_every_change_begins_the_settling_anew() -> None:
    clock = Clock()
    settling = Settling(clock)
    assert not settling.has_settled("a", KEY)
    clock.now += SETTLE_SECONDS
    assert not settling.has_settled("a", OTHER)
    clock.now += SETTLE_SECONDS
    assert settling.has_settled("a", OTHER)


def test_a_forgotten_file_settles_from_the_beginning() -> None:
    clock = Clock()
    settling = Settling(clock)
    settling.has_settled("a", KEY)
    settling.forget("a")
    clock.now += SETTLE_SECONDS
    assert not settling.has_settled("a", KEY)


def test_only_so_many_files_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_REMEMBERED", 10)
    clock = Clock()
    settling = Settling(clock)
    for number in range(25):
        settling.has_settled(str(number), KEY)
    clock.now += SETTLE_SECONDS
    assert sum(settling.has_settled(str(number), KEY) for number in range(15, 25)) == 10
    assert not settling.has_settled("0", KEY)


def test_young_files_are_suspect_only_where_times_are_coarse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = os.uname()
    answers = []
    for version in ("6.13.0-1", "6.12.9", "5.15.0"):
        monkeypatch.setattr(os, "uname", lambda version=version: os.uname_result((*release[:2], version, *release[3:])))
        monkeypatch.setattr(lease.kernel, "file_system_type", lambda _: 0xEF53)
        answers.append(racy_ns(str(tmp_path)))
    assert answers == [0, 20_000_000, 20_000_000]
    monkeypatch.setattr(os, "uname", lambda: release)
    monkeypatch.setattr(lease.kernel, "file_system_type", lambda _: 0x6969)
    assert racy_ns(str(tmp_path)) == 20_000_000
