"""A connection and its client, joined in memory: the real transport over a socket pair, methods of the test's own."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict

from sidecar.server.caller import Caller
from sidecar.server.connection import Connection
from sidecar.server.lsp import Editors, Feature
from sidecar.server.peer import Peer
from sidecar.server.routes import Handler, routes
from sidecar.server.service import Bounds, Guest, Service

CEILING = 5.0
ANYONE = frozenset({"runtime", "renderer", "exec", "editor"})


class Text(BaseModel):
    """Params of the test's methods."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    text: str = ""
    path: str = ""


@dataclass(frozen=True)
class Row:
    """The part of a row of the protocol's table that the server needs."""

    params: type[BaseModel] = Text
    asked_by: frozenset[str] = ANYONE


class Workbench:
    """What a test needs of a running handler: the callers it got, and a gate that holds async ones."""

    def __init__(self) -> None:
        self.callers: list[Caller] = []
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.cancelled = 0
        self.guests: list[Guest] = []
        self.taps: list[tuple[str, bytes]] = []

    def echo(self, caller: Caller, params: Text) -> object:
        self.callers.append(caller)
        return {"text": params.text, "role": caller.role}

    async def wait(self, caller: Caller, params: Text) -> object:
        self.callers.append(caller)
        self.entered.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return {"text": params.text}


class Remote:
    """The client's end: bytes out, messages in, every wait under the ceiling."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Connection) -> None:
        self.reader = reader
        self.writer = writer
        self.connection = connection
        self.notifications: list[dict[str, Any]] = []

    def send_bytes(self, data: bytes) -> None:
        self.writer.write(data)

    def send(self, message: object) -> None:
        self.send_bytes(framed(message))

    def ask(self, number: object, method: str, params: object = None) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        self.send(message if params is None else {**message, "params": params})

    def tell(self, method: str, params: object = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        self.send(message if params is None else {**message, "params": params})

    async def receive(self) -> dict[str, Any]:
        """The next message. Raises EOFError when the connection was closed instead."""
        async with asyncio.timeout(CEILING):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
                name, length = head.split(b": ")
                assert name == b"Content-Length"
                return json.loads(await self.reader.readexactly(int(length)))
            except (asyncio.IncompleteReadError, ConnectionError):
                raise EOFError from None

    async def answer(self) -> dict[str, Any]:
        """The next answer; notifications on the way are put aside."""
        while "method" in (message := await self.receive()):
            self.notifications.append(message)
        return message

    async def call(self, number: object, method: str, params: object = None) -> dict[str, Any]:
        self.ask(number, method, params)
        answer = await self.answer()
        assert answer["id"] == number
        return answer

    async def initialize(self, **options: Any) -> dict[str, Any]:
        params = {"capabilities": {}, "initializationOptions": options}
        return (await self.call("init", "initialize", params))["result"]

    async def closed(self) -> list[dict[str, Any]]:
        """Wait until the daemon has closed the connection; what it still said."""
        said = []
        while True:
            try:
                said.append(await self.receive())
            except EOFError:
                return said

    async def drop(self) -> None:
        """Die without a word."""
        self.writer.transport.abort()
        async with asyncio.timeout(CEILING):
            await self.connection.gone.wait()


def framed(message: object) -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def service(
    bench: Workbench,
    *,
    handlers: Mapping[str, Handler] | None = None,
    rows: Mapping[str, Row] | None = None,
    bulky: Set[str] = frozenset(),
    features: Iterable[Feature] = (),
    encode: Callable[[object, str], bytes | list[bytes]] = lambda result, role: orjson.dumps(result),
    **bounds: Any,
) -> Service:
    """A service with `test/echo`, `test/wait` and whatever else the test brings."""
    table: dict[str, Handler] = {"test/echo": bench.echo, "test/wait": bench.wait, **(handlers or {})}
    return Service(
        routes=routes(table, {method: Row() for method in table} | dict(rows or {}), bulky=bulky),
        encode=encode,
        hello=lambda caller: {"protocol_version": "1.0", "role": caller.role},
        revision=lambda: 7,
        editors=Editors(features, version="0"),
        joined=bench.guests.append,
        left=bench.guests.remove,
        tap=lambda client, way, body: bench.taps.append((way, body)),
        bounds=Bounds(**bounds),
    )


async def join(made: Service, *, role: str = "exec") -> Remote:
    """Connect a client; it has not said `initialize` yet."""
    ours, theirs = socket.socketpair()
    connection = Connection(made, role, Peer(1, 0))
    await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, ours)
    return Remote(*await asyncio.open_unix_connection(sock=theirs, limit=1 << 26), connection)


async def until(true: Callable[[], object]) -> None:
    """Let the loop run until something is true, under the ceiling."""
    async with asyncio.timeout(CEILING):
        while not true():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)
