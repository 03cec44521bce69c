"""Put the parts together: the only place that knows which stores there are."""

from __future__ import annotations

import asyncio
import gc
import getpass
import logging
import math
import os
import socket
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from sidecar.attaching import Attaching
from sidecar.calls import Calls
from sidecar.cataloguing import Cataloguing
from sidecar.channels import Channels
from sidecar.compacting import Compacting
from sidecar.context.mirror import Mirror
from sidecar.context.services import context_services
from sidecar.conversation.accounting import Accounting
from sidecar.conversation.archive import Archive
from sidecar.conversation.contributing import Contributions
from sidecar.conversation.executions import Executions
from sidecar.conversation.feedback import Feedback
from sidecar.conversation.finding import Finding
from sidecar.conversation.lease import Lease
from sidecar.conversation.reacting import Reacting
from sidecar.conversation.resuming import Resumer
from sidecar.conversation.saving import Saver
from sidecar.core import limits
from sidecar.core.blocks import iso
from sidecar.core.entries import Entry, FolderAdopted, Remembered
from sidecar.core.errors import JournalUnavailable, Refusal
from sidecar.core.resumed import IMPORTED
from sidecar.hiding import Hiding
from sidecar.hosting import Hosting
from sidecar.keeping import Keeper
from sidecar.landing import Landing
from sidecar.lineage import Lineage
from sidecar.linking import Links
from sidecar.looking import Looker
from sidecar.noting import Noted
from sidecar.outlining import Outlining
from sidecar.patches import Patches
from sidecar.ports import Store
from sidecar.pulling import Puller
from sidecar.reading import Reader
from sidecar.rehost import Rehoster
from sidecar.rendering import Rendering
from sidecar.server.caller import Caller
from sidecar.services import Services
from sidecar.settling import Settling
from sidecar.stores.bell import Bell
from sidecar.stores.blobs import Blobs
from sidecar.stores.index_location import saved_to
from sidecar.stores.indexes import open_index
from sidecar.stores.journal import Journal
from sidecar.stores.location import StoreSettings
from sidecar.stores.outdir import OutDir
from sidecar.stores.whereabouts import whereabouts
from sidecar.turns import Turns
from sidecar.versions import Versions
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
    index_location: str = ""
    persist_executions: bool = True
    lease_seconds: float = limits.LEASE_SECONDS
    context_mirror: bool = False


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
        workspace.listeners.append(lambda _: self.bell.attend(bool(workspace.open_calls)))
        self.views = Views(workspace, looker, self.outdir)
        self.hosting = hosting = Hosting(workspace, looker, self.outdir, blobs, store)
        self.keeper = Keeper(workspace, looker, blobs, hosting, keep_bytes=wanted.keep_bytes)
        in_state = os.path.join(os.path.realpath(wanted.state_dir), "index.db")
        self._index_location = wanted.index_location or in_state
        index = open_index(self._index_location)
        self.archive = archive = Archive(workspace, hosting, index)
        self.lease = lease = Lease(
            workspace,
            archive,
            label=_label(self.outdir.root),
            place=whereabouts(wanted.state_dir),
            seconds=wanted.lease_seconds,
        )
        self.resumer = Resumer(workspace, looker, archive, lease)
        self.feedback = feedback = Feedback(workspace, archive)
        accounting = Accounting(archive, hosting)
        executions = Executions(workspace, looker, self.outdir, blobs, archive, hosting)
        self.saver = Saver(
            workspace,
            looker,
            archive,
            lease,
            hosting,
            executions=executions if wanted.persist_executions else None,
            accounting=accounting,
        )
        rehoster = Rehoster(workspace, looker, self.outdir, blobs, hosting)
        reader = Reader(workspace, looker, rehoster, self.outdir)
        settling = Settling(workspace, looker, reader, hosting, eligible=wanted.eligible)
        calls = Calls(workspace, looker, reader, settling)
        rendering = Rendering(workspace, looker)
        self.reacting = Reacting(workspace, archive, lease, self.resumer, rendering, feedback)
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
            archive=archive,
            finding=Finding(workspace, looker, archive),
            contributions=Contributions(workspace, archive, lease, accounting),
            lease=lease,
            resumer=self.resumer,
            reacting=self.reacting,
            feedback=feedback,
            saver=self.saver,
            context=context_services(workspace, looker, reader, rehoster),
            mirror=Mirror(looker, self.outdir, wanted=wanted.context_mirror),
            lineage=Lineage(workspace),
            outlining=Outlining(workspace, looker),
            catalogue=Cataloguing(workspace),
            versions=Versions(looker, rehoster, self.outdir, blobs, hosting),
            channels=Channels(),
            clients=clients,
            uptime=lambda: time.monotonic() - self._began,
        )

    def load(self) -> int:
        """Take in the journal. Answers the records."""
        count = self.workspace.load()
        self.hosting.take_stock()
        gc.collect()
        return count

    async def open(self) -> None:
        """Make a workspace of a folder that is new to us: take in a foreign timeline, give the conversation a name."""
        workspace = self.workspace
        await self.looker.off_loop(self._sweep)
        is_named = workspace.is_empty and "conversation_id" in self._wanted.identity
        if is_named or workspace.facts.get("resuming"):
            # It may have been begun elsewhere, and then it is as it was saved.
            await self.resumer.load(self._identity(), self._read_foreign)
        elif workspace.is_empty:
            # One group: who dies halfway has taken in nothing, and begins anew.
            await workspace.stage(*await self._read_foreign())
        if "conversation" not in workspace.facts:
            await workspace.stage(Remembered({"conversation": self._identity()}))
        if "opened" not in workspace.facts and not self.lease.blind:
            # Before the first client, so that no folder of its making is taken for one that was there.
            turns = () if workspace.timeline.turns else await self.looker.turns_there()
            adopted = (FolderAdopted(turn) for turn in turns)
            await workspace.stage(*adopted, Remembered({"opened": iso(time.time())}))
        await self._settle_place()
        await self.lease.confirm()
        await self.reacting.look()

    async def _settle_place(self) -> None:
        """What was saved to another index or store than this daemon has is to be saved again, to these."""
        store = self.hosting.store
        place = saved_to(self._index_location, store.uri("cb") if store is not None else "")
        facts = self.workspace.facts
        known = facts.get("archived_in")
        if known is None:
            await self.workspace.stage(Remembered({"archived_in": place}))
        elif known != place:
            # How far we had come with each is kept: who goes back to one goes on there.
            others = dict(list(facts.get("archived_elsewhere", {}).items())[-_PLACES:])
            before = others.pop(place, {"generation": [], IMPORTED: {}})
            others[known] = {"generation": facts.get("generation", []), IMPORTED: facts.get(IMPORTED, {})}
            await self.workspace.stage(Remembered({"archived_in": place, "archived_elsewhere": others, **before}))

    def _identity(self) -> dict[str, str]:
        return {**_DEFAULT_IDENTITY, "conversation_id": uuid.uuid4().hex, **self._wanted.identity}

    def tasks(self) -> list[Coroutine[Any, Any, None]]:
        """Everything that runs for as long as the daemon does, beside the looks."""
        background = (
            self.bell, self.views, self.keeper, self.hosting, self.saver, self.feedback, self.lease, self.resumer
        )  # fmt: skip
        return [*(one.run() for one in background), self._reconcile()]

    async def close(self, *, until: float = math.inf) -> None:
        """Write the view once more, bring kept bytes to the disk, and take no more changes.

        `until`, by the monotonic clock, is when who waits for the end has waited long enough for the index.
        """
        try:
            await self.views.refresh()
            await self.looker.off_loop(self.blobs.flush)
        except (OSError, Refusal) as fault:
            log.warning("not everything could be written at the end: %s", fault)
        self.resumer.close()
        await self.lease.release(within=max(_FAREWELL_LEAST, until - time.monotonic()))
        self.archive.close()
        self.blobs.close()
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

    async def _read_foreign(self) -> list[Entry]:
        return await self.looker.off_loop(lambda: read_foreign(self.outdir, trusted=self._wanted.trust_timeline))

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


def _label(out_dir: str) -> str:
    """Who we are, for people who are told that somebody else writes their conversation."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.geteuid())  # a container need not know its users by name
    return f"{user}@{socket.gethostname()}:{os.path.basename(out_dir) or '/'}"


_REST_SECONDS, _TURN_SECONDS, _POLL_SECONDS = 30.0, 2.0, 0.5
_PLACES = 8  # indexes and stores of earlier days that are remembered
_FAREWELL_LEAST = 0.5  # seconds for an index that answers, when the clients took all the time there was
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
