"""Reactions to turns: kept as rows, and mirrored into the turn's log and its summary (spec section 10).

A reaction is kept once its row stands; that is one transaction, whoever else reacts at that moment. The mirror is made
of all rows and put in place only where the log's row is still as it was read; else it is made again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson

from sidecar.conversation.archive import Archive, Blob, Content
from sidecar.conversation.gathering import serialised
from sidecar.core import limits
from sidecar.core.conversation_kinds import REACTION, TURN_LOG, tags_of
from sidecar.core.conversation_names import message_id
from sidecar.core.errors import NotFound, StoreUnavailable, UnknownTurn
from sidecar.core.feedback import Payload, Reaction, feedback_of, in_order, mirrored, summary_with
from sidecar.core.index_rows import Commit, Filters, IndexRow, RowChanged, Written
from sidecar.pieces import Pieces
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)

TRIES = 50  # at a mirror, each after another daemon was faster
REST = 5.0


class Feedback:
    """Keeps reactions. `listeners` hear of each one that was kept here, with its row."""

    def __init__(self, workspace: Workspace, archive: Archive) -> None:
        self.listeners: list[Callable[[IndexRow], None]] = []
        self._workspace = workspace
        self._archive = archive
        self._owed: set[str] = set()  # turns whose log does not tell of every reaction yet
        self.patience = limits.FEEDBACK_WAIT  # with a store that says nothing
        self._stirred = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()

    async def rate(self, reaction: Reaction, *, mark: str = "") -> dict[str, Any]:
        """Keep a reaction; answers what was saved. The same `mark`, if there is one, means the same reaction.

        The log of the turn is waited for only while there is time left of the store's. Raises UnknownTurn, and
        StoreUnavailable when the index or the store does not answer, or not in time: then nothing was kept, unless
        the index was too late to say that it was.
        """
        workspace, archive = self._workspace, self._archive
        if not workspace.has_turn(reaction.turn_id) and reaction.turn_id not in workspace.facts.get("turn_ids", ()):
            raise UnknownTurn(reaction.turn_id, "no turn of this id is known")
        said = orjson.dumps(reaction.record())
        own = message_id(REACTION, self._moment(reaction, mark), mark=mark or secrets.token_hex(8))
        content = Content(REACTION, reaction.turn_id, reaction.ts, Pieces([said]), said.decode(), own)
        until = time.monotonic() + self.patience
        blob = await self._put_in_time(content) if archive.stores else None
        tags = tags_of(REACTION, reaction.turn_id, f"origin:{reaction.origin}")
        row = archive.row(content, blob, tags=tags, origin=reaction.origin)
        replaced = await self._react_in_time(row, alone=reaction.origin == "user")
        self._owed.add(reaction.turn_id)
        outdated = [one.key for one in replaced if one.key and one.key != row.key]
        await self._within(self._mirrored(reaction.turn_id, outdated), until - time.monotonic())
        for listener in self.listeners:
            listener(row)
        return _saved(row)

    async def _put_in_time(self, content: Content) -> Blob:
        """Store a reaction. Raises StoreUnavailable, also when it takes too long: what comes late no row will name."""
        try:
            return await asyncio.wait_for(self._archive.put(content), self.patience)
        except TimeoutError:
            hint = f"the store did not take the reaction within {self.patience:g} seconds; nothing was kept"
            raise StoreUnavailable("store", hint, fault="timed_out") from None

    async def _react_in_time(self, row: IndexRow, *, alone: bool) -> list[IndexRow]:
        """Put its row; the rows that it replaced. What is too late for the answer may have been kept all the same."""
        archive = self._archive
        asked = archive.ask(archive.index.react, archive.scope, row, alone=alone)
        try:
            _, replaced = await asyncio.wait_for(asked, self.patience)
        except TimeoutError:
            self._owed.add(row.turn_id)
            self._stirred.set()
            hint = f"the index did not answer within {self.patience:g} seconds; with the same request_id, ask again"
            raise StoreUnavailable("index", hint, fault="timed_out") from None
        return list(replaced)

    async def _mirrored(self, turn_id: str, outdated: list[str]) -> None:
        await self._archive.delete(outdated)
        await self._settle(turn_id)

    async def _within(self, work: Coroutine[Any, Any, None], seconds: float) -> None:
        """Wait for it at most so long; it comes to its end in any case."""
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.wait({task}, timeout=max(0.0, seconds))

    def _moment(self, reaction: Reaction, mark: str) -> float:
        """The moment in a row's id. What is asked again is the same row, although it may be of another moment."""
        turn = self._workspace.turns.durable.get(reaction.turn_id)
        return (turn.began if turn is not None else 0.0) if mark else reaction.ts

    async def reactions(self, turn_ids: Sequence[str]) -> list[IndexRow]:
        """Every reaction to these turns, oldest first. Raises StoreUnavailable."""
        archive = self._archive
        filters = Filters(kinds=(REACTION,), turn_ids=tuple(turn_ids))
        return in_order(await archive.ask(archive.index.rows, archive.scope, filters))

    async def run(self) -> None:
        """Mirror what could not be mirrored at once, until cancelled."""
        try:
            with suppress(StoreUnavailable):
                await self._find_owed()
            while True:
                await self._stirred.wait()
                self._stirred.clear()
                for turn_id in list(self._owed):
                    await self._settle(turn_id)
                if self._owed:
                    await asyncio.sleep(REST)
                    self._stirred.set()
        finally:
            for task in self._under_way:
                task.cancel()

    async def _find_owed(self) -> None:
        """Turns that were rated when the store was away, or by a daemon that died before it had mirrored."""
        archive = self._archive
        rated: defaultdict[str, list[IndexRow]] = defaultdict(list)
        for row in await archive.ask(archive.index.rows, archive.scope, Filters(kinds=(REACTION,))):
            rated[row.turn_id].append(row)
        if not rated:
            return
        filters = Filters(kinds=(TURN_LOG,), turn_ids=tuple(rated))
        for logged in await archive.ask(archive.index.rows, archive.scope, filters):
            feedbacks = [feedback_of(row) for row in in_order(rated[logged.turn_id])]
            if summary_with(logged.text, feedbacks) != logged.text:
                self._owed.add(logged.turn_id)
                self._stirred.set()

    async def _settle(self, turn_id: str) -> None:
        """Mirror the reactions of a turn, unless somebody here did so meanwhile. An outage leaves it owed."""
        async with self._one_at_a_time:
            if turn_id not in self._owed:
                return
            self._owed.discard(turn_id)
            try:
                await self._mirror(turn_id)
            except (StoreUnavailable, RowChanged) as fault:
                log.warning("the feedback of a turn is not in its log yet: %s", fault)
                self._owed.add(turn_id)
                self._stirred.set()

    async def _mirror(self, turn_id: str) -> None:
        """Raises StoreUnavailable, and RowChanged when others were faster every time."""
        for attempt in range(TRIES):
            logged = await self._log_of(turn_id)
            if logged is None:
                return  # it is mirrored when the turn is saved
            try:
                await self._put(logged, [feedback_of(row) for row in await self.reactions([turn_id])])
            except RowChanged:
                if attempt == TRIES - 1:
                    raise
            else:
                return
            await asyncio.sleep(secrets.randbelow(20) * 0.001 * min(attempt, 10))

    async def _put(self, logged: IndexRow, feedbacks: Sequence[Payload]) -> None:
        """Put a mirrored log in place of this one. Raises RowChanged when it is not this one any more."""
        archive = self._archive
        row = replace(logged, text=summary_with(logged.text, feedbacks))
        try:
            payload = (await archive.get(logged)).get("payload") or {}
        except NotFound:
            log.warning("the log of turn %s has no blob; its row alone tells of the feedback", logged.turn_id)
        else:
            after = mirrored(payload, feedbacks)
            if after == payload and row == logged:
                return
            said = await serialised(after)
            blob = await archive.put(Content(TURN_LOG, row.turn_id, row.ts, said, row.text, row.message_id))
            row = replace(row, key=blob.key, hosted_uri=blob.hosted_uri, rn=blob.rn)
        commit = Commit(rows=(Written(row, expected=logged.change),))
        is_stored = row.key != logged.key
        try:
            await archive.ask(archive.index.commit, archive.scope, commit)
        except RowChanged:
            await archive.delete([row.key] if is_stored else [])
            raise  # whatever else it is, the row may name the new blob by now
        await archive.delete([logged.key] if is_stored else [])

    async def _log_of(self, turn_id: str) -> IndexRow | None:
        archive = self._archive
        filters = Filters(kinds=(TURN_LOG,), turn_ids=(turn_id,))
        rows = await archive.ask(archive.index.rows, archive.scope, filters, limit=1)
        return rows[0] if rows else None


def _saved(row: IndexRow) -> dict[str, Any]:
    saved = {"kind": row.kind, "message_id": row.message_id, "hosted_uri": row.hosted_uri}
    return saved | ({"rn": row.rn} if row.rn else {})
