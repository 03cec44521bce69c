"""Runs the attacks of a kind and says what came of it: a line of the table."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic

from tests.hostile.arena import Arena
from tests.hostile.pulse import Calm
from tests.hostile.table import Kind

CALM_ANSWERS = 600
MIB = 1 << 20
NOTHING = Calm(0, 0.0, 0.0, 0)
Say = Callable[[str], None]


@dataclass(slots=True)
class Found:
    """What came of the attacks of one kind. Seconds and bytes."""

    kind: Kind
    attacks: int = 0
    requests: int = 0
    leaks: int = 0
    wrong: list[str] = field(default_factory=list)
    calm: Calm = NOTHING
    under_attack: Calm = NOTHING
    before: int = 0
    peak: int = 0
    after: int = 0
    seconds: float = 0.0

    @property
    def ratio(self) -> float:
        return self.under_attack.p99 / self.calm.p99 if self.calm.p99 else 0.0


def attacked(kind: Kind, seed: int, numbers: Iterable[int], *, quick: bool, say: Say) -> Found:
    """Make these attacks against one daemon; every one that goes wrong is said with how to make it again."""
    found, began = Found(kind), monotonic()
    with tempfile.TemporaryDirectory(prefix="as-hostile-", ignore_cleanup_errors=True) as folder:
        arena = Arena(Path(folder), Random(f"{seed}/{kind.name}"), quick=quick, door=kind.door)
        try:
            _attack(arena, found, seed, numbers, say)
        finally:
            arena.end()
            found.seconds = monotonic() - began
    return found


def _attack(arena: Arena, found: Found, seed: int, numbers: Iterable[int], say: Say) -> None:
    kind = found.kind
    found.calm = arena.pulse.calm_for(100 if arena.quick else CALM_ANSWERS)
    found.before = arena.resident()
    arena.forget_peak()
    since, said = monotonic(), list[str]()
    for number in numbers:
        found.attacks += 1
        found.wrong += assaulted(arena, kind, seed, number)
        for fault in found.wrong[len(said) :]:
            say(fault[:6000])
        said = [*found.wrong]
        if not arena.is_alive:
            break
    found.peak = arena.peak()
    try:
        found.under_attack = arena.pulse.within(since, monotonic() - 0.05)
        if found.under_attack.wrong:
            found.wrong.append(f"{kind.name}: {found.under_attack.wrong} wrong answers to an honest client")
        arena.must_have_let_go()
    except Exception as fault:  # noqa: BLE001 - as above
        found.wrong.append(f"{kind.name}, after all of it: {_sentence(fault)}")
        say(found.wrong[-1])
    with suppress(OSError):
        found.after = arena.resident()
    found.requests, found.leaks = arena.asked, arena.leaks


def assaulted(arena: Arena, kind: Kind, seed: int, number: int) -> list[str]:
    """One attack, and whether all that must hold did: what did not, with the command that makes it again."""
    arena.number, arena.door = number, kind.door
    try:
        try:
            kind.deed(arena, Random(f"{seed}/{kind.name}/{number}"))
        finally:
            arena.tidy()
        arena.must_be_well()
    except Exception as fault:  # noqa: BLE001 - whatever it is, it is a finding
        again = f"python -m tests.hostile {'--quick ' * arena.quick}--seed {seed} --only '{kind.name}#{number}'"
        return [f"{again}\n{_sentence(fault)}\n{arena.workspace.tail()}"]
    return []


def _sentence(fault: Exception) -> str:
    last = traceback.extract_tb(fault.__traceback__)[-1]
    return f"{type(fault).__name__}: {fault} ({Path(last.filename).name}:{last.lineno})"


COLUMNS = (
    "kind", "what holds", "attacks", "requests", "wrong", "leaked", "p99 calm", "p99 attacked", "ratio", "longest",
    "memory before", "peak", "after", "took",
)  # fmt: skip
HEAD = f"| {' | '.join(COLUMNS)} |\n| --- | --- |{' ---: |' * (len(COLUMNS) - 2)}\n"


def line(found: Found) -> str:
    """A row in Markdown."""
    cells = (
        found.kind.name, found.kind.holds, f"{found.attacks:,}", f"{found.requests:,}", len(found.wrong), found.leaks,
        _ms(found.calm.p99), _ms(found.under_attack.p99), f"{found.ratio:.1f}x", _ms(found.under_attack.longest),
        *(f"{size / MIB:.0f} MiB" for size in (found.before, found.peak, found.after)), f"{found.seconds:.0f} s",
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def total(rows: str) -> str:
    """The row that counts all of these."""
    cells = [row.split("|") for row in rows.splitlines()]
    attacks, requests, wrong, leaked = (sum(int(row[at].replace(",", "")) for row in cells) for at in (3, 4, 5, 6))
    seconds = sum(int(row[-2].split()[0]) for row in cells)
    return f"| all | | {attacks:,} | {requests:,} | {wrong} | {leaked} | | | | | | | | {seconds:,} s |"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
