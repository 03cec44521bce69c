"""The rival of an event: a program that waits for files and says so at once.

    python -m tests.bench.teller inotify FOLDER            writes a byte for each file that was closed or renamed in
    python -m tests.bench.teller inotify FOLDER DATABASE   and before it, reads and hashes the file and commits one row
    python -m tests.bench.teller doorbell FOLDER DATABASE  the same, told by watchfiles with the settings of the daemon

It writes one byte more when it is ready to hear.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from watchfiles._rust_notify import RustNotify

from sidecar.stores.watch import DEBOUNCE_MS, STEP_MS
from tests.bench.engine import Engine

IN_CLOSE_WRITE, IN_MOVED_TO = 0x8, 0x80
_HEADER = struct.Struct("iIII")


def names(folder: str, *, ready: Callable[[], object]) -> Iterator[str]:
    """The name of each file in the folder that was complete just now, for ever."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_CLOEXEC)
    if watch < 0 or libc.inotify_add_watch(watch, os.fsencode(folder), IN_CLOSE_WRITE | IN_MOVED_TO) < 0:
        raise OSError(ctypes.get_errno(), "inotify", folder)
    ready()
    while events := os.read(watch, 1 << 16):
        at = 0
        while at < len(events):
            *_, length = _HEADER.unpack_from(events, at)
            at += _HEADER.size + length
            yield os.fsdecode(events[at - length : at].rstrip(b"\0"))


def names_by_doorbell(folder: str, *, ready: Callable[[], object]) -> Iterator[str]:
    """The name of each file in the folder in which something stirred, once, for ever."""
    bell = RustNotify([folder], False, False, 0, False, False)
    ready()
    told: set[str] = set()
    while True:
        for path in {path for _, path in bell.watch(DEBOUNCE_MS, STEP_MS, 0, threading.Event())} - told:
            told.add(path)
            yield os.path.basename(path)


def main(way: str, folder: str, *databases: str) -> None:
    engines = [Engine(Path(database)) for database in databases]
    heard = {"inotify": names, "doorbell": names_by_doorbell}[way]
    for number, name in enumerate(heard(folder, ready=_say), start=1):
        for engine in engines:
            with open(os.path.join(folder, name), "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            engine.write([(number, "file", f"{name} {digest}".encode(), b"", 0)])
        _say()


def _say() -> None:
    os.write(1, b".")


if __name__ == "__main__":
    main(*sys.argv[1:])
