"""A client that checks everything it is told: each request one answer, each error from the closed list, no canary."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

import orjson

from protocol import errors
from tests.daemon_process import PROJECT, Workspace, environment
from tests.hostile.guard import Wrong
from tests.rpc_client import encode, frame, initialize_params

CEILING = 120.0  # seconds for the answers of one exchange, and one more for every hundred; the machine may be busy
CODES = {row.number for row in errors.FAILURES} - {errors.INTERNAL_ERROR}
Asked = tuple[str, dict[str, Any]]
Message = dict[str, Any]
UNREAD: Message = {"id": None, "error": {"code": errors.PARSE_ERROR}}


class Ended(Exception):  # noqa: N818 - it may well be what was expected
    """The daemon closed the connection; `said` is what came before, the reason last."""

    def __init__(self, said: list[Message]) -> None:
        super().__init__(f"closed after {json.dumps(said[-1:])[:300]}")
        self.said = said


class Talker:
    """One connection. `check` is called with every body that comes."""

    def __init__(self, link: socket.socket, check: Callable[[bytes], None]) -> None:
        self.link = link
        link.setblocking(False)
        self._check = check
        self._buffer = bytearray()
        self._next = 1
        self.asked = 0
        self.events = 0

    @classmethod
    def dial(cls, workspace: Workspace, role: str, check: Callable[[bytes], None]) -> Talker:
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(workspace.socket(role)))
        return cls(link, check)

    def greet(self, **options: Any) -> Talker:
        self.ask([("initialize", initialize_params(options))])
        self.send(frame({"jsonrpc": "2.0", "method": "initialized", "params": {}}))
        return self

    def ask(self, asked: Sequence[Asked], *, keep: bool = True, ceiling: float = CEILING) -> list[Message]:
        """Ask all of it at once; the answers in the order of the questions. Raises Wrong, or Ended.

        Without `keep` results are looked at and let go: those of a flood would fill the memory of who asks.
        """
        return self.ask_raw([(method, encode(params)) for method, params in asked], keep=keep, ceiling=ceiling)

    def ask_raw(
        self, asked: Sequence[tuple[str, bytes]], *, keep: bool = True, ceiling: float = CEILING
    ) -> list[Message]:
        """The same with params that are JSON already, or are meant to be taken for it."""
        numbers = range(self._next, self._next + len(asked))
        self._next += len(asked)
        self.asked += len(asked)
        readable = [is_json(params) for _, params in asked]
        said = self.exchange(
            b"".join(request(number, *one) for number, one in zip(numbers, asked, strict=True)),
            answers=len(asked),
            ceiling=ceiling + len(asked) / 100,
            keep=keep,
        )
        answers = [message for message in said if "method" not in message]
        by_id = {message["id"]: message for message in answers if message["id"] is not None}
        # What is no JSON to the daemon has no id that it could answer to.
        nobody = [message for message in answers if message["id"] is None]
        expected = {number for number, one in zip(numbers, readable, strict=True) if one}
        if set(by_id) != expected or len(nobody) != readable.count(False):
            raise Wrong(
                f"answers to {set(by_id) ^ expected} differ, {len(nobody)} to nobody: {str(asked)[:500]}: {nobody[:1]}"
            )
        for number, question in zip(numbers, asked, strict=True):
            must_be_listed(by_id.get(number, UNREAD), question)
        return [by_id.get(number, UNREAD) for number in numbers]

    def exchange(
        self, data: bytes, *, answers: int, ceiling: float = CEILING, last: bool = False, keep: bool = True
    ) -> list[Message]:
        """Send bytes and read until so many answers have come. Raises Ended when the daemon closes.

        After the `last` bytes our way out is closed. Without `keep` results are let go.
        """
        view, said, count, until = memoryview(data), list[Message](), 0, monotonic() + ceiling
        while count < answers or view:
            left = until - monotonic()
            ready = self._ready(max(left, 0), writing=bool(view))
            if left <= 0 or not ready:
                raise Wrong(f"{answers - count} of {answers} answers did not come within {ceiling} s")
            if ready & select.POLLOUT:
                try:
                    view = view[self.link.send(view[: 1 << 18]) :]
                except BlockingIOError:
                    pass
                except (BrokenPipeError, ConnectionResetError):
                    view = memoryview(b"")
                if last and not view:
                    with suppress(OSError):
                        self.link.shutdown(socket.SHUT_WR)
            if ready & ~select.POLLOUT:
                try:
                    chunk = self.link.recv(1 << 20)
                except ConnectionResetError:
                    chunk = b""
                if not chunk:
                    raise Ended(said)
                for message in self._take(chunk):
                    if not keep:
                        message.pop("result", None)
                    said.append(message)
                    count += "method" not in message
        if count > answers:
            raise Wrong(f"{count} answers to {answers} requests")
        return said

    def _ready(self, seconds: float, *, writing: bool, reading: bool = True) -> int:
        """What can be done now, as poll(2) says it; 0 when nothing could be for so long."""
        poll = select.poll()
        poll.register(self.link, (select.POLLIN if reading else 0) | (select.POLLOUT if writing else 0))
        return sum(what for _, what in poll.poll(1000 * seconds))

    def drain(self, data: bytes = b"", *, ceiling: float = CEILING, last: bool = True) -> list[Message]:
        """Send this and read until the daemon closes; what it said."""
        if last and not data:
            with suppress(OSError):
                self.link.shutdown(socket.SHUT_WR)
        try:
            self.exchange(data, answers=1 << 60, ceiling=ceiling, last=last)
        except Ended as ended:
            return ended.said
        raise AssertionError("unreachable")

    def send(self, data: bytes) -> bool:
        """Send without reading; False when the daemon takes no more of it."""
        view = memoryview(data)
        while view:
            if not self._ready(0.3, writing=True, reading=False):
                return False
            try:
                view = view[self.link.send(view[: 1 << 18]) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True

    def close(self) -> None:
        self.link.close()

    def _take(self, chunk: bytes) -> list[Message]:
        self._buffer += chunk
        taken: list[Message] = []
        at = 0
        while (end := self._buffer.find(b"\r\n\r\n", at, at + 4096)) >= 0:
            length = int(self._buffer[at + 16 : end])
            if len(self._buffer) < end + 4 + length:
                break
            body = bytes(self._buffer[end + 4 : end + 4 + length])
            at = end + 4 + length
            self._check(body)
            taken.append(json.loads(body))
            self.events += "method" in taken[-1]
        del self._buffer[:at]
        return taken


def is_json(text: bytes) -> bool:
    """Whether it is, to those who are strict about it."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def request(number: int, method: str, params: bytes) -> bytes:
    return frame(b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}' % (number, encode(method), params))


