"""Show a workspace at a glance: turns with the beginnings of their prompts, calls, and how much they made.

All but the prompts is kept up in memory from the first question on, and of prompts what was asked for once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from sidecar.core import limits
from sidecar.core.blocks import FLAGS, SHOWN, TS, iso
from sidecar.core.happened import Happened
from sidecar.core.outline import Made, Outline, Visible, in_order, title_of
from sidecar.core.paths import MessagePath
from sidecar.looking import Looker
from sidecar.pacing import Pace
from sidecar.workspace import Workspace

PROMPTS_AT_ONCE = 64

_NOTHING = Made(0.0, 0, {})


class Outlining:
    """Makes outlines. Changes nothing."""

    def __init__(self, workspace: Workspace, looker: Looker) -> None:
        self._workspace = workspace
        self._looker = looker
        self._titles: dict[int, str] = {}  # by the number of the prompt's block
        self._counted = Outline()
        self._counting: asyncio.Task[None] | None = None

    async def outline(self, visible: Visible, sees_block: Callable[[int], bool]) -> dict[str, Any]:
        """`{revision, turns, other}` of the artifacts and blocks that may be seen."""
        await self._ready()
        workspace, pace = self._workspace, Pace()
        revision, made, other = workspace.revision, self._counted.made(visible), self._counted.others(visible)
        moments: dict[str, float] = {}
        for turn in workspace.turn_ids:
            await pace.rest()
            if turn in made or self._is_shown(turn, sees_block):
                moments[turn] = began(workspace, turn)
        order = list(in_order(moments.items(), {turn: one.first for turn, one in made.items()}))
        prompts = {turn: number for turn in order if (number := self._prompt(turn, sees_block)) is not None}
        await self._read(list(prompts.values()))
        turns: list[dict[str, Any]] = []
        for turn in order:
            await pace.rest()
            of_turn = made.get(turn, _NOTHING)
            title = self._titles.get(prompts[turn]) if turn in prompts else None
            turns.append(self._turn(turn, of_turn, moments.get(turn) or of_turn.first, title))
        return {"revision": revision, "turns": turns, "other": other}

    async def totals(self, visible: Visible) -> tuple[int, int]:
        """How many artifacts may be seen, and how many versions of them."""
        await self._ready()
        return self._counted.totals(visible)

    async def _ready(self) -> None:
        """Count what was there before anybody asked; later calls are free."""
        if self._counting is None:
            self._workspace.listeners.append(self._hear)
            self._counting = asyncio.get_running_loop().create_task(self._count())
        if not self._counting.done():
            await asyncio.shield(self._counting)

    async def _count(self) -> None:
        pace = Pace()
        for artifact in self._workspace.artifacts:
            await pace.rest()
            self._counted.put(artifact)

    def _hear(self, happened: Happened) -> None:
        for artifact in happened.artifacts.values():
            self._counted.put(artifact)

    def _turn(self, turn_id: str, made: Made, moment: float, title: str | None) -> dict[str, Any]:
        told: dict[str, Any] = {"turn_id": turn_id}
        if moment:
            told["ts"] = iso(moment)
        if title:
            told["title"] = title
        if status := self._status(turn_id):
            told["status"] = status
        tools = self._workspace.timeline.tools
        calls = [
            {"tool_call_id": call, "artifacts": count} | ({"tool_id": tools[call]} if call in tools else {})
            for call, count in made.calls.items()
        ]
        return told | {"artifacts": made.artifacts, "calls": calls}

    def _status(self, turn_id: str) -> str:
        if turn_id == self._workspace.durable_turn_id:
            return "open"
        begun = self._workspace.turns.durable.get(turn_id)
        return begun.status if begun is not None and begun.ended else ""

    def _is_shown(self, turn_id: str, sees_block: Callable[[int], bool]) -> bool:
        """Whether a turn without artifacts may be known: it was begun, or some block of it may be seen."""
        numbers = self._workspace.timeline.of_turn(turn_id)
        return turn_id in self._workspace.turns.durable or not numbers or any(map(sees_block, numbers))

    def _prompt(self, turn_id: str, sees_block: Callable[[int], bool]) -> int | None:
        """The block with what the user asked for; copies that a read made are none."""
        heads = self._workspace.timeline.heads
        numbers = self._workspace.timeline.at(MessagePath(turn_id, "user.prompt").logical)
        return next((one for one in numbers if not heads[one][FLAGS] & SHOWN and sees_block(one)), None)

    async def _read(self, numbers: Sequence[int]) -> None:
        fresh = [number for number in numbers if number not in self._titles]
        for at in range(0, len(fresh), PROMPTS_AT_ONCE):
            self._titles.update(await self._looker.off_loop(self._titles_of, fresh[at : at + PROMPTS_AT_ONCE]))

    def _titles_of(self, numbers: Sequence[int]) -> dict[int, str]:
        bodies = zip(numbers, self._workspace.bodies_in_turn(numbers), strict=True)
        return {
            number: title_of(str(orjson.loads(body).get("text") or ""), limits.TITLE_CHARS) for number, body in bodies
        }


def began(workspace: Workspace, turn_id: str) -> float:
    """When a turn of the timeline began, in seconds since the epoch; 0 where nobody knows."""
    begun, timeline = workspace.turns.durable.get(turn_id), workspace.timeline
    if begun is not None and begun.began:
        return begun.began
    numbers = timeline.of_turn(turn_id)
    return timeline.heads[numbers[0]][TS] if numbers else 0.0
