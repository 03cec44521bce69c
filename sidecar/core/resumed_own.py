"""What a workspace has that was never saved, and whether somebody else went on without it.

A kill between a commit and our own note of it leaves work that is saved and does not look so: what the store has under
the same numbers is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sidecar.core.blocks import TURN, Defaults, tell
from sidecar.core.errors import Refusal
from sidecar.core.resumed import IMPORTED, Reach, sids_in
from sidecar.core.saved_turns import WHOLE
from sidecar.core.sources import dedupe_key
from sidecar.core.state import State

_COMPARED = slice(0, 6)  # of a head: its flags change when a block is hidden or hosted


@dataclass(slots=True)
class Own:
    """Blocks and sources, by number, that look unsaved; what is found in the store goes."""

    blocks: set[int]
    sids: set[int]
    turns: set[str]

    def __bool__(self) -> bool:
        return bool(self.blocks or self.sids)

    def found(self, state: State, log: object) -> None:
        """A turn log of the store."""
        said = log if isinstance(log, dict) else {}
        blocks, indexes = said.get("blocks"), said.get("indexes")
        if not isinstance(blocks, list) or not isinstance(indexes, list):
            return
        for number, block in zip(indexes, blocks, strict=False):
            if number in self.blocks and _is_same(state, number, block):
                self.blocks.discard(number)

    def found_pool(self, state: State, pool: object) -> None:
        """The pool of the store, or None where there is none: what is above its numbers was given to nobody else."""
        highest = sids_in(pool)
        self.sids = {sid for sid in self.sids if sid <= highest}
        rows = pool.get("sources_pool") if isinstance(pool, dict) else None
        for row in rows if isinstance(rows, list) else ():
            sid = row.get("sid") if isinstance(row, dict) else None
            if sid in self.sids and _names_same(state.pool.get(sid) or {}, row):
                self.sids.discard(sid)


def own_work(state: State, next_block: int) -> Own:
    """What is of our own, not noted as saved, and has a number that may be somebody else's as well by now."""
    timeline, saved = state.timeline, state.saved
    known = Reach.of(state.facts.get(IMPORTED))
    numbers = range(known.next_block, next_block)
    blocks: set[int] = set()
    turns: set[str] = set()
    for turn in saved.unsaved:
        saving = saved.at(turn)
        after = saving.revision if saving is not None else 0
        fresh = [n for n in timeline.of_turn(turn) if n in numbers and timeline.seqs[n] > after]
        blocks.update(fresh)
        turns.update([turn] if fresh else ())
    # Rows have no revision of their own: any above what was taken in may be new when something of the pool is.
    sids = {sid for sid in state.pool.sids if sid > known.max_sid} if WHOLE in saved.unsaved else set[int]()
    return Own(blocks, sids, turns)


def _is_same(state: State, number: int, block: Any) -> bool:
    head = state.timeline.heads[number]
    try:
        told = tell(block, Defaults(head[TURN], 0.0))
    except (Refusal, TypeError, ValueError, KeyError, AttributeError):
        return False
    return told.head[_COMPARED] == head[_COMPARED]


def _names_same(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    key = dedupe_key(ours)
    return key == dedupe_key(theirs) and (key is not None or ours.get("title") == theirs.get("title"))
