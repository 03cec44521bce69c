"""What is kept of old bytes, and what is given up first when there is too much of it (spec section 8)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from sidecar.core.entries import Noticed
from sidecar.core.errors import Refusal
from sidecar.core.notices import notice
from sidecar.core.state import Happened
from sidecar.looking import Looker
from sidecar.ports import Blobs
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)

REST_SECONDS = 1.0


class Keeper:
    """Brings kept bytes to the disk at rest, and holds them below their limit."""

    def __init__(self, workspace: Workspace, looker: Looker, blobs: Blobs, *, keep_bytes: int) -> None:
        self._workspace = workspace
        self._looker = looker
        self._blobs = blobs
        self._keep_bytes = keep_bytes
        self._stirred = asyncio.Event()
        workspace.listeners.append(self._hear)

    async def run(self) -> None:
        """Tidy up after every burst of changes, until cancelled."""
        while True:
            await self._stirred.wait()
            await asyncio.sleep(REST_SECONDS)
            self._stirred.clear()
            try:
                await self._looker.off_loop(self._blobs.flush)
                await self.give_up_excess()
            except (OSError, Refusal) as fault:
                log.warning("kept bytes could not be tidied: %s", fault)

    async def give_up_excess(self) -> int:
        """Give up kept bytes until they fit: superseded versions first, oldest first, then latest ones with a notice.

        Answers how many bytes were freed.
        """
        excess = await self._looker.off_loop(self._blobs.total_bytes) - self._keep_bytes
        if excess <= 0:
            return 0
        sizes = await self._looker.off_loop(self._blobs.sizes)
        freed = 0
        for sha256, path in self._order(sizes):
            if freed >= excess:
                break
            gone = await self._looker.off_loop(self._blobs.evict, sha256)
            freed += gone
            if gone and path:
                await self._workspace.stage(Noticed(notice("kept_evicted", path=path, sha256=sha256, size_bytes=gone)))
        return freed

    def _order(self, sizes: dict[str, int]) -> Iterator[tuple[str, str]]:
        """Hashes in the order of giving up, with the path whose latest version goes, or the empty text."""
        latest: dict[str, tuple[float, str]] = {}
        older: dict[str, float] = {}
        for artifact in self._workspace.artifacts:
            for version in artifact.versions:
                if version.sha256 in sizes:
                    older.setdefault(version.sha256, version.ts)
            if artifact.versions and (sha256 := artifact.latest.sha256) in sizes and sha256 is not None:
                latest[sha256] = (artifact.latest.ts, artifact.path.physical)
        yield from ((sha256, "") for sha256 in sizes if sha256 not in older)
        yield from ((sha256, "") for sha256 in sorted(older, key=older.__getitem__) if sha256 not in latest)
        yield from ((sha256, path) for sha256, (_, path) in sorted(latest.items(), key=lambda item: item[1]))

    def _hear(self, happened: Happened) -> None:
        if happened.artifacts:
            self._stirred.set()
