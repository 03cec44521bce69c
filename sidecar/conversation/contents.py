"""The contents of rows, read from the store for an answer: several at once, and only as many as it can carry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import orjson

from sidecar.conversation.archive import Archive
from sidecar.core import limits
from sidecar.core.errors import NotFound, StoreUnavailable
from sidecar.core.index_rows import IndexRow
from sidecar.pieces import Pieces

READS_AT_ONCE = 8
FIRST_BYTES = 32 * limits.MIB  # of the first content: who asks for one long thing gets it, if a message can hold it
EXPECTED_BYTES = 1 * limits.MIB

LeaveOut = Mapping[str, Set[str]]
_NOTHING: LeaveOut = {}


@dataclass(frozen=True, slots=True)
class Onlooker:
    """Who asks, and what they see: blocks by number, artifacts by logical path.

    `cut` takes out of a content, of a turn, what is not for them. What is of a kind in `withheld` may hold anything of
    the conversation, and is not shown to them at all.
    """

    sees_all: bool
    block: Callable[[int], bool]
    artifact: Callable[[str], bool]
    cut: Callable[[Any, str], Any]
    withheld: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Read:
    """What came of reading: per row `{payload}` or `{missing}`, and how long the payloads are together."""

    told: list[dict[str, Any]]
    size: int


class Contents:
    """Reads contents. Never raises for one that cannot be had: that one says why."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    async def of(
        self, rows: Sequence[IndexRow], onlooker: Onlooker, *, room: int, leave_out: LeaveOut = _NOTHING
    ) -> Read:
        """The contents of these rows, in order. Payloads are JSON already, cut for the onlooker.

        They are read eight at a time, fewer while they are long: nobody knows how long one is before it is read.
        `leave_out` names members of payloads, by kind, that this answer does not tell.
        """
        told: list[dict[str, Any]] = []
        used, longest = 0, EXPECTED_BYTES
        while len(told) < len(rows):
            at_once = max(1, min(READS_AT_ONCE, (room - used) // longest))
            some = rows[len(told) : len(told) + at_once]
            if used >= room:
                told += [{"missing": "too_much"} if row.key else {"missing": "no_blob"} for row in some]
                continue
            for read in await asyncio.gather(*(self._one(row, onlooker, leave_out) for row in some)):
                if isinstance(read, bytes):
                    longest = max(longest, len(read))
                    if used + len(read) > (room if used else max(room, FIRST_BYTES)):
                        told.append({"missing": "too_much"})
                        continue
                    used += len(read)
                    told.append({"payload": Pieces([read])})
                else:
                    told.append({"missing": read})
        return Read(told, used)

    async def _one(self, row: IndexRow, onlooker: Onlooker, leave_out: LeaveOut) -> bytes | str:
        """A content as JSON, or why it is not to be had."""
        if row.kind in onlooker.withheld:
            return "not_for_this_role"
        if not row.key:
            return "no_blob"
        try:
            record = await self._archive.get(row)
        except NotFound:
            return "gone"
        except StoreUnavailable:
            return "store_unavailable"
        left_out = leave_out.get(row.kind, frozenset())
        return await asyncio.to_thread(_shown, row, record.get("payload"), onlooker, left_out)


def _shown(row: IndexRow, payload: Any, onlooker: Onlooker, leave_out: Set[str]) -> bytes:
    """Blocking: it may be long."""
    members = payload.items() if isinstance(payload, dict) else (("value", payload),)
    payload = {name: member for name, member in members if name not in leave_out}
    shown = payload if onlooker.sees_all else onlooker.cut(payload, row.turn_id)
    return orjson.dumps(shown if isinstance(shown, dict) else {})
