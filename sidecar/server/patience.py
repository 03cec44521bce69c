"""How long a client may keep the daemon waiting, and how it is noticed that there is none any more."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable


class FrameDeadline:
    """A frame has so many seconds from its first byte to its last, a long one for each step of `step` bytes.

    They are counted in looks at the clock. A daemon that stands still for a while, being frozen or short of a
    processor, counts one look for all that time: what it could not read meanwhile is not the client's delay. One timer
    serves many frames.
    """

    LOOKS = 30  # from a step to the next

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, late: Callable[[], None], *, step: int) -> None:
        self._loop = loop
        self._seconds = seconds
        self._step = step
        self._late = late
        self._looks = 0  # that are left; 0 when no frame is unfinished
        self._bytes = 0  # since the step began
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """A frame has begun."""
        self._bytes = 0
        self._looks = self.LOOKS
        if self._timer is None:
            self._look_later()
        else:
            self._looks += 1  # the next one is a part of its time away

    def more(self, size: int) -> None:
        """So many bytes more of a frame have come."""
        self._bytes += size
        if self._looks == 0 or self._bytes >= self._step:
            self.begin()

    def end(self) -> None:
        """No frame is unfinished."""
        self._looks = 0

    def close(self) -> None:
        self._looks = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(self._seconds / self.LOOKS, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._looks == 0:
            return
        self._looks -= 1
        if self._looks:
            self._look_later()
        else:
            self._late()


class Glances:
    """Looks now and then whether the other end still exists.

    While a client is not being read nobody tells us that it is gone, and its work would go on for nothing.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, *, needed: Callable[[], bool], gone: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._seconds = seconds
        self._needed = needed
        self._gone = gone
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def close(self) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def begin(self) -> None:
        """Look until it is no longer needed."""
        if self._timer is None and self._transport is not None:
            self._timer = self._loop.call_later(self._seconds, self._glance)

    def see_gone(self) -> bool:
        """Whether the other end is closed both ways. A client that closed its way out only is still there."""
        socket = self._transport and self._transport.get_extra_info("socket")
        if socket is None:
            return True
        poll = select.poll()
        poll.register(socket.fileno(), 0)  # hang-up and error are told without being asked for
        return bool(poll.poll(0))

    def _glance(self) -> None:
        self._timer = None
        if not self._needed():
            return
        if self.see_gone():
            self._gone()
        else:
            self.begin()
