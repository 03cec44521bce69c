"""Lists of source numbers as people and models write them: `1, 3-5`.

A set of numbers is kept as it was written and is never unrolled: `1-999999999` costs as much as `1-2`, and what it
selects is bounded by the pool it is laid over (spec section 3, `so:` selector).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sidecar.core.errors import BadSelector
from sidecar.core.limits import PATH_BYTES

# JSON readers keep integers exactly up to here; nobody was ever given a larger number.
LARGEST = 2**53
MISSING_TOLD = 1000

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Selection:
    """What a set of numbers meets in a pool: both lists ascend, without doubles; `missing` stops at 1,000 numbers."""

    found: list[int]
    missing: list[int]


@dataclass(frozen=True, slots=True)
class NumberSet:
    """Numbers as written. `ranges` are `(low, high)`, both included; `malformed` holds the pieces that are neither."""

    singles: tuple[int, ...] = ()
    ranges: tuple[Interval, ...] = ()
    malformed: tuple[str, ...] = ()

    def select(self, sids: Sequence[int]) -> Selection:
        """Lay the set over the ascending numbers of a pool. Work is bounded by the pool, never by a range."""
        missing: list[int] = []
        for low, high in self.intervals():
            if len(missing) < MISSING_TOLD:
                missing.extend(_gaps(low, high, _within(low, high, sids), most=MISSING_TOLD - len(missing)))
        return Selection(self.among(sids), missing)

    def among(self, sids: Sequence[int]) -> list[int]:
        """The numbers of the set that are in `sids`; both ascend."""
        return [sid for low, high in self.intervals() for sid in _within(low, high, sids)]

    def intervals(self) -> list[Interval]:
        """The same numbers as ascending intervals that neither overlap nor touch."""
        return _merged([*((number, number) for number in self.singles), *self.ranges])

    def normal(self) -> NumberSet:
        """The one form that all equal sets share; what prints the same is equal."""
        intervals = self.intervals()
        singles = tuple(low for low, high in intervals if low == high)
        ranges = tuple((low, high) for low, high in intervals if low != high)
        return NumberSet(singles, ranges, self.malformed)

    def __str__(self) -> str:
        return _printed(self.intervals())


def parse_numbers(text: str, *, dashes: str = "-") -> NumberSet:
    """Read a comma list of `n` or `a-b`, either end first, spaces allowed.

    Nothing is refused: a piece that is no number and no range is kept in `malformed`, as is a number over 2**53.
    A range may be written with any one of `dashes`. A blank text is the empty set.
    """
    if not text.strip():
        return NumberSet()
    piece = _piece(dashes)
    singles: list[int] = []
    ranges: list[Interval] = []
    malformed: list[str] = []
    for written in text.split(","):
        match = piece.fullmatch(written)
        first = _number(match[1]) if match else None
        last = _number(match[2]) if match and match[2] else first
        if match is None or first is None or last is None:
            malformed.append(written.strip())
        elif match[2] is None:
            singles.append(first)
        else:
            ranges.append((min(first, last), max(first, last)))
    return NumberSet(tuple(singles), tuple(ranges), tuple(malformed))


def parse_selector(text: str) -> NumberSet:
    """Read `1,3-5`, or the whole path `so:sources_pool[1,3-5]` with or without its family.

    Raises BadSelector for a path that is not whole, such as one without its closing bracket.
    """
    body = text.strip()
    if not (body.startswith(("so:", "sources_pool")) or "[" in body or "]" in body):
        return parse_numbers(body)
    numbers = pool_numbers(body.removeprefix("so:"))
    if numbers is None:
        about = text[:PATH_BYTES].encode("utf-8", "backslashreplace").decode()
        raise BadSelector(about, "write numbers and ranges, as in 1,3-5, or so:sources_pool[1,3-5]")
    return numbers


def pool_numbers(text: str) -> NumberSet | None:
    """The set inside `sources_pool[...]`, or None when the text is not of that shape."""
    if not (text.startswith("sources_pool[") and text.endswith("]")):
        return None
    body = text[len("sources_pool[") : -1]
    return None if "[" in body or "]" in body else parse_numbers(body)


def print_numbers(sids: Iterable[int]) -> str:
    """`3, 5-6`: ascending, neighbours joined, a space after each comma."""
    return _printed(_merged([(sid, sid) for sid in sids]))


@lru_cache(maxsize=8)
def _piece(dashes: str) -> re.Pattern[str]:
    # Only ASCII digits are numbers here: `\d` would take `²` and the digits of every script.
    return re.compile(rf"\s*+([0-9]++)\s*+(?:[{re.escape(dashes)}]\s*+([0-9]++)\s*+)?+")


def _number(digits: str) -> int | None:
    """The number, or None over 2**53. Counts digits first: reading a megabyte of them as one number is slow."""
    digits = digits.lstrip("0")
    if len(digits) > len(str(LARGEST)):
        return None
    number = int(digits or "0")
    return number if number <= LARGEST else None


def _within(low: int, high: int, sids: Sequence[int]) -> Sequence[int]:
    return sids[bisect_left(sids, low) : bisect_right(sids, high)]


def _gaps(low: int, high: int, present: Sequence[int], *, most: int) -> Iterator[int]:
    """The first `most` numbers of an interval that are not present in it."""
    following = low
    for sid in [*present, high + 1]:
        absent = range(following, min(sid, following + most))
        yield from absent
        most -= len(absent)
        if most == 0:
            return
        following = sid + 1


def _merged(intervals: list[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _printed(intervals: list[Interval]) -> str:
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in intervals)
