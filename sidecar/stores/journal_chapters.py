"""Rows sealed by the thousand: a start reads and checks the journal a chapter at a time, not row by row.

SQLite joins the rows of a chapter in one step, in which the interpreter is free for others, and one hash over all of
them stands in for theirs. Every row keeps its own, which is what a reader of single rows and a rescue go by; rows that
are in no chapter yet are read one by one. A chapter has consecutive numbers and says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from xxhash import xxh3_64_intdigest as xxh3

from sidecar.ports import Joined, Record

ROWS = 1024
BYTES = 4 * 2**20  # a chapter ends with the row that brings it to so many, since it is in memory as a whole

CREATE = "CREATE TABLE IF NOT EXISTS chapters(last INTEGER PRIMARY KEY, first INTEGER, h INTEGER)"
INSERT = "INSERT OR REPLACE INTO chapters VALUES(?,?,?)"
_PRIME = 2**32 - 5
SELECT = f"""SELECT c.first, c.last, c.h, sum(journal.h % {_PRIME}), group_concat(kind, char(10)),
    CAST(group_concat(head, char(10)) AS BLOB), CAST(group_concat(body, char(10)) AS BLOB)
    FROM chapters AS c LEFT JOIN journal ON seq BETWEEN c.first AND c.last
    WHERE c.last > ? GROUP BY c.last ORDER BY c.last"""


class Row(NamedTuple):
    """A record and its seal."""

    seq: int
    kind: str
    head: bytes
    body: bytes
    h: int


class Sealed(NamedTuple):
    """A chapter that can be found by itself: its numbers, and the hash over all that its rows say."""

    last: int
    first: int
    h: int


@dataclass(frozen=True, slots=True)
class Chapter:
    """Consecutive rows as `SELECT` joins them, column by column, with a newline between two; their hashes as a sum."""

    first: int
    last: int
    sum: int
    kinds: str
    heads: bytes
    bodies: bytes

    def seal(self) -> int:
        """In 63 bits. Raises TypeError when one of the columns is not there."""
        hashes = f"{self.first};{self.last};{self.sum};{xxh3(self.heads)};{xxh3(self.bodies)};{self.kinds}"
        return xxh3(hashes.encode()) >> 1

    def is_plain(self) -> bool:
        """Whether the newlines in it are those between its rows, so that it can be taken apart."""
        between = self.last - self.first
        return self.kinds.count("\n") == self.heads.count(b"\n") == self.bodies.count(b"\n") == between

    def records(self) -> Iterator[Record]:
        """The records of a plain chapter."""
        kinds, heads, bodies = self.kinds.split("\n"), self.heads.split(b"\n"), self.bodies.split(b"\n")
        return map(Record, range(self.first, self.last + 1), kinds, heads, bodies)

    def joined(self, kind: str) -> Iterator[Record | Joined]:
        """The same, those of this kind joined to runs."""
        numbers = range(self.first, self.last + 1)
        if kind and self.kinds == "\n".join([kind] * len(numbers)):
            return iter((Joined(numbers, self.heads.replace(b"\n", b",")),))
        return join(self.records(), kind)


def join(records: Iterable[Record], kind: str) -> Iterator[Record | Joined]:
    """The records in their order, those of this kind joined to runs."""
    for is_wanted, run in groupby(records, lambda record: record[1] == kind):
        if is_wanted and kind:
            some = list(run)
            yield Joined([record[0] for record in some], b",".join([record[2] for record in some]))
        else:
            yield from run


class OpenChapter:
    """The chapter that rows are written into until it is full."""

    __slots__ = ("_next", "_room", "_rows")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """What was taken in is not what is stored: the rows up to the next one are in no chapter."""
        self._rows: list[Row] = []
        self._room = BYTES
        self._next = 0

    def take(self, rows: Iterable[Row]) -> list[Sealed]:
        """Take in rows in the order they are stored; answers the chapters that are complete."""
        complete: list[Sealed] = []
        for row in rows:
            if row[0] != self._next:
                if self._rows and row[0] > self._next:  # else they come in no order
                    complete.append(self._end())
                self.forget()
            self._rows.append(row)
            self._next = row[0] + 1
            self._room -= len(row[2]) + len(row[3])
            if self._room <= 0 or len(self._rows) == ROWS:
                complete.append(self._end())
        return complete

    def _end(self) -> Sealed:
        numbers, kinds, heads, bodies, hashes = zip(*self._rows, strict=True)
        self._rows, self._room = [], BYTES
        first, last, total = numbers[0], numbers[-1], sum(h % _PRIME for h in hashes)
        chapter = Chapter(first, last, total, "\n".join(kinds), b"\n".join(heads), b"\n".join(bodies))
        return Sealed(last, first, chapter.seal())
