"""The catalogue of the workspace, kept up as artifacts come. It is made when somebody first asks for it."""

from __future__ import annotations

import asyncio

from sidecar.core.catalogue import Catalogue
from sidecar.core.happened import Happened
from sidecar.core.outline import in_order
from sidecar.outlining import began
from sidecar.pacing import Pace
from sidecar.workspace import Workspace


class Cataloguing:
    """Gives the catalogue, and the turns in the order in which people look for things."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._catalogue = Catalogue()
        self._making: asyncio.Task[None] | None = None
        self._order: tuple[int, list[str]] = (-1, [])

    async def ready(self) -> Catalogue:
        """The catalogue with all that is there by now."""
        if self._making is None:
            self._workspace.listeners.append(self._hear)
            self._making = asyncio.get_running_loop().create_task(self._make())
        if not self._making.done():
            await asyncio.shield(self._making)
        return self._catalogue

    def newest_first(self) -> list[str]:
        """Every turn of the catalogue."""
        if self._order[0] != self._workspace.revision:
            firsts = self._catalogue.firsts
            known = ((turn, began(self._workspace, turn)) for turn in self._workspace.turn_ids)
            order = [turn for turn in in_order(known, firsts) if turn in firsts]
            self._order = (self._workspace.revision, order[::-1])
        return self._order[1]

    async def _make(self) -> None:
        pace = Pace()
        for artifact in self._workspace.artifacts:
            await pace.rest()
            self._catalogue.add(artifact)

    def _hear(self, happened: Happened) -> None:
        for artifact in happened.artifacts.values():
            self._catalogue.add(artifact)
