"""Files that we write and tell of ourselves. A look leaves them alone until they are told.

Between its appearance on disk and its entry in the journal a file would look like somebody's new work. Registered as
that, an internal note would get a number and an audience before anybody could say that it is internal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Generator
from contextlib import contextmanager


class Claims:
    """Who writes holds; who looks asks for the holds to end, reads, and drops what was held meanwhile."""

    def __init__(self) -> None:
        self._held: dict[str, asyncio.Future[None]] = {}
        self._met: set[str] | None = None  # what was held at any time since the look under way began to read

    def __contains__(self, physical: str) -> bool:
        """Whether somebody is about to tell of this file."""
        return physical in self._held

    @contextmanager
    def hold(self, physical: str) -> Generator[None]:
        """What becomes of this file is told by the holder. One holder at a time."""
        assert physical not in self._held, "writers of one file take turns"
        self._held[physical] = asyncio.get_running_loop().create_future()
        if self._met is not None:
            self._met.add(physical)
        try:
            yield
        finally:
            self._held.pop(physical).set_result(None)

    async def released(self, paths: Collection[str]) -> None:
        """Wait until none of these files is held; from then on holds are noted for `met`."""
        while holds := [self._held[path] for path in paths if path in self._held]:
            await asyncio.wait(holds)
        self._met = set(self._held)

    def met(self, paths: Collection[str]) -> frozenset[str]:
        """Those of these files that were held since `released`: what was read of them may be old."""
        met, self._met = self._met or set(), None
        return frozenset(met.intersection(paths))
