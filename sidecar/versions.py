"""The bytes of one version of a file, an older one as well, in memory: from where they stand, else from the store.

Nothing is written into OUT_DIR, and what comes has the hash that the version is known by.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable

from sidecar.core import limits
from sidecar.core.artifacts import Artifact, Version
from sidecar.core.errors import NotFound, StoreUnavailable, TooLarge, UnsafePath
from sidecar.hosting import Hosting
from sidecar.looking import Looker
from sidecar.ports import Blobs, OutDir
from sidecar.rehost import Rehoster


class Versions:
    """Reads versions whole, up to a size."""

    def __init__(self, looker: Looker, rehoster: Rehoster, outdir: OutDir, blobs: Blobs, hosting: Hosting) -> None:
        self._looker = looker
        self._rehoster = rehoster
        self._outdir = outdir
        self._blobs = blobs
        self._hosting = hosting

    async def bytes_of(self, artifact: Artifact, number: int, *, most: int = limits.OLD_VERSION_BYTES) -> bytes:
        """The bytes of a version by its number.

        Raises NotFound when there is no such version or its bytes are nowhere, TooLarge and StoreUnavailable.
        """
        physical, count = artifact.path.physical, len(artifact.versions)
        if not 1 <= number <= count:
            raise NotFound(physical, f"it has {count} version{'s' if count != 1 else ''}, and none of number {number}")
        version = artifact.versions[number - 1]
        if version.size is not None and version.size > most:
            raise TooLarge(physical, f"version {number} has {version.size} bytes; up to {most} are shown")
        found = await self._at_hand(physical, version, most)
        found = found if found is not None else await self._inline(version, most)
        found = found if found is not None else await self._from_store(artifact, version, most)
        if found is None:
            raise NotFound(physical, f"version {number} was neither kept nor hosted, and its bytes are gone")
        return found

    async def _at_hand(self, physical: str, version: Version, most: int) -> bytes | None:
        """Kept bytes, or those that stand in OUT_DIR if they are still these."""
        if version.sha256 is None:
            return None
        return await self._looker.off_loop(self._read, physical, version.sha256, most)

    def _read(self, physical: str, sha256: str, most: int) -> bytes | None:
        for open_it, name in ((self._blobs.open, sha256), (self._outdir.open, physical)):
            try:
                with open_it(name) as stream:
                    raw = stream.read(most + 1)
            except (NotFound, UnsafePath, OSError):
                continue
            if hashlib.sha256(raw).hexdigest() == sha256:
                return raw
        return None

    async def _inline(self, version: Version, most: int) -> bytes | None:
        """What the timeline holds, unless that is an excerpt."""
        held = await self._rehoster.inline(version)
        if held is None or len(held) > most:
            return None
        return held if version.sha256 in (None, hashlib.sha256(held).hexdigest()) else None

    async def _from_store(self, artifact: Artifact, version: Version, most: int) -> bytes | None:
        """Raises StoreUnavailable when the bytes are hosted and cannot be had now."""
        sha256, hosting = version.sha256, artifact.hosting(version.sha256)
        if sha256 is None or not hosting:
            return None
        overdue = threading.Event()
        try:
            for key in self._hosting.keys_of(hosting):
                fetching = self._hosting.ask(self._fetch, key, most, overdue.is_set)
                try:
                    raw = await asyncio.wait_for(fetching, limits.REHOST_DEADLINE)
                except NotFound:
                    continue
                if raw is not None and hashlib.sha256(raw).hexdigest() == sha256:
                    return raw
                raise StoreUnavailable(artifact.path.physical, "the store has other bytes", fault="wrong_bytes")
        except TimeoutError:
            raise StoreUnavailable(artifact.path.physical, "ask again", fault="timed_out") from None
        finally:
            overdue.set()  # a download that nobody waits for any more ends at its next chunk
        if self._hosting.store is None:
            raise StoreUnavailable(artifact.path.physical, "it is hosted, and no store is configured", fault="no_store")
        return None

    def _fetch(self, key: str, most: int, stop: Callable[[], bool]) -> bytes | None:
        """The bytes under a key, or None when they are more than a version of that size can have."""
        raw = bytearray()
        for chunk in self._hosting.fetch(key, stop):
            raw += chunk
            if len(raw) > most:
                return None
        return bytes(raw)
