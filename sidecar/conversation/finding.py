"""What a conversation holds, for those who ask: its turns as people see them, its newest rows, what a search finds.

Turns are made of what is in memory, so that they are shown while the index or the store is away. Everything else is
asked of the index, and contents of the store.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import orjson

from sidecar.conversation.archive import Archive
from sidecar.conversation.contents import Contents, Onlooker
from sidecar.core import limits
from sidecar.core.artifacts import describe
from sidecar.core.blocks import MIME, TYPE, iso
from sidecar.core.conversation_kinds import POOL, REACTION, THINKING, TIMELINE, TURN_LOG
from sidecar.core.discretion import discreet_text
from sidecar.core.errors import BadSelector, StoreUnavailable
from sidecar.core.feedback import feedback_of, in_order
from sidecar.core.index_rows import Filters, IndexRow, Scored
from sidecar.core.mime import is_packed
from sidecar.core.ranking import RANK_OFFSET, best_per_turn, by_worth, fused, place_of, readable, snippet_at, words_of
from sidecar.core.turn_view import TurnView
from sidecar.looking import Looker
from sidecar.pacing import Pace
from sidecar.workspace import Workspace

T = TypeVar("T")

PAGE_BYTES = 16 * limits.MIB  # a page of turns ends early rather than being too large to answer
BODIES_AT_ONCE = 32
CANDIDATES = 4  # rows asked for per turn that is wanted, at first
MOST_CANDIDATES = 4096
SLICE_SECONDS = 0.005  # of reading rows' texts at once; at least one row, however long it is

# Rows that tell of the whole conversation, or count what is in a turn: words would find every turn by them.
SNAPSHOTS = frozenset({TIMELINE, POOL, TURN_LOG})
# The blocks of a turn's log are the agent's, and nothing that a client lists (seed 004, Notes).
NOT_LISTED = {TURN_LOG: frozenset({"blocks", "indexes"})}


@dataclass(frozen=True, slots=True)
class Pick:
    """Which turns are asked for: these in this order, or all; after the turn that `cursor` names; with these kinds."""

    turn_ids: Sequence[str] | None
    kinds: frozenset[str]
    limit: int
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for: words, a vector, or both, in the rows that pass; at most so many turns."""

    query: str | None
    embedding: Sequence[float] | None
    filters: Filters
    limit: int