def must_be_listed(answer: Message, question: object = "") -> None:
    """An error of an answer stands in the closed list, and is no incident."""
    error = answer.get("error")
    if error is None:
        return
    kind = (error.get("data") or {}).get("kind")
    if error["code"] not in CODES or (error["code"] == errors.REQUEST_FAILED and kind not in errors.REFUSALS):
        raise Wrong(f"an error that is on no list: {error} to {str(question)[:2000]}")


class Door(Talker):
    """The same through `connect`, the door of a program over its stdin and stdout."""

    process: subprocess.Popen[bytes]

    @classmethod
    def open(cls, workspace: Workspace, role: str, check: Callable[[bytes], None]) -> Door:
        command = [sys.executable, "-m", "sidecar", "connect", *workspace.arguments, *workspace.options, "--role", role]
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                command, cwd=PROJECT, env=environment(), stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
            )
        door = cls(ours, check)
        door.process = process
        return door

    def close(self) -> None:
        super().close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Wrong("a door outlived its client by a minute") from None


def memory(pid: int, field: str = "VmHWM") -> int:
    """Bytes, as the kernel counts them; 0 for a process that is gone."""
    with suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next((int(line.split()[1]) * 1024 for line in status if line.startswith(f"{field}:")), 0)
    return 0


def forget_peak(pid: int) -> None:
    """From now on VmHWM is the highest from now on."""
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as refs:
        refs.write("5")


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
