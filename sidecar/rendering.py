"""The timeline as the agent sees it: what was told since the latest summary, what is announced, the sources last.

What is announced lives here alone: it is replaced as a whole, never journalled, and gone with the daemon.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import orjson

from sidecar.core import limits
from sidecar.core.blocks import CALL, SUMMARY, TURN, TYPE, Defaults, Told, tell
from sidecar.core.compaction import choose_cut
from sidecar.core.counting import text_tokens
from sidecar.core.errors import TooLarge
from sidecar.core.render import Message, as_text, decode, encode, render_block, tokens_of
from sidecar.core.sources import render_lines, render_row
from sidecar.looking import Looker
from sidecar.pacing import Pace
from sidecar.pages import Pages, Room, Sight
from sidecar.pieces import Pieces
from sidecar.workspace import Workspace

KEPT_SHARE = (7, 10)  # of `max_tokens`, for the cut that an answer over it proposes
ROUNDS_UNCACHED = 4  # the latest rounds change most, so that the middle cache point stands before them

Part = Literal["announce", "sources"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a render is to hold. `parts` come after the timeline, neither of them cached."""

    form: Literal["messages", "text"] = "messages"
    parts: frozenset[Part] = frozenset({"announce", "sources"})
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class _Announced:
    told: Told
    messages: tuple[Message, ...]


