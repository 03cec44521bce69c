"""An HTTP front on loopback before a real S3 server that, when told to, fails in one of the ways networks do.

The front passes the Host header on untouched. A client signs for the host it talks to, which is the front, and the
server checks the signature against the header it gets, so both agree.
"""

from __future__ import annotations

import http.client
import re
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

FORWARD_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer with an S3 error and do not ask the server."""

    status: int
    code: str = "InternalError"


@dataclass(frozen=True, slots=True)
class Hang:
    """Read the request and say nothing until healed."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """Read the request and close the connection."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Answer what is no HTTP at all."""


@dataclass(frozen=True, slots=True)
class CutBody:
    """Give so many bytes of the server's body under its full length, then close."""

    after: int


@dataclass(frozen=True, slots=True)
class WrongBytes:
    """Give the server's answer with every byte of its body changed."""


@dataclass(frozen=True, slots=True)
class Drip:
    """Give the server's body byte by byte."""

    seconds_per_byte: float


@dataclass(frozen=True, slots=True)
class Instead:
    """Say that all went well, and give this in place of what the server has; it is not asked."""

    body: bytes
    mime: str = "text/html"


@dataclass(frozen=True, slots=True)
class WrongLength:
    """Give so many bytes fewer than the server's body has, or promise more and close."""

    change: int


@dataclass(frozen=True, slots=True)
class Slow:
    """Give the server's answer, but late."""

    seconds: float


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """Have the server do it, and close without telling."""


Behaviour = Answer | Hang | HangUp | Garbage | CutBody | WrongBytes | Drip | Instead | WrongLength | Slow | LoseAnswer


class Seen(NamedTuple):
    """One request that came by."""

    method: str
    path: str
    size: int
    headers: dict[str, str]


@dataclass(slots=True)
class _Rule:
    behaviour: Behaviour
    method: str
    path: re.Pattern[str]
    header: str
    left: int | None

    def matches(self, seen: Seen) -> bool:
        has_header = not self.header or self.header in seen.headers
        fits = re.fullmatch(self.method, seen.method) and self.path.search(seen.path)
        return bool(fits) and has_header and self.left != 0


@dataclass(slots=True)
class _Reply:
    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


