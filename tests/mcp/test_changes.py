"""What is told of changes when events were missed."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.subscriptions import ResourceUpdated

from sidecar.mcp.addresses import address
from sidecar.mcp.changes import Changes
from sidecar.mcp.door import NoDaemon
from tests.mcp.conftest import CEILING

DROPPED = {"notice": {"code": "events_dropped"}, "revision": 0}


class Replay:
    """A door that knows of changes, two to a page."""

    def __init__(self, *paths: str) -> None:
        self.changes = [{"revision": at, "kind": "artifact", "path": path} for at, path in enumerate(paths, 1)]
        self.away = False

    async def open(self) -> None:
        pass

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert method == "workspace/changes"
        if self.away:
            raise NoDaemon("away")
        found = [one for one in self.changes if one["revision"] > params["since"]]
        return {"revision": len(self.changes), "fresh": False, "changes": found[:2]}


async def updated(changes: Changes, door: Replay, *events: tuple[str, dict[str, Any]], until: str) -> list[str]:
    """The resources that are told of after these events, up to one of them."""
    told: list[str] = []
    there = asyncio.Event()

    def listen(event: object) -> None:
        if isinstance(event, ResourceUpdated):
            told.append(event.uri)
            if event.uri == address(until):
                there.set()

    forget = changes.bus.subscribe(listen)
    running = asyncio.create_task(changes.run(door))  # type: ignore[arg-type]
    for event in events:
        changes.heard(*event)
    try:
        await asyncio.wait_for(there.wait(), CEILING)
    finally:
        running.cancel()
        forget()
    return told


def changed(path: str, revision: int) -> tuple[str, dict[str, Any]]:
    return "artifacts/changed", {"artifacts": [{"artifact_path": path}], "revision": revision}


async def test_what_changed_in_a_gap_is_told_although_newer_events_came_first() -> None:
    changes, door = Changes(), Replay("fi:a", "fi:b", "fi:c", "fi:d", "fi:e")
    changes.heard("door/opened", {"revision": 1})
    told = await updated(changes, door, ("notice/posted", DROPPED), changed("fi:e", 5), until="fi:d")
    assert set(told) == {address(path) for path in ("fi:b", "fi:c", "fi:d", "fi:e")}


async def test_a_gap_is_not_forgotten_while_there_is_no_daemon() -> None:
    changes, door = Changes(), Replay("fi:a", "fi:b", "fi:c")
    changes.heard("door/opened", {"revision": 1})
    door.away = True
    assert await updated(changes, door, ("door/opened", {"revision": 3}), changed("fi:c", 3), until="fi:c")
    door.away = False
    told = await updated(changes, door, changed("fi:c", 3), until="fi:b")
    assert address("fi:b") in told


async def test_without_a_gap_nothing_is_told_twice() -> None:
    changes, door = Changes(), Replay("fi:a", "fi:b")
    changes.heard("door/opened", {"revision": 1})
    assert await updated(changes, door, changed("fi:b", 2), until="fi:b") == [address("fi:b")]
