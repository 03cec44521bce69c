"""Every row that is still itself in the pages of a damaged journal, whatever became of the ways that lead to it.

Each row proves by its hash that it is whole, so nothing else needs to be believed: not the header of the file, not its
schema, no inner page. Pages of rows are read by themselves, those of the log in place of older ones as far as they were
committed. SQLite, asked for the rows, gives up at a flipped bit in the first page.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from itertools import chain, pairwise

from sidecar.stores.journal_chapters import Row
from sidecar.stores.journal_file import PAGE, seal

_ROWS_ARE_HERE = 13  # the mark of a page that is a leaf of a table
_FILE_HEADER = 100  # stands in the first page before its own
_LOG_HEADER = struct.Struct(">8I")
_FRAME_HEADER = struct.Struct(">6I")
_LOG_MARKS = {0x377F0682: "<", 0x377F0683: ">"}  # and the order of bytes in which checksums are counted
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # how a column says its size; 8 and 9 are the numbers 0 and 1
_NO_ROW = Row(1, "", b"", b"", -1)


def intact_rows(path: str) -> Generator[Row, None, None]:
    """The rows of the file and its log that are what was written, in no order, some perhaps twice. Raises OSError.

    A row whose number alone was damaged, but not its length, is known by its place: rows stand one after the other. Its
    chapter, whose hash holds no numbers, may have been believed already.
    """
    before = 0
    with ExitStack() as opened:
        pages = _Pages(*(_open(one, opened) for one in (path, f"{path}-wal")))
        for number in range(1, pages.count + 1):
            for row, following in pairwise(chain(pages.rows_in(number), (_NO_ROW,))):
                for seq in (row.seq, before + 1, following.seq - 1):
                    if seal(seq, row.kind, row.head, row.body) == row.h:
                        yield row._replace(seq=seq)
                        before = seq
                        break


def _open(path: str, opened: ExitStack) -> int:
    """A descriptor; of nothing at all where there is no such file."""
    wanted = path if os.path.lexists(path) else os.devnull
    descriptor = os.open(wanted, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    opened.callback(os.close, descriptor)
    return descriptor


class _Pages:
    """The pages of a file as its log has them."""

    def __init__(self, file: int, log: int) -> None:
        self._file = file
        self._log = log
        self._newer = _committed(log)
        self.count = max([os.fstat(file).st_size // PAGE, *self._newer])

    def read(self, number: int) -> bytes:
        at = self._newer.get(number)
        return os.pread(self._file, PAGE, (number - 1) * PAGE) if at is None else os.pread(self._log, PAGE, at)

    def rows_in(self, number: int) -> Iterator[Row]:
        """Whatever on a page may be read as a row."""
        page = self.read(number)
        start = _FILE_HEADER if number == 1 else 0
        if page[start : start + 1] != bytes([_ROWS_ARE_HERE]):
            return
        cells = int.from_bytes(page[start + 3 : start + 5])
        for at in range(start + 8, min(start + 8 + 2 * cells, PAGE - 1), 2):
            try:
                yield self._row(page, int.from_bytes(page[at : at + 2]))
            except (IndexError, ValueError):
                continue  # no row, or not whole

    def _row(self, page: bytes, at: int) -> Row:
        size, at = _number(page, at)
        seq, at = _number(page, at)
        payload = self._payload(page, at, size)
        ends, at = _number(payload, 0)
        values: list[bytes] = []
        place = ends
        while at < ends:
            said, at = _number(payload, at)
            length = (said - 12) // 2 if said >= 12 else _INTEGERS.get(said, 0)
            values.append(payload[place : place + length] if said != 9 else b"\1")
            place += length
        _, kind, head, body, h = values
        return Row(seq, kind.decode("utf-8", "replace"), head, body, int.from_bytes(h))

    def _payload(self, page: bytes, at: int, size: int) -> bytes:
        """What a cell holds; what did not fit goes on in a chain of pages."""
        here = _here(size)
        parts = [page[at : at + here]]
        left, following = size - here, int.from_bytes(page[at + here : at + here + 4])
        if left > self.count * PAGE:
            raise ValueError("it is longer than the file")
        while left > 0 and 0 < following <= self.count:
            more = self.read(following)
            following = int.from_bytes(more[:4])
            parts.append(more[4 : 4 + left])
            left -= PAGE - 4
        return b"".join(parts)


def _here(size: int) -> int:
    """How many bytes of a cell of that size stand in its own page (SQLite's file format, "B-tree Pages")."""
    most = PAGE - 35
    if size <= most:
        return size
    least = (PAGE - 12) * 32 // 255 - 23
    fitting = least + (size - least) % (PAGE - 4)
    return fitting if fitting <= most else least


def _number(page: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends. Raises IndexError at the end of the page."""
    number = 0
    for _ in range(8):
        byte = page[at]
        at += 1
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            return number, at
    return number << 8 | page[at], at + 1


def _committed(log: int) -> dict[int, int]:
    """Where in the log the latest state of each page is that was committed, by SQLite's own rules for what counts."""
    header = os.pread(log, _LOG_HEADER.size, 0)
    if len(header) < _LOG_HEADER.size:
        return {}
    mark, _, size, _, *salts, one, other = _LOG_HEADER.unpack(header)
    order = _LOG_MARKS.get(mark, "")
    sums = _sums(header[:24], (0, 0), order or ">")
    if not order or size != PAGE or sums != (one, other):
        return {}
    newest: dict[int, int] = {}
    waiting: dict[int, int] = {}
    at = _LOG_HEADER.size
    while len(frame := os.pread(log, _FRAME_HEADER.size + PAGE, at)) == _FRAME_HEADER.size + PAGE:
        number, commits, *salted, one, other = _FRAME_HEADER.unpack_from(frame)
        sums = _sums(frame[:8] + frame[_FRAME_HEADER.size :], sums, order)
        if salted != salts or sums != (one, other):
            break
        waiting[number] = at + _FRAME_HEADER.size
        if commits:
            newest |= waiting
            waiting.clear()
        at += len(frame)
    return newest


def _sums(content: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    one, other = sums
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + other) & 0xFFFFFFFF
        other = (other + second + one) & 0xFFFFFFFF
    return one, other
