"""What one client has not been sent yet, and what happens when it does not read.

Answers of one batch leave in one write, and a long one in parts, as fast as the client reads, though never so much at
once that others would notice. Above `soft` bytes queued the connection takes no more requests of that client, and when
it does not read them events to it are dropped. When more than `hard` bytes were put on top of that it is cut off: on
top, as one answer may be longer than `hard` by itself, and who reads it is not to lose the next. So a client that stops
reading costs bounded memory, and neither it nor one that reads much costs another client's time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

LARGE_BYTES = 64 * 1024  # a body of this size is handed over by itself, which saves a copy of it
FLUSH_BYTES = 256 * 1024  # a batch that has grown to this size does not wait for its end
PART_BYTES = 256 * 1024  # of a longer body so much is handed over at once
TURN_BYTES = 512 * 1024  # after so much it is another client's turn


def nobody() -> None:
    """Nobody waits."""


class Outbox:
    """The way out to one client. Everything is called on the loop's thread and nothing waits.

    `left_unread` is called when the client is to be cut off, `caught_up` when it was behind and is no longer.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        soft: int,
        hard: int,
        left_unread: Callable[[], None],
        caught_up: Callable[[], None] = nobody,
    ) -> None:
        self._loop = loop
        self._left_unread = left_unread
        self._caught_up = caught_up
        self._soft = soft
        self._hard = hard
        self._transport: asyncio.Transport | None = None
        self._chunks: deque[bytes | memoryview] = deque()
        self._bytes = 0
        self._on_top = 0  # bytes put since the client was last not behind
        self._flush_is_near = False
        self._resting = False  # it goes on after others had their turn
        self.choked = False  # the client has not read `soft` bytes, until it has read most of them
        self._resumed = asyncio.Event()
        self.dropped = 0  # events left out since the client was last told of it

    @property
    def queued(self) -> int:
        """Bytes that the client has not read, as far as the daemon can see."""
        return 0 if self._transport is None else self._bytes + self._transport.get_write_buffer_size()

    @property
    def behind(self) -> bool:
        """Whether so much is queued that there is to be no more."""
        return self.choked or self._bytes > self._soft

    def open(self, transport: asyncio.Transport) -> None:
        """Begin to send. The transport tells its protocol when `choked` is to change."""
        transport.set_write_buffer_limits(high=self._soft, low=self._soft // 4)
        self._transport = transport

    def close(self) -> None:
        """Nothing is sent from here on; what was put and not flushed is forgotten."""
        self._transport = None
        self._chunks.clear()
        self._bytes = 0

    def hold(self) -> None:
        """A flush will follow at the end of this batch, so that no put needs to order one."""
        self._flush_is_near = True

    def put(self, *chunks: bytes) -> None:
        """Queue the chunks of one frame. A client that left more than `hard` bytes on top unread is cut off instead."""
        if self._transport is None:
            return
        size = sum(map(len, chunks))
        if not self.behind:
            self._on_top = 0
        elif self._on_top <= self._hard:
            self._on_top += size
        else:
            self._left_unread()
            self.close()
            return
        self._bytes += size
        self._chunks += chunks
        if self.choked:
            return  # it leaves when the client has read
        if self._resting:
            return
        if self._bytes > FLUSH_BYTES:
            self._write()
        elif not self._flush_is_near:
            self._flush_is_near = True
            self._loop.call_soon(self.flush)

    def offer(self, *chunks: bytes) -> bool:
        """Queue the chunks, or drop and count them when the client is behind. The answer says which."""
        if self.choked:
            self.dropped += 1
            return False
        self.put(*chunks)
        return True

    async def room(self) -> None:
        """Wait until the client has read most of what it was sent."""
        while self.behind:
            await self._resumed.wait()

    def flush(self) -> None:
        """Hand over as much as the client has room for."""
        self._flush_is_near = False
        if self._chunks and not self.choked and not self._resting:
            self._go_on(was_behind=self.behind)

    def resume(self) -> None:
        """The client has read most of what was handed over."""
        self.choked = False
        if not self._resting:
            self._go_on()

    def _go_on(self, *, was_behind: bool = True) -> None:
        self._resting = False
        self._write()
        if was_behind and not self.behind:
            self._resumed.set()
            self._resumed.clear()
            self._caught_up()

    def finish(self) -> None:
        """Hand over everything: nothing more will be put."""
        self._flush_is_near = False
        while self._chunks and self._transport is not None:
            self._transport.write(self._next())

    def _write(self) -> None:
        left = TURN_BYTES
        while self._chunks and not self.choked and self._transport is not None:
            if left <= 0:
                self._resting = True
                self._loop.call_soon(self._go_on)
                return
            part = self._next()
            left -= len(part)
            self._transport.write(part)

    def _next(self) -> bytes | memoryview:
        """What goes at once: some short chunks together, a long one by itself, of a very long one a part."""
        chunks = self._chunks
        if self._bytes < LARGE_BYTES:
            together = b"".join(chunks)
            chunks.clear()
            self._bytes = 0
            return together
        first = chunks.popleft()
        if len(first) < LARGE_BYTES:
            small, size = [first], len(first)
            while chunks and len(chunks[0]) < LARGE_BYTES and size < PART_BYTES:
                size += len(chunks[0])
                small.append(chunks.popleft())
            first = b"".join(small)
        elif len(first) > PART_BYTES:
            view = memoryview(first)
            chunks.appendleft(view[PART_BYTES:])
            first = view[:PART_BYTES]
        self._bytes -= len(first)
        return first
