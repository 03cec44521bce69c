"""Who asks, and with which request: what a handler sees of the client.

`Client` is as long as the connection, `Caller` as long as one request. A handler keeps what belongs to the connection
(`synced`, `streams`, `on_close`) through its caller, and reports progress without knowing whether anybody listens.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

import orjson

from sidecar.server.peer import Peer

REPORT_SECONDS = 0.1  # at most ten reports a second go out; a faster one is left out


@dataclass(slots=True)
class Client:
    """One connection, as long as it lasts. `labels` and `events` are what `initialize` brought."""

    id: int
    role: str
    peer: Peer
    labels: dict[str, str] = field(default_factory=dict[str, str])
    events: frozenset[str] = frozenset()
    synced: int = 0
    streams: dict[str, Any] = field(default_factory=dict[str, Any])
    kept: int = 0  # characters that the streams hold back
    farewells: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    channel: str = ""  # the name that the kernel has for the other end of its socket
    call: str = ""  # the call that the runtime bound it to
    telling: asyncio.Future[None] | None = None  # blocks of an earlier request are still being looked through

    def let_go(self) -> None:
        """Of what handlers keep for the connection, which is over."""
        self.streams.clear()
        self.kept = 0


class Post(Protocol):
    """Where notifications to the client go. Both are called on the loop's thread only."""

    def post(self, method: str, params: bytes) -> None:
        """Send it, whatever waits already."""
        ...

    def notify(self, method: str, params: bytes) -> bool:
        """Send it unless the client is far behind; the answer says which."""
        ...


class Later:
    """An answer that is known already and given once what it tells of is durable.

    It does without a task, which would cost more than all the rest of a small change.
    """

    __slots__ = ("answer", "durable")

    def __init__(self, durable: asyncio.Future[Any], answer: object) -> None:
        self.durable = durable
        self.answer = answer

    def __await__(self) -> Generator[Any, None, object]:
        yield from self.durable.__await__()
        return self.answer


class Caller:
    """One request under way. `cancelled` turns True when its client gave it up; threads may look at it."""

    __slots__ = (
        "_progress", "about", "began", "cancelled", "client", "method", "params", "post", "request", "role", "size",
        "started", "task", "token",
    )  # fmt: skip

    def __init__(self, client: Client, request: str | int | None, method: str, *, size: int, post: Post) -> None:
        self.client = client
        self.role = client.role
        self.request = request  # the JSON-RPC id, or None for a notification
        self.method = method
        self.size = size  # bytes of the message, held for as long as it is under way
        self.post = post
        self.about = ""  # a handler may name what it was about, for the log
        self.began = perf_counter()
        self.params: object = None
        self.token: str | int | None = None
        self.task: asyncio.Future[Any] | None = None
        self.started = False  # whether the task has taken its first step
        self.cancelled = False
        self._progress: Progress | None = None

    @property
    def id(self) -> int:
        """The number of the connection."""
        return self.client.id

    @property
    def peer(self) -> Peer:
        return self.client.peer

    @property
    def labels(self) -> dict[str, str]:
        """`turn_id` and `tool_call_id` of `initialize`: labels for the log that grant nothing."""
        return self.client.labels

    @property
    def events(self) -> frozenset[str]:
        return self.client.events

    @property
    def streams(self) -> dict[str, Any]:
        """What handlers keep by stream id until the connection ends."""
        return self.client.streams

    @property
    def synced(self) -> int:
        """The revision of this connection's latest sync, or of its connecting."""
        return self.client.synced

    @synced.setter
    def synced(self, revision: int) -> None:
        self.client.synced = revision

    def on_close(self, farewell: Callable[[], None]) -> None:
        """Have it called when the connection is gone."""
        self.client.farewells.append(farewell)

    def progress(self, title: str) -> Progress | Unheard:
        """Begin to tell how far the work is. Nobody hears it unless the request carried a `workDoneToken`.

        A request has one progress; asking again gives the same one. It ends with the request at the latest.
        """
        if self.token is None:
            return UNHEARD
        if self._progress is None:
            self._progress = Progress(self.token, title, post=self.post)
        return self._progress

    def finish(self) -> None:
        """End the progress, since its token is good only until the answer is sent."""
        if self._progress is not None:
            self._progress.end()

    def give_up(self) -> None:
        """Cancel the work. A task that has not begun sees the flag when it does, and closes its coroutine."""
        self.cancelled = True
        if self.started and self.task is not None:
            self.task.cancel()


class Unheard:
    """The progress of a request that asked for none."""

    __slots__ = ()

    def report(self, message: str = "", percentage: int | None = None) -> None:
        """Nobody asked."""

    def end(self, message: str = "") -> None:
        """Nobody asked."""


UNHEARD = Unheard()


class Progress:
    """`$/progress` under one token: begin at once, reports that may be left out, one end that never is.

    Made on the loop's thread; `report` and `end` may be called from any.
    """

    __slots__ = ("_ended", "_last", "_loop", "_post", "_thread", "_token")

    def __init__(self, token: str | int, title: str, *, post: Post) -> None:
        self._token = token
        self._post = post
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._last = 0.0
        self._ended = False
        post.post("$/progress", self._params({"kind": "begin", "title": title, "cancellable": True}))

    def report(self, message: str = "", percentage: int | None = None) -> None:
        """Say how far it is; `percentage` is 0 to 100."""
        now = self._loop.time()
        if now - self._last < REPORT_SECONDS:
            return
        self._last = now
        value: dict[str, object] = {"kind": "report"}
        if message:
            value["message"] = message
        if percentage is not None:
            value["percentage"] = max(0, min(100, percentage))
        self._on_loop(self._report, value)

    def end(self, message: str = "") -> None:
        """Say that it is over. Later calls do nothing."""
        self._on_loop(self._end, {"kind": "end", "message": message} if message else {"kind": "end"})

    def _report(self, value: dict[str, object]) -> None:
        if not self._ended:
            self._post.notify("$/progress", self._params(value))

    def _end(self, value: dict[str, object]) -> None:
        if not self._ended:
            self._ended = True
            self._post.post("$/progress", self._params(value))

    def _params(self, value: dict[str, object]) -> bytes:
        return orjson.dumps({"token": self._token, "value": value})

    def _on_loop(self, do: Callable[[dict[str, object]], None], value: dict[str, object]) -> None:
        if threading.get_ident() == self._thread:
            do(value)
            return
        try:
            self._loop.call_soon_threadsafe(do, value)
        except RuntimeError:
            pass  # the loop is closed, and with it the connection that would have heard of it
