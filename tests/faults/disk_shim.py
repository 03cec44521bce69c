"""Programs whose every change of a folder is taken down, or fails at will: `disk_shim.c`, made where a compiler is.

record = Recorded(folder, log)          # a daemon under it: `env` before its words
for change in read_log(log): ...        # what it did to its disk, in order
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).with_name("disk_shim.c")
NEEDED = "a C compiler is not installed: apt-get install -y --no-install-recommends gcc libc6-dev"
_HEADER = struct.Struct("=QQQQQQ4I")

MADE, FOLDER, WRITTEN, CUT, SYNC, SYNCED, ALL, RENAMED, EXCHANGED, LINKED, REMOVED = (ord(c) for c in "cdwtsearxlu")
FAULTS = {
    "EIO": 1, "full once": 2, "full from then on": 3, "death before it": 4, "death in the middle": 5,
    "read-only from then on": 6,
}  # fmt: skip


class Change(NamedTuple):
    """`at` is CLOCK_MONOTONIC in ns; `number` counts the changes, and is shared by the two ends of a sync.

    Nodes are inode numbers. `offset` is where it was written, the new length, or what stood at the other name.
    """

    at: int
    number: int
    node: int
    folder: int
    other: int
    offset: int
    what: int
    name: bytes
    other_name: bytes
    data: bytes


@cache
def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc")


@cache
def shim(source: Path = SOURCE) -> str:
    """The path of the library, made when it is not there yet."""
    known = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    made = Path(tempfile.gettempdir()) / f"as-{source.stem}-{os.getuid()}-{known}.so"
    if not made.exists():
        making = made.with_suffix(f".{os.getpid()}")
        words = [str(compiler()), "-O2", "-shared", "-fPIC", "-o", str(making), str(source), "-ldl", "-lpthread"]
        subprocess.run(words, check=True, capture_output=True)
        making.rename(made)
    return str(made)


def require_shim(source: Path = SOURCE) -> str:
    """The same for a test, which is skipped where nothing compiles, but never in CI."""
    if compiler() is None:
        if os.environ.get("CI") == "true":
            pytest.fail(NEEDED)
        print(f"skipped: {NEEDED}")
        pytest.skip(NEEDED)
    return shim(source)


def recording(folder: Path, log: Path) -> list[str]:
    """The words before a program that have all its changes below `folder` taken down in `log`."""
    return ["env", f"LD_PRELOAD={shim()}", f"DISK_ROOT={folder}", f"DISK_LOG={log}"]


def failing(folder: Path, fault: str, nth: int) -> list[str]:
    """The words before a program whose `nth` change below `folder` fails."""
    return ["env", f"LD_PRELOAD={shim()}", f"DISK_ROOT={folder}", f"DISK_FAULT={FAULTS[fault]}", f"DISK_NTH={nth}"]


def fail_at(folder: Path, fault: str, nth: int) -> None:
    """In a program under the shim: from now on the `nth` change below `folder` fails, 0 being none."""
    watch = ctypes.CDLL(None).disk_watch
    watch.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64)
    watch(os.fsencode(folder), None, FAULTS[fault] if nth else 0, nth)


def changes_so_far() -> int:
    """In a program under the shim: how many changes it has made since `fail_at`."""
    count = ctypes.CDLL(None).disk_count
    count.restype = ctypes.c_uint64
    return int(count())


def read_log(path: Path) -> Iterator[Change]:
    """Everything that was taken down, in order; a record cut off at the end is none."""
    text = path.read_bytes()
    at = 0
    while at + _HEADER.size <= len(text):
        *numbers, what, name, other, size = _HEADER.unpack_from(text, at)
        at += _HEADER.size
        first, second, end = at + name, at + name + other, at + name + other + size
        if end > len(text):
            return
        yield Change(*numbers, what, text[at:first], text[first:second], text[second:end])
        at = end
