"""The heads of all blocks, kept as columns: what a million of them need is a few arrays.

What few values repeat is kept once: type, media type and flags together are the *shape* of a block, and a turn is a
number. It reads like a sequence of heads, each made when it is asked for.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import Any, TypeVar, overload

from sidecar.core.blocks import CALL, FLAGS, MIME, PATH, TS, TURN, TYPE, Head

_AT_ONCE = 1024

Shape = tuple[str, str, int]
V = TypeVar("V", str, Shape)


class Numbered(dict[V, int]):
    """Values and the number of each, in the order they were first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.values_in_order: list[V] = []

    def __missing__(self, value: V) -> int:
        number = self[value] = len(self.values_in_order)
        self.values_in_order.append(value)
        return number


class Heads(Sequence[Head]):
    """Heads by the number of their block."""

    __slots__ = ("_moments", "_shape_of", "_shapes", "_turn_of", "_turns", "calls", "paths")

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.calls: list[str] = []
        self._moments = array("d")
        self._shapes: Numbered[Shape] = Numbered()
        self._shape_of = array("I")
        self._turns: Numbered[str] = Numbered()
        self._turn_of = array("I")

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, at: int) -> Head: ...
    @overload
    def __getitem__(self, at: slice) -> list[Head]: ...
    def __getitem__(self, at: int | slice) -> Head | list[Head]:
        shapes, turns = self._shapes.values_in_order, self._turns.values_in_order
        if isinstance(at, slice):
            columns = (self._shape_of[at], self._turn_of[at], self._moments[at], self.paths[at], self.calls[at])
            return [
                (shapes[shape][0], turns[turn], ts, shapes[shape][1], path, call, shapes[shape][2])
                for shape, turn, ts, path, call in zip(*columns, strict=True)
            ]
        kind, mime, flags = shapes[self._shape_of[at]]
        return kind, turns[self._turn_of[at]], self._moments[at], mime, self.paths[at], self.calls[at], flags

    def __iter__(self) -> Iterator[Head]:
        return chain.from_iterable(self[start : start + _AT_ONCE] for start in range(0, len(self), _AT_ONCE))

    def extend(self, columns: Sequence[Sequence[Any]]) -> list[tuple[str, int]]:
        """Take in heads column by column, in the order of a head's positions.

        Answers how many of them are of one turn, of the next, and so on.
        """
        shapes = zip(columns[TYPE], columns[MIME], columns[FLAGS], strict=True)
        runs = [(turn, len(list(run))) for turn, run in groupby(columns[TURN])]
        for turn, count in runs:
            self._turn_of.extend(array("I", (self._turns[turn],)) * count)
        self._shape_of.extend(map(self._shapes.__getitem__, shapes))
        self._moments.extend(columns[TS])
        same: dict[str, str] = {}  # blocks of one call stand together: one text for them
        self.calls.extend(map(same.setdefault, columns[CALL], columns[CALL]))
        self.paths.extend(columns[PATH])
        return runs

    def mark(self, number: int, flags: int) -> None:
        """The block has these flags from now on."""
        kind, mime, _ = self._shapes.values_in_order[self._shape_of[number]]
        self._shape_of[number] = self._shapes[kind, mime, flags]
