"""What passes through to the daemon: many requests at once, cancelling, progress, and a second try."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError

from sidecar.mcp.door import Door, Refused
from tests.daemon_process import PROJECT
from tests.mcp.conftest import CEILING, LEGACY, MODERN, joined

FAKE = PROJECT / "tests/mcp/fake_door.py"
PROGRAM = (
    "import asyncio, sys\n"
    "from sidecar.mcp.serving import Serving\n"
    "asyncio.run(Serving(sys.argv[1:], role='exec', out_dir='out').run())\n"
)


def command(folder: Path) -> list[str]:
    return [sys.executable, "-c", PROGRAM, sys.executable, str(FAKE), str(folder)]


def heard(folder: Path, method: str) -> list[dict[str, Any]]:
    notes = folder / "heard.jsonl"
    lines = notes.read_text("utf-8").splitlines() if notes.exists() else []
    return [message for message in map(json.loads, lines) if message["method"] == method]


async def eventually(look: Any) -> None:
    async with asyncio.timeout(CEILING):
        while not look():  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.01)


@pytest.mark.rule("cli.mcp-serves-any-client")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_a_long_call_holds_up_no_other_and_its_end_is_passed_on(tmp_path: Path, mode: str) -> None:
    async with joined(command(tmp_path), mode=mode) as client:
        long = asyncio.create_task(client.call_tool("search_files", {"root": ""}))
        await eventually(lambda: heard(tmp_path, "artifact/search"))
        for _ in range(3):
            assert (await client.call_tool("workspace_status")).structured_content == {"asked": "workspace/status"}
        assert not long.done()
        long.cancel()
        await eventually(lambda: heard(tmp_path, "$/cancelRequest"))
        (asked,), (cancelled,) = heard(tmp_path, "artifact/search"), heard(tmp_path, "$/cancelRequest")
        assert cancelled["params"]["id"] == asked["id"]
        assert not (await client.call_tool("workspace_status")).is_error


async def test_progress_comes_to_who_asked_for_it(tmp_path: Path) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    async with joined(command(tmp_path)) as client:
        await client.call_tool("pull_assets", {"content": "x"}, progress_callback=progress)
        await client.call_tool("pull_assets", {"content": "x"})
        await eventually(lambda: told)
        assert told == [(40, 100, "two of five")]
        assert ["workDoneToken" in one["params"] for one in heard(tmp_path, "assets/pull")] == [True, False]


@pytest.mark.rule("cli.mcp-outlives-the-daemon")
async def test_a_change_whose_answer_was_lost_is_asked_once_more_as_the_same(tmp_path: Path) -> None:
    async with joined(command(tmp_path)) as client:
        await client.call_tool("workspace_status")
        (tmp_path / "die").touch()
        assert not (await client.call_tool("pull_assets", {"content": "x"})).is_error
        first, second = heard(tmp_path, "assets/pull")
        assert first["params"] == second["params"]
        assert first["params"]["request_id"]
        assert len(heard(tmp_path, "initialize")) == 2


async def test_the_daemon_is_told_what_we_want_to_hear(tmp_path: Path) -> None:
    async with joined(command(tmp_path)) as client:
        await client.call_tool("workspace_status")
    (hello,) = heard(tmp_path, "initialize")
    assert hello["params"]["initializationOptions"]["events"] == ["artifacts", "notices"]


@pytest.mark.parametrize("way", ["refuse", "mute"])
async def test_a_door_that_could_not_be_opened_leaves_no_process(tmp_path: Path, way: str) -> None:
    (tmp_path / way).touch()
    door = Door([sys.executable, str(FAKE), str(tmp_path)], lambda *_: None)
    before = len(asyncio.all_tasks())
    for count in (1, 2):
        calling = asyncio.create_task(door.call("workspace/status", {}))
        await eventually(lambda count=count: len(heard(tmp_path, "initialize")) == count)
        if way == "mute":
            calling.cancel()
        with pytest.raises((Refused, asyncio.CancelledError)):
            await calling
    for message in heard(tmp_path, "initialize"):
        with pytest.raises(ProcessLookupError):
            os.kill(message["door"], 0)
    assert len(asyncio.all_tasks()) == before


async def listen(client: Client, mode: str) -> None:
    """Ask to be told of one file, as clients of that era do."""
    uri = "artifact-sidecar://artifacts/fi:turn_1.files/a.md"
    if mode == LEGACY:
        with pytest.warns(match="subscribe"):
            await client.subscribe_resource(uri)
    else:
        async with client.listen(resource_subscriptions=[uri]):
            pass


@pytest.mark.rule("cli.mcp-tells-from-the-first-on")
@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_nobody_listens_before_the_daemon_can_be_heard(tmp_path: Path, mode: str) -> None:
    (tmp_path / "wait").touch()
    async with joined(command(tmp_path), mode=mode) as client:
        listening = asyncio.create_task(listen(client, mode))
        await eventually(lambda: heard(tmp_path, "initialize"))
        for _ in range(3):
            await client.list_tools(cache_mode="bypass")
        assert not listening.done()
        (tmp_path / "wait").unlink()
        async with asyncio.timeout(CEILING):
            await listening


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_who_cannot_listen_is_told_so(tmp_path: Path, mode: str) -> None:
    (tmp_path / "refuse").touch()
    async with joined(command(tmp_path), mode=mode) as client:
        with pytest.raises(MCPError, match="not now"):
            await listen(client, mode)
