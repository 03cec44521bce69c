"""States of files that are on their way to the journal: what is settled before they arrive would bury them."""

from __future__ import annotations

from collections.abc import Iterable


class Arrivals:
    """How many states of a file are on their way, by physical path."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def expect(self, path: str) -> None:
        self._counts[path] = self._counts.get(path, 0) + 1

    def arrived(self, path: str) -> None:
        others = self._counts.pop(path, 1) - 1
        if others:
            self._counts[path] = others

    def any_of(self, paths: Iterable[str]) -> bool:
        return not self._counts.keys().isdisjoint(paths)

    def clear(self) -> None:
        """The journal refused them all."""
        self._counts.clear()
