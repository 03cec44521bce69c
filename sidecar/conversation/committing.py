"""Write down what some turns left: blobs first, then all rows in one change of the index, then our own note of it.

A kill in between leaves blobs that no row names, and the save is made again. Ids of rows follow from the turn and the
kind, so that they stay; what the journal says was
saved with the same content is not stored again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from sidecar.conversation.accounting import Accounting
from sidecar.conversation.archive import Archive, Blob, Content
from sidecar.conversation.executions import Executions
from sidecar.conversation.gathering import Gathering, Left, as_told, serialised
from sidecar.conversation.lease import Lease
from sidecar.core.blocks import SUMMARY, TS, TURN
from sidecar.core.conversation_kinds import (
    CHAT_ASSISTANT,
    CHAT_USER,
    KINDS,
    POOL,
    REACTION,
    TIMELINE,
    TURN_LOG,
    WRITTEN_AT_TURN_END,
    tags_of,
)
from sidecar.core.conversation_names import message_id
from sidecar.core.entries import TurnSaved
from sidecar.core.errors import NotFound, StoreUnavailable
from sidecar.core.feedback import feedback_of, in_order, mirrored, summary_with
from sidecar.core.happened import Turn
from sidecar.core.index_rows import Commit, Filters, IndexRow, LeaseLost, RowChanged, Written, WrongDimension
from sidecar.core.saved_turns import SUMMARIES, WHOLE
from sidecar.core.snapshots import pool_text, stream_text, timeline_text, words
from sidecar.core.turn_log import ToldUses, row_text, turn_log
from sidecar.looking import Looker
from sidecar.pieces import Pieces
from sidecar.workspace import Workspace

TURNS_AT_ONCE = 4  # that are held in memory
TRIES = 16  # at a commit, each after somebody reacted to one of the turns
_OURS_ALONE = frozenset({TIMELINE, POOL, TURN_LOG})
_ROLES: Mapping[str, Literal["user", "assistant"]] = {CHAT_USER: "user", CHAT_ASSISTANT: "assistant"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is saved together: turns as they stand at a revision, and the conversation at the end of one of them."""

    turn_ids: Sequence[str]
    revision: int
    snapshot_of: Turn | None = None
    summaries: Sequence[int] = ()  # the numbers of their blocks
    next_block: int | None = None

    @property
    def touches(self) -> tuple[str, ...]:
        """The turns that get rows, those of summaries aside."""
        ended = (self.snapshot_of.turn_id,) if self.snapshot_of is not None else ()
        return tuple(dict.fromkeys((*self.turn_ids, *ended)))


@dataclass(frozen=True, slots=True)
class _Wish:
    """A row that shall stand, and its blob if it has one. `digest` is the hash of what it is about."""

    kind: str
    turn_id: str
    ts: float
    text: str
    payload: Pieces | None = None
    digest: str = ""


@dataclass(slots=True)
class _Standing:
    """What the index has of some turns, and what the journal says of how it came there."""

    change: int
    next_block: int
    rows: dict[tuple[str, str], list[IndexRow]] = field(default_factory=dict[tuple[str, str], list[IndexRow]])
    items: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict[str, dict[str, dict[str, Any]]])

    def reactions(self, turn_id: str) -> list[IndexRow]:
        return in_order(self.rows.get((turn_id, REACTION), ()))


@dataclass(slots=True)
class _Save:
    """What a save comes to while it is made."""

    written: list[Written] = field(default_factory=list[Written])
    removed: list[IndexRow] = field(default_factory=list[IndexRow])
    outdated: list[str] = field(default_factory=list[str])
    fresh: list[str] = field(default_factory=list[str])  # the keys of blobs that no row names yet
    items: defaultdict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))


