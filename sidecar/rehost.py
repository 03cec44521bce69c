"""Bring bytes of a known file back into OUT_DIR.

A file that holds unknown bytes is looked at and registered first, so nothing unknown is ever overwritten. The bytes
come from what was kept, then from the timeline; they are hash-checked on arrival and appear whole. One file is fetched
once for any number of waiters, and a waiter that leaves does not stop the others.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from typing import Literal, NamedTuple

import orjson

from sidecar.core import limits
from sidecar.core.artifacts import Artifact, Version
from sidecar.core.errors import NotFound, UnsafePath
from sidecar.core.inventory import StatKey
from sidecar.core.paths import FilePath
from sidecar.looking import Looker
from sidecar.ports import Blobs, OutDir
from sidecar.workspace import Workspace

Reason = Literal["bad_path", "unsafe_path", "unknown", "not_hosted", "gone", "store_unavailable"]


class Rehosted(NamedTuple):
    """A file that stands in OUT_DIR with the bytes of its latest version."""

    path: FilePath
    size_bytes: int
    sha256: str
    origin: Literal["on_disk", "kept", "store", "inline"]


class Missing(NamedTuple):
    """Why a file could not be brought."""

    reason: Reason


class Rehoster:
    """Fetches each file at most once at a time, at most eight at once, each within its deadline."""

    def __init__(self, workspace: Workspace, looker: Looker, outdir: OutDir, blobs: Blobs) -> None:
        self._workspace = workspace
        self._looker = looker
        self._outdir = outdir
        self._blobs = blobs
        self._under_way: dict[str, asyncio.Task[Rehosted | Missing]] = {}
        self._places = asyncio.Semaphore(limits.REHOSTS_AT_ONCE)

    async def rehost(self, path: FilePath) -> Rehosted | Missing:
        """Bring one file. Raises JournalUnavailable or ShuttingDown; everything else is an answer."""
        running = self._under_way.get(path.physical)
        if running is None:
            running = asyncio.get_running_loop().create_task(self._one(path))
            self._under_way[path.physical] = running
            running.add_done_callback(lambda _: self._under_way.pop(path.physical, None))
        return await asyncio.shield(running)

    async def _one(self, path: FilePath) -> Rehosted | Missing:
        async with self._places:
            try:
                return await asyncio.wait_for(self._bring(path), limits.REHOST_DEADLINE)
            except UnsafePath:
                return Missing("unsafe_path")
            except (TimeoutError, OSError, NotFound):
                return Missing("store_unavailable")  # the disk is full, read-only or away: worth asking again

    async def _bring(self, path: FilePath) -> Rehosted | Missing:
        key = await self._looker.look_at(path)
        artifact = self._workspace.artifact(path)
        if artifact is None or not artifact.versions:
            return await self._generic(path, key) if key is not None else Missing("unknown")
        if key is not None and (present := self._keep_present(artifact, key)) is not None:
            return present
        version = artifact.latest
        try:
            found = await self._from_kept(path, version, key) or await self._from_timeline(path, version, key)
        except FileExistsError:
            return await self._what_came_instead(path)
        if found is None:
            return Missing(_why_not(version))
        await self._looker.look_at(path)
        return found

    async def _what_came_instead(self, path: FilePath) -> Rehosted | Missing:
        """A program made the file while its bytes were on their way: what it made stays."""
        key = await self._looker.look_at(path)
        artifact = self._workspace.artifact(path)
        fact = artifact.fact if artifact is not None else None
        if key is None:
            return Missing("gone")
        return Rehosted(path, key.size, (fact.sha256 or "") if fact is not None and fact.key == key else "", "on_disk")

    def _keep_present(self, artifact: Artifact, key: StatKey) -> Rehosted | None:
        """The file that is there, unless it is a stale copy that may be refreshed (spec section 8)."""
        fact = artifact.fact
        if fact is None or fact.key != key:
            # Somebody is writing to it right now: what is there is newer than all that is known.
            return Rehosted(artifact.path, key.size, "", "on_disk")
        protected = bool(self._workspace.open_calls) and artifact.path.turn_id == self._workspace.turn_id
        if artifact.holds_latest() or protected or artifact.sha256() is None or fact.sha256 is None:
            return Rehosted(artifact.path, key.size, fact.sha256 or "", "on_disk")
        return None

    async def _generic(self, path: FilePath, key: StatKey) -> Rehosted | Missing:
        """A readable file outside every turn: it is there, and it is nobody's version."""
        sha256 = await self._looker.search(lambda: _hash_of(self._outdir, path.physical))
        return Rehosted(path, key.size, sha256, "on_disk")

    async def _from_kept(self, path: FilePath, version: Version, over: StatKey | None) -> Rehosted | None:
        if version.sha256 is None or not self._blobs.has(version.sha256):
            return None
        try:
            size = await self._looker.off_loop(self._copy_kept, path.physical, version.sha256, over)
        except NotFound:
            return None  # evicted meanwhile: the next origin answers
        except ValueError:
            await self._looker.off_loop(self._blobs.evict, version.sha256)
            return None  # damaged, and of use to nobody
        return Rehosted(path, size, version.sha256, "kept")

    def _copy_kept(self, physical: str, sha256: str, over: StatKey | None) -> int:
        with self._blobs.open(sha256) as kept:
            return self._outdir.put_back(physical, kept, sha256=sha256, over=over).size

    async def _from_timeline(self, path: FilePath, version: Version, over: StatKey | None) -> Rehosted | None:
        held = await self.inline(version)
        if held is None:
            return None
        sha256 = hashlib.sha256(held).hexdigest()
        if version.sha256 is not None and version.sha256 != sha256:
            return None  # the timeline holds an excerpt, not the file
        key = await self._looker.off_loop(self._write_inline, path.physical, held, sha256, over)
        return Rehosted(path, key.size, sha256, "inline")

    def _write_inline(self, physical: str, held: bytes, sha256: str, over: StatKey | None) -> StatKey:
        return self._outdir.put_back(physical, [held], sha256=sha256, over=over)

    async def inline(self, version: Version) -> bytes | None:
        """The bytes that the timeline itself holds of a version, or None."""
        number = version.blocks.get("base64", version.blocks.get("text"))
        if number is None:
            return None
        (body,) = await self._looker.off_loop(self._workspace.bodies, [number])
        block = orjson.loads(body)
        if isinstance(block.get("text"), str):
            return block["text"].encode("utf-8", "surrogatepass")
        return base64.b64decode(block["base64"])


def _why_not(version: Version) -> Reason:
    if "hosted_uri" in version.facts or "key" in version.facts:
        return "store_unavailable"
    return "gone" if version.sha256 is not None else "not_hosted"


def _hash_of(outdir: OutDir, physical: str) -> str:
    """The hash of a file's bytes, or the empty text over the hashing limit."""
    with outdir.open(physical) as stream:
        if stream.seek(0, 2) > limits.HASHED_BYTES:
            return ""
        stream.seek(0)
        return hashlib.file_digest(stream, "sha256").hexdigest()
