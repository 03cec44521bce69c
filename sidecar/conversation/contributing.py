"""What the runtime saves of its own to a conversation: a blob, a row, or both, of a kind that is not the daemon's.

Blob first, then row, in the name of whoever holds the lease. A save that is asked for again by its mark finds its row
and changes nothing, also where a kill came before the answer was remembered. (A blob without a row cannot be found: a
second one is stored, and nobody was told of the first.)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakValueDictionary

import orjson

from sidecar.conversation.accounting import Accounting
from sidecar.conversation.archive import Archive, Content
from sidecar.conversation.lease import Lease
from sidecar.core.blocks import LEVELS, is_shallow
from sidecar.core.conversation_kinds import (
    CHAT_ASSISTANT,
    CHAT_USER,
    POOL,
    REACTION,
    THINKING,
    TIMELINE,
    TURN_LOG,
    tags_of,
)
from sidecar.core.conversation_names import message_id
from sidecar.core.discretion import bounded_json
from sidecar.core.errors import NotFound, NotPermitted, TooLarge, UnknownTurn
from sidecar.core.index_rows import INDEX_ONLY, Commit, IndexRow, LeaseLost, Written, WrongDimension
from sidecar.pieces import Pieces
from sidecar.workspace import Workspace

ACCOUNTING = "accounting"
TEXT_CHARS = 65_536  # of a content, as the text of its row
OUR_OWN = frozenset({TIMELINE, POOL, TURN_LOG, REACTION, THINKING})

Places = Literal["both", "index_only", "store_only"]
_ROLES: Mapping[str, Literal["user", "assistant"]] = {CHAT_USER: "user", CHAT_ASSISTANT: "assistant"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What is to be saved, and where. `mark` makes it safe to repeat: the same mark means the same contribution."""

    kind: str
    content: dict[str, Any] | None
    text: str | None
    turn_id: str | None
    tags: Sequence[str] = ()
    embedding: Sequence[float] | None = None
    places: Places = "both"
    mark: str = ""


class Contributions:
    """Saves what the runtime brings, and gives rows their vectors later."""

    def __init__(self, workspace: Workspace, archive: Archive, lease: Lease, accounting: Accounting) -> None:
        self._workspace = workspace
        self._archive = archive
        self._lease = lease
        self._accounting = accounting
        self._saving: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def save(self, given: Contribution) -> dict[str, Any]:
        """`{message_id, hosted_uri, rn?}`.

        Raises NotPermitted for a kind of the daemon's own and when somebody else writes the conversation, UnknownTurn,
        TooLarge for what nests too deep, StoreUnavailable and WrongDimension. Then there is no row; a blob that was
        stored is in nobody's way.
        """
        if given.kind in OUR_OWN:
            raise NotPermitted(given.kind, "the daemon writes this kind itself")
        if not is_shallow(given.content):
            raise TooLarge("content", f"JSON may nest {LEVELS} levels deep")
        turn_id = self._turn(given.turn_id)
        await self._require_lease()
        if given.kind == ACCOUNTING:
            kept = await self._accounting.keep(turn_id, given.content or {})
            return {"message_id": kept["key"], "hosted_uri": kept["hosted_uri"]}
        if not given.mark:
            return await self._save(given, turn_id)
        lock = self._saving.setdefault(given.mark, asyncio.Lock())
        async with lock:
            return await self._save(given, turn_id)

    async def embed(self, kind: str, own: str, embedding: Sequence[float]) -> dict[str, Any]:
        """Give a saved row its vector; answers as `save` does.

        Raises NotFound where no row of this kind has that id, and what `save` raises for leases, outages and vectors.
        """
        archive = self._archive
        await self._require_lease()
        row = await archive.ask(archive.index.row, archive.scope, own)
        if row is None or row.kind != kind:
            raise NotFound(own, "no row of this kind has that id")
        if not await archive.ask(archive.index.embed, archive.scope, own, embedding):
            raise NotFound(own, "the row is gone by now")
        return _saved(row)

    async def _require_lease(self) -> None:
        """Raises NotPermitted when somebody else writes this conversation."""
        await self._lease.confirm()
        self._lease.require()

    def _turn(self, asked: str | None) -> str:
        """The turn that a contribution is of: the one named, else the open one, else none."""
        workspace = self._workspace
        if asked is None:
            return workspace.turn_id
        if not workspace.has_turn(asked) and asked not in workspace.facts.get("turn_ids", ()):
            raise UnknownTurn(asked, "no turn of this id is known")
        return asked

    async def _save(self, given: Contribution, turn_id: str) -> dict[str, Any]:
        archive = self._archive
        own = self._own_id(given, turn_id)
        known = await archive.ask(archive.index.row, archive.scope, own) if own else None
        if known is not None:
            return _saved(known)
        content = await asyncio.to_thread(_content, given, turn_id, own)
        blob = None if given.places == "index_only" else await archive.put(content)
        if given.places == "store_only":
            assert blob is not None
            return {"message_id": blob.message_id, "hosted_uri": blob.hosted_uri, "rn": blob.rn}
        tags = tags_of(given.kind, turn_id, *given.tags)
        row = archive.row(content, blob, tags=tags, role=_ROLES.get(given.kind, "artifact"))
        commit = Commit(rows=(Written(row, given.embedding),))
        try:
            await archive.ask(archive.index.commit, archive.scope, commit, fence=self._lease.fence)
        except (LeaseLost, WrongDimension) as fault:
            # After an outage nobody knows whether the row stands, and its blob is left to it.
            await archive.delete([row.key] if row.key else [])
            if isinstance(fault, WrongDimension):
                raise
            self._lease.lost()
            raise NotPermitted("conversation", "somebody else writes this conversation by now") from fault
        return _saved(row)

    def _own_id(self, given: Contribution, turn_id: str) -> str:
        """The id of a contribution that may be repeated: of its mark, this workspace and its turn, and of no clock."""
        if not given.mark:
            return ""
        here = str(self._workspace.facts.get("opened", ""))
        return message_id(given.kind, self._began(turn_id), mark=f"{here}\0{given.mark}")

    def _began(self, turn_id: str) -> float:
        """When the turn's first block was told; for none, a moment that does not change either."""
        timeline = self._workspace.timeline
        numbers = timeline.of_turn(turn_id)
        if numbers:
            return timeline.heads[numbers[0]][2]
        return timeline.heads[0][2] if timeline.heads else 0.0


def _content(given: Contribution, turn_id: str, own: str) -> Content:
    """What is stored, and what its row says. Blocking: it serialises."""
    content = given.content if given.content is not None else {"text": given.text}
    payload = Pieces([orjson.dumps(content)])
    text = given.text if given.text is not None else bounded_json(content, TEXT_CHARS)
    return Content(given.kind, turn_id, time.time(), payload, text, own)


def _saved(row: IndexRow) -> dict[str, Any]:
    saved = {"message_id": row.message_id, "hosted_uri": row.hosted_uri}
    return saved | ({"rn": row.rn} if row.rn and row.hosted_uri != INDEX_ONLY else {})
