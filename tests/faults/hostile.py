"""Clients that nobody wants, each a function that takes a workspace and does its worst."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

from tests.daemon_process import Workspace
from tests.rpc_client import frame, initialize_params

Deed = Callable[[Workspace], socket.socket]
HELLO = frame({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_params({})})
ALL_EVENTS = {"events": ["sources", "artifacts", "timeline", "notices"]}
LISTENS = frame({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_params(ALL_EVENTS)})


def status(number: int) -> bytes:
    return frame({"jsonrpc": "2.0", "id": number, "method": "workspace/status"})


def dial(workspace: Workspace, role: str = "exec") -> socket.socket:
    link = socket.socket(socket.AF_UNIX)
    link.connect(str(workspace.socket(role)))
    link.settimeout(0.5)
    return link


def says(*chunks: bytes) -> Deed:
    """Sends this and then nothing more, without ever reading."""

    def deed(workspace: Workspace) -> socket.socket:
        link = dial(workspace)
        with suppress(OSError):  # it may be cut off before it has said all
            for chunk in chunks:
                link.sendall(chunk)
        return link

    return deed


def dies(*chunks: bytes) -> Deed:
    """Sends this and is gone."""

    def deed(workspace: Workspace) -> socket.socket:
        link = says(*chunks)(workspace)
        link.close()
        return link

    return deed


def _header(length: str) -> bytes:
    return f"Content-Length: {length}\r\n\r\n".encode()


SYNC = frame({"jsonrpc": "2.0", "id": 1, "method": "workspace/sync", "params": {"workDoneToken": "t"}})
SEARCH = frame({"jsonrpc": "2.0", "id": 2, "method": "artifact/search", "params": {"root": "", "content_regex": "x"}})
DEEP = b"[" * 200_000 + b"]" * 200_000

DEEDS: dict[str, Deed] = {
    "asks for much and reads nothing": says(HELLO, *(status(at) for at in range(1, 20_000))),
    "hears of everything and reads nothing": says(LISTENS),
    "floods with notifications": says(
        HELLO, frame({"jsonrpc": "2.0", "method": "$/setTrace", "params": {"value": "off"}}) * 50_000
    ),
    "floods with cancellations": says(
        HELLO, frame({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 7}}) * 50_000
    ),
    "floods before it says hello": says(status(1) * 20_000),
    "sends garbage": says(bytes(range(256)) * 4000),
    "sends garbage after hello": says(HELLO, b"\0" * 100_000),
    "sends a header without an end": says(b"X" * 10_000_000),
    "sends many headers": says(b"X-Nothing: 1\r\n" * 100_000),
    "promises too much": says(HELLO, _header("1000000"), b"{}"),
    "promises too little": says(HELLO, _header("5"), status(1)),
    "promises less than nothing": says(HELLO, _header("-1"), b"{}"),
    "promises 5,000 digits": says(HELLO, _header("9" * 5000)),
    "promises 100 GB": says(HELLO, _header("100000000000"), b"x" * 1_000_000),
    "promises no number": says(HELLO, _header("many"), b"{}"),
    "promises twice": says(HELLO, b"Content-Length: 2\r\nContent-Length: 20\r\n\r\n{}"),
    "nests deeply": says(HELLO, frame(DEEP)),
    "sends no JSON": says(HELLO, frame(b"{nonsense"), frame(b"\xff\xfe"), frame(b"5"), frame(b"[]"), frame(b"null")),
    "begins a header slowly": says(b"Content-Le"),
    "begins a body slowly": says(HELLO, _header("100"), b"{"),
    "says nothing": says(),
    "dies before it says hello": dies(),
    "dies in the middle of a header": dies(b"Content-"),
    "dies in the middle of a frame": dies(HELLO, _header("1000"), b'{"jsonrpc"'),
    "dies in the middle of its requests": dies(HELLO, SYNC, SEARCH, SYNC, SEARCH),
}
