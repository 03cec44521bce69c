"""A server for tests of clients: it greets as the daemon does and says otherwise only what it is told to say."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Answer = Callable[[Message], Iterable[Message | bytes]]


def frame(message: Message | bytes) -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def echo(request: Message) -> Iterable[Message | bytes]:
    """Answer a request with itself."""
    yield {"jsonrpc": "2.0", "id": request["id"], "result": {"method": request["method"], "params": request["params"]}}


def greet(request: Message) -> Message:
    capability = {"protocol_version": "1.0", "role": "exec"}
    return {
        "jsonrpc": "2.0",
        "id": request["id"],
        "result": {"capabilities": {"experimental": {"artifact_sidecar": capability}}},
    }


class Scripted:
    """Serves every connection in a thread. `heard` are the messages in order, `connections` how many there were.

    `answer` makes what is sent for each request; raw bytes in it are sent as they are, without a frame.
    """

    def __init__(self, answer: Answer = echo, *, pace: int | None = None) -> None:
        self.answer = answer
        self.pace = pace  # how many bytes are sent at once
        self.heard: list[Message] = []
        self.connections = 0
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def listen(self, path: Path) -> Scripted:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(16)
        self._open.append(listener)
        self._start(self._accept, listener)
        return self

    def serve(self, stream: socket.socket) -> None:
        self._open.append(stream)
        self.connections += 1
        self._start(self._converse, stream)

    def close(self) -> None:
        for stream in self._open:
            # Closing alone does not wake a thread that waits on it.
            try:
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive(), "a scripted conversation did not end"
        for stream in self._open:
            stream.close()

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, run: Callable[[socket.socket], None], stream: socket.socket) -> None:
        thread = threading.Thread(target=run, args=(stream,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            self.serve(stream)

    def _converse(self, stream: socket.socket) -> None:
        reader = stream.makefile("rb")
        try:
            while line := reader.readline():
                length = int(line.split(b":")[1])
                reader.readline()
                message = json.loads(reader.read(length))
                self.heard.append(message)
                for said in self._respond(message):
                    self._say(stream, said if isinstance(said, bytes) else frame(said))
        except (OSError, ValueError):
            return  # the client is gone
        finally:
            reader.close()

    def _respond(self, message: Message) -> Iterable[Message | bytes]:
        match message:
            case {"method": "initialize", "id": _}:
                return [greet(message)]
            case {"method": _, "id": _}:
                return self.answer(message)
            case _:
                return []

    def _say(self, stream: socket.socket, said: bytes) -> None:
        step = self.pace or max(1, len(said))
        for start in range(0, len(said), step):
            stream.sendall(said[start : start + step])
