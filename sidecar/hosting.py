"""Put what was produced into the store, in the background, and say where it is.

What is to be hosted stands in the journal, so that a restart goes on with it. The bytes come from what was kept, else
from OUT_DIR; the store checks their hash. Blob first, then row: when the store has the bytes, one entry records the key
and the handle. A store that is away is asked again later, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from sidecar.core import limits
from sidecar.core.artifacts import Artifact
from sidecar.core.entries import Entry, Hosted, HostingWaived, HostingWanted, Noticed, SourceSet
from sidecar.core.errors import Fault, JournalUnavailable, NotFound, Refusal, ShuttingDown, StoreUnavailable, UnsafePath
from sidecar.core.happened import Happened
from sidecar.core.mime import mime_by_name
from sidecar.core.notices import notice
from sidecar.core.paths import FilePath, parse_physical
from sidecar.core.storage_names import KEY_BYTES, Identity, handle_for, is_ours, key_for, key_prefix
from sidecar.looking import Looker
from sidecar.ports import Abilities, Blobs, OutDir, Store
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)
T = TypeVar("T")

FIRST_REST, LAST_REST = 0.5, 30.0
WANTED_AT_ONCE = 1000
SETTLE_STEP = 0.01
Wanted = tuple[str, str]


class _Parcel(NamedTuple):
    """Bytes on their way: of which file, with which hash, under which key, as which type."""

    physical: str
    sha256: str
    key: str
    mime: str


class Hosting:
    """Uploads what is wanted, as much at once as helps its store, and knows how the store is.

    Without a store nothing is wanted, and nothing that was hosted can be fetched.
    """

    def __init__(self, workspace: Workspace, looker: Looker, outdir: OutDir, blobs: Blobs, store: Store | None) -> None:
        self.store = store
        self.fault: Fault | None = None if store is not None else "no_store"
        self.abilities: Abilities | None = None
        self._workspace = workspace
        self._looker = looker
        self._outdir = outdir
        self._blobs = blobs
        self._under_way: dict[Wanted, asyncio.Task[None]] = {}
        self._postponed: dict[Wanted, float] = {}  # uploads that failed by themselves, and when to try them again
        self._unhosted: dict[str, Artifact] = {}  # external files that stand on disk and in no store
        self._stirred = asyncio.Event()
        self._rest = FIRST_REST
        # Uploads that hang must not keep downloads waiting, nor links.
        self._senders = ThreadPoolExecutor(store.puts_at_once if store else 1, thread_name_prefix="store-out")
        self._askers = ThreadPoolExecutor(limits.REHOSTS_AT_ONCE, thread_name_prefix="store-in")
        workspace.listeners.append(self._hear)

    # What others ask -------------------------------------------------------------------------------------------------

    def wanted(self, path: FilePath, sha256: str | None) -> list[Entry]:
        """The entries that make these bytes of an external file wanted; none when they are hosted already."""
        if self.store is None or sha256 is None or (path.physical, sha256) in self._workspace.hosting:
            return []
        artifact = self._workspace.artifact(path)
        if artifact is not None and self._has_bytes(artifact, sha256):
            return []
        return [HostingWanted(path.physical, sha256)]

    def left_over(self) -> list[Entry]:
        """The same for every external file on disk that nobody has asked to host: what the end of a turn hosts."""
        return [entry for path in self._left_over() for entry in self._wanted_now(path)]

    async def want_left_over(self) -> bool:
        """Want these already, some at a time, so that others are served in between. Whether it took more than one time.

        Raises what staging raises. Some more may come meanwhile.
        """
        paths = self._left_over()
        for at in range(0, len(paths), WANTED_AT_ONCE):
            some = [entry for path in paths[at : at + WANTED_AT_ONCE] for entry in self._wanted_now(path)]
            if some:
                await self._workspace.stage(*some)
        return len(paths) > WANTED_AT_ONCE

    def _left_over(self) -> list[str]:
        wanted = self._workspace.hosting
        unhosted = self._unhosted.items()
        left = [path for path, one in unhosted if one.fact is not None and (path, one.fact.sha256) not in wanted]
        return sorted(left, key=str.encode)

    def _wanted_now(self, physical: str) -> list[Entry]:
        artifact = self._unhosted.get(physical)
        fact = artifact.fact if artifact is not None else None
        return self.wanted(artifact.path, fact.sha256) if artifact is not None and fact is not None else []

    def take_stock(self) -> None:
        """Find what is not hosted, once the journal is loaded."""
        self._note(self._workspace.artifacts.seen())

    def state(self) -> dict[str, Any]:
        """How the store is, as `workspace/status` answers it."""
        if self.store is None:
            return {"state": "unset", "kind": "none"}
        answer: dict[str, Any] = {"state": "unavailable" if self.fault else "ok", "kind": self.store.kind}
        answer["waiting"] = len(self._workspace.hosting)
        if self.fault:
            answer["reason"] = self.fault
        if self.abilities is not None:
            answer["abilities"] = self.abilities._asdict()
        return answer

    @property
    def busy(self) -> bool:
        """Whether an upload is under way."""
        return bool(self._under_way)

    async def settle(self, seconds: float) -> bool:
        """Wait until nothing is wanted, the store is away, or the time is up. Answers whether all is hosted."""
        try:
            async with asyncio.timeout(seconds):
                while not self._workspace.hosting.keys() <= self._postponed.keys() and not self.fault:
                    await self._workspace.stage()
                    running = list(self._under_way.values())
                    if running:
                        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    else:
                        await asyncio.sleep(SETTLE_STEP)
        except TimeoutError:
            pass
        return not self._workspace.hosting

    async def ask(self, work: Callable[..., T], *args: Any) -> T:
        """Ask the store something off the loop. Raises what the store raises; that it answered at all is noted."""
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._askers, work, *args)
        except StoreUnavailable as refusal:
            await self._is_away(refusal)
            raise
        self._is_there()
        return answer

    def keys_of(self, hosting: Mapping[str, Any]) -> list[str]:
        """The keys behind hosting fields, `hosted_uri` before `key`: those of this store and of this conversation.

        What is named elsewhere is left out, and nothing is contacted to find out (spec sections 8 and 10).
        """
        if self.store is None:
            return []
        uri, key = hosting.get("hosted_uri"), hosting.get("key")
        named = self.store.key_of(uri) if isinstance(uri, str) else None
        given = dict.fromkeys(one for one in (named, key) if isinstance(one, str))
        if not given or "conversation" not in self._workspace.facts:
            return []
        return [one for one in given if one in self._workspace.keys or is_ours(one, self._identity())]

    def is_here(self, hosting: Mapping[str, Any]) -> bool:
        """Whether hosting fields speak of the store that is configured now; a bare key does."""
        uri = hosting.get("hosted_uri")
        return self.store is not None and (not isinstance(uri, str) or self.store.key_of(uri) is not None)

    def fetch(self, key: str, stop: Callable[[], bool]) -> Iterator[bytes]:
        """The bytes under a key, in chunks, until told to stop. Blocking. Raises NotFound and StoreUnavailable."""
        assert self.store is not None
        for chunk in self.store.get(key):
            if stop():
                raise StoreUnavailable(key, "the download took too long", fault="timed_out")
            yield chunk

    # Uploading -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Probe the store, then upload whatever is wanted, until cancelled."""
        try:
            if self.store is None:
                return await asyncio.Event().wait()
            await self._probe(self.store)
            while True:
                if not self._start_some(self.store):
                    await self._nothing_to_do(self.store)
                await self._finish_some()
        finally:
            for task in self._under_way.values():
                task.cancel()
            self._senders.shutdown(wait=False, cancel_futures=True)
            self._askers.shutdown(wait=False, cancel_futures=True)

    async def _probe(self, store: Store) -> None:
        """Find out once what the store can do, and record it. Nothing depends on the answer being good."""
        try:
            self.abilities = await self.ask(store.probe)
        except (Refusal, OSError) as fault:
            log.warning("the store could not be probed: %s", fault)
        else:
            found = ", ".join(f"{name} {value}" for name, value in self.abilities._asdict().items())
            log.info("the store (%s) was probed: %s", store.kind, found)

    async def _nothing_to_do(self, store: Store) -> None:
        """Wait until something is wanted. A store that was away is asked now and then whether it is back."""
        self._stirred.clear()
        try:
            rest = self._rest if self.fault else LAST_REST if self._postponed else None
            await asyncio.wait_for(self._stirred.wait(), rest)
        except TimeoutError:
            if not self.fault:
                return
            self._rest = min(self._rest * 2, LAST_REST)
            with suppress(StoreUnavailable):
                await self.ask(store.head, key_prefix(self._identity()) + "is-anybody-there")

    def _start_some(self, store: Store) -> bool:
        """Begin as many uploads as there is room for; answers whether any is under way."""
        now = asyncio.get_running_loop().time()
        for wanted in self._workspace.hosting:
            if len(self._under_way) >= store.puts_at_once:
                break
            if wanted not in self._under_way and self._postponed.get(wanted, 0.0) <= now:
                self._postponed.pop(wanted, None)
                self._under_way[wanted] = asyncio.create_task(self._host(store, *wanted))
        return bool(self._under_way)

    async def _finish_some(self) -> None:
        """Wait for the first uploads to end. While the store is away, rest before asking again."""
        if not self._under_way:
            return
        await asyncio.wait(self._under_way.values(), return_when=asyncio.FIRST_COMPLETED)
        for wanted, task in list(self._under_way.items()):
            if task.done():
                del self._under_way[wanted]
                task.result()
        if self.fault:
            await asyncio.sleep(self._rest)
            self._rest = min(self._rest * 2, LAST_REST)

    async def _host(self, store: Store, physical: str, sha256: str) -> None:
        """Host one content of one file. Whatever goes wrong, it stays wanted, and the others go on."""
        path = parse_physical(physical)
        artifact = self._workspace.artifact(path)
        try:
            if artifact is None or artifact.visibility == "internal":
                await self._workspace.stage(HostingWaived(physical, sha256, "internal"))
            elif self._has_bytes(artifact, sha256):
                await self._workspace.stage(HostingWaived(physical, sha256, "hosted"))
            else:
                await self._upload(store, artifact, sha256)
        except StoreUnavailable as refusal:
            await self._is_away(refusal)
        except NotFound:
            await self._waive(path, sha256, "gone")
        except (JournalUnavailable, ShuttingDown) as refusal:
            log.warning("what became of %s is not recorded: %s", physical, refusal)
            self.fault = self.fault or "disk_full"  # rest before trying again: the journal's disk is full
        except Exception:
            log.exception("hosting %s failed", physical)
            self._postponed[physical, sha256] = asyncio.get_running_loop().time() + LAST_REST

    async def _upload(self, store: Store, artifact: Artifact, sha256: str) -> None:
        path, identity = artifact.path, self._identity()
        key, rn = key_for(path, sha256, identity), handle_for(path, sha256, identity)
        if len(key) > KEY_BYTES:
            await self._waive(path, sha256, "key_too_long")
            return
        version = next((one for one in reversed(artifact.versions) if one.sha256 == sha256), artifact.latest)
        parcel = _Parcel(path.physical, sha256, key, version.facts.get("mime") or mime_by_name(path.physical))
        await asyncio.get_running_loop().run_in_executor(
            self._senders, self._send, store, parcel, self._workspace.contents.get(sha256), version.size
        )
        self._is_there()
        while self._workspace.settling or self._workspace.arriving([path.physical]):
            await self._workspace.stage()  # who may see it, and what stands on disk, is being decided just now
        if artifact.visibility == "internal":
            await self.ask(store.delete, [key])
            await self._workspace.stage(HostingWaived(path.physical, sha256, "internal"))
            return
        hosted = Hosted(path.physical, sha256, store.uri(key), rn, key)
        await self._workspace.stage(hosted, *self._row_says(artifact, hosted))

    def _send(self, store: Store, parcel: _Parcel, twin: str | None, size: int | None) -> None:
        """Put bytes under their key: from the same bytes in the store, from what was kept, or from OUT_DIR. Blocking.

        Raises NotFound when the bytes are nowhere any more.
        """
        _, sha256, key, mime = parcel
        if twin is not None and twin != key and size is not None:
            with suppress(NotFound):  # it may be in the store of earlier days
                if store.copy(twin, key, size=size, sha256=sha256, mime=mime):
                    return None
        for open_it, name in ((self._blobs.open, sha256), (self._outdir.open, parcel.physical)):
            try:
                with open_it(name) as body:
                    size = body.seek(0, 2)
                    body.seek(0)
                    return store.put(key, body, size=size, sha256=sha256, mime=mime)
            except (NotFound, UnsafePath, ValueError):
                continue  # not kept, or damaged; or the file holds other bytes by now
        raise NotFound(parcel.physical, "the bytes that were to be hosted are nowhere any more")

    def _row_says(self, artifact: Artifact, hosted: Hosted) -> list[Entry]:
        """The source row of the file as it stands, when what was hosted are the bytes that stand on disk."""
        pool = self._workspace.pool
        sid = pool.keys.latest(f"file:{hosted.path}")
        row = pool.rows.latest(sid) if sid is not None else None
        if row is None or artifact.fact is None or artifact.fact.sha256 != hosted.sha256:
            return []
        return [SourceSet({**row, "hosted_uri": hosted.hosted_uri, "rn": hosted.rn, "key": hosted.key})]

    async def _waive(self, path: FilePath, sha256: str, reason: str) -> None:
        log.warning("%s cannot be hosted: %s", path.physical, reason)
        said = notice("hosting_failed", path=path.physical, sha256=sha256, reason=reason)
        await self._tell(HostingWaived(path.physical, sha256, reason), Noticed(said))

    async def _tell(self, *entries: Entry) -> None:
        """Stage what nobody waits for; when the journal refuses, it is told another time."""
        try:
            await self._workspace.stage(*entries)
        except (JournalUnavailable, ShuttingDown) as refusal:
            log.warning("the journal did not take news of the store: %s", refusal)

    # How the store is ------------------------------------------------------------------------------------------------

    async def _is_away(self, refusal: StoreUnavailable) -> None:
        """Note it; an outage is told once, however many uploads it meets."""
        fresh, self.fault = self.fault is None, refusal.fault
        if fresh:
            log.warning("the store does not answer: %s (%s)", refusal.fault, refusal.hint)
            self._rest = FIRST_REST
            await self._tell(Noticed(notice("store_unavailable", reason=refusal.fault)))

    def _is_there(self) -> None:
        if self.fault is not None:
            log.info("the store answers again")
        self.fault = None
        self._rest = FIRST_REST

    def _identity(self) -> Identity:
        return Identity.of(self._workspace.facts["conversation"])

    def _hear(self, happened: Happened) -> None:
        self._note(happened.artifacts.values())
        if self._workspace.hosting:
            self._stirred.set()

    def _has(self, artifact: Artifact) -> bool:
        """Whether the store has the bytes that stand on disk."""
        sha256 = artifact.fact.sha256 if artifact.fact is not None else None
        return sha256 is None or self._has_bytes(artifact, sha256)

    def _has_bytes(self, artifact: Artifact, sha256: str) -> bool:
        """Whether the store that is configured now has them; one of earlier days may have others."""
        hosting = artifact.hosting(sha256)
        return bool(self.keys_of(hosting)) and self.is_here(hosting)

    def _note(self, changed: Iterable[Artifact]) -> None:
        if self.store is None:
            return
        for artifact in changed:
            if artifact.visibility == "external" and artifact.on_disk and not self._has(artifact):
                self._unhosted[artifact.path.physical] = artifact
            else:
                self._unhosted.pop(artifact.path.physical, None)
