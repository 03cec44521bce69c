"""Reads an input that a fuzzer made: texts from its front, where they stand as one writes them, choices from its back.

The fuzzer that keeps coverage has such a reader too, but an input must say the same where that is not installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

PARTS = b"\xff"  # stands between two parts, and in no text of UTF-8

Option = TypeVar("Option")


class Draw:
    """One input. What is not there any more is zero, or the first option: a short input is a simple one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._end = len(data)

    def number(self, most: int) -> int:
        """From 0 to `most`, one byte for each 256."""
        width = max(1, (most.bit_length() + 7) // 8)
        taken = self._data[max(0, self._end - width) : self._end]
        self._end -= len(taken)
        return int.from_bytes(taken, "big") % (most + 1)

    def pick(self, options: Sequence[Option]) -> Option:
        return options[self.number(len(options) - 1)]

    def flag(self) -> bool:
        return self.number(1) == 1

    def rest(self) -> bytes:
        """All that no choice was made of."""
        return self._data[: self._end]

    def text(self) -> str:
        """The same as text. What is no UTF-8 becomes halves of surrogate pairs, as the system has such names."""
        return self.rest().decode("utf-8", "surrogateescape")

    def texts(self, count: int) -> list[str]:
        """So many texts, the last one with all the rest."""
        parts = self.rest().split(PARTS, count - 1)
        return [part.decode("utf-8", "surrogateescape") for part in parts] + [""] * (count - len(parts))


def cuts(draw: Draw, length: int, *, most: int = 6) -> list[int]:
    """Where a stream of this length is cut, ascending."""
    return sorted(draw.number(length) for _ in range(draw.number(most)))


def pieces(whole: bytes, places: Sequence[int]) -> list[bytes]:
    """The stream in pieces that end at these places."""
    ends = [*places, len(whole)]
    return [whole[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
