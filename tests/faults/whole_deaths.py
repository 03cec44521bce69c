"""kill -9 of a whole daemon under clients of several roles, again and again."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from tests.daemon_process import Workspace
from tests.faults.ledger import Ledger
from tests.rpc_client import AsyncClient, Client, HungUpError
from tests.watching.writers import sha256

PATIENCE = 60.0


def die_whole(folder: Path, *, deaths: int, seed: int, kind: str = "whole") -> Ledger:
    """So many deaths of one workspace. Raises AssertionError with what was lost."""
    assert kind == "whole"
    workspace = Workspace(folder)
    workspace.start()
    try:
        return die_under_clients(workspace, deaths=deaths, seed=seed)
    finally:
        workspace.clean_up(failed=True)


def die_under_clients(workspace: Workspace, *, deaths: int, seed: int) -> Ledger:
    """The same for a daemon that runs. Its recoveries are whole starts, from Python to an answer."""
    chance = random.Random(seed)
    ledger = Ledger()
    for death in range(deaths):
        asyncio.run(work_until_killed(workspace, f"{seed}-{death}", chance, ledger))
        began = monotonic()
        workspace.start()
        client = workspace.connect("runtime", ceiling=PATIENCE)
        client.call("workspace/status")
        seconds = monotonic() - began
        ledger.wakes({"woke": inventory(client), "seconds": seconds})
    return ledger


async def work_until_killed(workspace: Workspace, name: str, chance: random.Random, ledger: Ledger) -> None:
    """Five clients work; after some acknowledgements the daemon is killed under all of them."""
    clients = [await workspace.connect_async(role) for role in ("runtime", "runtime", "renderer", "runtime", "exec")]
    await clients[0].call("turn/begin", {"turn_id": "turn_1"})
    works = (append, append, merge, merge, make_files)
    tasks = [
        asyncio.create_task(work(client, workspace, f"{name}-{at}", random.Random(chance.random()), ledger))
        for at, (work, client) in enumerate(zip(works, clients, strict=True))
    ]
    enough = ledger.acknowledged + chance.randrange(10, 120)
    while ledger.acknowledged < enough:
        done, _ = await asyncio.wait(tasks, timeout=0.001, return_when=asyncio.FIRST_COMPLETED)
        assert not done, [task.exception() for task in done]
    await asyncio.to_thread(workspace.kill9)
    async with asyncio.timeout(PATIENCE):
        for task in tasks:
            with suppress(HungUpError, ConnectionError):
                await task
    for client in clients:
        await client.drop()


async def append(client: AsyncClient, _: Workspace, name: str, chance: random.Random, ledger: Ledger) -> None:
    for serial in range(10_000):
        size = chance.randrange(1, 4)
        texts = [f"{name}:{serial}:{part}:{size}" for part in range(size)]
        blocks = [{"type": "react.note", "turn_id": "turn_1", "text": text} for text in texts]
        answer = await client.call("timeline/append", {"blocks": blocks})
        told = [[block["index"], text] for block, text in zip(answer["blocks"], texts, strict=True)]
        ledger.note({"blocks": told, "revision": answer["revision"]})


async def merge(client: AsyncClient, _: Workspace, name: str, chance: random.Random, ledger: Ledger) -> None:
    for serial in range(10_000):
        size = chance.randrange(1, 4)
        rows = [{"url": f"https://e.org/{name}:{serial}:{part}:{size}"} for part in range(size)]
        answer = await client.call("sources/merge", {"rows": rows})
        ledger.note({"rows": {str(row["sid"]): row["url"] for row in answer["rows"]}})


async def make_files(
    client: AsyncClient, workspace: Workspace, name: str, chance: random.Random, ledger: Ledger
) -> None:
    for serial in range(10_000):
        path, content = f"turn_2/files/{name}_{chance.randrange(4)}.txt", f"{name}:{serial}"
        await asyncio.to_thread(workspace.write, path, content)
        await client.call("workspace/sync")
        (result,) = (await client.call("artifact/resolve", {"paths": [path]}))["results"]
        artifact = result["artifact"]
        assert artifact["sha256"] == sha256(content.encode())
        ledger.note({"file": path, "sha256": artifact["sha256"], "sid": artifact["sid"]})


def inventory(client: Client) -> dict[str, Any]:
    """Everything there is, asked for page by page."""
    blocks: list[str] = []
    while page := client.call("timeline/blocks", {"since": len(blocks)})["blocks"]:
        blocks += [block.get("text", "") for block in page]
    files: dict[str, Any] = {}
    asked: dict[str, Any] = {}
    while True:
        listed = client.call("artifact/list", asked)
        for artifact in listed["artifacts"]:
            path = artifact["physical_path"]
            versions = client.call("artifact/versions", {"path": path})["versions"]
            hashes = [version["sha256"] for version in versions]
            files[path] = {"sha256s": hashes, "sid": artifact["sid"], "visibility": artifact["visibility"]}
        if listed["next_cursor"] is None:
            break
        asked = {"cursor": listed["next_cursor"]}
    rows = client.call("sources/list")["rows"]
    return {
        "revision": client.call("workspace/status")["revision"],
        "blocks": blocks,
        "rows": {str(row["sid"]): row.get("url") or row["artifact_path"] for row in rows},
        "files": files,
        "open_calls": [],
    }
