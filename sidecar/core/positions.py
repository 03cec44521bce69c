"""Where in a text a line and a character are, as editors count: lines end as LSP says, characters are code units.

Python ends lines at form feeds and separators too, and counts code points. Whoever mixes the two moves the wrong text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]
Edit = tuple[int, int, str]
"""What stands at `start:end`, in code points, is to be another text."""

Change = tuple[tuple[int, int], tuple[int, int], str]
"""The same by the positions of its start and its end."""

_STEP = 4096  # characters between two places where the lines before are counted


class Lines:
    """A text in lines. Offsets are code points, characters are units of `encoding`.

    Nothing is kept of single lines, since a text may be nothing but line breaks: breaks are counted every few thousand
    characters, as far as anybody asked, and what lies between is counted anew. To make one costs nothing.
    """

    __slots__ = ("_counts", "_encoding", "_has_returns", "_known", "text")

    def __init__(self, text: str, encoding: Encoding, *, counts: list[int] | None = None) -> None:
        self.text = text
        self._encoding: Encoding = encoding
        self._counts = counts if counts is not None else [0]  # breaks that end before each step
        self._has_returns: bool | None = None
        self._known = (0, 0, 0)  # a line, an offset in it and its character: many are asked for one after another

    def position(self, offset: int) -> tuple[int, int]:
        """The line and character of an offset, both from 0."""
        step = offset // _STEP
        while len(self._counts) <= step:
            self._count_on()
        line = self._counts[step] + self._breaks(step * _STEP, offset)
        if self._known[0] == line and self._known[1] <= offset:
            _, at, units = self._known
        else:
            at, units = self._start_before(offset), 0
        character = units + self._units(self.text[at:offset])
        self._known = (line, offset, character)
        return line, character

    def offset(self, line: int, character: int) -> int:
        """The offset of a position. One behind a line is its end, one behind the text is the text's end."""
        start = self._start(line)
        if start is None:
            return len(self.text)
        # No character takes less than a unit, so that of a long line no more is looked at.
        near = self.text[start : start + character]
        ends = [at for at in (near.find("\n"), near.find("\r")) if at >= 0]
        near = near[: min(ends)] if ends else near
        return start + (len(near) if near.isascii() else self._characters(near, character))

    def edited(self, start: int, end: int, new: str) -> Lines:
        """The text with another one in place of `start:end`."""
        return self.spliced([(start, end, new)])

    def spliced(self, edits: Sequence[Edit]) -> Lines:
        """The text with all edits made at once; they come in order, and none overlaps another."""
        parts: list[str] = []
        at = 0
        for start, end, new in edits:
            parts += (self.text[at:start], new)
            at = end
        first = edits[0][0] if edits else len(self.text)
        # A line feed that comes right behind decides whether a carriage return ends a line.
        same = self._counts[: max(0, first - 1) // _STEP + 1]
        return Lines("".join([*parts, self.text[at:]]), self._encoding, counts=same)

    def _count_on(self) -> None:
        begin = (len(self._counts) - 1) * _STEP
        self._counts.append(self._counts[-1] + self._breaks(begin, begin + _STEP))

    def _breaks(self, start: int, end: int) -> int:
        """How many line breaks have their last character in `start:end`."""
        if self._has_returns is None:
            self._has_returns = "\r" in self.text
        feeds = self.text.count("\n", start, end)
        if not self._has_returns or start >= end:
            return feeds
        return feeds + self.text.count("\r", start, end) - self.text.count("\r\n", start, end + 1)

    def _start(self, line: int) -> int | None:
        """Where a line begins; None behind the last one."""
        if line <= 0:
            return 0
        while self._counts[-1] < line:
            if (len(self._counts) - 1) * _STEP >= len(self.text):
                return None
            self._count_on()
        step = bisect_left(self._counts, line) - 1
        low, high, wanted = step * _STEP, (step + 1) * _STEP, line - self._counts[step]
        while high - low > 1:
            middle = (low + high) // 2
            count = self._breaks(low, middle)
            if count >= wanted:
                high = middle
            else:
                low, wanted = middle, wanted - count
        return high

    def _start_before(self, offset: int) -> int:
        """Where the line of an offset begins."""
        start = self.text.rfind("\n", 0, offset) + 1
        if not self._has_returns:
            return start
        last = self.text.rfind("\r", start, offset)
        # Between the two characters of a break the line has not ended yet.
        if last >= 0 and last == offset - 1 and self.text[offset : offset + 1] == "\n":
            last = self.text.rfind("\r", start, last)
        return max(start, last + 1)

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
            more = self._units(text[low:middle])
            if more <= units:
                low, units = middle, units - more
            else:
                high = middle - 1
        return low


def changed(lines: Lines, changes: Sequence[Change], *, most: int) -> Lines | None:
    """The text after changes of which each means places in what the one before it left.

    As long as they come from the text's end to its beginning, as editors like to send them, they are made at once. None
    where more than `most` characters would have to be copied or looked at.
    """
    at = 0
    is_exact = True
    while at < len(changes):
        together = _from_the_end(changes, at) if is_exact else changes[at : at + 1]
        size = len(lines.text)
        most -= size + sum(min(start[1], size) + min(end[1], size) for start, end, _ in together)
        if most < 0:
            return None
        edits = [(lines.offset(*start), lines.offset(*end), new) for start, end, new in reversed(together)]
        if len(together) > 1:
            is_exact = all(
                lines.position(begin) == start
                for (begin, _, _), (start, _, _) in zip(edits, reversed(together), strict=True)
            )
            if not is_exact:
                continue  # a position behind a line's end is another one after each change
        at += len(together)
        lines = lines.spliced([(start, max(start, end), new) for start, end, new in edits])
    return lines


def _from_the_end(changes: Sequence[Change], at: int) -> Sequence[Change]:
    """The changes from this one on that lie each before the one it follows: all mean places in the same text."""
    behind = at + 1
    while behind < len(changes):
        first = changes[behind - 1][0]
        start, end, _ = changes[behind]
        # What ends before it starts is meant by nobody, and is looked at for itself.
        if not start <= end <= first or changes[behind - 1][1] < first:
            break
        behind += 1
    return changes[at:behind]
