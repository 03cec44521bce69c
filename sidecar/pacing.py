"""Long work on the loop, with pauses in which others get their turn, and work that is never left half done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Generator, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

SECONDS_AT_ONCE = 0.0005
LONG_WHILE = 0.005  # seconds


class Pace:
    """Call `rest` in every round of a long loop: it costs next to nothing, and pauses when enough was done at once."""

    __slots__ = ("_rested",)

    def __init__(self) -> None:
        self._rested = 0.0

    async def rest(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._rested > SECONDS_AT_ONCE:
            await asyncio.sleep(0)
            self._rested = loop.time()


async def paced(steps: Generator[None, None, T]) -> T:
    """Do work that pauses at every `yield`, resting whenever enough was done at once; answers what it returns."""
    pace = Pace()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        await pace.rest()


def at_once(steps: Generator[None, None, T]) -> T:
    """The same without any rest."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def unhurried(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces for a thread, which rests after each long while as long as it took: one interpreter runs all."""
    spent, began = 0.0, time.thread_time()
    for piece in pieces:
        spent += time.thread_time() - began
        yield piece
        if spent >= LONG_WHILE:
            time.sleep(spent)
            spent = 0.0
        began = time.thread_time()


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Whoever gives up waiting does not leave a change half done: it is waited for, and then it is or is not."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # whatever it is, nobody waits for it any more
        raise