class Committing:
    """Saves a batch, whole or not at all."""

    def __init__(
        self,
        workspace: Workspace,
        looker: Looker,
        archive: Archive,
        lease: Lease,
        *,
        executions: Executions | None,
        accounting: Accounting,
    ) -> None:
        self._workspace = workspace
        self._looker = looker
        self._archive = archive
        self._lease = lease
        self._executions = executions
        self._accounting = accounting
        self._gathering = Gathering(workspace, looker)

    async def save(self, batch: Batch) -> None:
        """Save all of a batch. Raises StoreUnavailable and LeaseLost: then nothing of it is in the index.

        RowChanged is raised when others were faster every time.
        """
        vectors = True
        for attempt in range(TRIES):
            standing = await self._standing(batch.touches)
            save = _Save()
            try:
                await self._prepare(batch, standing, save, vectors=vectors)
                change = await self._commit(batch, standing, save)
            except (RowChanged, WrongDimension, LeaseLost, StoreUnavailable) as refusal:
                # When the index cannot say what became of it, the rows may stand and name what was stored.
                if not (isinstance(refusal, StoreUnavailable) and refusal.about == "index"):
                    await self._archive.delete(save.fresh)
                if isinstance(refusal, WrongDimension):
                    vectors = False  # the rows are worth more than vectors that fit into no index
                elif not isinstance(refusal, RowChanged) or attempt == TRIES - 1:
                    raise
                continue
            await self._note(batch, save, change)
            if change <= standing.change + 1 or not await self._has_reactions(batch, standing):
                return

    async def _commit(self, batch: Batch, standing: _Standing, save: _Save) -> int:
        """Answers the number of the change; where there is nothing to change, of the latest one."""
        archive = self._archive
        end = batch.next_block if archive.stores else None
        if not save.written and not save.removed and (end is None or end <= standing.next_block):
            return standing.change
        commit = Commit(rows=save.written, remove=[row.message_id for row in save.removed], next_block=end)
        return await archive.ask(archive.index.commit, archive.scope, commit, fence=self._lease.fence)

    async def _note(self, batch: Batch, save: _Save, change: int) -> None:
        """Journal what was saved; blobs that no row names any more go."""
        saved = [TurnSaved(turn, batch.revision, change, tuple(save.items[turn])) for turn in batch.touches]
        if batch.snapshot_of is not None:
            saved.append(TurnSaved(WHOLE, batch.revision, change, ()))
        if batch.summaries:
            saved.append(TurnSaved(SUMMARIES, batch.revision, change, tuple(save.items[SUMMARIES])))
        await self._workspace.stage(*saved)
        await self._archive.delete([*save.outdated, *(row.key for row in save.removed if row.key)])

    # What is there -------------------------------------------------------------------------------------------------

    async def _standing(self, turn_ids: Sequence[str]) -> _Standing:
        archive, workspace = self._archive, self._workspace
        stands = await archive.ask(archive.index.standing, archive.scope)
        standing = _Standing(stands.change, stands.next_block)
        for row in await self._rows(turn_ids, (*WRITTEN_AT_TURN_END, REACTION)):
            standing.rows.setdefault((row.turn_id, row.kind), []).append(row)
        for turn_id in turn_ids:
            saving = workspace.saved.at(turn_id)
            items = await self._looker.off_loop(workspace.recorded, saving.seq) if saving is not None else []
            standing.items[turn_id] = {item["kind"]: item for item in items}
        return standing

    async def _rows(self, turn_ids: Sequence[str], kinds: tuple[str, ...], after: int = 0) -> list[IndexRow]:
        if not turn_ids:
            return []
        archive, filters = self._archive, Filters(kinds=kinds, turn_ids=tuple(turn_ids))
        return await archive.ask(archive.index.rows, archive.scope, filters, after_change=after)

    async def _has_reactions(self, batch: Batch, standing: _Standing) -> bool:
        """Whether somebody reacted between our reading and our commit, when there was no log to be mirrored into."""
        return bool(await self._rows(batch.turn_ids, (REACTION,), after=standing.change))

    # What shall be there --------------------------------------------------------------------------------------------

    async def _prepare(self, batch: Batch, standing: _Standing, save: _Save, *, vectors: bool) -> None:
        """Store the blobs and say the rows."""
        files = await self._gathering.files(batch.turn_ids)
        held = asyncio.Semaphore(TURNS_AT_ONCE)

        async def keep(turn_id: str) -> None:
            async with held:
                left = await self._gathering.turn(turn_id, files.get(turn_id, []))
                wishes = await self._of_turn(left, standing)
                await self._put(wishes, standing, save, vectors=vectors)
                self._drop_streams(left, standing, save)

        async def keep_snapshot(turn: Turn) -> None:
            await self._put(await self._of_conversation(turn), standing, save, vectors=vectors)

        work = [keep(turn_id) for turn_id in batch.turn_ids]
        if batch.snapshot_of is not None and self._archive.stores:
            work.append(keep_snapshot(batch.snapshot_of))
        await _all_of(work)
        for number in batch.summaries:
            await self._summarise(number, save, vectors=vectors)
        for turn_id in batch.touches:
            kept = {item["kind"] for item in save.items[turn_id]} | {row.kind for row in save.removed}
            save.items[turn_id] += [item for kind, item in standing.items[turn_id].items() if kind not in kept]
            save.items[turn_id].sort(key=_place)

    async def _of_turn(self, left: Left, standing: _Standing) -> list[_Wish]:
        turn_id, ts = left.turn.turn_id, left.ts
        wishes = [
            _Wish(kind, turn_id, ts, words(left.said[kind]))
            for kind in (CHAT_USER, CHAT_ASSISTANT)
            if kind in left.said
        ]
        if not self._archive.stores:
            return wishes
        executions = await self._executed(left, standing)
        await self._account(left)
        timeline = self._workspace.timeline
        payload = await self._looker.write_long(
            lambda: turn_log(
                left.turn,
                left.told,
                heads=timeline.heads,
                tools=timeline.tools,
                files=left.files,
                used=ToldUses(self._workspace.calls.durable, self._workspace.uses),
                executions=executions,
            )
        )
        feedbacks = [feedback_of(row) for row in standing.reactions(turn_id)]
        plain = await serialised(payload)
        body = await serialised(mirrored(payload, feedbacks)) if feedbacks else plain
        text = summary_with(row_text(payload), feedbacks)
        wishes.append(_Wish(TURN_LOG, turn_id, ts, text, body, await _hash(plain)))
        for kind, items in left.streams.items():
            if items:
                body = await serialised({"items": items})
                wishes.append(_Wish(kind, turn_id, ts, stream_text(items), body, await _hash(body)))
        return wishes

    async def _of_conversation(self, turn: Turn) -> list[_Wish]:
        snapshot = await self._gathering.snapshot(turn)
        ts = as_told(turn.ended_at or turn.began)
        wishes: list[_Wish] = []
        for kind, payload, tell in (
            (TIMELINE, snapshot.timeline, timeline_text),
            (POOL, snapshot.pool, pool_text),
        ):
            body, text = await serialised(payload), await self._looker.write_long(tell, payload)
            wishes.append(_Wish(kind, turn.turn_id, ts, text, body, await _hash(body)))
        return wishes

    async def _executed(self, left: Left, standing: _Standing) -> list[dict[str, Any]]:
        if self._executions is None:
            return []
        rows = standing.rows.get((left.turn.turn_id, TURN_LOG), ())

        async def known() -> Sequence[Any]:
            for row in rows:
                try:
                    payload = (await self._archive.get(row)).get("payload") or {}
                except NotFound:
                    continue
                return payload.get("executions") or []
            return []

        return await self._executions.keep(left.turn.turn_id, left.files, known)

    async def _account(self, left: Left) -> None:
        """One record for every turn, kept when it is saved for the first time."""
        turn = left.turn
        if self._workspace.saved.at(turn.turn_id) is None and turn.ended_at is not None:
            calls = sum(call.turn_id == turn.turn_id for call in list(self._workspace.calls.durable.values()))
            await self._accounting.keep_turn(left, calls=calls)

    async def _summarise(self, number: int, save: _Save, *, vectors: bool) -> None:
        """The row of a summary, which has no blob: its words."""
        workspace, head = self._workspace, self._workspace.timeline.heads[number]
        turn_id, seq, ts = head[TURN], workspace.timeline.seqs[number], as_told(head[TS])
        (body,) = await self._looker.off_loop(workspace.bodies, [number])
        text = await self._looker.off_loop(_text_of, body)
        marked = workspace.vectors.get((turn_id, SUMMARY), 0)
        vector = await self._looker.off_loop(workspace.recorded, marked) if vectors and marked > seq else None
        own = message_id(SUMMARY, ts, mark=f"{turn_id} {number}")
        content = Content(SUMMARY, turn_id, ts, Pieces([]), words(text), own)
        row = self._archive.row(content, None, tags=tags_of(SUMMARY, turn_id))
        save.written.append(Written(row, vector))
        save.items[SUMMARIES].append(_item(row, needs_embedding=vector is None))

    def _drop_streams(self, left: Left, standing: _Standing, save: _Save) -> None:
        """A stream that shows nothing any more is not there."""
        for kind, items in left.streams.items():
            if not items:
                row = self._row_of(_Wish(kind, left.turn.turn_id, left.ts, ""), standing)
                save.removed += [row] if row is not None else []

    # Rows -------------------------------------------------------------------------------------------------------------

    async def _put(self, wishes: Iterable[_Wish], standing: _Standing, save: _Save, *, vectors: bool) -> None:
        await _all_of([self._put_one(wish, standing, save, vectors=vectors) for wish in wishes])

    async def _put_one(self, wish: _Wish, standing: _Standing, save: _Save, *, vectors: bool) -> None:
        """Store a blob and say the row that names it; neither where they stand already."""
        workspace, turn_id = self._workspace, wish.turn_id
        known, before = self._row_of(wish, standing), standing.items[turn_id].get(wish.kind)
        saving, marked = workspace.saved.at(turn_id), workspace.vectors.get((turn_id, wish.kind), 0)
        is_new = marked > 0 and (known is None or saving is None or marked > saving.revision)
        vector = await self._looker.off_loop(workspace.recorded, marked) if vectors and is_new else None
        needs = KINDS[wish.kind].embedded and vector is None and not (known is not None and known.has_embedding)
        if known is not None and vector is None and known.text == wish.text and _holds(before, wish, known):
            save.items[turn_id].append(_item(known, needs_embedding=needs, digest=wish.digest))
            return
        own = known.message_id if known is not None else message_id(wish.kind, wish.ts, mark=turn_id)
        content = Content(wish.kind, turn_id, wish.ts, wish.payload or Pieces([]), wish.text, own)
        blob = await self._store(content) if wish.payload is not None else None
        save.fresh += [blob.key] if blob is not None else []
        role = _ROLES.get(wish.kind, "artifact")
        row = self._archive.row(content, blob, tags=tags_of(wish.kind, turn_id), role=role)
        expected = (known.change if known is not None else 0) if wish.kind == TURN_LOG else None
        save.written.append(Written(row, vector, expected))
        save.items[turn_id].append(_item(row, needs_embedding=needs, digest=wish.digest))
        if known is not None and known.key and known.key != row.key:
            save.outdated.append(known.key)

    async def _store(self, content: Content) -> Blob:
        try:
            return await self._archive.put(content)
        except ValueError as fault:
            # Names so long that no key can carry them; the caller can only be told.
            raise StoreUnavailable(content.kind, str(fault), fault="key_too_long") from fault

    def _row_of(self, wish: _Wish, standing: _Standing) -> IndexRow | None:
        """Our own row of this kind that stands already; the runtime may have saved others of some kinds."""
        rows = standing.rows.get((wish.turn_id, wish.kind), ())
        own = message_id(wish.kind, wish.ts, mark=wish.turn_id)
        ours = [row for row in rows if row.message_id == own] or (list(rows) if wish.kind in _OURS_ALONE else [])
        return ours[0] if ours else None


