"""Long work lets others have their turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Iterator

import pytest

from sidecar.pacing import LONG_WHILE, SECONDS_AT_ONCE, Pace, at_once, paced, to_its_end, unhurried


async def turns_of_others(*, working: float) -> int:
    """How many turns others had while ten pieces of work took this long each, by the loop's own clock."""
    loop = asyncio.get_running_loop()
    turns, pace = 0, Pace()
    await pace.rest()

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    running = asyncio.create_task(others())
    for _ in range(10):
        until = loop.time() + working
        while loop.time() < until:
            pass
        await pace.rest()
    running.cancel()
    return turns


async def test_work_that_takes_long_pauses() -> None:
    assert await turns_of_others(working=2 * SECONDS_AT_ONCE) >= 9


async def test_work_that_is_done_soon_does_not() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    turns = await turns_of_others(working=0.0)
    assert turns <= (loop.time() - began) / SECONDS_AT_ONCE


def counting(upto: int) -> Generator[None, None, int]:
    for _ in range(upto):
        yield
    return upto


async def test_paced_work_rests_at_its_pauses_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.pacing.SECONDS_AT_ONCE", -1.0)
    work, rests = asyncio.ensure_future(paced(counting(10))), 0
    while not work.done():
        await asyncio.sleep(0)
        rests += 1
    assert work.result() == 10
    assert rests >= 10
    assert at_once(counting(10)) == 10


async def test_work_to_its_end_is_done_although_nobody_waits_any_more() -> None:
    begun, go, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await go.wait()
        done.set()

    waiting = asyncio.ensure_future(to_its_end(work()))
    await begun.wait()
    waiting.cancel()
    asyncio.get_running_loop().call_soon(go.set)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert done.is_set()


def test_pieces_come_as_they_are_and_long_ones_are_rested_after(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    monkeypatch.setattr("sidecar.pacing.time.sleep", rests.append)

    def pieces() -> Iterator[bytes]:
        yield b"short"
        until = time.thread_time() + 2 * LONG_WHILE
        while time.thread_time() < until:
            pass
        yield b"long"

    assert list(unhurried(pieces())) == [b"short", b"long"]
    assert len(rests) == 1
    assert rests[0] >= 2 * LONG_WHILE
