"""Put the parts together: the only place that knows which stores there are."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from sidecar.attaching import Attaching
from sidecar.calls import Calls
from sidecar.compacting import Compacting
from sidecar.core import limits
from sidecar.core.blocks import iso
from sidecar.core.entries import FolderAdopted, Remembered
from sidecar.core.errors import JournalUnavailable, Refusal
from sidecar.hiding import Hiding
from sidecar.hosting import Hosting
from sidecar.keeping import Keeper
from sidecar.landing import Landing
from sidecar.linking import Links
from sidecar.looking import Looker
from sidecar.noting import Noted
from sidecar.patches import Patches
from sidecar.ports import Store
from sidecar.pulling import Puller
from sidecar.reading import Reader
from sidecar.rehost import Rehoster
from sidecar.rendering import Rendering
from sidecar.server.caller import Caller
from sidecar.services import Services
from sidecar.stores.bell import Bell
from sidecar.stores.blobs import Blobs
from sidecar.stores.journal import Journal
from sidecar.stores.location import StoreSettings
from sidecar.stores.outdir import OutDir
from sidecar.turns import Turns
from sidecar.views import Views, read_foreign
from sidecar.workspace import Workspace
from sidecar.writing import Writing

log = logging.getLogger("sidecar.daemon")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the settings say about a workspace."""

    out_dir: str
    state_dir: str
    keep_bytes: int
    eligible: tuple[str, ...]
    trust_timeline: bool
    identity: dict[str, str]
    attach_roots: tuple[str, ...] = ()
    object_store: StoreSettings | None = None


class Assembly:
    """One workspace, awake: its state, its eyes, its keeping, and the services over them."""

    def __init__(
        self,
        wanted: Wanted,
        *,
        journal: Journal,
        clients: Callable[[], list[dict[str, Any]]],
        store: Store | None = None,
    ) -> None:
        self._wanted = wanted
        self._began = time.monotonic()
        self.workspace = workspace = Workspace(journal)
        self.outdir = OutDir(wanted.out_dir)
        self.blobs = blobs = Blobs(wanted.state_dir)
        self.looker = looker = Looker(workspace, self.outdir, blobs, eligible=wanted.eligible)
        self.bell = Bell(self.outdir.root, looker.stir)
        looker.on_folders = self.bell.set_folders
        looker.on_overlooked = self.bell.overlooked
        self.views = Views(workspace, looker, self.outdir)
        self.hosting = hosting = Hosting(workspace, looker, self.outdir, blobs, store)
        self.keeper = Keeper(workspace, looker, blobs, hosting, keep_bytes=wanted.keep_bytes)
        rehoster = Rehoster(workspace, looker, self.outdir, blobs, hosting)
        reader = Reader(workspace, looker, rehoster, self.outdir)
        calls = Calls(workspace, looker, reader, hosting, eligible=wanted.eligible)
        rendering = Rendering(workspace, looker)
        landing = Landing(workspace, looker, self.outdir, blobs, hosting, eligible=wanted.eligible)
        self.services = Services(
            workspace=workspace,
            looker=looker,
            outdir=self.outdir,
            rehoster=rehoster,
            puller=Puller(workspace, looker, rehoster, self.outdir, eligible=wanted.eligible),
            noted=Noted(workspace, looker),
            reader=reader,
            turns=Turns(workspace, looker, reader, self.outdir, calls, hosting, eligible=wanted.eligible),
            calls=calls,
            attaching=Attaching(workspace, looker, self.outdir, blobs, [OutDir(root) for root in wanted.attach_roots]),
            views=self.views,
            watch_state=self._watch_state,
            hosting=hosting,
            links=Links(workspace, hosting, rehoster, self.outdir),
            landing=landing,
            writing=Writing(workspace, looker, landing),
            patches=Patches(workspace, looker, rehoster, self.outdir, landing),
            hiding=Hiding(workspace, looker),
            rendering=rendering,
            compacting=Compacting(workspace, looker, rendering),
            clients=clients,
            uptime=lambda: time.monotonic() - self._began,
        )

    def load(self) -> int:
        """Take in the journal; what was loaded is not worth the collector's time again. Answers the records."""
        count = self.workspace.load()
        self.hosting.take_stock()
        gc.collect()
        gc.freeze()
        return count

    async def open(self) -> None:
        """Make a workspace of a folder that is new to us: take in a foreign timeline, give the conversation a name."""
        workspace = self.workspace
        await self.looker.off_loop(self._sweep)
        if workspace.is_empty:
            # One group: who dies halfway has taken in nothing, and begins anew.
            await workspace.stage(*await self.looker.off_loop(self._read_foreign))
        if "conversation" not in workspace.facts:
            identity = {**_DEFAULT_IDENTITY, "conversation_id": uuid.uuid4().hex, **self._wanted.identity}
            await workspace.stage(Remembered({"conversation": identity}))
        if "opened" not in workspace.facts:
            # Before the first client, so that no folder of its making is taken for one that was there.
            turns = () if workspace.timeline.turns else await self.looker.turns_there()
            adopted = (FolderAdopted(turn) for turn in turns)
            await workspace.stage(*adopted, Remembered({"opened": iso(time.time())}))

    def tasks(self) -> list[Coroutine[Any, Any, None]]:
        """Everything that runs for as long as the daemon does, beside the looks."""
        return [self.bell.run(), self.views.run(), self.keeper.run(), self.hosting.run(), self._reconcile()]

    async def close(self) -> None:
        """Write the view once more, bring kept bytes to the disk, and take no more changes."""
        try:
            await self.views.flush()
            await self.looker.off_loop(self.blobs.flush)
        except (OSError, Refusal) as fault:
            log.warning("not everything could be written at the end: %s", fault)
        self.workspace.closing = True

    def hello(self, caller: Caller, methods: list[str]) -> dict[str, Any]:
        """What `initialize` answers a client under `capabilities.experimental.artifact_sidecar`."""
        workspace = self.workspace
        answer: dict[str, Any] = {
            "revision": workspace.revision,
            "role": caller.role,
            "out_dir": self.outdir.root,
            "conversation_id": workspace.facts["conversation"]["conversation_id"],
            "methods": methods,
            "limits": _LIMITS,
        }
        return answer | ({"turn_id": workspace.durable_turn_id} if workspace.durable_turn_id else {})

    def _sweep(self) -> None:
        try:
            self.outdir.sweep()
        except (OSError, Refusal) as fault:
            log.warning("unfinished files could not be removed: %s", fault)

    def _read_foreign(self) -> list[Any]:
        return read_foreign(self.outdir, trusted=self._wanted.trust_timeline)

    async def _reconcile(self) -> None:
        """Look at everything now and then, for what no bell can tell; more often where there is no bell."""
        while True:
            began = time.monotonic()
            before = self.workspace.revision
            try:
                await self.looker.reconcile()
            except JournalUnavailable:
                pass  # the next look finds it all again
            cost = time.monotonic() - began
            if before and self.bell.state == "ok" and self.workspace.revision == before:
                pause = _REST_SECONDS if not self.workspace.open_calls else _TURN_SECONDS
            else:
                pause = _TURN_SECONDS if self.bell.state in ("ok", "degraded") else _POLL_SECONDS
            await asyncio.sleep(max(pause, _COST_SHARE * cost))

    def _watch_state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"state": self.bell.state, "missed": self.bell.missed}
        return state | ({"reason": self.bell.reason} if self.bell.reason else {})


