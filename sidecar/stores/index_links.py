"""Connections that wait for their next use, a few at most; whoever finds none makes one in its own thread.

No thread of ours opens connections behind anybody's back: why one could not be had is told to whoever wanted it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

L = TypeVar("L")

SPARE = 4


class Links(Generic[L]):
    """A stock of links. `discard` must not raise."""

    def __init__(self, discard: Callable[[L], None], *, spare: int = SPARE) -> None:
        self._discard = discard
        self._spare = spare
        self._lock = threading.Lock()
        self._waiting: list[L] = []
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def take(self) -> L | None:
        """The link that was used last, or None when a new one is to be made."""
        with self._lock:
            return self._waiting.pop() if self._waiting else None

    def give_back(self, link: L) -> None:
        """Keep a link that is whole for its next use; what is too many is discarded."""
        with self._lock:
            kept = not self._closed and len(self._waiting) < self._spare
            if kept:
                self._waiting.append(link)
        if not kept:
            self._discard(link)

    def discard(self, link: L) -> None:
        """Let go of a link that may be broken."""
        self._discard(link)

    def discard_waiting(self) -> None:
        """Let go of all that wait: one was found broken, so the others of its time are as well."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for link in waiting:
            self._discard(link)

    def close(self) -> None:
        """Keep none any more. Those in use are discarded when they come back."""
        with self._lock:
            self._closed = True
        self.discard_waiting()
