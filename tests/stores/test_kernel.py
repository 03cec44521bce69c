"""The system calls do what their names say."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.stores import kernel
from sidecar.stores.opens import best_opener, by_kernel, held
from tests.daemon_process import PROJECT, environment

MANY_THREADS = """
import ctypes, sys, threading
from sidecar.stores import kernel
if "little" in sys.argv:
    kernel.hold_little()
together = threading.Barrier(8)
def work():
    together.wait()
    held = [bytes(5000) for _ in range(1000)]
    together.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
ctypes.CDLL(None).malloc_stats()
"""


def test_openat2_stays_beneath_and_follows_no_link(tmp_path: Path) -> None:
    if best_opener(str(tmp_path)) is not by_kernel:
        pytest.skip("openat2 is not allowed here")
    (tmp_path / "a").mkdir()
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    numbers = {}
    with held(os.open(tmp_path / "a", os.O_PATH)) as inner, held(os.open(tmp_path, os.O_PATH)) as outer:
        for folder, below in ((outer, b"file"), (outer, b"link"), (outer, b"gone"), (inner, b"../file"), (outer, b"/")):
            try:
                os.close(kernel.openat2(folder, below, os.O_RDONLY))
                numbers[below] = 0
            except OSError as failure:
                numbers[below] = failure.errno or -1
    assert numbers == {
        b"file": 0,
        b"link": errno.ELOOP,
        b"gone": errno.ENOENT,
        b"../file": errno.EXDEV,
        b"/": errno.EXDEV,
    }


@pytest.mark.usefixtures("memory_is_known")
def test_openat2_at_once_stays_on_its_disk(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with held(os.open(tmp_path, os.O_PATH)) as folder:
        os.close(kernel.openat2(folder, b"file", os.O_RDONLY, at_once=True))
    with held(os.open("/", os.O_PATH)) as top:
        os.close(kernel.openat2(top, b"proc/version", os.O_RDONLY))
        with pytest.raises(OSError) as refused:
            kernel.openat2(top, b"proc/version", os.O_RDONLY, at_once=True)
    assert refused.value.errno in (errno.EXDEV, errno.EAGAIN)  # whichever the walk meets first


def test_what_openat2_opens_is_not_inherited(tmp_path: Path) -> None:
    if best_opener(str(tmp_path)) is not by_kernel:
        pytest.skip("openat2 is not allowed here")
    with held(os.open(tmp_path, os.O_PATH)) as folder, held(kernel.openat2(folder, b".", os.O_RDONLY)) as opened:
        assert not os.get_inheritable(opened)


def test_syncfs_answers_for_a_real_descriptor_and_refuses_another(tmp_path: Path) -> None:
    with held(os.open(tmp_path, os.O_RDONLY)) as fd:
        kernel.syncfs(fd)
    with pytest.raises(OSError):
        kernel.syncfs(-1)


def test_the_type_of_a_file_system_is_its_magic_number() -> None:
    with held(os.open("/proc/self", os.O_PATH)) as fd:
        assert kernel.file_system_type(fd) == 0x9FA0
    with pytest.raises(OSError):
        kernel.file_system_type(-1)


@pytest.mark.rule("memory.what-is-free-goes-back")
@pytest.mark.skipif(not hasattr(kernel._libc, "malloc_stats"), reason="it is another C library than glibc")
def test_many_threads_share_two_arenas() -> None:
    command = [sys.executable, "-c", MANY_THREADS]
    arenas = [
        subprocess.run(one, cwd=PROJECT, env=environment(), check=True, stderr=subprocess.PIPE).stderr.count(b"Arena ")
        for one in (command, [*command, "little"])
    ]
    assert arenas[1] <= kernel.ARENAS < arenas[0]


def test_what_begins_its_way_to_the_disk_stays_what_it_is(tmp_path: Path) -> None:
    with held(os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)) as fd:
        os.write(fd, b"x" * 10_000)
        kernel.start_writing(fd)
        os.write(fd, b"y")
    assert (tmp_path / "file").read_bytes() == b"x" * 10_000 + b"y"
    kernel.start_writing(-1)  # a disk that cannot do so is no failure


def test_memory_that_is_no_longer_used_is_given_back() -> None:
    """Texts too small for a mapping of their own, with one that stays behind them."""
    program = """
from sidecar.stores import kernel
def resident():
    return int(open("/proc/self/statm").read().split()[1])
held = [b"x" * (100_000 + at) for at in range(1000)]
last, before = b"x" * 100_000, resident()
del held
kernel.trim()
print(before - resident())
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=PROJECT, env=environment(), check=True, stdout=subprocess.PIPE)
    assert int(done.stdout) * os.sysconf("SC_PAGE_SIZE") > 80_000_000
