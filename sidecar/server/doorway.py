"""The door while it is open: joins two descriptors to a daemon, and when that one ends, to the next.

Whole messages pass, so a death in the middle of one leaves nothing half said. The client hears of the change only what
it must: requests under way are refused, and events that it may have missed are announced. Bytes that are no messages
pass as they are, and then the daemon that hangs up was the last.
"""

from __future__ import annotations

import _thread
import os
import time

if __package__:
    from sidecar.server import envelopes, session, upward
else:
    # The door runs as a file by itself, and these lie beside it.
    envelopes, session, upward = __import__("envelopes"), __import__("session"), __import__("upward")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Any, Protocol

    class Way(Protocol):
        """How one gets to a daemon. Everything here may raise what ends the door."""

        tries: int  # daemons in a row that did nothing useful

        def first(self) -> socket: ...

        def another(self) -> socket:
            """A connection to the successor of a daemon that has ended."""
            ...

        def look_back(self, *, served: bool) -> None:
            """The daemon has hung up, after it was greeted or before. Raises when no other would do any better."""
            ...

        def give_up(self, sentence: str) -> Exception:
            """What ends the door, with this reason."""
            ...


CHUNK = 65536
GREETING_SECONDS = 30.0  # how long a successor may take to greet back
STEADY_SECONDS = 30.0  # a daemon that lived for so long was of use
STATUS = "artifact-sidecar-door"  # the id of the door's own question
MISSED = (
    b'{"jsonrpc":"2.0","method":"notice/posted","params":{"notice":{"code":"events_dropped","count":0,"message":'
    b'"events may have been dropped while one daemon followed another; ask workspace/changes"},"revision":%d}}'
)


class ReaderGone(Exception):  # noqa: N818 - this is how a door is closed
    """Nobody reads what comes down."""


class Doorway:
    """A client on two descriptors, and one daemon after another."""

    def __init__(self, way: Way, *, source: int, sink: int) -> None:
        self._way = way
        self._sink = sink
        self._known = session.Session()
        self._upward = upward.Upward(source, self._known, self._answer)
        self._saying = _thread.allocate_lock()  # one at a time says something downward
        self._garbled = False  # what the daemon says is no messages
        self._served = False  # this daemon greeted back
        self._useful = False  # and gave a result
        self._turned_away = False  # the last that it said is that it cannot go on with this client

    def run(self) -> None:
        """Be the door until one side ends. Raises what the way raises when there is no daemon to be had."""
        sock = self._way.first()
        _thread.start_new_thread(self._upward.carry, ())
        try:
            while self._serve(sock):
                sock = self._way.another()
        except ReaderGone:
            return
        finally:
            self._say_last_words()

    def _serve(self, sock: socket) -> bool:
        """One daemon, from the greeting to its end. Whether the client needs another."""
        began = time.monotonic()
        self._served = self._useful = self._turned_away = False
        self._upward.meet(sock, patience=GREETING_SECONDS if self._known.greeted else None)
        self._carry_down(sock)
        self._upward.part(sock)
        if self._known.over:
            return False
        self._fail_what_is_under_way()
        if self._garbled or self._upward.raw or self._turned_away or self._is_over():
            return False
        if self._useful or time.monotonic() - began > STEADY_SECONDS:
            self._way.tries = 0
        self._way.look_back(served=self._served)
        # Its end may have been asked for, so the next one is not started before anybody needs it.
        while not (self._is_needed() or self._is_over()):
            self._upward.wait()
        return not self._is_over()

    def _is_needed(self) -> bool:
        """Whether a daemon is needed before the client says anything more."""
        return self._upward.waiting or self._known.wants_events or self._known.unanswered_greeting

    def _is_over(self) -> bool:
        known = self._known
        return known.over or known.closing or (self._upward.ended and not known.unanswered_greeting)

    def _fail_what_is_under_way(self) -> None:
        lost = self._known.flight.fail()
        if not self._garbled:
            self._say(lost)

    def _say_last_words(self) -> None:
        """Whatever ends the door, nobody waits in vain for an answer."""
        known = self._known
        if known.over:
            return
        waiting = [(number, method) for _, number, method in self._upward.unsent if number is not None]
        if known.unanswered_greeting and known.number is not None:
            waiting.insert(0, (known.number, "initialize"))
        try:
            self._fail_what_is_under_way()
            self._say(b"".join(session.failed(number, method) for number, method in waiting))
        except ReaderGone:
            pass  # then nobody waits

    def _carry_down(self, sock: socket) -> None:
        """Until the daemon hangs up. What it did not say to its end is dropped."""
        known = self._known
        frames = envelopes.Frames()
        while chunk := _receive(sock):
            data, spans = frames.feed(chunk)
            if known.awaited is not None:
                self._say(b"".join(self._greeted_by(data, spans)))
            elif spans:
                self._settle(data, spans)
                self._say(memoryview(data)[: spans[-1][1]])
            if frames.fault:
                self._garbled = True
                self._say(frames.take_rest())
                while chunk := _receive(sock):
                    self._say(chunk)

    def _settle(self, data: bytes, spans: list[tuple[int, int]]) -> None:
        """Take down what this answers."""
        told = [envelopes.told(data, start, end) for start, end in spans]
        self._useful = self._known.hear(told) or self._useful
        self._turned_away = told[-1] == (envelopes.REFUSAL, None)

    def _greeted_by(self, data: bytes, spans: list[tuple[int, int]]) -> list[bytes]:
        """What the client gets to hear of this while an answer is awaited."""
        known = self._known
        heard: list[bytes] = []
        begin = 0
        for start, end in spans:
            frame, begin = data[begin:end], end
            kind, number = envelopes.told(data, start, end)
            if known.awaited is None or kind not in envelopes.ANSWERS or number not in (known.awaited, None):
                self._settle(data, [(start, end)])
                heard.append(frame)
            elif known.greeted:
                heard += self._greeted_again(kind, envelopes.whole(data[start:end]))
            else:
                heard.append(frame)
                self._turned_away = number is None
                if number is not None:
                    self._served = True
                    known.be_greeted(accepted=kind == envelopes.RESULT)
                self._upward.open()
        return heard

    def _greeted_again(self, kind: str, message: dict[str, Any]) -> list[bytes]:
        """A successor hears what its predecessor knew; the client hears that it may have missed something."""
        known = self._known
        if kind != envelopes.RESULT:
            raise self._way.give_up(f"the next daemon does not take this client: {envelopes.sentence_of(message)}")
        heard: list[bytes] = []
        if known.awaited == STATUS:
            heard.append(envelopes.frame(MISSED % envelopes.revision_of(message)))
        else:
            self._upward.tell(known.retelling())
            if known.wants_events:
                known.awaited = STATUS
                self._upward.tell(envelopes.question(STATUS, "workspace/status"))
                return heard
        known.awaited = None
        self._served = True
        self._upward.open()
        return heard

    def _say(self, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        try:
            with self._saying:
                while rest:
                    rest = rest[os.write(self._sink, rest) :]
        except OSError:
            raise ReaderGone from None

    def _answer(self, data: bytes) -> None:
        """The same on the upward thread, which goes on without a reader until the other one notices."""
        try:
            self._say(data)
        except ReaderGone:
            pass


def _receive(sock: socket) -> bytes:
    try:
        return sock.recv(CHUNK)
    except OSError:
        return b""  # it died with something of ours unread, or takes too long
