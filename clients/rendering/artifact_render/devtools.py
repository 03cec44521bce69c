"""Speaks the DevTools protocol over a pair of pipes: JSON messages that end in NUL. No port is opened for it."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable
from time import monotonic
from typing import Any

from artifact_render.failures import RenderError
from artifact_render.limits import MESSAGE_BYTES

_CHUNK = 1 << 18


def _nothing(_method: str, _params: dict[str, Any], _session: str) -> None:
    """Until somebody listens."""


class HungUp(Exception):  # noqa: N818 - the browser's keeper knows why
    """The browser is gone."""


class DevTools:
    """One conversation with a browser until a deadline. Events go to `on_event(method, params, session)`.

    Every method raises HungUp, and RenderError: `timed_out` at the deadline, `failed` when the browser says no.
    """

    def __init__(self, reading: int, writing: int, *, deadline: float) -> None:
        self._reading, self._writing, self._deadline = reading, writing, deadline
        self._came = bytearray()
        self._seen = 0  # how far into what came there is no NUL
        self._count = 0
        self.on_event: Callable[[str, dict[str, Any], str], None] = _nothing
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)

    def call(self, method: str, params: dict[str, Any] | None = None, *, session: str = "") -> dict[str, Any]:
        """Ask, and take what happens meanwhile, until the answer is there."""
        number = self.tell(method, params, session=session)
        while True:
            message = self._receive()
            if message.get("id") != number:
                self._take(message)
            elif "error" in message:
                raise RenderError("failed", f"the browser refused {method}: {message['error'].get('message')}")
            else:
                return message["result"]

    def tell(self, method: str, params: dict[str, Any] | None = None, *, session: str = "") -> int:
        """Ask without waiting for the answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        self._send(json.dumps(message).encode() + b"\0")
        return self._count

    def until(self, reached: Callable[[], bool]) -> None:
        """Take what happens until that is so."""
        while not reached():
            self._take(self._receive())

    def idle(self, seconds: float) -> None:
        """Let a moment pass, or less when something happens."""
        select.select([self._reading], [], [], seconds)

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self.on_event(message["method"], message.get("params") or {}, message.get("sessionId", ""))

    def _send(self, frame: bytes) -> None:
        rest = memoryview(frame)
        while rest:
            self._wait(self._writing, select.POLLOUT)
            try:
                rest = rest[os.write(self._writing, rest) :]
            except BlockingIOError:
                continue
            except OSError:
                raise HungUp from None

    def _receive(self) -> dict[str, Any]:
        while (end := self._came.find(b"\0", self._seen)) < 0:
            self._seen = len(self._came)
            if self._seen > MESSAGE_BYTES:
                raise RenderError("too_large", "the result is larger than the browser may hand over")
            self._wait(self._reading, select.POLLIN)
            chunk = os.read(self._reading, _CHUNK)
            if not chunk:
                raise HungUp
            self._came += chunk
        body = bytes(self._came[:end])
        del self._came[: end + 1]
        self._seen = 0
        return json.loads(body)

    def _wait(self, descriptor: int, event: int) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        if not poll.poll(max(0.0, self._deadline - monotonic()) * 1000):
            raise RenderError("timed_out", "the browser took too long over the page")