_REST_SECONDS, _TURN_SECONDS, _POLL_SECONDS = 30.0, 2.0, 0.5
_COST_SHARE = 50  # a look may cost a fiftieth of the time

_DEFAULT_IDENTITY = {"tenant": "default", "project": "default", "user_id": "local", "user_type": "registered"}

_LIMITS: dict[str, int | float] = {
    name.lower(): getattr(limits, name)
    for name in (
        "PATH_BYTES", "SEGMENT_BYTES", "FILES_REGISTERED", "FOLDERS_WATCHED", "FOLDER_DEPTH", "HASHED_BYTES",
        "KEPT_FILE_BYTES", "KEEP_BYTES", "MERGE_ROWS", "ROW_BYTES", "ROW_BASE64_CHARS", "TOKEN_BYTES",
        "STREAMS_PER_CONNECTION", "STREAM_IDLE", "INLINE_TEXT_BYTES", "INLINE_BASE64_BYTES", "CHANGES_KEPT",
        "CHANGES_PAGE", "BLOCKS_PAGE", "LIST_PAGE", "SEARCH_PATTERN_BYTES", "SEARCH_FILE_BYTES", "SEARCH_FILES",
        "SEARCH_SECONDS", "MESSAGE_BYTES", "REQUESTS_IN_FLIGHT", "REHOSTS_AT_ONCE", "REHOST_DEADLINE",
        "ASSET_BYTES", "ASSET_MARKDOWN_BYTES", "ASSET_CSS_BYTES", "ASSET_CSS_RULE_BYTES", "ASSET_REFERENCES",
        "ASSET_DEPTH", "ASSET_SECONDS",
    )
}  # fmt: skip
