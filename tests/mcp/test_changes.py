"""What is told of changes when events were missed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
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


class Client:
    """A session that subscribes to another resource while it is told of one, and that can fail."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self.told: list[str] = []
        self.fails = False

    async def send_resource_list_changed(self) -> None:
        if self.fails:
            self.fails = False
            raise RuntimeError("nothing can be sent")

    async def send_resource_updated(self, uri: str) -> None:
        self.told.append(uri)
        self._changes.wanted.add(address("fi:another"))


async def test_a_client_may_subscribe_while_it_is_told_of_changes() -> None:
    changes, door = Changes(), Replay("fi:a")
    changes.session = client = Client(changes)  # type: ignore[assignment]
    changes.wanted = {address("fi:a"), address("fi:b")}
    door.away = True
    changes.heard("door/opened", {"revision": 1})
    await updated(changes, door, ("notice/posted", DROPPED), changed("fi:a", 1), until="fi:a")
    await asyncio.sleep(0)
    assert set(client.told) == {address("fi:a"), address("fi:b")}


async def test_after_a_round_that_failed_the_next_one_is_told(caplog: pytest.LogCaptureFixture) -> None:
    changes, door = Changes(), Replay("fi:a")
    changes.session = client = Client(changes)  # type: ignore[assignment]
    client.fails = True
    running = asyncio.create_task(changes.run(door))  # type: ignore[arg-type]
    try:
        changes.heard(*changed("fi:a", 1))
        async with asyncio.timeout(CEILING):
            while client.fails:  # noqa: ASYNC110 - it is another task that fails
                await asyncio.sleep(0.01)
            changes.wanted = {address("fi:b")}
            changes.heard(*changed("fi:b", 2))
            while not client.told:  # noqa: ASYNC110 - and that tells
                await asyncio.sleep(0.01)
        assert client.told == [address("fi:b")]
        assert "nothing can be sent" in caplog.text
    finally:
        running.cancel()


async def test_without_a_gap_nothing_is_told_twice() -> None:
    changes, door = Changes(), Replay("fi:a", "fi:b")
    changes.heard("door/opened", {"revision": 1})
    assert await updated(changes, door, changed("fi:b", 2), until="fi:b") == [address("fi:b")]
