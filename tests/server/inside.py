"""A whole daemon but for its sockets: real stores in a temporary folder, methods asked by name, answers checked.

Params go through the protocol's model and results through its model for results, so that no handler drifts.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from protocol.methods import REQUESTS
from sidecar.core.errors import Refusal
from sidecar.ports import Store
from sidecar.server.assembly import Assembly, Wanted
from sidecar.server.caller import Caller, Client, Peer
from sidecar.server.methods import handlers
from sidecar.server.wire import encode_in_pieces
from sidecar.stores.journal import Journal

CEILING = 30.0  # seconds: a machine may be busy with other things
ELIGIBLE = ("text/*", "image/*", "application/pdf")


class Silence:
    """Takes notifications and says nothing."""

    def post(self, method: str, params: bytes) -> None:
        return

    def notify(self, method: str, params: bytes) -> bool:
        return True


class Inside:
    """One workspace, awake. `ask` answers as the wire would carry it."""

    def __init__(self, folder: Path, assembly: Assembly) -> None:
        self.assembly = assembly
        self.workspace = assembly.workspace
        self.out = folder / "out"
        self._handlers = handlers(assembly.services)
        self.clients = {role: Client(number, role, Peer(1, 0)) for number, role in enumerate(ROLES)}

    async def ask(self, method: str, params: dict[str, Any] | None = None, *, role: str = "runtime") -> Any:
        """The result, checked against the protocol. Raises the Refusal that the client would get."""
        request = REQUESTS[method]
        caller = Caller(self.clients[role], 1, method, size=0, post=Silence())
        try:
            result = self._handlers[method](caller, request.params.model_validate(params or {}))
            if inspect.isawaitable(result):
                result = await asyncio.wait_for(result, CEILING)
        except Refusal as refusal:
            if refusal.kind not in request.fails_with:
                raise AssertionError(f"{method} may not fail with {refusal.kind}") from refusal
            raise
        made = result if isinstance(result, bytes) else encode_in_pieces(result, role)
        body = made if isinstance(made, bytes) else b"".join(made)
        request.result.model_validate_json(body)
        return orjson.loads(body)

    def write(self, path: str, content: str | bytes = "x") -> Path:
        file = self.out / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    async def sync(self) -> dict[str, Any]:
        return await self.ask("workspace/sync")

    async def begin(self, turn_id: str = "turn_1") -> None:
        await self.ask("turn/begin", {"turn_id": turn_id})


ROLES = ("runtime", "renderer", "exec", "editor")


@asynccontextmanager
async def awake(
    folder: Path,
    *,
    trust_timeline: bool = False,
    keep_bytes: int = 2**30,
    store: Store | None = None,
    index: str = "",
) -> AsyncIterator[Inside]:
    """A workspace under `folder`, looked at on request only: without a bell nothing happens behind a test's back.

    With a store what is to be hosted is hosted.
    """
    (folder / "out").mkdir(exist_ok=True)
    loop = asyncio.get_running_loop()
    journal = Journal.open(str(folder / "state"), post=loop.call_soon_threadsafe)
    wanted = Wanted(
        out_dir=str(folder / "out"),
        state_dir=str(folder / "state"),
        keep_bytes=keep_bytes,
        eligible=ELIGIBLE,
        trust_timeline=trust_timeline,
        index_location=index,
        identity={},
    )
    assembly = Assembly(wanted, journal=journal, clients=list, store=store)
    assembly.load()
    running = [asyncio.create_task(assembly.looker.run())]
    try:
        await assembly.open()
        running += [asyncio.create_task(assembly.hosting.run())] if store is not None else []
        yield Inside(folder, assembly)
    finally:
        await assembly.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.to_thread(journal.close)
        assembly.bell._standing.close()  # it never ran, and so never ended
