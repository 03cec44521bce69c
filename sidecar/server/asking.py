"""The daemon's own questions to a client, and which of its answers they belong to.

Ids of ours begin with `s:` and live in a table of their own, so that a client can neither answer its own request nor
one that another client was asked.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

ANSWER_SECONDS = 60.0  # how long a client may take


class NoAnswer(Exception):  # noqa: N818 - what became of a question
    """The client answered with an error, not in time, or not at all."""


class Questions:
    """What one client was asked and has not answered. Used on the loop's thread only."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: dict[str, tuple[Future[Any], asyncio.TimerHandle]] = {}

    def ask(self) -> tuple[str, Future[Any]]:
        """An id for a new question, and the future that gets the result or NoAnswer."""
        number, future = f"s:{next(self._numbers)}", Future[Any]()
        late = asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._fail, number, "the client took too long")
        self._open[number] = (future, late)
        return number, future

    def settle(self, message: Mapping[str, Any]) -> bool:
        """Take an answer. False when nothing was asked under its id, or it was answered already."""
        number = message.get("id")
        if not isinstance(number, str) or number not in self._open:
            return False
        if "error" in message:
            self._fail(number, "the client answered with an error")
        elif (future := self._take(number)) is not None:
            future.set_result(message.get("result"))
        return True

    def close(self) -> None:
        """Nobody will answer any more."""
        for number in tuple(self._open):
            self._fail(number, "the client is gone")

    def _take(self, number: str) -> Future[Any] | None:
        """The future that waits under this id, or None when whoever asked has given up."""
        future, late = self._open.pop(number)
        late.cancel()
        return future if future.set_running_or_notify_cancel() else None

    def _fail(self, number: str, why: str) -> None:
        if (future := self._take(number)) is not None:
            future.set_exception(NoAnswer(why))
