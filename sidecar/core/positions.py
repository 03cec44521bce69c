"""Where in a text a line and a character are, as editors count: lines end as LSP says, characters are code units.

Python ends lines at form feeds and separators too, and counts code points. Whoever mixes the two moves the wrong text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]


class Lines:
    """A text and where its lines begin. Offsets are code points, characters are units of `encoding`."""

    __slots__ = ("_encoding", "_known", "_starts", "text")

    def __init__(self, text: str, encoding: Encoding, *, starts: list[int] | None = None) -> None:
        self.text = text
        self._encoding: Encoding = encoding
        self._starts = starts if starts is not None else [0, *_behind_breaks(text)]
        self._known = (0, 0, 0)  # a line, an offset in it and its character: many are asked for one after another

    def position(self, offset: int) -> tuple[int, int]:
        """The line and character of an offset, both from 0."""
        line = bisect_right(self._starts, offset) - 1
        at, units = self._starts[line], 0
        if self._known[0] == line and at <= self._known[1] <= offset:
            _, at, units = self._known
        character = units + self._units(self.text[at:offset])
        self._known = (line, offset, character)
        return line, character

    def offset(self, line: int, character: int) -> int:
        """The offset of a position. One behind a line is its end, one behind the text is the text's end."""
        if line >= len(self._starts):
            return len(self.text)
        start = self._starts[line]
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)
        # No character takes less than a unit, so that of a long line no more is looked at.
        near = self.text[start : min(end, start + character)]
        taken = len(near) if near.isascii() else self._characters(near, character)
        return start + len(near[:taken].rstrip("\r\n")) if start + taken == end else start + taken

    def edited(self, start: int, end: int, new: str) -> Lines:
        """The text with another one in place of `start:end`."""
        text = f"{self.text[:start]}{new}{self.text[end:]}"
        if (
            "\r" in new
            or "\r" in self.text[max(0, start - 1) : start + 1]
            or "\r" in self.text[max(0, end - 1) : end + 1]
        ):
            return Lines(text, self._encoding)  # a break of two characters may come together, or come apart
        first, behind = bisect_right(self._starts, start), bisect_right(self._starts, end)
        grown = len(new) - (end - start)
        fresh = [start + one for one in _behind_breaks(new)]
        rest = self._starts[behind:]
        moved = [one + grown for one in rest] if grown else rest
        return Lines(text, self._encoding, starts=[*self._starts[:first], *fresh, *moved])

    def _units(self, text: str) -> int:
        if self._encoding == "utf-32" or text.isascii():
            return len(text)
        if self._encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2

    def _characters(self, text: str, units: int) -> int:
        """How many characters of a text these units hold; half a character is none."""
        if self._encoding == "utf-32":
            return min(units, len(text))
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self._units(text[:middle]) <= units:
                low = middle
            else:
                high = middle - 1
        return low


def _behind_breaks(text: str) -> Iterator[int]:
    """Where the lines after the first one begin."""
    if "\r" in text:
        yield from (match.end() for match in _BREAK.finditer(text))
        return
    at = text.find("\n") + 1  # many times as fast, and nearly all texts are so
    while at:
        yield at
        at = text.find("\n", at) + 1


_BREAK = re.compile(r"\r\n|\r|\n")
