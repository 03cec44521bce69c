"""The records of the older context, found by turn and name; their bodies are read when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sidecar.core.blocks import FLAGS, SHOWN
from sidecar.core.context_blocks import record_in
from sidecar.core.older_paths import resolved_turn
from sidecar.core.operational import Operational
from sidecar.looking import Looker
from sidecar.recall import recall
from sidecar.workspace import Workspace

Record = dict[str, Any]


class Records:
    """Reads what was told of turns. What is not durable yet is not there."""

    def __init__(self, workspace: Workspace, looker: Looker) -> None:
        self._workspace = workspace
        self._looker = looker
        self._operational = Operational()

    @property
    def index(self) -> Operational:
        """The index over all blocks that are there by now."""
        self._operational.catch_up(self._workspace.timeline.heads)
        return self._operational

    @property
    def current_turn(self) -> str:
        """The open turn, else the latest one, else the empty text."""
        workspace = self._workspace
        return workspace.turn_id or next(reversed(workspace.turn_ids), "")

    def turn(self, token: str) -> str:
        """The turn that a path's first word means. Raises OlderRefusal."""
        return resolved_turn(token, current=self.current_turn, knows=self.knows)

    def knows(self, turn_id: str) -> bool:
        """Whether a turn is known: begun, told of, or by files that lie in its folder."""
        workspace = self._workspace
        if workspace.has_turn(turn_id) or turn_id in workspace.turn_ids:
            return True
        return workspace.is_turn(turn_id) and any(True for _ in workspace.artifacts.of_turn(turn_id))

    async def artifact(self, turn_id: str, name: str) -> Record | None:
        """An artifact of a turn. One that this turn has not is looked for in the current one, where all once were."""
        number = self.index.artifact(turn_id, name)
        if number is None:
            number = self.index.artifact(self.current_turn, name)
        return {**(await self.read([number]))[0], "artifact_id": name} if number is not None else None

    async def slot(self, turn_id: str, name: str) -> Record | None:
        number = self.index.slot(turn_id, name)
        return (await self.read([number]))[0] if number is not None else None

    def about(self, turn_id: str, logical: str = "") -> list[int]:
        """The blocks of a turn's artifacts that are about a file, or about this one, the latest first.

        Heads say so, so that the bodies of all others stay unread.
        """
        abouts = self._workspace.timeline.abouts
        numbers = sorted(self.index.artifacts.get(turn_id, {}).values(), reverse=True)
        return [number for number in numbers if number in abouts and (not logical or logical in abouts[number])]

    async def read(self, numbers: Sequence[int]) -> list[Record]:
        """The records that these blocks hold."""
        return [record_in(block) for block in await self.blocks(numbers)]

    async def newest(self, logical: str) -> dict[str, Any] | None:
        """The newest block at a path, copies that a read showed left aside."""
        timeline = self._workspace.timeline
        told = [number for number in timeline.at(logical) if not timeline.heads[number][FLAGS] & SHOWN]
        return (await self.blocks(told[-1:]))[0] if told else None

    async def blocks(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        return await recall(self._workspace, self._looker, numbers) if numbers else []
