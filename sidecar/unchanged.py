"""Answers that stay right until the next change, for those who ask the same again while nothing happens.

What is kept depends on durable state and on nothing else: no clock, no disk, nothing that is only staged.
"""

from __future__ import annotations

from collections.abc import Hashable

MOST = 1024
LARGEST = 4096  # bytes


class Unchanged:
    """At most `MOST` answers of at most `LARGEST` bytes, all of one revision."""

    def __init__(self) -> None:
        self._revision = -1
        self._answers: dict[Hashable, bytes] = {}

    def get(self, revision: int, asked: Hashable) -> bytes | None:
        """What the same was answered with at this very revision."""
        return self._answers.get(asked) if revision == self._revision else None

    def keep(self, revision: int, asked: Hashable, answer: bytes) -> None:
        """Answer it like this until something changes."""
        if revision != self._revision or len(self._answers) >= MOST:
            self._answers = {}
            self._revision = revision
        if len(answer) <= LARGEST:
            self._answers[asked] = answer
