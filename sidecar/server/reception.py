"""Takes new clients in: looks who it is, refuses whom it must, and makes a connection of each of the others."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import orjson

from sidecar.core import limits
from sidecar.core.errors import NotPermitted, Refusal, TooLarge
from sidecar.server import bridge
from sidecar.server.connection import Connection
from sidecar.server.failures import refused
from sidecar.server.framing import frame
from sidecar.server.listening import Stdio
from sidecar.server.peer import Peer, name_of, parent, peer_of

log = logging.getLogger("sidecar.connection")

ACCEPTS_AT_ONCE = 4  # by each socket, before those who are inside have their turn
SHORT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
RECOVERY_SECONDS = 0.5
REFUSALS_SECONDS = 1.0

Make = Callable[[str, Peer], Connection]


class Reception:
    """Accepts on one listening socket per role, from `start` to `stop`."""

    def __init__(
        self,
        sockets: Mapping[str, socket.socket],
        make: Make,
        *,
        uid: int,
        allowed: Mapping[str, frozenset[int]] | None = None,
        per_uid: int = limits.CONNECTIONS_PER_UID,
    ) -> None:
        self._sockets = sockets
        self._make = make
        self._uid = uid
        self._allowed = allowed or {}
        self._per_uid = per_uid
        self._inside: Counter[int] = Counter()
        self._entering: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._open = False
        self._telling: asyncio.TimerHandle | None = None
        self._untold = 0  # refusals

    def start(self) -> None:
        self._open = True
        for role, listener in self._sockets.items():
            self._loop.add_reader(listener, self._accept, role, listener)

    def stop(self) -> None:
        """Take nobody new in. The sockets stay bound; who waits in the backlog is not answered."""
        self._open = False
        for listener in self._sockets.values():
            self._loop.remove_reader(listener)
        if self._telling is not None:
            self._telling.cancel()
            self._tell_refused()

    def _accept(self, role: str, listener: socket.socket) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                sock, _address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._rest(role, listener, error)
                return
            self._receive(role, sock)

    def _rest(self, role: str, listener: socket.socket, error: OSError) -> None:
        if error.errno not in SHORT_OF_DESCRIPTORS:
            raise error
        # The socket stays ready while we cannot accept, and looking at it again at once would burn the processor.
        log.error("cannot accept: %s", error)
        self._loop.remove_reader(listener)
        self._loop.call_later(RECOVERY_SECONDS, self._resume, role, listener)

    def _resume(self, role: str, listener: socket.socket) -> None:
        if self._open:
            self._loop.add_reader(listener, self._accept, role, listener)

    def _receive(self, role: str, sock: socket.socket) -> None:
        peer = peer_of(sock)
        refusal = self._refusal(role, peer)
        if refusal is not None:
            self._note_refusal(role, peer, refusal)
            _turn_away(sock, refusal)
            return
        self._inside[peer.uid] += 1
        task = self._loop.create_task(self._enter(role, peer, sock))
        self._entering.add(task)
        task.add_done_callback(self._entering.discard)

    def _note_refusal(self, role: str, peer: Peer, refusal: Refusal) -> None:
        """A crowd that is refused has a line for the first of it, and one a second for all the rest."""
        if self._telling is None:
            log.warning("role=%s pid=%d uid=%d refused: %s", role, peer.pid, peer.uid, refusal)
            self._telling = self._loop.call_later(REFUSALS_SECONDS, self._tell_refused)
        else:
            self._untold += 1

    def _tell_refused(self) -> None:
        self._telling = None
        if self._untold:
            log.warning("%d more were refused", self._untold)
            self._untold = 0

    def _refusal(self, role: str, peer: Peer) -> Refusal | None:
        if peer.uid != self._uid and peer.uid not in self._allowed.get(role, ()):
            return NotPermitted(f"uid {peer.uid}", f"start the daemon with --allow-uid {role}={peer.uid}")
        if self._inside[peer.uid] >= self._per_uid:
            return TooLarge("connections", f"at most {self._per_uid} at once; close one")
        return None

    async def _enter(self, role: str, peer: Peer, sock: socket.socket) -> None:
        connection = self._make(role, peer)
        connection.client.channel = name_of(sock)
        connection.client.farewells.append(partial(self._leave, peer.uid))
        await self._loop.connect_accepted_socket(lambda: connection, sock)

    def _leave(self, uid: int) -> None:
        self._inside[uid] -= 1
        if not self._inside[uid]:
            del self._inside[uid]


class StdioClient:
    """One connection over two descriptors, `serve --stdio`. Blocking descriptors stay in threads of their own.

    They may be files, terminals or pipes shared with others, which must not be made non-blocking under their feet.
    `done` is set when the connection is over and the client has been given all of it.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.done = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def join(cls, make: Make, role: str, stdio: Stdio) -> StdioClient:
        ours, theirs = socket.socketpair()
        theirs.setblocking(True)
        joined = cls(make(role, parent()))
        await joined._loop.connect_accepted_socket(lambda: joined.connection, ours)
        threading.Thread(target=bridge.send_up, args=(stdio.source, theirs), name="stdin", daemon=True).start()
        threading.Thread(target=joined._down, args=(theirs, stdio.sink), name="stdout", daemon=True).start()
        return joined

    def _down(self, sock: socket.socket, sink: int) -> None:
        bridge.bring_down(sock, sink)
        sock.shutdown(socket.SHUT_RDWR)
        sock.close()
        try:
            self._loop.call_soon_threadsafe(self.done.set)
        except RuntimeError:
            pass  # the loop has ended before its client


def _turn_away(sock: socket.socket, refusal: Refusal) -> None:
    """Say why and close. A client that does not even take these few bytes gets none."""
    error = refused(refusal).error()
    try:
        sock.setblocking(False)
        sock.send(frame(orjson.dumps({"jsonrpc": "2.0", "id": None, "error": error})))
    except OSError:
        pass
    finally:
        sock.close()
