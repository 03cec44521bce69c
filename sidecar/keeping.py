"""What is kept of old bytes, and what is given up first when there is too much of it (spec section 8)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from sidecar.core.entries import Noticed
from sidecar.core.errors import Refusal
from sidecar.core.happened import Happened
from sidecar.core.notices import notice
from sidecar.hosting import Hosting
from sidecar.looking import Looker
from sidecar.ports import Blobs
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)

REST_SECONDS = 1.0


class Keeper:
    """Brings kept bytes to the disk at rest, and holds them below their limit."""

    def __init__(
        self, workspace: Workspace, looker: Looker, blobs: Blobs, hosting: Hosting, *, keep_bytes: int
    ) -> None:
        self._hosting = hosting
        self._workspace = workspace
        self._looker = looker
        self._blobs = blobs
        self.keep_bytes = keep_bytes
        self._strays: set[str] = set()  # kept bytes that no version knew when they were last looked through
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
        """Give up kept bytes until they fit: hosted ones first, oldest first, then superseded, then latest ones.

        Answers how many bytes were freed.
        """
        excess = await self._looker.off_loop(self._blobs.total_bytes) - self.keep_bytes
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
        """Hashes in the order of giving up, with the path whose only copy goes, or the empty text.

        What nobody knows goes first, unless it was only just taken in and its version is on the way; then what the
        store has as well, then superseded versions, each oldest first; last the latest versions that are nowhere else.
        What is on its way to the store counts as nowhere else, and is told of as well.
        """
        latest: dict[str, tuple[float, str]] = {}
        known: dict[str, float] = {}
        hosted: dict[str, float] = {}
        for artifact in self._workspace.artifacts:
            for version in artifact.versions:
                if version.sha256 in sizes and version.sha256 is not None:
                    known.setdefault(version.sha256, version.ts)
                    if self._hosting.keys_of(version.facts):
                        hosted.setdefault(version.sha256, version.ts)
            if artifact.versions and (sha256 := artifact.latest.sha256) in sizes and sha256 is not None:
                latest[sha256] = (artifact.latest.ts, artifact.path.physical)
        for path, sha256 in self._workspace.hosting:
            latest.setdefault(sha256, (known.get(sha256, 0.0), path))
        superseded = known.keys() - hosted.keys() - latest.keys()
        strays = sizes.keys() - known.keys()
        yield from ((sha256, "") for sha256 in strays & self._strays)
        self._strays = strays
        yield from ((sha256, "") for sha256 in sorted(hosted, key=hosted.__getitem__))
        yield from ((sha256, "") for sha256 in sorted(superseded, key=known.__getitem__))
        last = sorted((ts, path, sha256) for sha256, (ts, path) in latest.items() if sha256 not in hosted)
        yield from ((sha256, path) for _, path, sha256 in last)

    def _hear(self, happened: Happened) -> None:
        if happened.artifacts:
            self._stirred.set()