class Rendering:
    """Renders for each role from pages of its own; one render of a role at a time."""

    def __init__(self, workspace: Workspace, looker: Looker, *, room: Room | None = None) -> None:
        self._workspace = workspace
        self._looker = looker
        self._room = room or Room()
        self.beside: Callable[[], Sequence[Mapping[str, Any]]] = lambda: ()  # announced behind what was announced
        self._announced: tuple[_Announced, ...] = ()
        self._pages: dict[str, tuple[Pages, asyncio.Lock]] = {}
        self._lines: dict[int, tuple[Mapping[str, Any], str]] = {}  # of the pool: the row and how it is rendered

    def announce(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        """Take these in place of what was announced before; none takes all away.

        Raises TooLarge for more than `limits.ANNOUNCED_BLOCKS` or `limits.ANNOUNCED_BYTES`, and what `tell` raises.
        """
        if len(blocks) > limits.ANNOUNCED_BLOCKS:
            raise TooLarge("announce", f"at most {limits.ANNOUNCED_BLOCKS} blocks are announced")
        announced = self._as_announced(blocks)
        if sum(len(one.told.body) for one in announced) > limits.ANNOUNCED_BYTES:
            raise TooLarge("announce", f"at most {limits.ANNOUNCED_BYTES} bytes are announced")
        self._announced = announced

    def _as_announced(self, blocks: Sequence[Mapping[str, Any]]) -> tuple[_Announced, ...]:
        defaults = Defaults(self._workspace.turn_id or "announce", time.time())
        told = [tell(block, defaults) for block in blocks]
        tools = self._workspace.timeline.tools
        return tuple(
            _Announced(one, tuple(render_block(one.head, orjson.loads(one.body), tool=tools.get(one.head[CALL], ""))))
            for one in told
        )

    @asynccontextmanager
    async def pages(self, sight: Sight) -> AsyncGenerator[Pages]:
        """The pages of a role, for one user at a time."""
        if sight.role not in self._pages:
            self._pages[sight.role] = (Pages(self._workspace, self._looker, sight, self._room), asyncio.Lock())
        pages, lock = self._pages[sight.role]
        async with lock:
            yield pages

    async def render(self, sight: Sight, asked: Asked) -> dict[str, Any]:
        """`{messages|text, tokens, cache_points}`, and over `max_tokens` also `over_by` and `cut`.

        Raises TooLarge when one message cannot carry it.
        """
        async with self.pages(sight) as pages:
            bodies = await pages.bodies()
            tail = await self._tail(sight, asked.parts)
            lead = pages.lead or []
            chunks = [encode(lead), *bodies, encode(tail)]
            tokens = pages.total_tokens + sum(map(tokens_of, [*lead, *tail]))
            answer: dict[str, Any]
            if asked.form == "text":
                text, size = await _as_one_text(chunks)
                tokens = text_tokens(size)
                answer = {"text": text, "tokens": tokens, "cache_points": []}
            else:
                told = Pieces(_between(b"[", b",", b"]", filter(None, chunks)))
                answer = {"messages": told, "tokens": tokens, "cache_points": self._cache_points(pages, len(lead))}
            if asked.max_tokens is not None and tokens > asked.max_tokens:
                await asyncio.sleep(0)
                answer |= {"over_by": tokens - asked.max_tokens, "cut": self._cut(pages, asked.max_tokens)}
        return answer

    def _cut(self, pages: Pages, max_tokens: int) -> int | None:
        share, whole = KEPT_SHARE
        keep = max_tokens * share // whole
        return choose_cut(self._workspace.timeline.heads, pages.tokens(), start=pages.start, keep=keep)

    def _cache_points(self, pages: Pages, lead: int) -> list[int]:
        """The last message before the current turn, the end of round N-4, the last of the timeline, where there are."""
        points = {lead + pages.messages - 1, self._before_current_turn(pages, lead)}
        earlier = next(islice(pages.round_ends(), ROUNDS_UNCACHED, None), None)
        if earlier is not None:
            points.add(lead + pages.before(earlier + 1) - 1)
        return sorted(point for point in points if point >= 0)

    def _before_current_turn(self, pages: Pages, lead: int) -> int:
        """The turn is the open one, else that of the latest block."""
        timeline = self._workspace.timeline
        kept = range(pages.start, pages.end)
        latest = next((number for number in reversed(kept) if timeline.heads[number][TYPE] != SUMMARY), None)
        if latest is None:
            return -1
        turn = self._workspace.durable_turn_id or timeline.heads[latest][TURN]
        of_turn = timeline.of_turn(turn)
        numbers = (n for n in of_turn[bisect_left(of_turn, pages.start) :] if timeline.heads[n][TYPE] != SUMMARY)
        before = pages.before(next((n for n in numbers if n < pages.end), pages.end))
        # A header that was restored belongs to its turn.
        opens = pages.restored if before == 0 and turn == pages.opening_turn else 0
        return lead + before - opens - 1

    async def _tail(self, sight: Sight, parts: frozenset[Part]) -> list[Message]:
        """Announce, then the sources pool, which is always last (seed 003)."""
        tail: list[Message] = []
        if "announce" in parts:
            for one in (*self._announced, *self._as_announced(self.beside())):
                about = (one.told.part or {}).get("at", "")
                if sight.head(one.told.head) and sight.logical(about):
                    tail += one.messages
        if "sources" in parts:
            tail.append({"type": "text", "text": await self._pool(sight)})
        return tail

    async def _pool(self, sight: Sight) -> str:
        """Only rows that changed are rendered anew."""
        rows = self._workspace.pool.all_rows()
        lines: list[str] = []
        pace = Pace()
        for row in rows:
            await pace.rest()
            if not sight.logical(str(row.get("artifact_path") or "")):
                continue
            known = self._lines.get(row["sid"])
            if known is None or known[0] is not row:
                known = self._lines[row["sid"]] = (row, render_row(row))
            lines.append(known[1])
        return render_lines(lines)


async def _as_one_text(chunks: Iterable[bytes]) -> tuple[Pieces, int]:
    """All messages as one text, a blank line between two; and how many bytes of UTF-8 it has."""
    pages: list[bytes] = []
    size = count = 0
    pace = Pace()
    for chunk in chunks:
        texts: list[bytes] = []
        for message in decode(chunk):
            await pace.rest()
            text = as_text(message)
            size += len(text.encode())
            texts.append(orjson.dumps(text)[1:-1])
        if texts:
            pages.append(b"\\n\\n".join(texts))
            count += len(texts)
    return Pieces(_between(b'"', b"\\n\\n", b'"', pages)), size + 2 * max(count - 1, 0)


def _between(begin: bytes, comma: bytes, end: bytes, parts: Iterable[bytes]) -> list[bytes]:
    pieces: list[bytes] = []
    for part in parts:
        pieces += (comma if pieces else begin, part)
    return [*(pieces or [begin]), end]
