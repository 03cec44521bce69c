"""What a door remembers of its client's session, so that another daemon can take it over. No I/O.

A daemon keeps five things for a connection: who it is (told again), the documents that are open in an editor (told
again), requests under way (failed), half a citation stream (failed when it goes on), and questions of its own that are
not answered yet (a late answer is dropped, since the next daemon counts its questions from one as well).
"""

from __future__ import annotations

import _thread

if __package__:
    from sidecar.server import envelopes
else:
    envelopes = __import__("envelopes")  # the door runs as a file by itself, and this one lies beside it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Sent = tuple[int, int | str | None, str]
    Told = tuple[str, int | str | None]

FLIGHT = 65_536  # far more than any daemon takes at once
STREAMS = 1024
DOCUMENTS_BYTES = 64 * 1024 * 1024

_OPEN, _CHANGE, _CLOSE = "textDocument/didOpen", "textDocument/didChange", "textDocument/didClose"
_STREAM = "citations/stream"

# What the door has to look at more closely than at all the rest.
SPECIAL = frozenset({"initialize", "initialized", "shutdown", "exit", _STREAM, _OPEN, _CHANGE, _CLOSE})

# What takes a `request_id`. Of a request under way only the method is kept, so one of these may have come without.
REPEATABLE = frozenset(
    {
        "turn/begin",
        "turn/end",
        "turn/feedback",
        "call/begin",
        "call/end",
        "artifact/read",
        "artifact/write",
        "artifact/patch",
        "artifact/hide",
        "sources/merge",
        "assets/pull",
        "timeline/append",
        "timeline/compact",
        "conversation/save",
        "context/bind",
        "context/map_slots",
    }
)

LOST = "whether it was done is not known; if it carried a request_id, repeat it with the same: it is done only once"
UNSURE = "ask again; whether it changed anything is not known"
CUT_OFF = "the daemon that held the beginning of this stream has ended; send the whole text again, as a new stream"


