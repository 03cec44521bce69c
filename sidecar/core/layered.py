"""A mapping with the values that are not durable yet on top of those that are.

Decisions are made against what is staged, readers see what is durable (ARCHITECTURE, invariant 4). A staged value
carries the mark of its change, so that settling an older change does not uncover it.
"""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Layered(Generic[K, V]):
    """`durable` is for readers; `latest` is for whoever decides the next change."""

    __slots__ = ("_staged", "durable")

    def __init__(self) -> None:
        self.durable: dict[K, V] = {}
        self._staged: dict[K, tuple[int, V]] = {}

    def latest(self, key: K) -> V | None:
        staged = self._staged.get(key)
        return staged[1] if staged is not None else self.durable.get(key)

    def stage(self, key: K, value: V, mark: int) -> None:
        self._staged[key] = (mark, value)

    def settle(self, key: K, value: V, mark: int) -> None:
        self.durable[key] = value
        staged = self._staged.get(key)
        if staged is not None and staged[0] <= mark:
            del self._staged[key]

    def drop(self) -> None:
        """Forget what is staged: the journal refused it."""
        self._staged.clear()
