"""What a call made internal stays internal, whatever looks run while the call ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from time import sleep

from sidecar.core.entries import FileSeen
from tests.daemon_process import Workspace
from tests.rpc_client import AsyncClient
from tests.server.inside import awake
from tests.watching.writers import sha256

CALLS = 40


async def test_a_look_beside_the_end_of_a_call_shows_nothing_of_what_it_made_internal(workspace: Workspace) -> None:
    runtime = await workspace.connect_async("runtime")
    others = [await workspace.connect_async("exec") for _ in range(3)]
    await runtime.call("turn/begin", {"turn_id": "turn_1"})
    over = False

    async def look() -> None:
        while not over:
            await asyncio.gather(*(other.call("workspace/sync") for other in others))

    async def rewrite(path: str) -> None:
        while not over:
            await asyncio.to_thread(workspace.write, path, f"secret {asyncio.get_running_loop().time()}")

    looking = asyncio.create_task(look())
    rewriting: asyncio.Task[None] | None = None
    for at in range(CALLS):
        call = f"tc_{at}"
        await runtime.call("call/begin", {"tool_call_id": call, "tool_id": "exec", "params": {}})
        path = f"turn_1/files/secret_{at}.txt"
        await asyncio.to_thread(workspace.write, path, f"secret {at}")
        if rewriting is None:
            await asyncio.to_thread(workspace.write, "turn_1/files/again.txt", "first")
        expect = [{"path": name, "visibility": "internal"} for name in (path, "turn_1/files/again.txt")]
        await runtime.call("call/end", {"tool_call_id": call, "expect": expect})
        rewriting = rewriting or asyncio.create_task(rewrite("turn_1/files/again.txt"))
    assert rewriting is not None
    over = True
    await asyncio.gather(looking, rewriting)
    await runtime.call("workspace/sync")
    artifacts = (await runtime.call("artifact/list"))["artifacts"]
    assert {artifact["visibility"] for artifact in artifacts} == {"internal"}
    assert len(artifacts) == CALLS + 1
    assert [artifact["physical_path"] for artifact in artifacts if "sid" in artifact] == []
    for client in (runtime, *others):
        await client.close()


async def test_the_end_of_a_call_does_not_bury_a_newer_state_of_a_file(workspace: Workspace) -> None:
    runtime = await workspace.connect_async("runtime")
    others = [await workspace.connect_async("exec") for _ in range(6)]
    await runtime.call("turn/begin", {"turn_id": "turn_1"})
    over = False
    written: dict[str, list[str]] = {f"turn_1/files/{at}.txt": [] for at in range(len(others))}

    async def rewrite(path: str, client: AsyncClient) -> None:
        while not over:
            content = f"{path}: {len(written[path])}"
            await asyncio.to_thread(workspace.write, path, content)
            written[path].append(sha256(content.encode()))
            await client.call("workspace/sync")
            (result,) = (await client.call("artifact/resolve", {"paths": [path]}))["results"]
            assert result["artifact"]["sha256"] == written[path][-1], f"{content} was synced"

    async def hold_open() -> None:
        # The end of a call waits for files that are open, and meanwhile others go on.
        path = workspace.write("turn_1/files/open.txt")
        while not over:
            with path.open("ab") as file:
                file.write(b"more")
                await asyncio.to_thread(sleep, 0.01)
            await asyncio.to_thread(sleep, 0.02)

    rewriting = asyncio.gather(hold_open(), *(rewrite(*pair) for pair in zip(written, others, strict=True)))
    for at in range(3 * CALLS):
        call = f"tc_{at}"
        await runtime.call("call/begin", {"tool_call_id": call, "tool_id": "exec", "params": {}})
        await runtime.call("call/end", {"tool_call_id": call, "expect": [*written] if at % 2 else []})
    over = True
    await rewriting
    for path, states in written.items():
        versions = (await runtime.call("artifact/versions", {"path": path}))["versions"]
        assert [version["sha256"] for version in versions] == states, path
    for client in (runtime, *others):
        await client.close()


async def test_what_is_about_to_be_settled_is_the_newest_state(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()
        await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
        inside.write("turn_1/files/a.txt", "older")
        await inside.sync()
        (pending,) = inside.workspace.pending.values()
        assert pending.fact is not None
        newer = replace(pending.fact, sha256="0" * 64)
        inside.workspace.stage(FileSeen(newer, 0.0, "tc_1", "pending"))
        assert pending.sha256() != newer.sha256, "it is on its way, and no reader sees it yet"
        await inside.assembly.services.calls.files_have_arrived()
        assert pending.sha256() == newer.sha256
