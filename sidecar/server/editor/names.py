"""Artifacts by what they are called within their turn: which one is newer, and what a wrong path may have meant.

Kept up as artifacts come, since looking through all of them at every key press would cost too much. It knows of hidden
ones as well: who asks looks at each answer with the eyes of a role.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from difflib import get_close_matches

from sidecar.core.happened import Happened
from sidecar.core.paths import FilePath
from sidecar.workspace import Workspace

AT_ONCE = 2000  # artifacts that are taken in before others are served
ALIKE = 5
LOOKED_AT = 5000  # names that are compared with a wrong one

_Paths = dict[FilePath, None]


class Names:
    """The paths of all artifacts in turns, by place and relative name, and by the last part of it."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._whole: dict[tuple[str, str], _Paths] = {}
        self._last: dict[str, _Paths] = {}
        self._reading: asyncio.Task[None] | None = None
        self._order: tuple[int, dict[str, int]] = (-1, {})
        self._sorted: dict[tuple[str, str], list[FilePath]] = {}  # by turn, of the names that were asked for since then

    async def ready(self) -> None:
        """Take in what was there before anybody asked; later calls are free."""
        if self._reading is None:
            self._workspace.listeners.append(self._hear)
            self._reading = asyncio.get_running_loop().create_task(self._read())
        await asyncio.shield(self._reading)

    def later(self, path: FilePath) -> list[FilePath]:
        """The files of the same name in later turns, the newest first."""
        same = self._whole.get((path.place, path.rel), {})
        if not path.place or len(same) < 2:
            return []
        order = self._turns()

        def place(other: FilePath) -> int:
            return order.get(other.turn_id, -1)

        known = self._sorted.get((path.place, path.rel))
        if known is None or len(known) != len(same):
            known = self._sorted[path.place, path.rel] = sorted(same, key=place)
        return known[bisect_right(known, place(path), key=place) :][::-1]

    def is_later(self, turn_id: str, than: str) -> bool:
        order = self._turns()
        return order.get(turn_id, -1) > order.get(than, len(order))

    def same_name(self, name: str) -> Sequence[FilePath]:
        """The files whose last part is this one, whatever its case."""
        return tuple(self._last.get(name.lower(), ()))

    def like(self, name: str) -> Sequence[str]:
        """A copy of names with the same ending, to be compared elsewhere."""
        ending = name.lower().rpartition(".")[2]
        return [other for other in tuple(self._last) if other.rpartition(".")[2] == ending][:LOOKED_AT]

    def _turns(self) -> dict[str, int]:
        if self._order[0] != self._workspace.revision:
            ids = self._workspace.turn_ids
            self._order = (self._workspace.revision, {turn_id: at for at, turn_id in enumerate(ids)})
            self._sorted.clear()
        return self._order[1]

    async def _read(self) -> None:
        for at, artifact in enumerate(self._workspace.artifacts):
            self._add(artifact.path)
            if at % AT_ONCE == 0:
                await asyncio.sleep(0)

    def _hear(self, happened: Happened) -> None:
        for artifact in happened.artifacts.values():
            self._add(artifact.path)

    def _add(self, path: FilePath) -> None:
        if path.place:
            self._whole.setdefault((path.place, path.rel), {})[path] = None
            self._last.setdefault(path.rel.rpartition("/")[2].lower(), {})[path] = None


def closest(name: str, names: Sequence[str]) -> list[str]:
    """The names that are most like this one. Slow: not for the loop's thread."""
    return get_close_matches(name.lower(), names, n=ALIKE, cutoff=0.6)
