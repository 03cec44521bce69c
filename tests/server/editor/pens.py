"""Editors beside a workspace that is awake in this process: they speak LSP to some features, joined in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from sidecar.ports import Store
from sidecar.server.editor.documents import Documents
from tests.server.inside import Inside, awake
from tests.server.joined import Remote, Workbench, join, service

URI = "file:///elsewhere/report.md"


class Pen:
    """One client. `ask` gives the result, `refused` the error of a request; texts are open at `URI` by default."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.capabilities: dict[str, Any] = {}
        self._number = 0

    async def greet(self, capabilities: dict[str, Any] | None = None) -> None:
        answer = await self.remote.call("init", "initialize", {"capabilities": capabilities or {}})
        self.capabilities = answer["result"]["capabilities"]
        self.remote.tell("initialized", {})

    async def answered(self, method: str, params: Any = None) -> dict[str, Any]:
        self._number += 1
        return await self.remote.call(self._number, method, params)

    async def ask(self, method: str, params: Any = None) -> Any:
        answer = await self.answered(method, params)
        assert "error" not in answer, answer
        return answer["result"]

    async def refused(self, method: str, params: Any = None) -> dict[str, Any]:
        answer = await self.answered(method, params)
        assert "error" in answer, answer
        return answer["error"]

    def open(self, text: str, *, uri: str = URI, language: str = "markdown") -> None:
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.remote.tell("textDocument/didOpen", {"textDocument": document})

    async def run(self, command: str, argument: Any, **more: Any) -> Any:
        return await self.ask("workspace/executeCommand", {"command": command, "arguments": [argument], **more})

    async def run_refused(self, command: str, argument: Any) -> dict[str, Any]:
        return await self.refused("workspace/executeCommand", {"command": command, "arguments": [argument]})


class Room:
    """A workspace and whoever writes beside it."""

    def __init__(self, inside: Inside, parts: Sequence[ModuleType]) -> None:
        self.inside = inside
        services = inside.assembly.services
        documents = Documents(services)
        features = [*documents.features(), *(one for part in parts for one in part.features(services, documents))]
        self._service = service(Workbench(), features=features)
        self._remotes: list[Remote] = []

    async def pen(self, role: str = "editor", capabilities: dict[str, Any] | None = None) -> Pen:
        remote = await join(self._service, role=role)
        self._remotes.append(remote)
        pen = Pen(remote)
        await pen.greet(capabilities)
        return pen

    async def leave(self) -> None:
        for remote in self._remotes:
            await remote.drop()


@asynccontextmanager
async def room(folder: Path, *parts: ModuleType, store: Store | None = None) -> AsyncIterator[Room]:
    """A room with the features of these modules of `sidecar/server/editor`."""
    async with awake(folder, store=store) as inside:
        made = Room(inside, parts)
        try:
            yield made
        finally:
            await made.leave()


async def made_by(inside: Inside, call: str, *files: str, internal: Sequence[str] = (), turn: str = "turn_1") -> None:
    """Have a call make files in a turn, which is begun if it is not open."""
    if inside.workspace.turn_id != turn:
        await inside.begin(turn)
    await inside.ask("call/begin", {"tool_call_id": call, "tool_id": "exec", "params": {}})
    for file in (*files, *internal):
        inside.write(f"{turn}/files/{file}", f"{file}\n")
    expected = [{"path": f"{turn}/files/{file}", "visibility": "internal"} for file in internal]
    await inside.ask("call/end", {"tool_call_id": call, "expect": expected})
