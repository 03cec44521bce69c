"""The upward half of a door: what the client says goes to whichever daemon there is, whole message by whole message.

It runs in a thread of its own. While there is no daemon it does not read on, so that the client's pipe fills up and
nothing here grows. What one daemon did not get to its last byte it cannot have done, and the next one gets it.
"""

from __future__ import annotations

import _thread
import os

if __package__:
    from sidecar.server import envelopes, session
else:
    # The door runs as a file by itself, and these lie beside it.
    envelopes, session = __import__("envelopes"), __import__("session")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from typing import Any

    Sent = tuple[int, int | str | None, str]  # where a frame ends, its request's id, its method

CHUNK = 65536
SHUT_WR, SHUT_RDWR = 1, 2


class Upward:
    """Carries a descriptor to a socket that may be another one every time.

    `unsent` are the messages at hand that no daemon has got. `say` brings an answer of the door's own down.
    """

    def __init__(self, source: int, known: session.Session, say: Callable[[bytes], None]) -> None:
        self.unsent: list[Sent] = []
        self.waiting = False  # there is something to send, and no daemon that takes it
        self.ended = False  # the client says nothing more
        self.raw = False  # what it says is no messages
        self._source = source
        self._known = known
        self._say = say
        self._turn = _thread.allocate_lock()  # to send on the socket, or to change it
        self._sock: socket | None = None
        self._ready = False  # the daemon takes messages
        self._opened = _closed()
        self._wanted = _closed()

    # What the other thread does.

    def meet(self, sock: socket, *, patience: float | None) -> None:
        """Turn to a daemon. One that has to be greeted first gets `patience` seconds for each word of its answer."""
        with self._turn:
            self._sock = sock
            self._known.begin_life()
            if (hello := self._known.hello) is None:
                self._open()
            else:
                sock.settimeout(patience)
                _send(sock, hello)

    def tell(self, data: bytes) -> None:
        """Say something to a daemon that does not take messages yet."""
        with self._turn:
            if self._sock is not None:
                _send(self._sock, data)

    def open(self) -> None:
        """The daemon takes messages now."""
        with self._turn:
            self._open()

    def part(self, sock: socket) -> None:
        """Turn away from a daemon that has hung up."""
        _shut(sock, SHUT_RDWR)  # whatever is being sent at this moment ends with that
        with self._turn:
            self._ready = False
            self._sock = None
            sock.close()

    def wait(self) -> None:
        """Until something may have changed here."""
        self._wanted.acquire()

    def _open(self) -> None:
        self._ready = True
        self._wanted.acquire(False)
        if self._sock is not None:
            self._sock.settimeout(None)
            if self.ended:
                _shut(self._sock, SHUT_WR)
        _wake(self._opened)

    # What its own thread does.

    def carry(self) -> None:
        """Until the client says nothing more."""
        frames = envelopes.Frames()
        try:
            while chunk := _read(self._source):
                data, spans = frames.feed(chunk)
                self._take(data, spans)
                if frames.fault:
                    self.raw = True
                    self._pass(frames.take_rest())
                    while chunk := _read(self._source):
                        self._pass(chunk)
            self._pass(frames.take_rest())
        finally:
            with self._turn:
                self.ended = True
                if self._ready and self._sock is not None:
                    _shut(self._sock, SHUT_WR)
            _wake(self._wanted)

    def _take(self, data: bytes, spans: list[tuple[int, int]]) -> None:
        """Send frames on, those that need no attention in one go."""
        run: list[Sent] = []
        begin = done = 0
        for start, end in spans:
            message = envelopes.members(data[start:end])
            method, number = message.get("method"), message.get("id")
            if number is not None:
                number = envelopes.checked(number)
            if type(method) is str:
                if method in session.SPECIAL:
                    self._deliver(data, begin, run)
                    self._deliver_special(data[done:end], number, method, envelopes.whole(data[start:end]))
                    begin, run = end, []
                else:
                    run.append((end, number, method))
            elif number is not None and "method" not in message and self._known.answers_nobody(number):
                self._deliver(data, begin, run)
                begin, run = end, []
            else:
                run.append((end, number if "method" in message else None, ""))
            done = end
        if run:
            self._deliver(data, begin, run)

    def _pass(self, data: bytes) -> None:
        """Send what is no message, and what nobody answers."""
        if data:
            self._deliver(data, 0, [(len(data), None, "")])

    def _deliver(self, data: bytes, begin: int, run: list[Sent]) -> None:
        """Send the frames of a run, as soon as there is a daemon."""
        while run:
            self.unsent = run
            self._await_turn()
            try:
                begin, run = self._send_run(data, begin, run)
            finally:
                self._turn.release()
        self.unsent = []

    def _deliver_special(self, frame: bytes, number: int | str | None, method: str, message: dict[str, Any]) -> None:
        """The same for one that the door must remember."""
        known = self._known
        self.unsent = run = [(len(frame), number, method)]
        known.announce(method)
        _wake(self._wanted)
        while run:
            self._await_turn()
            try:
                if method == "initialize" and number is not None and not known.greeted:
                    self._greet(frame, number, message)
                    run = []
                elif known.is_cut_off(method, message):
                    run = []
                    if number is not None:
                        self._say(session.cut_off(number))
                else:
                    _, run = self._send_run(frame, 0, run)
                    if not run:
                        known.note(method, message, frame)
            finally:
                self._turn.release()
        self.unsent = []

    def _greet(self, frame: bytes, number: int | str, message: dict[str, Any]) -> None:
        """Nothing follows a greeting before it was answered; a daemon that ends before that has done nothing."""
        assert self._sock is not None
        self._ready = False
        self._known.greet(number, message, frame)
        _send(self._sock, frame)  # if this daemon does not get it, the next one does

    def _send_run(self, data: bytes, begin: int, run: list[Sent]) -> tuple[int, list[Sent]]:
        """Send to where the run ends. Where what was not delivered begins, and what that is. Called with the turn."""
        assert self._sock is not None
        end = run[-1][0]
        self._known.flight.begin(run)
        reached = begin + _send(self._sock, data[begin:end])
        if reached == end:
            return end, []
        self._ready = False
        left = [sent for sent in run if sent[0] > reached]
        self._known.flight.take_back(left)
        return max((at for at, _, _ in run if at <= reached), default=begin), left

    def _await_turn(self) -> None:
        """Return with the turn, and with a daemon that takes messages."""
        while True:
            self._turn.acquire()
            self.waiting = not self._ready
            if self._ready:
                return
            self._turn.release()
            _wake(self._wanted)
            self._opened.acquire()


# The ends of sockets and descriptors are no errors here: the other thread sees them too, and it acts.


def _send(sock: socket, data: bytes) -> int:
    """How many bytes could be sent."""
    sent = 0
    try:
        sent = sock.send(data)
        while sent < len(data):
            sent += sock.send(memoryview(data)[sent:])
    except OSError:
        pass
    return sent


def _read(source: int) -> bytes:
    try:
        return os.read(source, CHUNK)
    except OSError:
        return b""


def _shut(sock: socket, how: int) -> None:
    try:
        sock.shutdown(how)
    except OSError:
        pass


# A lock that one thread waits for and the other opens is an event, and `threading` costs more than the whole door.


def _closed() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


def _wake(lock: _thread.LockType) -> None:
    if lock.locked():
        lock.release()
