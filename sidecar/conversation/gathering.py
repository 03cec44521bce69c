"""Gather what a turn leaves behind: blocks as they stand, read in slices, with rests for everybody else.

What changed about a block is asked on the loop, which owns it; its JSON is read and written in a hand.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from sidecar.core import limits
from sidecar.core.artifacts import Artifact
from sidecar.core.blocks import FLAGS, INTERNAL, SHOWN, TS, TYPE, iso, moment_of
from sidecar.core.conversation_kinds import ARTIFACTS, CHAT_ASSISTANT, CHAT_USER, TIMELINE_TEXT
from sidecar.core.happened import Turn
from sidecar.core.snapshots import REMEMBERED, Conversation, Kept, kept_numbers, pool_payload, timeline_payload
from sidecar.core.sources_used import sources_used_in, speaks
from sidecar.core.standing import as_it_stands, changes_since
from sidecar.core.streams import artifact_items, timeline_text_items
from sidecar.core.turn_log import Told, tokens_of
from sidecar.looking import Looker
from sidecar.pacing import Pace, unhurried
from sidecar.pieces import Pieces, gathered, members
from sidecar.workspace import Workspace

T = TypeVar("T")
BODIES_AT_ONCE = 32
CHANGES_AT_ONCE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a turn left: its blocks, its files, what its streams show, and what was said, by kind of chat row."""

    turn: Turn
    told: Told
    files: Sequence[Artifact]
    streams: Mapping[str, Sequence[dict[str, Any]]]
    said: Mapping[str, str]
    ts: float  # when it ended, in seconds since the epoch, as precise as a text of it

    @property
    def size(self) -> int:
        """Bytes of its blocks."""
        return sum(map(len, self.told.bodies))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The payloads of the timeline and of the pool at the end of a turn."""

    timeline: dict[str, Any]
    pool: dict[str, Any]


class Gathering:
    """Reads what is durable. Nothing here changes anything."""

    def __init__(self, workspace: Workspace, looker: Looker) -> None:
        self._workspace = workspace
        self._looker = looker

    async def files(self, turn_ids: Iterable[str]) -> dict[str, list[Artifact]]:
        """The artifacts of these turns, in the order they became known."""
        wanted = frozenset(turn_ids)
        found: defaultdict[str, list[Artifact]] = defaultdict(list)
        pace = Pace()
        for at, artifact in enumerate(self._workspace.artifacts):
            if artifact.path.turn_id in wanted:
                found[artifact.path.turn_id].append(artifact)
            if at % CHANGES_AT_ONCE == 0:
                await pace.rest()
        return found

    async def turn(self, turn_id: str, files: Sequence[Artifact]) -> Left:
        """What a turn left, as it stands now."""
        workspace = self._workspace
        numbers = list(workspace.timeline.of_turn(turn_id))
        bodies = await self._bodies(numbers)
        numbers, is_whole = numbers[: len(bodies)], len(bodies) == len(numbers)
        counted = _Counted()
        for at in range(0, len(numbers), BODIES_AT_ONCE):
            some = numbers[at : at + BODIES_AT_ONCE]
            await self._off_loop(self._count, counted, some, bodies[at : at + BODIES_AT_ONCE])
        streams = {
            TIMELINE_TEXT: await self._off_loop(timeline_text_items, map(orjson.loads, bodies)),
            ARTIFACTS: await self._off_loop(artifact_items, map(orjson.loads, bodies)),
        }
        turn = workspace.turns.durable.get(turn_id) or Turn(turn_id, "")
        last = workspace.timeline.heads[numbers[-1]][TS] if numbers else 0.0
        return Left(
            turn=turn,
            told=Told(
                bodies=bodies,
                numbers=numbers,
                tokens=counted.tokens,
                sources_used=sorted(counted.sources),
                truncated=not is_whole,
            ),
            files=files,
            streams=streams,
            said=counted.said,
            ts=as_told(turn.ended_at if turn.ended_at is not None else turn.began or last),
        )

    async def snapshot(self, turn: Turn) -> Snapshot:
        """The conversation as it stands now, at the end of this turn, which was the last one."""
        workspace = self._workspace
        timeline = workspace.timeline
        end, rows = len(timeline), workspace.pool.all_rows()
        about = self._about(end)
        numbers = kept_numbers(timeline, end)
        # Where not all of it fits into a record, it is the end that counts.
        bodies = (await self._bodies(numbers[::-1]))[::-1]
        is_whole = len(bodies) == len(numbers)
        numbers = numbers[len(numbers) - len(bodies) :]
        kept = Kept(bodies=bodies, numbers=numbers, next_block=end, truncated=not is_whole)
        return Snapshot(
            timeline=await self._off_loop(timeline_payload, iso(turn.ended_at or 0.0), kept, rows, about),
            pool=await self._off_loop(pool_payload, rows, about),
        )

    def _about(self, end: int) -> Conversation:
        workspace = self._workspace
        facts, heads = workspace.facts, workspace.timeline.heads
        title = facts.get("conversation_title") or facts["conversation"].get("title")
        began = facts.get("conversation_started_at") or (iso(heads[0][TS]) if end else None)
        return Conversation(
            turn_ids=workspace.turn_ids,
            title=title if isinstance(title, str) else None,
            started_at=began,
            last_activity_at=iso(heads[end - 1][TS]) if end else None,
            max_sid=max([facts.get("max_sid", 0), *workspace.pool.sids[-1:]]),
            more={name: facts.get(name) for name in REMEMBERED},
        )

    async def _bodies(self, numbers: Sequence[int]) -> list[bytes]:
        """The JSON of these blocks as they stand, in this order, as many as a record may hold."""
        workspace = self._workspace
        bodies: list[bytes] = []
        room = limits.RECORD_BYTES
        for at in range(0, len(numbers), BODIES_AT_ONCE):
            some = numbers[at : at + BODIES_AT_ONCE]
            changes = [changes_since(workspace.timeline, workspace.artifacts, number) for number in some]
            for body in await self._off_loop(self._standing, some, changes):
                room -= len(body) + 1
                if room < 0:
                    return bodies
                bodies.append(body)
        return bodies

    def _standing(self, numbers: Sequence[int], changes: Sequence[dict[str, Any]]) -> list[bytes]:
        """Blocking."""
        bodies = self._workspace.bodies_in_turn(numbers)
        return [as_it_stands(body, changed) for body, changed in zip(bodies, changes, strict=True)]

    def _count(self, counted: _Counted, numbers: Sequence[int], bodies: Sequence[bytes]) -> None:
        """Blocking."""
        heads, sids = self._workspace.timeline.heads, self._workspace.pool.sids
        for number, body in zip(numbers, bodies, strict=True):
            head, block = heads[number], orjson.loads(body)
            counted.tokens += tokens_of(block)
            if speaks(head):
                counted.sources |= sources_used_in(block, sids)
            kind = _SAID.get(head[TYPE])
            if kind is not None and not head[FLAGS] & (SHOWN | INTERNAL) and isinstance(block.get("text"), str):
                counted.said.setdefault(kind, block["text"])  # the first one of a turn counts

    async def _off_loop(self, work: Callable[..., T], *args: Any) -> T:
        return await self._looker.write_long(work, *args)


@dataclass(slots=True)
class _Counted:
    tokens: int = 0
    sources: set[int] = field(default_factory=set[int])
    said: dict[str, str] = field(default_factory=dict[str, str])


def as_told(moment: float) -> float:
    """A moment as whoever reads it from a text has it, so that ids made of it are the same everywhere."""
    return moment_of(iso(moment))


async def serialised(payload: Mapping[str, Any]) -> Pieces:
    """The JSON of a payload, made off the loop."""
    return await asyncio.to_thread(lambda: Pieces([*unhurried(gathered(members(payload)))]))


_SAID = {"user.prompt": CHAT_USER, "assistant.completion": CHAT_ASSISTANT}
