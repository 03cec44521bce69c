"""A workspace at a glance: its turns in order, the calls in each, and how many artifacts each of them made.

What is counted is kept up, artifact by artifact, and apart for each visibility: who asks adds up what may be known.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sidecar.core.artifacts import Artifact, Visibility, call_of

Visible = frozenset[str]
"""The visibilities that somebody may know of."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was made in one turn. `first` is when the oldest of it appeared, in seconds since the epoch."""

    first: float
    artifacts: int
    calls: Mapping[str, int]  # in the order in which their first artifacts became known


@dataclass(slots=True)
class _Turn:
    firsts: dict[Visibility, float] = field(default_factory=dict)
    artifacts: Counter[str] = field(default_factory=Counter[str])  # by visibility
    calls: dict[str, Counter[str]] = field(default_factory=dict)


class Outline:
    """Counts every artifact once, for its turn and for the call that made its latest version."""

    __slots__ = ("_artifacts", "_others", "_turns", "_versions", "_where")

    def __init__(self) -> None:
        self._artifacts: Counter[str] = Counter()
        self._versions: Counter[str] = Counter()
        self._others: Counter[str] = Counter()
        self._turns: dict[str, _Turn] = {}
        self._where: dict[str, tuple[str, str, Visibility, int]] = {}

    def put(self, artifact: Artifact) -> None:
        """Take in an artifact as it stands now, in place of what was known of it. One without versions is none."""
        if not artifact.versions:
            return
        path = artifact.path
        logical, turn_id = path.logical or "", path.turn_id
        where = (turn_id, call_of(artifact.versions[-1]), artifact.visibility, len(artifact.versions))
        before = self._where.get(logical)
        if before == where:
            return
        if before is not None:
            self._count(before, -1)
        self._where[logical] = where
        self._count(where, 1)
        if turn_id:
            firsts = self._turns[turn_id].firsts
            firsts[artifact.visibility] = min(firsts.get(artifact.visibility, 1e18), artifact.versions[0].ts)

    def totals(self, visible: Visible) -> tuple[int, int]:
        """How many artifacts there are, and how many versions of them."""
        return _sum(self._artifacts, visible), _sum(self._versions, visible)

    def others(self, visible: Visible) -> int:
        """How many there are of no turn."""
        return _sum(self._others, visible)

    def made(self, visible: Visible) -> dict[str, Made]:
        """Every turn that has something to see."""
        found: dict[str, Made] = {}
        for turn_id, turn in self._turns.items():
            if (count := _sum(turn.artifacts, visible)) > 0:
                calls = {call: seen for call, counts in turn.calls.items() if (seen := _sum(counts, visible)) > 0}
                first = min(first for visibility, first in turn.firsts.items() if visibility in visible)
                found[turn_id] = Made(first, count, calls)
        return found

    def _count(self, where: tuple[str, str, Visibility, int], by: int) -> None:
        turn_id, call, visibility, versions = where
        self._artifacts[visibility] += by
        self._versions[visibility] += by * versions
        if not turn_id:
            self._others[visibility] += by
            return
        turn = self._turns.setdefault(turn_id, _Turn())
        turn.artifacts[visibility] += by
        if call:
            turn.calls.setdefault(call, Counter())[visibility] += by


def in_order(known: Iterable[tuple[str, float]], found: Mapping[str, float]) -> Iterator[str]:
    """Turns of the timeline, in its own order, with those found on disk at the moments of their oldest files."""
    told = list(_never_back(known))
    names = {turn_id for _, turn_id in told}
    others = sorted((first, turn_id) for turn_id, first in found.items() if turn_id not in names)
    return (turn_id for _, turn_id in heapq.merge(told, others, key=lambda pair: pair[0]))


def _never_back(known: Iterable[tuple[str, float]]) -> Iterator[tuple[float, str]]:
    """The timeline's order counts more than its clocks."""
    latest = 0.0
    for turn_id, began in known:
        latest = max(latest, began)
        yield latest, turn_id


def _sum(counts: Counter[str], visible: Visible) -> int:
    return sum(count for visibility, count in counts.items() if visibility in visible)


def title_of(prompt: str, most: int) -> str:
    """The beginning of what the user asked for, in one line of at most so many characters."""
    words = " ".join(prompt[: 4 * most].split())
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"
