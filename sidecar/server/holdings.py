"""What the clients of one role make the daemon hold at the same time, and an end to it.

Each client has bounds of its own, but there may be hundreds. Together they hold half messages, params of requests that
are under way, and answers that nobody reads; when that is more than `most` bytes for all clients of a role, the one
that holds the most has to go, and the next one, until it is not. Roles are counted apart, so that no sandboxed program
costs the loop or an editor its connection.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Protocol

from sidecar.core import limits


class Holder(Protocol):
    """A connection, as far as it is looked at here."""

    def give_way(self) -> None:
        """Let go of everything and end."""
        ...


class Holdings:
    """Bytes by role and holder. Only those are counted that hold so much that it matters."""

    def __init__(self, most: int = limits.HELD_BYTES) -> None:
        self.most = most
        self._by_role: dict[str, dict[Holder, int]] = defaultdict(dict)
        self._sums: dict[str, int] = defaultdict(int)

    def held(self, role: str) -> int:
        """What all clients of the role hold together, in bytes."""
        return self._sums[role]

    def note(self, role: str, holder: Holder, held: int) -> None:
        """The holder holds so much now, 0 when it is over. Who holds the most is asked to give way, if need be."""
        holders = self._by_role[role]
        before = holders.pop(holder, 0)
        self._sums[role] += held - before
        if held:
            holders[holder] = held
        while self._sums[role] > self.most:
            greediest = max(holders, key=holders.__getitem__)
            self._sums[role] -= holders.pop(greediest)
            greediest.give_way()