async def _all_of(work: Sequence[Any]) -> None:
    """Do all of it; when one fails the others come to their end before it is told."""
    for done in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(done, BaseException):
            raise done


def _holds(before: Mapping[str, Any] | None, wish: _Wish, known: IndexRow) -> bool:
    """Whether what a row names is what it shall name."""
    if wish.payload is None:
        return not known.key
    return before is not None and before.get("sha256") == wish.digest and bool(known.key)


def _item(row: IndexRow, *, needs_embedding: bool, digest: str = "") -> dict[str, Any]:
    item: dict[str, Any] = {"kind": row.kind, "hosted_uri": row.hosted_uri, "message_id": row.message_id}
    item |= {"rn": row.rn} if row.rn else {}
    item |= {"needs_embedding": True} if needs_embedding else {}
    return item | ({"sha256": digest} if digest else {})


def _place(item: Mapping[str, Any]) -> int:
    kind = item["kind"]
    return WRITTEN_AT_TURN_END.index(kind) if kind in WRITTEN_AT_TURN_END else len(WRITTEN_AT_TURN_END)


async def _hash(body: Pieces) -> str:
    return await asyncio.to_thread(body.sha256)


def _text_of(body: bytes) -> str:
    text = orjson.loads(body).get("text")
    return text if isinstance(text, str) else ""
