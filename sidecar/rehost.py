"""Bring bytes of a known file back into OUT_DIR.

A file that holds unknown bytes is looked at and registered first, so nothing unknown is ever overwritten. The bytes
come from what was kept, then from the store, then from the timeline; they are hash-checked on arrival and appear whole.
One file is fetched once for any number of waiters, and a waiter that leaves does not stop the others.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import orjson

from sidecar.core import limits
from sidecar.core.artifacts import Artifact, Version
from sidecar.core.errors import Fault, NotFound, StoreUnavailable, UnsafePath
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.paths import FilePath
from sidecar.hosting import Hosting
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
    """Why a file could not be brought; `fault` says what was wrong with the store, or with the disk here."""

    reason: Reason
    fault: Fault | None = None

    def told(self) -> dict[str, str]:
        return {"reason": self.reason} | ({"fault": self.fault} if self.fault is not None else {})


class _NoOutDirError(Exception):
    """OUT_DIR is not where it was, so nothing can be brought into it."""


class Rehoster:
    """Fetches each file at most once at a time, at most eight at once, each within its deadline."""

    def __init__(self, workspace: Workspace, looker: Looker, outdir: OutDir, blobs: Blobs, hosting: Hosting) -> None:
        self._hosting = hosting
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
            running.add_done_callback(functools.partial(self._over, path.physical))
        return await asyncio.shield(running)

    def _over(self, physical: str, ended: asyncio.Task[Rehosted | Missing]) -> None:
        del self._under_way[physical]
        if not ended.cancelled():
            ended.exception()  # looked at, as everybody who waited for it may be gone

    async def _one(self, path: FilePath) -> Rehosted | Missing:
        overdue = threading.Event()
        try:
            async with asyncio.timeout(limits.REHOST_DEADLINE):
                at_once = await self._at_once(path)
            if at_once is not None:
                return at_once
            async with self._places, asyncio.timeout(limits.REHOST_DEADLINE):
                return await self._bring(path, overdue.is_set)
        except UnsafePath:
            return Missing("unsafe_path")
        except _NoOutDirError:
            return Missing("store_unavailable", "no_out_dir")
        except TimeoutError:
            return Missing("store_unavailable", "timed_out")
        except OSError:
            return Missing("store_unavailable", "disk_full")  # full or read-only: worth asking again
        finally:
            overdue.set()  # a download that nobody waits for any more ends at its next chunk

    async def _bring(self, path: FilePath, stop: Callable[[], bool]) -> Rehosted | Missing:
        key = await self._looker.look_at(path)
        artifact = self._workspace.artifact(path)
        if artifact is None or not artifact.versions:
            return await self._unregistered(path, key, stop)
        if key is not None and (present := self._keep_present(artifact, key)) is not None:
            return present
        version = artifact.latest
        try:
            found = await self._from_kept(path, version, key)
            found = found or await self._from_store(path, version.facts, version.sha256, key, stop)
            if not isinstance(found, Rehosted):
                # The timeline may hold what the store has not, or cannot give now.
                found = await self._from_timeline(path, version, key) or found
        except FileExistsError:
            return await self._what_came_instead(path)
        if isinstance(found, Rehosted):
            await self._looker.look_at(path)
        return found or Missing("gone" if version.sha256 is not None else "not_hosted")

    def latest_key(self, path: FilePath) -> StatKey | None:
        """The key under which a file was last seen, when what it held is its latest version and nothing is newer."""
        fact = self._seen_latest(path)
        return fact.key if fact is not None and fact.key == self._workspace.files.get(path.physical) else None

    def _seen_latest(self, path: FilePath) -> FileFact | None:
        artifact = self._workspace.artifact(path)
        if artifact is None or artifact.fact is None or not self._looker.registers(path):
            return None
        fact = artifact.fact
        return fact if fact.sha256 is not None and fact.sha256 == artifact.sha256() else None

    async def _at_once(self, path: FilePath) -> Rehosted | None:
        """A file that stands as it is known, or where nothing stands the kept bytes that it was seen with before.

        None when anything is otherwise, or turns out to be; then it is gone about step by step.
        """
        artifact, fact = self._workspace.artifact(path), self._seen_latest(path)
        if artifact is None or fact is None or fact.sha256 is None:
            return None
        try:
            key, stood = await self._looker.bring(self._copy_if_absent, path.physical, fact.sha256)
        except (NotFound, ValueError, FileExistsError):
            return None
        if stood:
            return self._keep_present(artifact, key) if key == self._workspace.files.get(path.physical) else None
        await self._looker.tell(replace(fact, key=key, kept=True, incomplete=False))
        return Rehosted(path, key.size, fact.sha256, "kept")

    def _copy_if_absent(self, physical: str, sha256: str) -> tuple[StatKey, bool]:
        """The key of what is there then, and whether it stood there before."""
        standing = self._outdir.key(physical)
        if standing is not None:
            return standing, True
        with self._blobs.open(sha256) as kept:
            return self._put(physical, kept, sha256, None), False

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

    async def _unregistered(self, path: FilePath, key: StatKey | None, stop: Callable[[], bool]) -> Rehosted | Missing:
        """A readable file outside every turn is there, and nobody's version; an absent one may be a row's."""
        if key is not None:
            sha256 = await self._looker.search(lambda: _hash_of(self._outdir, path.physical))
            return Rehosted(path, key.size, sha256, "on_disk")
        sid = self._workspace.pool.by_path(path.physical)
        row = self._workspace.pool.get(sid) if sid is not None else None
        if row is None:
            return Missing("unknown")
        try:
            found = await self._from_store(path, row, None, None, stop)
        except FileExistsError:
            return await self._what_came_instead(path)
        if isinstance(found, Rehosted):
            await self._looker.look_at(path)
        return found or Missing("not_hosted")

    async def _from_kept(self, path: FilePath, version: Version, over: StatKey | None) -> Rehosted | None:
        if version.sha256 is None or not self._blobs.has(version.sha256):
            return None
        try:
            size = await self._looker.bring(self._copy_kept, path.physical, version.sha256, over)
        except NotFound:
            return None  # evicted meanwhile: the next origin answers
        except ValueError:
            await self._looker.off_loop(self._blobs.evict, version.sha256)
            return None  # damaged, and of use to nobody
        return Rehosted(path, size, version.sha256, "kept")

    def _copy_kept(self, physical: str, sha256: str, over: StatKey | None) -> int:
        with self._blobs.open(sha256) as kept:
            return self._put(physical, kept, sha256, over).size

    def _put(self, physical: str, chunks: Iterable[bytes], sha256: str | None, over: StatKey | None) -> StatKey:
        """Raises _NoOutDirError, so that a folder that is away is not taken for bytes that are gone."""
        try:
            return self._outdir.put_back(physical, chunks, sha256=sha256, over=over)
        except NotFound as fault:
            if fault.about == self._outdir.root:
                raise _NoOutDirError(physical) from fault
            raise  # the store has no such bytes

    async def _from_store(
        self,
        path: FilePath,
        hosting: Mapping[str, Any],
        sha256: str | None,
        over: StatKey | None,
        stop: Callable[[], bool],
    ) -> Rehosted | Missing | None:
        """Bytes from the configured store, by a key of this conversation; None when nothing says that they are there.

        What is named elsewhere is unknown here, and nothing is contacted for it (spec section 10).
        """
        if not (hosting.get("hosted_uri") or hosting.get("key")):
            return None
        if self._hosting.store is None:
            return Missing("store_unavailable", "no_store")
        size = hosting.get("size_bytes")
        why: Missing = Missing("unknown")
        for key in self._hosting.keys_of(hosting):
            try:
                return await self._hosting.ask(self._download, path, key, sha256, size, over, stop)
            except NotFound:
                # Bytes that were hosted in another store than this one may well be there still.
                why = Missing("gone" if self._hosting.is_here(hosting) else "unknown")
            except StoreUnavailable as refusal:
                why = Missing("store_unavailable", refusal.fault)
            except ValueError:
                why = Missing("store_unavailable", "wrong_bytes")
        return why

    def _download(
        self,
        path: FilePath,
        key: str,
        sha256: str | None,
        size: object,
        over: StatKey | None,
        stop: Callable[[], bool],
    ) -> Rehosted:
        """Write what the store has, checked on arrival: by its hash, or by its size where nobody knows the hash."""
        hashing = hashlib.sha256()

        def arriving() -> Iterator[bytes]:
            count = 0
            for chunk in self._hosting.fetch(key, stop):
                hashing.update(chunk)
                count += len(chunk)
                yield chunk
            if sha256 is None and isinstance(size, int) and size != count:
                raise ValueError(f"{key}: {count} bytes arrived, not {size}")

        standing = self._put(path.physical, arriving(), sha256, over)
        return Rehosted(path, standing.size, hashing.hexdigest(), "store")

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
        return self._put(physical, [held], sha256, over)

    async def at_hand(self, path: FilePath, sha256: str) -> bytes | None:
        """Bytes with this hash from what was kept or from the file itself, for a block; None when neither has them."""
        return await self._looker.off_loop(self._read_whole, path.physical, sha256)

    def _read_whole(self, physical: str, sha256: str) -> bytes | None:
        for open_it, name in ((self._blobs.open, sha256), (self._outdir.open, physical)):
            try:
                with open_it(name) as stream:
                    raw = stream.read(limits.INLINE_BASE64_BYTES + 1)
            except (NotFound, UnsafePath, OSError):
                continue
            if hashlib.sha256(raw).hexdigest() == sha256:
                return raw
        return None

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


def _hash_of(outdir: OutDir, physical: str) -> str:
    """The hash of a file's bytes, or the empty text over the hashing limit."""
    with outdir.open(physical) as stream:
        if stream.seek(0, 2) > limits.HASHED_BYTES:
            return ""
        stream.seek(0)
        return hashlib.file_digest(stream, "sha256").hexdigest()
