"""What the figures were taken on."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def facts() -> str:
    """In words. The load tells whether anybody else was at work."""
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    parts = [
        f"{os.cpu_count()} cores ({_processor()})",
        f"kernel {platform.release()}",
        f"Python {platform.python_version()}",
        f"SQLite {sqlite3.sqlite_version}",
        f"temporary files on {_filesystem(Path(tempfile.gettempdir()).resolve())}",
        f"load before the run {load}",
    ]
    return "; ".join(parts)


class Stolen:
    """How much of the processors' time a hypervisor gives to other machines, from now on. More than a few percent of it
    slow everything down, and what waits for a wake-up most.
    """

    def __init__(self) -> None:
        self._before = self._now()

    def __str__(self) -> str:
        stolen, spent = (now - before for now, before in zip(self._now(), self._before, strict=True))
        return f"{stolen / max(spent, 1):.1%}"

    def _now(self) -> tuple[int, int]:
        """In ticks: what was stolen, and all time of all processors."""
        ticks = [int(field) for field in Path("/proc/stat").read_text("ascii").split(maxsplit=9)[1:9]]
        return ticks[7], sum(ticks)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _filesystem(folder: Path) -> str:
    """The type of the file system that holds a folder: it decides what a sync costs."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text("utf-8").splitlines()]
    holding = [(point, kind) for _, point, kind, *_ in mounts if folder.is_relative_to(point)]
    return max(holding, key=lambda found: len(found[0]))[1]


def resident(pid: int | str = "self") -> int:
    """Bytes of a process that are in memory now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def one_core(*processes: int) -> Iterator[None]:
    """Keep these processes, with all their threads, on one core meanwhile."""
    before = {
        int(task): os.sched_getaffinity(int(task)) for pid in processes for task in os.listdir(f"/proc/{pid}/task")
    }
    core = {min(os.sched_getaffinity(0))}
    for task in before:
        os.sched_setaffinity(task, core)
    try:
        yield
    finally:
        for task, cores in before.items():
            try:
                os.sched_setaffinity(task, cores)
            except ProcessLookupError:
                pass  # a thread that has ended
