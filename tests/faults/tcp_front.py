"""A door of TCP before a server that can be shut, frozen, slow or a liar: what networks do to a database."""

from __future__ import annotations

import random
import socket
import threading
from contextlib import suppress
from typing import Literal

Mood = Literal["through", "frozen", "slow", "lying"]
CHUNK = 65536
SLOW = 0.05  # seconds before each piece


class TcpFront:
    """Listens on loopback before `upstream`, a port there; `port` stays the same through `refuse` and `accept`.

    `through` passes everything on. `frozen` takes connections and bytes and passes nothing on until the mood changes.
    `slow` lets every piece wait. `lying` changes bytes of what the server says.
    """

    def __init__(self, upstream: int, *, seed: int = 0) -> None:
        self._upstream = upstream
        self._chance = random.Random(seed)
        self._changed = threading.Condition()
        self._mood: Mood = "through"
        self._open: set[socket.socket] = set()
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]

    def be(self, mood: Mood) -> None:
        with self._changed:
            self._mood = mood
            self._changed.notify_all()

    def refuse(self) -> None:
        """Have nobody listen, and cut every connection there is."""
        self._listener.close()
        self.cut()

    def accept(self) -> None:
        """Listen again."""
        self.be("through")
        self._listener = self._listen(self.port)

    def cut(self) -> None:
        with self._changed:
            standing = [*self._open]
            self._changed.notify_all()
        for one in standing:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        self.be("through")
        self.refuse()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._take, args=(listener,), daemon=True).start()
        return listener

    def _take(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._upstream))
            except OSError:
                return  # it was shut
            with self._changed:
                self._open |= {client, server}
            for here, there, is_said in ((client, server, False), (server, client, True)):
                threading.Thread(
                    target=self._pass_on, args=(here, there), kwargs={"is_said": is_said}, daemon=True
                ).start()

    def _pass_on(self, here: socket.socket, there: socket.socket, is_said: bool) -> None:
        try:
            while piece := here.recv(CHUNK):
                there.sendall(self._treated(piece, is_said=is_said))
        except OSError:
            pass
        for one in (here, there):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._changed:
            self._open -= {here, there}
        here.close()

    def _treated(self, piece: bytes, *, is_said: bool) -> bytes:
        with self._changed:
            if self._mood == "slow":
                self._changed.wait(SLOW)
            while self._mood == "frozen":
                self._changed.wait()
            if self._mood == "lying" and is_said:
                changed = bytearray(piece)
                changed[self._chance.randrange(len(piece))] ^= 1 << self._chance.randrange(8)
                return bytes(changed)
        return piece
