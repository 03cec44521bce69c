"""Hide what stands at a path from the agent: one replacement for all of its blocks. It still resolves.

Only what lies near the end of the timeline is hidden, since everything before it is cached by whoever runs the model.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import orjson

from sidecar.core import limits
from sidecar.core.blocks import FLAGS, HIDDEN
from sidecar.core.counting import binary_tokens, count_tokens, packed_size
from sidecar.core.entries import BlocksHidden, Entry
from sidecar.core.errors import Refusal
from sidecar.core.paths import parse
from sidecar.core.told_blocks import result_block
from sidecar.landing import Remember
from sidecar.looking import Looker
from sidecar.within import Telling, Within, about, audience, entries_in, within
from sidecar.workspace import Workspace

BODIES_AT_ONCE = 16


class Hiding:
    """Decides which blocks are hidden, and what that saves."""

    def __init__(self, workspace: Workspace, looker: Looker) -> None:
        self.alone = asyncio.Lock()
        self._workspace = workspace
        self._looker = looker

    async def hide(
        self, paths: Sequence[str], replacement: str, tool_call_id: str | None, remember: Remember
    ) -> dict[str, Any]:
        """Hide what is at these paths; answers for each what came of it. Hidden already is hidden. Call it `alone`.

        Outside a turn there is no call to tell it in, and it is done without. Raises what `within` raises.
        """
        workspace = self._workspace
        params = {"paths": list(paths), "replacement": replacement}
        telling = Telling("hide", tool_call_id, params)
        self._call(telling)  # refused before anything is read
        await workspace.stage()
        tail = await self._tail_begins()
        hidden: dict[str, BlocksHidden] = {}
        results = [
            {"path": text, "blocks_hidden": 0, "tokens_hidden": 0, **await self._one(text, replacement, tail, hidden)}
            for text in paths
        ]
        entries: list[Entry] = list(hidden.values())
        call = self._call(telling)
        if call is not None:
            said = result_block(call.turn_id, call.tool_call_id, call.tool_id, {"results": results})
            telling = replace(telling, about=about(workspace, paths))
            visibility = audience(workspace, paths)
            entries = entries_in(call, telling, [said], entries, visibility=visibility, now=time.time())
        await workspace.stage(*entries, *remember({"results": results}))
        return {"results": results}

    def _call(self, telling: Telling) -> Within | None:
        in_turn = self._workspace.turn_id or telling.tool_call_id is not None
        return within(self._workspace, telling) if in_turn else None

    async def _one(self, text: str, replacement: str, tail: int, hidden: dict[str, BlocksHidden]) -> dict[str, Any]:
        try:
            logical = parse(text).logical or ""
        except Refusal as refusal:
            return {"status": "not_found", "reason": refusal.kind}
        timeline = self._workspace.timeline
        if not timeline.at(logical):
            return {"status": "not_found"}
        seen = () if logical in hidden else timeline.visible(logical)
        if not seen:
            return {"status": "ok"}
        if seen[-1] < tail:
            return {"status": "too_old"}
        words = replacement_for(logical, replacement)
        saved = sum([sum(await self._tokens(some)) for some in _some(seen)]) - count_tokens(words)
        # What was hidden here before gets the same words, so that one replacement speaks for all of it.
        veiled = [number for number in timeline.at(logical) if timeline.veils.get(number) is not None]
        hidden[logical] = BlocksHidden((*veiled, *seen), words)
        return {"status": "ok", "blocks_hidden": len(seen), "tokens_hidden": saved}

    async def _tail_begins(self) -> int:
        """The oldest block that may be touched: at most so many tokens of what the agent sees come after it."""
        heads = self._workspace.timeline.heads
        left, tail = limits.EDITABLE_TAIL_TOKENS, len(heads)
        for some in _some(range(tail - 1, max(-1, tail - 1 - limits.EDITABLE_TAIL_BLOCKS), -1)):
            for number, tokens in zip(some, await self._tokens(some), strict=True):
                if left < 0:
                    return tail
                tail = number
                left -= 0 if heads[number][FLAGS] & HIDDEN else tokens
        return tail

    async def _tokens(self, numbers: Sequence[int]) -> list[int]:
        bodies = await self._looker.off_loop(self._workspace.bodies, list(numbers))
        return [tokens_of(body) for body in bodies]


def _some(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """A few at a time, because a body may be large."""
    yield from (numbers[at : at + BODIES_AT_ONCE] for at in range(0, len(numbers), BODIES_AT_ONCE))


def replacement_for(logical: str, replacement: str) -> str:
    """What stands in the place of a path, with the way back (spec section 8)."""
    return f"HIDDEN — {replacement.strip().removesuffix('.')}. Retrieve with react.read({logical})"


def tokens_of(body: bytes) -> int:
    """What a block counts as: its text, or the bytes that its base64 stands for."""
    block = orjson.loads(body)
    text, packed = block.get("text"), block.get("base64")
    if isinstance(text, str):
        return count_tokens(text)
    return binary_tokens(packed_size(packed)) if isinstance(packed, str) else 0
