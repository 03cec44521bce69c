"""What the memory of a daemon is made of, and what two moments of it differ in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Holding:
    """Bytes. `used` and `free` are those of both allocators, Python's and the C library's; `caches` have limits."""

    resident: int
    used: int
    free: int
    caches: dict[str, int]
    modules: int  # how many are imported

    @classmethod
    def of(cls, said: dict[str, Any]) -> Self:
        """From what `inside/sitecustomize.py` says."""
        memory, caches = said["memory"], said["caches"]
        heap, small = memory["heap"], memory["small"]
        used = heap["uordblks"] + heap["hblkhd"] + small["used"]
        return cls(memory["before"], used, heap["fordblks"] + small["free"], caches, said["modules"])

    @property
    def cached(self) -> int:
        return sum(self.caches.values())


def table(holdings: dict[str, Holding]) -> str:
    """Daemons in columns: what each holds, by kind."""
    caches = sorted({name for one in holdings.values() for name in one.caches})
    rows = [
        ("resident", [one.resident for one in holdings.values()]),
        *((f"of it a cache: {name}", [one.caches.get(name, 0) for one in holdings.values()]) for name in caches),
        ("in use without the caches", [one.used - one.cached for one in holdings.values()]),
        ("free in the allocators", [one.free for one in holdings.values()]),
        ("code, stacks and the rest", [one.resident - one.used - one.free for one in holdings.values()]),
    ]
    lines = [f"| held by | {' | '.join(holdings)} |", "| --- |" + " ---: |" * len(holdings)]
    lines += [f"| {name} | {' | '.join(f'{size / MIB:.1f} MiB' for size in sizes)} |" for name, sizes in rows]
    return "\n".join(lines) + "\n"
