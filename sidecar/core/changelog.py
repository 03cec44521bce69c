"""What changed at which revision, for clients that ask "what is new since".

Blocks are not listed here: the timeline knows the revision of each of them, so a replay weaves the two together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from heapq import merge
from typing import Literal, NamedTuple

from sidecar.core import limits
from sidecar.core.timeline import Timeline

Kind = Literal["artifact", "source", "block", "notice"]


class Change(NamedTuple):
    """One thing that changed. `about` is a path, a sid, or a block's number; for a notice its code."""

    revision: int
    kind: Kind
    about: str | int


class ChangeLog:
    """The newest changes in order, at most `limits.CHANGES_KEPT` of them."""

    __slots__ = ("_changes", "_forgotten")

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._forgotten = 0  # every change up to this revision is no longer listed

    def add(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) >= 2 * limits.CHANGES_KEPT:
            self._forgotten = self._changes[-limits.CHANGES_KEPT - 1].revision
            self._changes = self._changes[-limits.CHANGES_KEPT :]

    def reaches(self, since: int, revision: int) -> bool:
        """Whether a replay from `since` is possible: it is no future, not forgotten, and not too far back."""
        return self._forgotten <= since <= revision and revision - since <= limits.CHANGES_KEPT

    def since(self, since: int, timeline: Timeline) -> Iterator[Change]:
        """Every change after that revision, in order. Changes of one revision stay together."""
        blocks = (Change(revision, "block", number) for revision, number in timeline.since_revision(since))
        return merge(self.listed(since), blocks, key=lambda change: change.revision)

    def listed(self, since: int) -> Iterator[Change]:
        """The same without blocks."""
        start = bisect_right(self._changes, since, key=lambda change: change.revision)
        return (self._changes[at] for at in range(start, len(self._changes)))
