"""Small JSON-RPC clients for tests, which fail when a message from the daemon was left unread.

They speak the framing by themselves and share nothing with the code they test.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import select
import socket
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any

CEILING = 60.0  # seconds that any single wait of a test may take, on a machine that may be busy


class RpcError(Exception):
    """An error answer, as it came."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']} {error.get('data') or ''}")
        self.error = error
        self.code: int = error["code"]
        self.data: dict[str, Any] = error.get("data") or {}

    @property
    def kind(self) -> str | None:
        return self.data.get("kind")


class HungUpError(Exception):
    """The other side closed the connection."""


class UnreadError(AssertionError):
    """The daemon said something that nobody listened to."""


def frame(message: object) -> bytes:
    body = message if isinstance(message, bytes) else encode(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def encode(message: object) -> bytes:
    """JSON as UTF-8; half a surrogate pair, which UTF-8 cannot say, is escaped."""
    try:
        return json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(message).encode()


def unframe(buffer: bytearray) -> dict[str, Any] | None:
    """Take one whole message off the front of `buffer`, or leave it alone."""
    head, mark, _ = bytes(buffer[:4096]).partition(b"\r\n\r\n")
    if not mark:
        return None
    lengths = [line[16:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: ")]
    start, length = len(head) + 4, int(lengths[0])
    if len(buffer) < start + length:
        return None
    body = bytes(buffer[start : start + length])
    del buffer[: start + length]
    return json.loads(body)


def initialize_params(options: dict[str, Any]) -> dict[str, Any]:
    return {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": options}


class Mail:
    """Messages that arrived, sorted into answers by id and everything else in order."""

    def __init__(self) -> None:
        self.answers: dict[object, dict[str, Any]] = {}
        self.notifications: deque[dict[str, Any]] = deque()

    def sort(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self.notifications.append(message)
        elif message.get("id") in self.answers:
            raise AssertionError(f"a second answer to one request: {message}")
        else:
            self.answers[message.get("id")] = message

    def take(self, method: str) -> dict[str, Any] | None:
        """The oldest notification of this method, others stay."""
        found = next((m for m in self.notifications if m["method"] == method), None)
        if found is not None:
            self.notifications.remove(found)
        return found

    def must_be_empty(self) -> None:
        left = [*self.answers.values(), *self.notifications]
        if left:
            raise UnreadError(f"{len(left)} messages of the daemon were left unread: {json.dumps(left)[:2000]}")


def result_of(message: dict[str, Any]) -> Any:
    if "error" in message:
        raise RpcError(message["error"])
    return message["result"]


class Client:
    """A blocking client over two file descriptors; every wait ends after `ceiling` seconds."""

    def __init__(self, read_fd: int, write_fd: int, *, hang_up: Callable[[], None], ceiling: float = CEILING) -> None:
        self._read_fd = read_fd
        self._poll = select.poll()
        self._poll.register(read_fd, select.POLLIN)
        self._write_fd = write_fd
        self._hang_up = hang_up
        self._buffer = bytearray()
        self._ids = itertools.count(1)
        self._closed = False
        self.ceiling = ceiling
        self.mail = Mail()
        self.welcome: dict[str, Any] = {}

    @classmethod
    def over(cls, link: socket.socket) -> Client:
        link.setblocking(True)
        return cls(link.fileno(), link.fileno(), hang_up=link.close)

    # Talking

    def initialize(self, **options: Any) -> dict[str, Any]:
        """Shake hands; the answer's `artifact_sidecar` part, which stays in `welcome` too."""
        result = self.call("initialize", initialize_params(options))
        self.notify("initialized", {})
        self.welcome = result["capabilities"]["experimental"]["artifact_sidecar"]
        return self.welcome

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Ask and wait for the result. Raises RpcError, HungUpError, or TimeoutError after the ceiling."""
        return self.answer(self.ask(method, params))

    def refused(self, method: str, params: dict[str, Any] | None = None) -> RpcError:
        """Ask for what must be refused; the error that came."""
        try:
            result = self.call(method, params)
        except RpcError as error:
            return error
        raise AssertionError(f"{method} {params} was answered: {json.dumps(result)[:500]}")

    def ask(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request and go on; `answer(id)` waits for it."""
        id_ = next(self._ids)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id_, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return id_

    def answer(self, id_: object) -> Any:
        # An answer without an id says that what was sent could not even be read; nothing better will come.
        self._until(lambda: not self.mail.answers.keys().isdisjoint((id_, None)), f"an answer to request {id_}")
        return result_of(self.mail.answers.pop(id_ if id_ in self.mail.answers else None))

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def event(self, method: str) -> dict[str, Any]:
        """The params of the oldest unread notification of this method, waited for if need be."""
        self._until(lambda: any(m["method"] == method for m in self.mail.notifications), f"a {method}")
        found = self.mail.take(method)
        assert found is not None
        return found["params"]

    def heard(self) -> list[str]:
        """The methods of the notifications that have arrived by now and are unread.

        What the daemon sent before this call is included: a round trip comes first.
        """
        self.call("workspace/status")
        return [m["method"] for m in self.mail.notifications]

    def forget_events(self) -> None:
        """Read and drop every notification that has arrived by now."""
        self.heard()
        self.mail.notifications.clear()

    # Ending

    def close(self) -> None:
        """End the session in order. Raises UnreadError when something the daemon said was not read."""
        if self._closed:
            return
        try:
            self.call("shutdown")
            self.notify("exit")
        finally:
            self.drop()
        self.mail.must_be_empty()

    def drop(self) -> None:
        """Hang up without a word and without a check, as a client that dies."""
        if not self._closed:
            self._closed = True
            self._hang_up()

    # Bytes

    def send(self, message: object) -> None:
        self.send_bytes(frame(message))

    def send_bytes(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._write_fd, view) :]
            except (BrokenPipeError, ConnectionResetError):
                raise HungUpError("the daemon closed the connection") from None

    def receive(self) -> dict[str, Any]:
        """The next message of any kind, read past the mail. Raises HungUpError or TimeoutError."""
        return self._receive(monotonic() + self.ceiling, "a message")

    def end_of_stream(self) -> None:
        """Read until the daemon has closed the connection; what it still says goes to the mail."""
        deadline = monotonic() + self.ceiling
        try:
            while True:
                self.mail.sort(self._receive(deadline, "the end of the connection"))
        except HungUpError:
            return

    def _until(self, arrived: Callable[[], bool], what: str) -> None:
        deadline = monotonic() + self.ceiling
        while not arrived():
            self.mail.sort(self._receive(deadline, what))

    def _receive(self, deadline: float, what: str) -> dict[str, Any]:
        while (message := unframe(self._buffer)) is None:
            if not self._poll.poll(1000 * max(0.0, deadline - monotonic())):
                raise TimeoutError(f"waited {self.ceiling} s for {what}")
            try:
                chunk = os.read(self._read_fd, 1 << 20)
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise HungUpError("the daemon closed the connection")
            self._buffer += chunk
        return message


class AsyncClient:
    """The same for asyncio: many requests in flight, answers in any order, one reader task."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, ceiling: float = CEILING) -> None:
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)
        self._waiting: dict[object, asyncio.Future[dict[str, Any]]] = {}
        self._arrived = asyncio.Event()
        self.ceiling = ceiling
        self.mail = Mail()
        self.welcome: dict[str, Any] = {}
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def to(cls, path: str) -> AsyncClient:
        return cls(*await asyncio.open_unix_connection(path))

    async def initialize(self, **options: Any) -> dict[str, Any]:
        result = await self.call("initialize", initialize_params(options))
        self.notify("initialized", {})
        self.welcome = result["capabilities"]["experimental"]["artifact_sidecar"]
        return self.welcome

    async def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        return result_of(await asyncio.wait_for(self.ask(method, params), self.ceiling))

    def ask(self, method: str, params: dict[str, Any] | None = None) -> asyncio.Future[dict[str, Any]]:
        """Send a request; the future gets the whole answer, error or result."""
        id_ = next(self._ids)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id_, "method": method}
        answer = self._waiting[id_] = asyncio.get_running_loop().create_future()
        if self._listening.done():
            answer.set_exception(HungUpError("the daemon had closed the connection"))
        else:
            self.send(message if params is None else {**message, "params": params})
        return answer

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def send(self, message: object) -> None:
        self._writer.write(frame(message))

    async def event(self, method: str) -> dict[str, Any]:
        async with asyncio.timeout(self.ceiling):
            while (found := self.mail.take(method)) is None:
                self._arrived.clear()
                await self._arrived.wait()
        return found["params"]

    async def close(self) -> None:
        """End the session in order. Raises UnreadError when something the daemon said was not read."""
        try:
            await self.call("shutdown")
            self.notify("exit")
        finally:
            await self.drop()
        self.mail.must_be_empty()

    async def drop(self) -> None:
        self._listening.cancel()
        self._writer.transport.abort()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def _listen(self) -> None:
        buffer = bytearray()
        while chunk := await self._read():
            buffer += chunk
            while (message := unframe(buffer)) is not None:
                waiting = self._waiting.pop(message.get("id"), None) if "method" not in message else None
                if waiting is None:
                    self.mail.sort(message)
                elif not waiting.done():
                    waiting.set_result(message)
                self._arrived.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(HungUpError("the daemon closed the connection"))

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(1 << 20)
        except ConnectionError:
            return b""  # it died with something of ours unread
