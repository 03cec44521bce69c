"""The process at the other end of a socket, as the kernel tells it."""

from __future__ import annotations

import os
import socket
import struct
from typing import NamedTuple

_CREDENTIALS = struct.Struct("iII")  # struct ucred: pid, uid, gid


class Peer(NamedTuple):
    """Who connected. The pid may have ended since, and another have got its number."""

    pid: int
    uid: int


def peer_of(sock: socket.socket) -> Peer:
    """Who was there when this Unix socket was connected (SO_PEERCRED)."""
    pid, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return Peer(pid, uid)


def name_of(sock: socket.socket) -> str:
    """The abstract name that the other end was bound to, without its leading NUL; the empty text when it has none."""
    try:
        name = sock.getpeername()
    except OSError:
        return ""  # it is gone already
    bound = isinstance(name, bytes) and name[:1] == b"\0"
    return name[1:].decode("ascii", "replace") if bound else ""


def parent() -> Peer:
    """Who holds the other end of our stdio, as far as one can tell: the process that started us."""
    return Peer(os.getppid(), os.geteuid())
