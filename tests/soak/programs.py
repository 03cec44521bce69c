"""Clients that are other people's: an editor by pytest-lsp, an MCP client of the SDK, the Python library, `watch`."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.daemon_process import PROJECT, environment
from tests.soak.world import CEILING, PROBE, World

TYPED = "# Notes 🎉\n\nSee {paths}, and [[S:1]], [[S:2]] and [[S:9999]].\n"


async def typist(world: World) -> None:
    """An editor of the kind of VS Code: documents are opened, typed in and closed, and it asks what editors ask."""
    from lsprotocol import types
    from pytest_lsp import client_capabilities, make_test_lsp_client

    client = make_test_lsp_client()
    door = [sys.executable, "-m", "sidecar", "connect", "--role", "editor", *world.workspace.arguments]
    await client.start_io(*door, cwd=PROJECT, env=environment())
    try:
        params = types.InitializeParams(
            client_capabilities("visual-studio-code"), root_uri=Path(world.workspace.out_dir).as_uri()
        )
        await client.initialize_session(params)
        for number in count():
            uri = f"file:///elsewhere/notes_{number % 4}.md"
            document = types.TextDocumentIdentifier(uri)
            item = types.TextDocumentItem(uri, "markdown", 1, _typed(world))
            client.text_document_did_open(types.DidOpenTextDocumentParams(item))
            for version in range(2, 12):
                if not await world.beat(1.0):
                    await asyncio.wait_for(client.shutdown_session(), CEILING)
                    return
                whole: Any = types.TextDocumentContentChangeWholeDocument(_typed(world))
                changed = types.VersionedTextDocumentIdentifier(version, uri)
                client.text_document_did_change(types.DidChangeTextDocumentParams(changed, [whole]))
                at = types.Position(2, 10)
                asked: dict[str, Callable[[], Any]] = {
                    "hover": partial(client.text_document_hover_async, types.HoverParams(document, at)),
                    "completion": partial(client.text_document_completion_async, types.CompletionParams(document, at)),
                    "links": partial(client.text_document_document_link_async, types.DocumentLinkParams(document)),
                    "definition": partial(client.text_document_definition_async, types.DefinitionParams(document, at)),
                    "symbols": partial(client.workspace_symbol_async, types.WorkspaceSymbolParams("report")),
                }
                name, step = world.chance.choice([*asked.items()])
                await _done(world, f"editor {name}", step)
            client.text_document_did_close(types.DidCloseTextDocumentParams(document))
            client.diagnostics.clear()
            client.log_messages.clear()
    finally:
        with contextlib.suppress(Exception):  # it was ended in order, or something worse was said already
            await asyncio.wait_for(client.stop(), 10)


def _typed(world: World) -> str:
    return TYPED.format(paths=", ".join(world.some_paths(8)))


async def assistant(world: World) -> None:
    """A client of the MCP SDK at `artifact-sidecar mcp`."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    words = ["-m", "sidecar", "mcp", *world.workspace.arguments]
    with open("/dev/null", "w", encoding="utf-8") as nowhere:
        told = StdioServerParameters(command=sys.executable, args=words, env=environment(), cwd=str(PROJECT))
        async with Client(stdio_client(told, errlog=nowhere), mode="legacy", read_timeout_seconds=CEILING) as client:
            while await world.beat(2.0):
                await _tool(world, client, "list_artifacts", {"limit": 50})
                await _tool(world, client, "read_artifacts", {"paths": [PROBE]})
                await _tool(world, client, "resolve_paths", {"paths": world.some_paths(5)})
                await _tool(world, client, "outline", {})
                await _done(world, "mcp resources", client.list_resources)


async def _tool(world: World, client: Any, name: str, params: dict[str, Any]) -> None:
    result = await _done(world, f"mcp {name}", partial(client.call_tool, name, params))
    if result is not None and result.is_error:
        world.accounts.surprised(f"mcp {name}", ValueError(result.structured_content))


async def _done(world: World, what: str, step: Callable[[], Any]) -> Any:
    try:
        result = await asyncio.wait_for(step(), CEILING)
    except Exception as error:  # noqa: BLE001 - whatever a client meets is counted
        world.accounts.surprised(what, error)
        return None
    world.accounts.counts[what] += 1
    return result


async def library(world: World) -> None:
    """A program with the Python client."""
    module = _library()
    client = module.Client(partial(module.dial_socket, str(world.workspace.socket("exec"))), timeout=CEILING)
    try:
        while await world.beat(1.0):
            for method, params in (
                ("artifact/fetch", {"path": "so:sources_pool[1-2]"}),
                ("artifact/read", {"paths": [PROBE]}),
                ("artifact/resolve", {"paths": world.some_paths(5)}),
                ("workspace/sync", {}),
            ):
                await _done(world, f"library {method}", partial(asyncio.to_thread, client.call, method, params))
    finally:
        client.close()


def _library() -> ModuleType:
    spec = importlib.util.spec_from_file_location("artifact_client", PROJECT / "clients/python/artifact_client.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def watcher(world: World) -> None:
    """`artifact-sidecar watch --json`; each of its lines is an object."""
    process = await world.program("watch", "--json")
    assert process.stdout is not None
    reading = asyncio.create_task(_lines(world, process.stdout))
    try:
        await world.over.wait()
    finally:
        process.terminate()
        await process.wait()
        await reading


async def _lines(world: World, stdout: asyncio.StreamReader) -> None:
    while line := await stdout.readline():
        try:
            world.accounts.events[f"watch {json.loads(line)['method']}"] += 1
        except (ValueError, KeyError) as wrong:
            world.accounts.surprised("watch", wrong)
    if not world.over.is_set():
        world.accounts.surprised("watch", EOFError("it ended by itself"))
