"""What a process and its folders come to at a moment, read from /proc and the disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.machine import resident

MIB = 1024 * 1024
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory and sizes in bytes, times in seconds since the soak began; `cpu` is what the daemon has spent."""

    at: float
    rss: int
    pss: int
    uss: int
    fds: int
    threads: int
    cpu: float
    journal: int
    wal: int
    index: int
    kept: int
    store: int
    state: int
    files: int
    counts: dict[str, int]
    clients: int
    queued: int

    @property
    def blocks(self) -> int:
        return self.counts["blocks"]

    def record(self) -> dict[str, Any]:
        return asdict(self)


def memory(pid: int) -> tuple[int, int, int]:
    """Resident, proportional and unique bytes of a process.

    A daemon lets nobody but root look into it; to others all three are what it has resident.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()[1:]
    except PermissionError:
        return (resident(pid),) * 3
    sizes = {name.rstrip(":"): int(size) * 1024 for name, size, *_ in map(str.split, lines)}
    return sizes["Rss"], sizes["Pss"], sizes["Private_Clean"] + sizes["Private_Dirty"]


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def descriptors(pid: int) -> int:
    """How many a process has open; 0 where only root may know."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        return 0


def size_of(folder: Path) -> tuple[int, int]:
    """Bytes and files below a folder, as they are while others go on writing there."""
    size = files = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(where, name)).st_size
            except FileNotFoundError:
                continue
            files += 1
    return size, files


def sizes(state: Path, out_dir: Path) -> dict[str, int]:
    """The parts of a state folder, all of it, and how many files OUT_DIR has."""
    return {
        "journal": _size(state / "journal.db"),
        "wal": _size(state / "journal.db-wal"),
        "index": sum(_size(state / f"index.db{ending}") for ending in ("", "-wal", "-shm")),
        "kept": size_of(state / "kept")[0],
        "store": size_of(state / "store")[0],
        "state": size_of(state)[0],
        "files": size_of(out_dir)[1],
    }


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def quarters(samples: Sequence[Any]) -> list[Sequence[Any]]:
    """Four parts of a row, in order; the last takes what is left over."""
    part = max(1, len(samples) // 4)
    return [samples[:part], samples[part : 2 * part], samples[2 * part : 3 * part], samples[3 * part :]]
