"""Is anybody still writing to this file? The kernel knows: a read lease is granted only when nobody is.

It sees every writer in every process, and shared writable maps too, in a few microseconds. It is given back at once: a
writer that opens the file in between waits for just that long. Where leases do not work (another owner's file, network
and some sandboxed file systems), a file is settled when two looks a quarter of a second apart saw the same state.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from typing import Literal

from sidecar.core.inventory import StatKey
from sidecar.stores import kernel
from sidecar.stores.opens import held

Writers = Literal["none", "some", "unknown"]

SETTLE_SECONDS = 0.25
_REMEMBERED = 20_000

# Asks the kernel to tell of a broken lease by a signal whose default is to be ignored; the usual one ends the process.
_F_SETSIG = 10


def ignore_lease_signal() -> None:
    """Ignore SIGIO for the whole process; called once by the daemon, from its main thread.

    A second belt: each lease asks for a harmless signal, but a kernel that cannot do so would send this one.
    """
    signal.signal(signal.SIGIO, signal.SIG_IGN)


def writers(fd: int) -> Writers:
    """Whether anybody has this file open for writing. `fd` is open for reading only."""
    try:
        fcntl.fcntl(fd, _F_SETSIG, int(signal.SIGURG))
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as failure:
        return "some" if failure.errno == errno.EAGAIN else "unknown"
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return "none"


def racy_ns(root: str) -> int:
    """For how long after a change another one may carry the same times: nanoseconds, 0 where times are fine enough.

    Since Linux 6.13 the disks below stamp every change that somebody could tell apart. Elsewhere stamps move with the
    clock's tick, as git found out with its index: a file read within the tick of its last change is read once more.
    """
    with held(os.open(root, os.O_RDONLY | os.O_DIRECTORY)) as folder:
        disk = kernel.file_system_type(folder)
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    has_fine_stamps = release is not None and (int(release[1]), int(release[2])) >= (6, 13)
    return 0 if has_fine_stamps and disk in _FINELY_STAMPED else 20_000_000


_FINELY_STAMPED = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994})  # ext4, xfs, btrfs, tmpfs


class Settling:
    """Files seen once and waiting for a second look, for disks without leases."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: dict[str, tuple[StatKey, float]] = {}
        self._lock = threading.Lock()

    def has_settled(self, path: str, key: StatKey) -> bool:
        """Whether this same state was seen at least a quarter of a second ago."""
        now = self._now()
        with self._lock:
            before = self._seen.get(path)
            if before is not None and before[0] == key:
                return now - before[1] >= SETTLE_SECONDS
            if len(self._seen) >= _REMEMBERED:
                # Files that nobody asked about again; forgetting one costs it a quarter of a second.
                del self._seen[next(iter(self._seen))]
            self._seen.pop(path, None)
            self._seen[path] = (key, now)
            return False

    def forget(self, path: str) -> None:
        """This path was taken in, or is gone."""
        with self._lock:
            self._seen.pop(path, None)
