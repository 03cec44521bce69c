"""What all connections of one process share: the table of methods, the way out for results, the limits, who listens."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sidecar.core import limits
from sidecar.hands import Threads
from sidecar.server.caller import Caller, Client
from sidecar.server.holdings import Holdings
from sidecar.server.lsp import Editors
from sidecar.server.requestlog import RequestLog
from sidecar.server.routes import Route

Tap = Callable[[Client, str, bytes], None]
"""Gets each body with its direction, `in` or `out`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of one connection. Sizes are bytes, times are seconds."""

    header_bytes: int = limits.HEADER_BYTES
    message_bytes: int = limits.MESSAGE_BYTES
    message_values: int = limits.MESSAGE_VALUES
    in_flight: int = limits.REQUESTS_IN_FLIGHT
    bytes_in_flight: int = limits.BYTES_IN_FLIGHT
    bulky_at_once: int = limits.BULKY_AT_ONCE
    soft_bytes: int = limits.OUT_SOFT_BYTES
    hard_bytes: int = limits.OUT_HARD_BYTES
    frame_seconds: float = limits.FRAME_SECONDS
    frame_step_bytes: int = limits.FRAME_STEP_BYTES
    messages_at_once: int = limits.MESSAGES_AT_ONCE
    seconds_at_once: float = limits.SECONDS_AT_ONCE
    linger_seconds: float = 5.0  # a client that was told goodbye and does not read it is cut off after this
    glance_seconds: float = 0.5  # how often a client that is not being read is looked at: is it still there?


class Guest(Protocol):
    """A connection, as far as those care who keep the list of them."""

    @property
    def client(self) -> Client: ...

    @property
    def queued(self) -> int: ...

    def notify(self, method: str, params: bytes) -> bool: ...


def nobody(guest: Guest) -> None:
    """Nobody keeps a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Made once by the daemon. `encode` gives a result's JSON, in pieces perhaps, cut to a role; `hello` gives what
    `initialize` answers under `capabilities.experimental.artifact_sidecar`; `revision` is the latest durable change.
    """

    routes: Mapping[str, Route]
    encode: Callable[[object, str], bytes | list[bytes]]
    hello: Callable[[Caller], Mapping[str, Any]]
    revision: Callable[[], int]
    editors: Editors
    joined: Callable[[Guest], None] = nobody  # as soon as it is connected; `client.events` is empty until `initialize`
    left: Callable[[Guest], None] = nobody
    tap: Tap | None = None
    bounds: Bounds = Bounds()
    log: RequestLog = field(default_factory=RequestLog)
    parsing: Threads = field(default_factory=lambda: Threads(1, "parse"))  # one, since it has the interpreter to itself
    holdings: Holdings = field(default_factory=Holdings)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