class Flight:
    """The requests that were sent and not answered, by id. Two threads use it."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._methods: dict[int | str, list[str]] = {}  # several under one id, which the daemon will refuse

    def begin(self, sent: Iterable[Sent]) -> None:
        """These are being sent: `(where it ends, id, method)`, the id None for what has no answer."""
        known = self._methods
        with self._lock:
            for _, number, method in sent:
                if number in known:
                    known[number].append(method)
                elif number is not None:
                    known[number] = [method]
            while len(known) > FLIGHT:  # of a client whose requests cannot be answered
                del known[next(iter(known))]

    def take_back(self, sent: Iterable[Sent]) -> None:
        """These were not sent after all."""
        self.end(number for _, number, _ in sent)

    def end(self, numbers: Iterable[int | str | None]) -> None:
        """Answers have come. None is the id of no request."""
        with self._lock:
            for number in numbers:
                methods = self._methods.pop(number, None)  # type: ignore[arg-type]
                if methods is not None and number is not None and len(methods) > 1:
                    methods.pop()
                    self._methods[number] = methods

    def fail(self) -> bytes:
        """The answers in place of a daemon that will give none. Nothing is under way afterwards."""
        with self._lock:
            lost, self._methods = self._methods, {}
        return b"".join(failed(number, method) for number, methods in lost.items() for method in methods)


def failed(number: int | str, method: str) -> bytes:
    """The answer to a request whose daemon has ended. A session that was to be shut down is, so that is no failure."""
    if method == "shutdown":
        return envelopes.frame(b'{"jsonrpc":"2.0","id":%b,"result":null}' % envelopes.written(number))
    hint = LOST if method in REPEATABLE else UNSURE
    return envelopes.refusal(number, "shutting_down", "the daemon ended before it answered", about=method, hint=hint)


def cut_off(number: int | str) -> bytes:
    """The answer to what goes on with a citation stream that its daemon has taken with it."""
    sentence = "the daemon that held the beginning of the stream has ended"
    return envelopes.refusal(number, "shutting_down", sentence, about=_STREAM, hint=CUT_OFF)


class Session:
    """One client, through the lives of any number of daemons. `life` counts them.

    The upward thread says what the client said, the downward one what the daemon said. `awaited` is the id of the
    answer without which nothing goes on.
    """

    def __init__(self) -> None:
        self.life = 0
        self.flight = Flight()
        self.awaited: int | str | None = None
        self.hello: bytes | None = None  # the frame of `initialize`, as soon as it was sent
        self.number: int | str | None = None  # and its id
        self.greeted = False  # the client was answered, so it hears of no later greeting
        self.wants_events = False
        self.closing = False  # it asked for `shutdown`
        self.over = False  # it said `exit`
        self._initialized = b""
        self._documents: dict[str, list[bytes]] = {}
        self._weight = 0
        self._streams: dict[str, int] = {}
        self._lock = _thread.allocate_lock()  # of the two that follow
        self._asked: dict[int | str, int] = {}
        self._stale: dict[int | str, int] = {}

    # The greeting

    def greet(self, number: int | str, message: dict[str, Any], frame: bytes) -> None:
        """The client says `initialize`."""
        self.hello, self.number, self.awaited = frame, number, number
        options = _object(_object(message.get("params")).get("initializationOptions"))
        self.wants_events = bool(options.get("events"))

    def be_greeted(self, *, accepted: bool) -> None:
        """The client's own `initialize` was answered. When it was refused, it may try another one."""
        self.awaited = None
        self.greeted = accepted
        if not accepted:
            self.hello = self.number = None

    @property
    def unanswered_greeting(self) -> bool:
        return self.hello is not None and not self.greeted

    def retelling(self) -> bytes:
        """What follows the greeting of another daemon, in the order in which it was said."""
        return b"".join((self._initialized, *(frame for frames in self._documents.values() for frame in frames)))

    # What the client says

    def announce(self, method: str) -> None:
        """One of SPECIAL is about to be sent."""
        self.closing = self.closing or method == "shutdown"
        self.over = self.over or method == "exit"

    def note(self, method: str, message: dict[str, Any], frame: bytes) -> None:
        """One of SPECIAL was sent: remember what the next daemon has to know of it."""
        params = _object(message.get("params"))
        if method == "initialized":
            self._initialized = frame
        elif method == _STREAM:
            self._note_stream(params)
        elif method in (_OPEN, _CHANGE, _CLOSE) and self.greeted:
            uri = _object(params.get("textDocument")).get("uri")
            if isinstance(uri, str):
                self._note_document(method, uri, frame)

    def is_cut_off(self, method: str, message: dict[str, Any]) -> bool:
        """Whether this goes on with a citation stream that an earlier daemon has taken with it. Said once for each."""
        stream = _object(message.get("params")).get("stream_id") if method == _STREAM else None
        if not isinstance(stream, str) or self._streams.get(stream, self.life) == self.life:
            return False
        del self._streams[stream]
        return True

    def _note_stream(self, params: dict[str, Any]) -> None:
        stream = params.get("stream_id")
        if not isinstance(stream, str):
            return
        self._streams.pop(stream, None)
        if not params.get("flush"):
            self._streams[stream] = self.life
        if len(self._streams) > STREAMS:
            del self._streams[next(iter(self._streams))]

    def _note_document(self, method: str, uri: str, frame: bytes) -> None:
        """Keep what makes a document again. One that takes the client over the limit is not kept any longer."""
        if method != _CHANGE:
            self._weight -= sum(map(len, self._documents.pop(uri, ())))
        if method == _OPEN:
            self._documents[uri] = []
        if method == _CLOSE or uri not in self._documents:
            return
        self._documents[uri].append(frame)
        self._weight += len(frame)
        if self._weight > DOCUMENTS_BYTES:
            self._weight -= sum(map(len, self._documents.pop(uri)))

    # What the daemon says

    def hear(self, told: Iterable[Told]) -> bool:
        """Take down what was answered and asked. Whether there was a result among it."""
        answered: list[int | str | None] = []
        useful = False
        for kind, number in told:
            if kind == envelopes.RESULT:
                useful = True
                answered.append(number)
            elif kind == envelopes.REFUSAL:
                answered.append(number)
            elif kind == envelopes.QUESTION and number is not None:
                with self._lock:
                    self._asked[number] = self._asked.get(number, 0) + 1
        if answered:
            self.flight.end(answered)
        return useful

    def answers_nobody(self, number: int | str) -> bool:
        """Whether this answer of the client is to a daemon that is no more. Otherwise it is counted as given."""
        with self._lock:
            for questions in (self._stale, self._asked):
                if left := questions.pop(number, 0):
                    if left > 1:
                        questions[number] = left - 1
                    return questions is self._stale
        return False

    def begin_life(self) -> None:
        """Another daemon takes over; it has to be greeted if its predecessor was."""
        self.life += 1
        self.awaited = self.number
        with self._lock:
            for number, count in self._asked.items():
                self._stale[number] = self._stale.get(number, 0) + count
            self._asked = {}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
