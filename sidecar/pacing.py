"""Long work on the loop, with pauses in which others get their turn."""

from __future__ import annotations

import asyncio

SECONDS_AT_ONCE = 0.01


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