class FaultyFront:
    """A front before `upstream`, an `http://` URL. `url` is where clients find it, also after `refuse` and `accept`."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream).netloc
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []
        self._healed = threading.Event()
        self._open: set[socket.socket] = set()
        self.seen: list[Seen] = []
        self._server = self._listen(0)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def behave(
        self, behaviour: Behaviour, *, method: str = ".*", path: str = "", header: str = "", times: int | None = None
    ) -> None:
        """Fail in this way, `times` times or until healed, whenever a request matches: its method as a whole, its path
        anywhere, and it has the header. The latest rule wins.
        """
        with self._lock:
            if self._healed.is_set():
                self._healed = threading.Event()
            self._rules.insert(0, _Rule(behaviour, method, re.compile(path), header.lower(), times))

    def heal(self) -> None:
        """Be transparent again; whoever hangs is hung up on."""
        with self._lock:
            self._rules.clear()
            self._healed.set()

    def refuse(self) -> None:
        """Have nobody listen, and end every connection there is."""
        self._server.shutdown()
        self._server.server_close()
        with self._lock:
            standing = list(self._open)
        for one in standing:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it was closed meanwhile

    def accept(self) -> None:
        """Listen again."""
        self._server = self._listen(urlsplit(self.url).port or 0)

    def stop(self) -> None:
        self.heal()
        self.refuse()

    def _listen(self, port: int) -> ThreadingHTTPServer:
        front = self

        class Handler(_Handler):
            pass

        Handler.front = front
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        server.daemon_threads = True
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server

    def _met(self, seen: Seen) -> tuple[Behaviour | None, threading.Event]:
        with self._lock:
            self.seen.append(seen)
            for rule in self._rules:
                if rule.matches(seen):
                    rule.left = rule.left - 1 if rule.left is not None else None
                    return rule.behaviour, self._healed
            return None, self._healed

    def _connected(self, stream: socket.socket, *, is_open: bool) -> None:
        with self._lock:
            (self._open.add if is_open else self._open.discard)(stream)

    def _ask(self, method: str, path: str, headers: list[tuple[str, str]], body: bytes) -> _Reply:
        connection = http.client.HTTPConnection(self._upstream, timeout=FORWARD_SECONDS)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return _Reply(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()


class _Handler(BaseHTTPRequestHandler):
    """One connection. `front` is set by whoever listens."""

    front: FaultyFront
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self) -> None:
        super().setup()
        self.front._connected(self.connection, is_open=True)

    def handle_expect_100(self) -> bool:
        """The client waits for this before it sends a body, so it must not wait in our buffer."""
        goes_on = super().handle_expect_100()
        self.wfile.flush()
        return goes_on

    def finish(self) -> None:
        self.front._connected(self.connection, is_open=False)
        try:
            super().finish()
        except OSError:
            pass  # the client has gone

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        told = {name.lower(): value for name, value in self.headers.items()}
        behaviour, healed = self.front._met(Seen(self.command, self.path, len(body), told))
        forward = [(name, value) for name, value in self.headers.items() if name.lower() not in _OWN]

        def ask() -> _Reply:
            return self.front._ask(self.command, self.path, forward, body)

        match behaviour:
            case None:
                self._reply(ask())
            case Answer(status, code):
                self._reply(_error(status, code))
            case WrongBytes():
                reply = ask()
                reply.body = bytes(byte ^ 0xFF for byte in reply.body)
                self._reply(reply)
            case CutBody(after):
                reply = ask()
                self._head(reply)
                self._end_with(reply.body[:after])
            case Instead(said, mime):
                self._reply(_Reply(200, [("Content-Type", mime)], said))
            case WrongLength(change):
                reply = ask()
                told = len(reply.body) + change
                self._head(reply, length=told)
                self._end_with(reply.body[:told])
            case Slow(pause):
                reply = ask()
                healed.wait(pause)
                self._reply(reply)
            case Drip(pause):
                self._drip(ask(), pause, healed)
            case Garbage():
                self._end_with(b"\x00\xff no http \r\n\r\n")
            case LoseAnswer():
                ask()
                self._end_with(b"")
            case HangUp():
                self._end_with(b"")
            case Hang():
                healed.wait()
                self._end_with(b"")

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _handle  # noqa: N815 - names that the base class asks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Tests look at `seen`."""

    def _reply(self, reply: _Reply) -> None:
        self._head(reply)
        if self.command != "HEAD":
            self.wfile.write(reply.body)
        self.wfile.flush()

    def _drip(self, reply: _Reply, pause: float, healed: threading.Event) -> None:
        self._head(reply)
        self.wfile.flush()
        for byte in reply.body:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if healed.wait(pause):
                self.close_connection = True
                return

    def _end_with(self, sent: bytes) -> None:
        self.wfile.write(sent)
        self.wfile.flush()
        self.close_connection = True

    def _head(self, reply: _Reply, *, length: int | None = None) -> None:
        self.send_response_only(reply.status)
        for name, value in reply.headers:
            if name.lower() not in (*_OWN, "content-length"):
                self.send_header(name, value)
        told = {name.lower(): value for name, value in reply.headers}.get("content-length")
        of_body = len(reply.body) if length is None else length
        self.send_header("Content-Length", told if self.command == "HEAD" and told else str(of_body))
        self.end_headers()


def _error(status: int, code: str) -> _Reply:
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>as told</Message></Error>'
    return _Reply(status, [("Content-Type", "application/xml")], body.encode())


# Headers between two neighbours, which are not passed on.
_OWN = ("connection", "keep-alive", "transfer-encoding", "expect", "te", "trailer", "upgrade")
