"""The threads that do what blocks, so that the loop never does: each kind of work has its own, and holds up no other.

They hand values back; none touches the workspace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sidecar.core import limits

T = TypeVar("T")


class Hands:
    """Runs blocking work off the loop, until `let_go`."""

    def __init__(self) -> None:
        self._hands = ThreadPoolExecutor(2, thread_name_prefix="hand")
        self._eyes = ThreadPoolExecutor(1, thread_name_prefix="look")  # no read, however long, holds up a look
        self._searchers = ThreadPoolExecutor(2, thread_name_prefix="search")
        self._bringers = ThreadPoolExecutor(limits.REHOSTS_AT_ONCE, thread_name_prefix="bring")

    async def off_loop(self, work: Callable[..., T], *args: Any) -> T:
        """Run blocking work in one of the hands."""
        return await asyncio.get_running_loop().run_in_executor(self._hands, work, *args)

    async def search(self, work: Callable[[], T]) -> T:
        """Run a search in a hand of its own, so that a slow one holds up neither looks nor reads."""
        return await asyncio.get_running_loop().run_in_executor(self._searchers, work)

    async def bring(self, work: Callable[..., T], *args: Any) -> T:
        """Write a file that waits for the disk: those that wait together are synced together."""
        return await asyncio.get_running_loop().run_in_executor(self._bringers, work, *args)

    async def see(self, work: Callable[..., T], *args: Any) -> T:
        """Do a part of a look; one after the other."""
        return await asyncio.get_running_loop().run_in_executor(self._eyes, work, *args)

    def let_go(self) -> None:
        """Begin nothing any more, and wait for nobody."""
        for threads in (self._hands, self._eyes, self._searchers, self._bringers):
            threads.shutdown(wait=False, cancel_futures=True)
