"""What the clients of one role make the daemon hold at the same time, and an end to it.

Each client has bounds of its own, but there may be hundreds. Together they hold half messages, params of requests that
are under way, and answers that nobody reads. When that is more than `most` bytes for all clients of a role, the program
whose connections hold the most loses the greatest of them, until it is not. Roles are counted apart, so that no
sandboxed program costs the loop or an editor its connection; a crowd of small connections is counted as its program, so
that it does not cost another one with a long answer its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Protocol

from sidecar.core import limits


class Holder(Protocol):
    """A connection, as far as it is looked at here."""

    @property
    def program(self) -> int:
        """The process at its other end."""
        ...

    def give_way(self) -> None:
        """Let go of everything and end. It is not noted any more."""
        ...


def nobody() -> None:
    """Nobody wants to know."""


class Holdings:
    """Bytes by role and holder. Only those are counted that hold so much that it matters.

    `relieved` is called when most of it is gone again: more than a quarter of `most` was held, and a quarter of that is
    left.
    """

    def __init__(self, most: int = limits.HELD_BYTES, *, relieved: Callable[[], None] = nobody) -> None:
        self.most = most
        self._relieved = relieved
        self._was_much: set[str] = set()
        self._by_role: dict[str, dict[Holder, int]] = defaultdict(dict)
        self._sums: Counter[str] = Counter()

    def held(self, role: str) -> int:
        """What all clients of the role hold together, in bytes."""
        return self._sums[role]

    def note(self, role: str, holder: Holder, held: int) -> None:
        """The holder holds so much now, 0 when it is over. Somebody has to give way when it is too much."""
        holders = self._by_role[role]
        self._sums[role] += held - holders.pop(holder, 0)
        if held:
            holders[holder] = held
        while self._sums[role] > self.most:
            greediest = _greediest(holders)
            self._sums[role] -= holders.pop(greediest)
            greediest.give_way()
        if self._sums[role] > self.most // 4:
            self._was_much.add(role)
        elif role in self._was_much and self._sums[role] <= self.most // 16:
            self._was_much.remove(role)
            self._relieved()


def _greediest(holders: dict[Holder, int]) -> Holder:
    by_program: Counter[int] = Counter()
    for holder, held in holders.items():
        by_program[holder.program] += held
    program = max(by_program, key=by_program.__getitem__)
    return max((one for one in holders if one.program == program), key=holders.__getitem__)
