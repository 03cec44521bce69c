"""The clients that look, by sockets and doors; those that listen, come and go, stop reading; the one that measures."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from itertools import count
from time import monotonic
from typing import Any

from tests.daemon_process import ROLES
from tests.rpc_client import AsyncClient, HungUpError, frame, initialize_params
from tests.soak.accounts import kind_of
from tests.soak.world import PROBE, World

TOPICS = ["sources", "artifacts", "timeline", "notices"]
DEAF_SECONDS = 20.0


async def probe(world: World) -> None:
    """Measures resolve, read, sync and append, one of each in every step."""
    async with world.client("runtime") as client:
        for number in count():
            if not await world.beat(1.0):
                return
            await _measured(world, client, "resolve", "artifact/resolve", {"paths": world.some_paths(5)})
            await _measured(world, client, "read", "artifact/read", {"paths": [PROBE]})
            await _measured(world, client, "sync", "workspace/sync", {})
            if (turn := world.turn) is not None:
                text = f"probe {number}: " + "what was seen. " * 20
                blocks = [{"type": "react.notes", "text": text, "turn_id": turn}]
                told = await _measured(world, client, "append", "timeline/append", {"blocks": blocks})
                if told is not None:
                    world.ledger.blocks[told["blocks"][0]["index"]] = text


async def _measured(world: World, client: AsyncClient, what: str, method: str, params: dict[str, Any]) -> Any:
    began = monotonic()
    answer = await world.ask(client, method, params)
    world.accounts.took(what, began)
    return answer


async def listener(world: World, role: str) -> None:
    """Hears of everything and asks nothing. Revisions never go back."""
    async with world.client(role, events=TOPICS) as client:
        latest = 0
        while await world.beat(0.5):
            while client.mail.notifications:
                message = client.mail.notifications.popleft()
                world.accounts.events[message["method"]] += 1
                revision = message.get("params", {}).get("revision", latest)
                if revision < latest and message["method"] != "notices/posted":
                    world.accounts.surprised("event", ValueError(f"{message['method']} of {revision} after {latest}"))
                latest = max(latest, revision)


async def program(world: World) -> None:
    """A program in a call: looks for files and contents, and brings back what was deleted."""
    async with world.client("exec") as client:
        while await world.beat(2.0):
            await look(world, client)
            await world.ask(client, "artifact/search", {"root": "", "name_regex": "report", "max_hits": 50})
            if world.turn is not None:
                asked = {"root": world.turn, "content_regex": "mended", "context_lines": 1, "max_hits": 20}
                await world.ask(client, "artifact/search", asked, may=("not_found",))
            if world.absent:
                await bring_back(world, client, world.absent.popleft())


async def bring_back(world: World, client: AsyncClient, path: str) -> None:
    answer = await world.ask(client, "artifact/rehost", {"paths": [path]})
    for missing in (answer or {"missing": ()})["missing"]:
        world.accounts.surprised(f"artifact/rehost {missing['reason']}", missing)


async def look(world: World, client: AsyncClient) -> None:
    """What every role may ask. A file that an open call is making is not there yet for everybody."""
    await world.ask(client, "artifact/resolve", {"paths": world.some_paths(20)})
    await world.ask(client, "artifact/fetch", {"path": "so:sources_pool[1-3]"})
    await world.ask(client, "artifact/read", {"paths": world.some_paths(3), "max_bytes": 2000})
    await world.ask(client, "artifact/list", {"limit": 50})
    if world.paths:
        await world.ask(client, "artifact/versions", {"path": world.some_paths(1)[0]}, may=("not_found",))
        path = world.some_paths(1)[0]
        await world.ask(client, "artifact/lineage", {"path": path, "direction": "up"}, may=("not_found",))


async def renderer(world: World) -> None:
    """By a door: pulls what the report of the turn needs, again and again."""
    async with world.door("renderer") as (client, _):
        while await world.beat(3.0):
            for turn in [*world.recent][-2:]:
                page = f"![x]({turn}/attachments/dot.png) ![y](fi:{turn}.files/landed/01.txt) [z]({turn}/none.css)"
                await world.ask(client, "assets/pull", {"content": page, "mime": "text/markdown"})
            await look(world, client)


async def onlooker(world: World) -> None:
    """An editor's panel: the outline, the list, the timeline as it stands; asks again whenever something changed."""
    async with world.client("editor", events=TOPICS) as client:
        while await world.beat(3.0):
            if client.mail.notifications:
                client.mail.notifications.clear()
                await world.ask(client, "workspace/outline")
                if world.turn is not None:
                    await world.ask(client, "artifact/list", {"turn_id": world.turn})
                await world.ask(client, "timeline/render", {"as": "text", "include_sources": False})
                await world.ask(client, "conversation/reactions", {"turn_ids": [*world.recent]})
                path = world.some_paths(1)[0]
                await world.ask(
                    client, "artifact/link", {"path": path}, may=("not_hosted", "not_permitted", "not_found")
                )
            await look(world, client)


async def tool(world: World) -> None:
    """A program by a door of its own."""
    async with world.door("exec") as (client, _):
        while await world.beat(2.0):
            await look(world, client)
            await world.ask(client, "citations/replace", {"text": "It is so [[S:1]]."})


async def passer_by(world: World) -> None:
    """Connects, asks a little and leaves, in order or without a word."""
    while await world.beat(1.0):
        role = world.chance.choice(ROLES)
        world.accounts.counts["connection"] += 1
        if world.chance.random() < 0.5:
            async with world.client(role, events=TOPICS) as client:
                await world.ask(client, "workspace/status")
        else:
            client = await AsyncClient.to(str(world.workspace.socket(role)))
            client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params({})})
            client.send({"jsonrpc": "2.0", "id": 2, "method": "artifact/list", "params": {}})
            await asyncio.sleep(0)
            await client.drop()


async def victim(world: World) -> None:
    """A door that is killed in the middle of its requests, again and again."""
    while await world.beat(1.0):
        async with world.door(world.chance.choice(("exec", "editor", "renderer")), events=TOPICS) as (client, process):
            for _ in range(world.chance.randrange(3, 12)):
                if not await world.beat(1.0):
                    break
                await look(world, client)
            asked = [
                client.ask("workspace/sync"),
                client.ask("artifact/list"),
                client.ask("artifact/search", {"root": ""}),
            ]
            process.send_signal(signal.SIGKILL)
            world.accounts.counts["client killed"] += 1
            for one in await asyncio.gather(*asked, return_exceptions=True):
                if isinstance(one, Exception) and not isinstance(one, HungUpError | ConnectionError):
                    world.accounts.surprised("victim", one)


async def deaf(world: World) -> None:
    """Asks for much, reads nothing for a while, then reads it all or hangs up. It may be cut off."""
    while await world.beat(5.0):
        reader, writer = await asyncio.open_unix_connection(str(world.workspace.socket("exec")), limit=1 << 16)
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_params({"events": TOPICS})}
        writer.write(frame(hello))
        for number in range(1, 100):
            writer.write(frame({"jsonrpc": "2.0", "id": number, "method": "artifact/list", "params": {"limit": 300}}))
        await world.beat(DEAF_SECONDS)
        with contextlib.suppress(TimeoutError, ConnectionError):
            while world.chance.random() < 0.98 and await asyncio.wait_for(reader.read(1 << 16), 0.2):
                pass
        world.accounts.counts["client that stopped reading"] += 1
        writer.transport.abort()


def refusal(world: World, what: str, error: Exception) -> None:
    """A client's own exception, put under its kind."""
    world.accounts.surprised(f"{what} {kind_of(error)}", error)
