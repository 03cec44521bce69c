"""Long work lets others have their turn."""

from __future__ import annotations

import asyncio

from sidecar.pacing import SECONDS_AT_ONCE, Pace


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