class Finding:
    """Answers questions about the conversation. Changes nothing. Raises StoreUnavailable where it says so."""

    def __init__(self, workspace: Workspace, looker: Looker, archive: Archive) -> None:
        self._workspace = workspace
        self._looker = looker
        self._archive = archive
        self._contents = Contents(archive)
        # Threads share one interpreter: several that read texts at once would hold up the loop, each for its turn.
        self._reading = asyncio.Lock()

    # Turns -----------------------------------------------------------------------------------------------------------

    async def fetch(self, pick: Pick, onlooker: Onlooker) -> dict[str, Any]:
        """`{conversation, turns, missing?, next_cursor}`. Raises BadSelector for a cursor of another list.

        Raises StoreUnavailable when kinds are asked for and the index does not answer.
        """
        known = self._workspace.turn_ids
        chosen = list(known if pick.turn_ids is None else dict.fromkeys(pick.turn_ids))
        among = frozenset(known)
        missing = [turn_id for turn_id in chosen if turn_id not in among]
        listed = [turn_id for turn_id in chosen if turn_id in among]
        begin = 0
        if pick.cursor is not None:
            if pick.cursor not in listed:
                raise BadSelector("cursor", "a cursor is the `next_cursor` of an answer to the same question")
            begin = listed.index(pick.cursor) + 1
        page = listed[begin : begin + pick.limit]
        turns = await self._turns(page, pick.kinds, onlooker)
        is_last = begin + len(turns) >= len(listed)
        return {
            "conversation": dict(self._archive.conversation),
            "turns": turns,
            **({"missing": missing} if missing else {}),
            "next_cursor": None if is_last else turns[-1]["turn_id"],
        }

    async def _turns(self, page: Sequence[str], kinds: frozenset[str], onlooker: Onlooker) -> list[dict[str, Any]]:
        """The turns of a page, as many as fit into one answer, at least one."""
        records = await self._records(frozenset(page), onlooker)
        feedbacks = await self._feedbacks(page)
        saved = await self._rows_of(page, kinds - {THINKING})
        turns: list[dict[str, Any]] = []
        room = PAGE_BYTES
        for turn_id in page:
            view, size = await self._view(turn_id, records[turn_id], onlooker)
            if turns and size > room:
                break
            room -= size
            if feedbacks is not None:
                view["feedbacks"] = feedbacks[turn_id]
            if kinds:
                read = await self._contents.of(saved[turn_id], onlooker, room=room, leave_out=NOT_LISTED)
                if turns and {"missing": "too_much"} in read.told:
                    break  # there is room for it on a page of its own
                room -= read.size
                made = [_synthesised(view, self._ended(turn_id))] if THINKING in kinds and view["thinking"] else []
                told = list(zip(saved[turn_id], read.told, strict=True))
                view["artifacts"] = made + await self._in_slices(lambda one: _artifact(*one, onlooker), told)
            turns.append(view)
        return turns

    async def _records(self, turns: frozenset[str], onlooker: Onlooker) -> defaultdict[str, list[dict[str, Any]]]:
        """The artifacts of these turns that the onlooker sees, as records in order of path."""
        found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        pace = Pace()
        for artifact in self._workspace.artifacts:
            await pace.rest()
            if artifact.path.turn_id in turns and artifact.versions and onlooker.artifact(str(artifact.path.logical)):
                found[artifact.path.turn_id].append(describe(artifact, self._workspace.timeline.tools))
        for records in found.values():
            records.sort(key=lambda record: record["physical_path"].encode())
        return found

    async def _view(
        self, turn_id: str, records: Sequence[dict[str, Any]], onlooker: Onlooker
    ) -> tuple[dict[str, Any], int]:
        """The turn as people see it, and how long it is as JSON."""
        timeline = self._workspace.timeline
        view = TurnView(turn_id, self._workspace.pool.sids)
        numbers: list[int] = []
        pace = Pace()
        for number in list(timeline.of_turn(turn_id)):
            await pace.rest()
            head = timeline.heads[number]
            # A picture is not looked into: what it uses, its artifact says.
            is_shown = not head[TYPE].startswith("user.attachment") and not is_packed(head[MIME])
            if is_shown and onlooker.block(number):
                numbers.append(number)
        for at in range(0, len(numbers), BODIES_AT_ONCE):
            await self._looker.off_loop(self._take, view, numbers[at : at + BODIES_AT_ONCE])
        for record in records:
            view.use(record["sources_used"])
        shown = view.view(records)
        return shown, await self._looker.off_loop(_size, shown)

    def _take(self, view: TurnView, numbers: Sequence[int]) -> None:
        """Blocking."""
        for body in self._workspace.bodies_in_turn(numbers):
            view.take(orjson.loads(body))

    def _ended(self, turn_id: str) -> float:
        """When the last block of a turn was told, in seconds."""
        numbers = self._workspace.timeline.of_turn(turn_id)
        return self._workspace.timeline.heads[numbers[-1]][2] if numbers else 0.0

    async def _feedbacks(self, page: Sequence[str]) -> defaultdict[str, list[dict[str, Any]]] | None:
        """Every reaction to these turns, oldest first; None while the index does not answer."""
        try:
            rows = await self._rows_of(page, frozenset({REACTION}))
        except StoreUnavailable:
            return None
        return defaultdict(list, {turn: [feedback_of(row) for row in in_order(some)] for turn, some in rows.items()})

    async def _rows_of(self, page: Sequence[str], kinds: frozenset[str]) -> defaultdict[str, list[IndexRow]]:
        """The rows of these kinds by turn, oldest first."""
        found: defaultdict[str, list[IndexRow]] = defaultdict(list)
        if kinds and page:
            filters = Filters(kinds=tuple(sorted(kinds)), turn_ids=tuple(page))
            for row in reversed(await self._archive.ask(self._archive.index.rows, self._archive.scope, filters)):
                found[row.turn_id].append(row)
        return found

    # Rows ------------------------------------------------------------------------------------------------------------

    async def recent(self, filters: Filters, onlooker: Onlooker, *, limit: int) -> list[dict[str, Any]]:
        """The newest rows that pass, as items without their contents. Raises StoreUnavailable."""
        return await self._in_slices(lambda row: _item(row, onlooker), await self._newest(filters, limit))

    async def recent_contents(self, filters: Filters, onlooker: Onlooker, *, limit: int) -> list[dict[str, Any]]:
        """The same with their contents, or with the reason why one is missing."""
        rows = await self._newest(filters, limit)
        read = await self._contents.of(rows, onlooker, room=PAGE_BYTES)
        items = await self._in_slices(lambda row: _item(row, onlooker), rows)
        return [item | told for item, told in zip(items, read.told, strict=True)]

    async def _newest(self, filters: Filters, limit: int) -> list[IndexRow]:
        return await self._archive.ask(self._archive.index.rows, self._archive.scope, filters, limit=limit)

    async def reactions(self, turn_ids: Sequence[str], since: float | None) -> list[dict[str, Any]]:
        """The latest reaction per turn, newest first. Raises StoreUnavailable."""
        index, scope = self._archive.index, self._archive.scope
        rows = await self._archive.ask(index.latest_reactions, scope, turn_ids=tuple(turn_ids), since=since)
        return [_reaction(row) for row in rows]

    # Search ----------------------------------------------------------------------------------------------------------

    async def search(self, question: Question, onlooker: Onlooker) -> list[dict[str, Any]]:
        """The best hit of each turn, best first. Raises StoreUnavailable and WrongDimension."""
        words = words_of(question.query) if question.query is not None else []
        judge = _Judge(frozenset(words), onlooker)
        ask = question.limit * CANDIDATES
        while True:
            near, said = await asyncio.gather(
                self._nearest(question, onlooker, ask), self._matching(question, words, onlooker, ask)
            )
            hits = await self._best(judge, near, said, question.limit)
            is_all = len(near) < ask and len(said) < ask
            if len(hits) >= question.limit or is_all or ask >= MOST_CANDIDATES:
                break
            ask = min(ask * 4, MOST_CANDIDATES)
        cosines = {hit.row.message_id: hit.score for hit in near}
        snippets = await self._in_slices(judge.snippet, [hit.row for hit in hits])
        return [_hit(hit, snippet, cosines) for hit, snippet in zip(hits, snippets, strict=True)]

    async def _best(self, judge: _Judge, near: Sequence[Scored], said: Sequence[Scored], limit: int) -> list[Scored]:
        """The best hits of as many turns, best first. Of what words found it reads only what may be among them."""
        said = await self._sliced(by_worth, said)
        shown: list[Scored] = []
        read, some = 0, limit
        while True:
            part = said[read : read + some]
            told = await self._in_slices(judge.says, [hit.row for hit in part])
            shown += [hit for hit, says in zip(part, told, strict=True) if says]
            read += len(part)
            some = read
            hits = await self._sliced(_settled, near, shown, said[read:], limit)
            if hits is not None:
                return hits

    async def _in_slices(self, work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        """What the work makes of each item, made off the loop, and never for long at once."""
        made: list[T] = []
        while len(made) < len(items):
            made += await self._sliced(_slice, work, items, len(made))
        return made

    async def _sliced(self, work: Callable[..., T], *args: Any) -> T:
        """One slice of a long work. Whoever else waits with one comes first next time."""
        async with self._reading:
            return await asyncio.to_thread(work, *args)

    async def _nearest(self, question: Question, onlooker: Onlooker, limit: int) -> list[Scored]:
        if question.embedding is None:
            return []
        index, scope = self._archive.index, self._archive.scope
        filters = replace(question.filters, but_kinds=tuple(onlooker.withheld))
        return await self._archive.ask(index.nearest, scope, question.embedding, filters, limit=limit)

    async def _matching(self, question: Question, words: Sequence[str], onlooker: Onlooker, limit: int) -> list[Scored]:
        if not words:
            return []
        index, scope = self._archive.index, self._archive.scope
        unasked = frozenset() if question.filters.kinds else SNAPSHOTS
        filters = replace(question.filters, but_kinds=tuple(onlooker.withheld | unasked))
        return await self._archive.ask(index.matching, scope, words, filters, limit=limit)


def _slice(work: Callable[[Any], T], items: Sequence[Any], begin: int) -> list[T]:
    """What the work makes of the next items, at least one, until the time of a slice is up. Blocking."""
    made: list[T] = []
    until = time.monotonic() + SLICE_SECONDS
    for at in range(begin, len(items)):
        made.append(work(items[at]))
        if time.monotonic() > until:
            break
    return made


def _settled(
    near: Sequence[Scored], shown: Sequence[Scored], unread: Sequence[Scored], limit: int
) -> list[Scored] | None:
    """The best hits of so many turns; None while a row that nobody has read yet may come before one of them.

    Such a row is worth at most what comes after all that are shown, and what its vector is worth.
    """
    hits = best_per_turn(fused(near, shown))[:limit]
    if not unread:
        return hits
    if len(hits) < limit:
        return None
    by_vector = {hit.row.message_id: hit.score for hit in fused(near)}
    most = max(by_vector.get(hit.row.message_id, 0.0) for hit in unread) + 1 / (RANK_OFFSET + len(shown) + 1)
    return hits if hits[-1].score > most else None


@dataclass(frozen=True, slots=True)
class _Judge:
    """Reads rows for one search, each of them once. What the onlooker sees it reads in threads, and changes nothing."""

    words: frozenset[str]
    onlooker: Onlooker
    _read: dict[str, tuple[bool, str]] = field(default_factory=dict)

    def says(self, row: IndexRow) -> bool:
        """Whether the words may be said to stand in this row: a hit must not tell of what is not shown.

        Of JSON it is the texts that count, and not what their members are called.
        """
        return self._judged(row)[0]

    def snippet(self, row: IndexRow) -> str:
        return self._judged(row)[1]

    def _judged(self, row: IndexRow) -> tuple[bool, str]:
        known = self._read.get(row.message_id)
        if known is None:
            shown = _text_for(row, self.onlooker)
            said = readable(shown)
            place = place_of(said, self.words)
            says = place is not None or (shown == row.text and said == shown)
            known = self._read[row.message_id] = says, snippet_at(said, place)
        return known


def _text_for(row: IndexRow, onlooker: Onlooker) -> str:
    """What a row says, as far as the onlooker may know it."""
    if onlooker.sees_all:
        return row.text
    text = row.text if row.kind not in (TIMELINE, POOL) else _without_pool(row.text)
    return discreet_text(text, onlooker.artifact, turn_id=row.turn_id)


def _without_pool(text: str) -> str:
    """A snapshot's text without its rows, which do not say whose file they are."""
    try:
        said = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ""
    return orjson.dumps({key: value for key, value in said.items() if key != "sources_pool"}).decode()


def _item(row: IndexRow, onlooker: Onlooker) -> dict[str, Any]:
    return {
        "message_id": row.message_id,
        "kind": row.kind,
        "turn_id": row.turn_id,
        "ts": iso(row.ts),
        "tags": list(row.tags),
        "text": _text_for(row, onlooker),
    }


def _artifact(row: IndexRow, told: dict[str, Any], onlooker: Onlooker) -> dict[str, Any]:
    shown = {"kind": row.kind, "message_id": row.message_id, "ts": iso(row.ts), **told}
    return shown if row.key else shown | {"text": _text_for(row, onlooker)}


def _synthesised(view: dict[str, Any], ts: float) -> dict[str, Any]:
    return {"kind": THINKING, "ts": iso(ts), "payload": {"items": view["thinking"]}}


def _reaction(row: IndexRow) -> dict[str, Any]:
    said = feedback_of(row)
    return {
        "turn_id": row.turn_id,
        "message_id": row.message_id,
        "reaction": said.get("reaction") or "neutral",
        "text": said["text"],
        "confidence": said["confidence"],
        "origin": said.get("origin") or "machine",
        "ts": iso(row.ts),
    }


def _hit(hit: Scored, snippet: str, cosines: dict[str, float]) -> dict[str, Any]:
    row = hit.row
    shown: dict[str, Any] = {
        "turn_id": row.turn_id,
        "message_id": row.message_id,
        "kind": row.kind,
        "score": hit.score,
        "snippet": snippet,
        "ts": iso(row.ts),
    }
    return shown | ({"similarity": cosines[row.message_id]} if row.message_id in cosines else {})


def _size(value: Any) -> int:
    return len(orjson.dumps(value))
