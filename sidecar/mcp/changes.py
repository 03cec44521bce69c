"""Tells an MCP client that artifacts changed: once for many changes, and after a gap what it may have missed."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated

from sidecar.mcp.addresses import address
from sidecar.mcp.door import Door, NoDaemon, Refused

GATHER_SECONDS = 0.1
SUBSCRIPTIONS = 10_000

log = logging.getLogger(__name__)


class Changes:
    """What changed and was not told yet, and who wants to know.

    Clients of the handshake name resources one by one and are notified over their connection; those of 2026-07-28 open
    a stream (`subscriptions/listen`) that takes what it asked for from the bus. Each gets only what is its own.
    """

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.session: ServerSession | None = None  # of a client that shook hands
        self.wanted: set[str] = set()
        self._paths: dict[str, None] = {}
        self._gap = False
        self._revision: int | None = None  # the latest that we know of
        self._stirred = asyncio.Event()

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """An event of the daemon, or of the door."""
        match method:
            case "artifacts/changed":
                self._paths.update(dict.fromkeys(artifact["artifact_path"] for artifact in params["artifacts"]))
                if not self._gap:  # else what lies before it would be skipped
                    self._revision = max(self._revision or 0, params["revision"])
            case "door/opened" if self._revision is None:
                self._revision = params["revision"]
                return
            case "door/opened":
                self._gap = True
            case "notice/posted" if params["notice"]["code"] == "events_dropped":
                self._gap = True
            case _:
                return
        self._stirred.set()

    async def run(self, door: Door) -> None:
        """Tell, until cancelled."""
        with suppress(Refused, NoDaemon):  # the next request tries again
            await door.open()
        while True:
            await self._stirred.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._stirred.clear()
            try:
                await self._round(door)
            except Exception:  # one round that failed must not be the last one
                log.exception("a client could not be told of changes")

    async def _round(self, door: Door) -> None:
        everything = await self._missed(door) if self._gap else False
        paths, self._paths = self._paths, {}
        await self._tell([address(path) for path in paths], everything=everything)

    async def _missed(self, door: Door) -> bool:
        """Gather what changed since the last event; whether that cannot be said, and so may be everything."""
        since = self._revision or 0
        self._gap = False  # the next one is another one
        try:
            while True:
                page = await door.call("workspace/changes", {"since": since})
                changes = page["changes"]
                self._paths.update(dict.fromkeys(one["path"] for one in changes if one["kind"] == "artifact"))
                since = changes[-1]["revision"] if changes and not page["fresh"] else page["revision"]
                if page["fresh"] or since >= page["revision"]:
                    self._revision = since
                    return page["fresh"]
        except (Refused, NoDaemon):
            self._revision, self._gap = since, True  # with the next event we try again
            return True

    async def _tell(self, uris: list[str], *, everything: bool) -> None:
        session = self.session
        await self.bus.publish(ResourcesListChanged())
        if session is not None:
            await session.send_resource_list_changed()
        for uri in uris:
            await self.bus.publish(ResourceUpdated(uri=uri))
        if session is not None:
            # Copied, since the client may subscribe to another one while it is told of these.
            for uri in tuple(self.wanted if everything else self.wanted.intersection(uris)):
                await session.send_resource_updated(uri)
