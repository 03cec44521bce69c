"""The measuring client: blocking reads and writes on two descriptors, frames made before the clock starts.

It does as little per message as Python allows, and the same for both sides, so that what differs is the server.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import orjson

from tests.daemon_process import PROJECT, Workspace, environment
from tests.rpc_client import frame, initialize_params

READ_BYTES = 1 << 18


def request(number: int, method: str, params: object) -> bytes:
    return frame(orjson.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))


def initialize(**options: Any) -> bytes:
    return request(1, "initialize", initialize_params(options))


class Pipe:
    """One connection. Messages that are no answers count like answers: open it without events to time requests."""

    def __init__(self, read_fd: int, write_fd: int, close: Callable[[], None]) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._buffer = bytearray()
        self.close = close
        self.pid: int | None = None  # of the program at the other end, where we started it

    @classmethod
    def direct(cls, path: Path) -> Pipe:
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(path))
        return cls(link.fileno(), link.fileno(), link.close)

    @classmethod
    def through(cls, command: Sequence[str]) -> Pipe:
        """By way of a door: a program that is joined by its stdin and stdout."""
        door = subprocess.Popen(
            command, cwd=PROJECT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert door.stdin is not None
        assert door.stdout is not None

        def close() -> None:
            with door:  # closes both pipes and waits; a door ends when its stdin does
                pass

        made = cls(door.stdout.fileno(), door.stdin.fileno(), close)
        made.pid = door.pid
        return made

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def shake_hands(self, **options: Any) -> Pipe:
        self.ask(initialize(**options))
        return self

    def ask(self, sent: bytes) -> Any:
        """Send one request; the next message that comes, parsed. Raises ValueError when it is an error."""
        self._write(sent)
        message = self.receive()
        if "error" in message:
            raise ValueError(f"{sent[:500]!r} was answered with {message['error']}")
        return message.get("result")

    def tell(self, method: str, params: object) -> None:
        """Send a notification."""
        self._write(frame(orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params})))

    def receive(self) -> dict[str, Any]:
        """The next message."""
        while (end := self._end(0)) is None:
            self._fill()
        body = self._buffer[self._buffer.index(b"\r\n\r\n") + 4 : end]
        del self._buffer[:end]
        return orjson.loads(body)

    def one_at_a_time(self, frames: Sequence[bytes]) -> float:
        """Median seconds from sending a request to having its whole answer."""
        spent: list[float] = []
        for sent in frames:
            began = perf_counter()
            self._write(sent)
            while not self._count():
                pass
            spent.append(perf_counter() - began)
        return median(spent)

    def in_flight(self, frames: Sequence[bytes], window: int) -> float:
        """Answers per second while `window` requests are always under way."""
        began = perf_counter()
        self._write(b"".join(frames[:window]))
        sent = window
        answered = 0
        while answered < len(frames):
            answered += self._count()
            if sent < min(len(frames), answered + window):
                self._write(b"".join(frames[sent : answered + window]))
                sent = answered + window
        return len(frames) / (perf_counter() - began)

    def _write(self, sent: bytes) -> None:
        written = os.write(self._write_fd, sent)
        while written < len(sent):
            written += os.write(self._write_fd, sent[written:])

    def _fill(self) -> None:
        chunk = os.read(self._read_fd, READ_BYTES)
        if not chunk:
            raise ConnectionError("the server hung up")
        self._buffer += chunk

    def _count(self) -> int:
        """Read once and forget every whole message; how many that were."""
        self._fill()
        count = start = 0
        while (end := self._end(start)) is not None:
            count += 1
            start = end
        del self._buffer[:start]
        return count

    def _end(self, start: int) -> int | None:
        """Where the message that begins at `start` ends, once it is there as a whole."""
        head = self._buffer.find(b"\r\n\r\n", start)
        if head < 0:
            return None
        length = self._buffer[start + 16 : self._buffer.find(b"\r\n", start)]  # some servers have a second header
        end = head + 4 + int(length)
        return end if end <= len(self._buffer) else None


def listens(path: Path) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket(socket.AF_UNIX) as link:
        return link.connect_ex(str(path)) == 0


def daemon_pipe(workspace: Workspace, role: str = "exec", **options: Any) -> Pipe:
    """A connection to the workspace's daemon after the handshake."""
    return Pipe.direct(workspace.socket(role)).shake_hands(**options)
