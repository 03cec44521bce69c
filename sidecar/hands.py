"""The threads that do what blocks, so that the loop never does: each kind of work has its own, and holds up no other.

They hand values back; none touches the workspace. Who waits for one waits for what is under way, never for all that
another client asked before: next comes whoever has had the least of these threads' time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from sidecar.core import limits

T = TypeVar("T")

ASKER: ContextVar[int] = ContextVar("asker", default=0)
"""The number of the client whose request this task serves; 0 for what the daemon does by itself."""

ACCOUNTS_KEPT = 1024
TURN_SECONDS, AHEAD_SECONDS, BEHIND_SECONDS = 0.0002, 0.2, 0.01  # of a processor's time


class Threads:
    """Some threads for many askers, each of whom has a queue. Everything is called on the loop's thread.

    An account is how much processor time somebody has had here, and a little for each turn; whoever has had the least
    is next. One who is new begins a bit behind them all; one who asked for little, or for nothing in a while, is not
    much ahead.
    """

    def __init__(self, count: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._free = count
        self._waiting: dict[int, dict[asyncio.Future[None], None]] = {}  # of each asker, in order
        self._accounts: dict[int, float] = {}  # seconds
        self._most = 0.0  # the largest account

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Do the work in one of the threads when its asker's turn has come."""
        loop, asker = asyncio.get_running_loop(), ASKER.get()
        if self._free:
            self._free -= 1
        else:
            await self._turn(asker, loop)
        spent: list[float] = []
        try:
            done = self._threads.submit(_timed, spent, work, *args)
        except RuntimeError:  # they were let go
            self._next()
            raise
        try:
            return await asyncio.wrap_future(done)
        finally:
            self._charge(asker, TURN_SECONDS + sum(spent))
            if done.done():
                self._next()
            else:  # it was given up, which ends no thread
                done.add_done_callback(partial(self._next_soon, loop))
            del done  # whose failure knows this frame: what it was given would stay until a collection

    def let_go(self) -> None:
        """Begin nothing any more, and wait for nobody."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for turn in chain.from_iterable(self._waiting.values()):
            turn.cancel()

    async def _turn(self, asker: int, loop: asyncio.AbstractEventLoop) -> None:
        turn: asyncio.Future[None] = loop.create_future()
        self._accounts.setdefault(asker, self._most + BEHIND_SECONDS)
        self._waiting.setdefault(asker, {})[turn] = None
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(asker, turn)
            else:  # it came at this very moment, and is somebody else's now
                self._next()
            raise

    def _next(self) -> None:
        """A thread is free: it goes to whoever has had the least."""
        while self._waiting:
            asker = min(self._waiting, key=lambda one: self._accounts.get(one, self._most))
            turn = next(iter(self._waiting[asker]))
            self._forget(asker, turn)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _charge(self, asker: int, seconds: float) -> None:
        account = max(self._accounts.get(asker, self._most), self._most - AHEAD_SECONDS) + seconds
        if len(self._accounts) > ACCOUNTS_KEPT:
            self._accounts.clear()
        self._accounts[asker] = account
        self._most = max(self._most, account)

    def _forget(self, asker: int, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(asker, {})
        queue.pop(turn, None)
        if not queue:
            self._waiting.pop(asker, None)

    def _next_soon(self, loop: asyncio.AbstractEventLoop, _: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it all who waited
            loop.call_soon_threadsafe(self._next)


def _timed(spent: list[float], work: Callable[..., T], *args: Any) -> T:
    began = time.thread_time()  # not by the clock: beside a flood even little takes long
    try:
        return work(*args)
    finally:
        spent.append(time.thread_time() - began)


class Hands:
    """Runs blocking work off the loop, until `let_go`."""

    def __init__(self) -> None:
        self._hands = Threads(2, "hand")
        self._eyes = Threads(1, "look")  # no read, however long, holds up a look
        self._searchers = Threads(2, "search")
        self._readers = Threads(2, "read")
        self._scribes = Threads(2, "write")
        self._bringers = Threads(limits.REHOSTS_AT_ONCE, "bring")

    async def off_loop(self, work: Callable[..., T], *args: Any) -> T:
        """Run blocking work in one of the hands."""
        return await self._hands.run(work, *args)

    async def read_long(self, work: Callable[..., T], *args: Any) -> T:
        """Read what is long, so that what is short need not wait for it."""
        return await self._readers.run(work, *args)

    async def write_long(self, work: Callable[..., T], *args: Any) -> T:
        """Say or write what may be all that is known, so that what is short need not wait for it."""
        return await self._scribes.run(work, *args)

    async def search(self, work: Callable[[], T]) -> T:
        """Run a search in a hand of its own, so that a slow one holds up neither looks nor reads."""
        return await self._searchers.run(work)

    async def bring(self, work: Callable[..., T], *args: Any) -> T:
        """Write a file that waits for the disk: those that wait together are synced together."""
        return await self._bringers.run(work, *args)

    async def see(self, work: Callable[..., T], *args: Any) -> T:
        """Do a part of a look; one after the other."""
        return await self._eyes.run(work, *args)

    def let_go(self) -> None:
        """Begin nothing any more, and wait for nobody."""
        for threads in (self._hands, self._readers, self._scribes, self._eyes, self._searchers, self._bringers):
            threads.let_go()
