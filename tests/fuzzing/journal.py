"""Journals whose files were changed after they were written: what is read of them was written, or is not read."""

from __future__ import annotations

import atexit
import logging
import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache
from pathlib import Path
from threading import Event
from unittest.mock import patch

from sidecar.ports import Record
from sidecar.stores import journal_chapters
from sidecar.stores.journal import Journal
from sidecar.stores.journal_schema import JournalNewer
from tests.fuzzing.draw import Draw
from tests.fuzzing.target import Target

PAGE = 4096
DATABASE, LOG = "journal.db", "journal.db-wal"
Files = dict[str, bytes]


def check(data: bytes) -> None:
    draw = Draw(data)
    files = dict(lives()[draw.pick(sorted(lives()))])
    deeds = draw.rest()
    before = dict(files)
    for at in range(0, len(deeds) - 5, 6):
        change(files, deeds[at : at + 6])
    folder = place()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    try:
        with short_chapters(), silence():
            opened(folder, files, only_log=files.get(DATABASE) == before[DATABASE])
    finally:
        for path in folder.iterdir():
            path.unlink()


def opened(folder: Path, files: Files, *, only_log: bool) -> None:
    wanted = written()
    try:
        journal = Journal.open(str(folder))
    except JournalNewer:
        assert not only_log or LOG in files, "newer, and nothing of it was changed"
        return
    with closing(journal):
        left = list(journal.load())
        assert [one[0] for one in left] == sorted({one[0] for one in left}), "numbers twice or out of order"
        assert all(tuple(one) == tuple(wanted[one[0] - 1]) for one in left), "a row that nobody wrote"
        if journal.damage is None or only_log:
            assert [one[0] for one in left] == list(range(1, len(left) + 1)), "rows are missing and nobody said so"
        assert [*journal.bodies([one[0] for one in left])] == [one[3] for one in left]
        if journal.damage is not None:
            assert journal.damage.rescued == len(left)
            assert os.path.exists(journal.damage.moved_to)
        last = left[-1][0] if left else 0
        more = Record(last + 1, "more", b"{}", b"after the damage")
        append(journal, [more])
    with closing(Journal.open(str(folder))) as again:
        assert again.damage is None, "damaged again"
        assert [tuple(one) for one in again.load()] == [tuple(one) for one in (*left, more)]


def append(journal: Journal, records: Sequence[Record]) -> None:
    told: list[Exception | None] = []
    done = Event()

    def hear(failure: Exception | None) -> None:
        told.append(failure)
        done.set()

    journal.append(records, hear)
    assert done.wait(60)
    assert told == [None], told


def change(files: Files, deed: bytes) -> None:
    """One change of one file: which, how, where (a page and a place in it), and with what."""
    kind, page, high, low, value, more = deed
    name = DATABASE if kind & 0x80 == 0 else LOG
    content = bytearray(files.get(name, b""))
    at = (page * PAGE + (high * 256 + low) % PAGE) if kind & 0x40 == 0 else high * 256 + low
    at %= len(content) + 1
    match kind % 8:
        case 0:
            content[at : at + 1] = bytes([value])
        case 1 if at < len(content):
            content[at] ^= 1 << value % 8
        case 2:
            del content[at:]
        case 3:
            size = 1 + value * 16
            content[at : at + size] = bytes(len(content[at : at + size]))
        case 4:
            content[at : at + 2] = bytes([value, more])
        case 5:
            other = value * PAGE % (len(content) + 1)
            content[at : at + 1 + more * 16] = content[other : other + 1 + more * 16]
        case 6:
            at -= at % PAGE
            other = value * PAGE % (len(content) + 1)
            content[at : at + PAGE], content[other : other + PAGE] = (
                content[other : other + PAGE],
                content[at : at + PAGE],
            )
        case 7 if name == LOG and value == 0:
            files.pop(LOG, None)
            return
        case _:
            content[at:at] = bytes([value]) * (1 + more)
    files[name] = bytes(content)


def written() -> list[Record]:
    """What was written into every journal of these: rows of all sizes, some over several pages."""
    chance = random.Random(8)

    def record(seq: int) -> Record:
        body = chance.randbytes(chance.choice((9, 90, 700, 6000)))
        body = body if seq % 17 == 0 else body.hex().encode()  # nearly all are texts of one line, as JSON is
        return Record(seq, chance.choice(("block", "rows", "turn")), b'{"a":1}', body)

    return [record(seq) for seq in range(1, 49)]


@cache
def lives() -> dict[str, Files]:
    """Journals as kills and ends leave them: all in the log, half of it folded in, all folded in."""
    found: dict[str, Files] = {}
    for name, folded in (("logged", 0), ("half", 30), ("folded", 48)):
        with tempfile.TemporaryDirectory() as top:
            live = Path(top)
            for records in (written()[:folded], written()[folded:]):
                if records:
                    journal = Journal.open(str(live))
                    with short_chapters():
                        for at in range(0, len(records), 6):
                            append(journal, records[at : at + 6])
                    left = {one: (live / one).read_bytes() for one in (DATABASE, LOG) if (live / one).exists()}
                    journal.close()
            found[name] = left if folded < 48 else {DATABASE: (live / DATABASE).read_bytes()}
    return found


def short_chapters() -> AbstractContextManager[object]:
    """So that a few rows fill some."""
    return patch.object(journal_chapters, "ROWS", 7)


@contextmanager
def silence() -> Iterator[None]:
    """What it says of every damage is not read here; the tests of this process read it again afterwards."""
    log = logging.getLogger("sidecar.stores")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@cache
def place() -> Path:
    folder = tempfile.mkdtemp(prefix="as-journal-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def seeds() -> Iterator[bytes]:
    for life in range(3):
        yield bytes([life])
        for kind in (*range(8), *range(0x80, 0x88)):
            yield bytes([kind, 1 + life, kind, 40, kind % 5, 3, life])
    for at in (18, 19, 20, 24, 28, 32, 44, 52, 56, 60, 63, 92, 96):  # fields of the header of the file
        yield bytes([0, 0, 0, at, 255, 0, 0])


TARGET = Target(
    "journal",
    "whatever becomes of its bytes, a journal opens with rows that were written, in order; what it lacks it lacks at"
    " its end, or it says so; and it goes on",
    check,
    (),
    seeds,
    longest=49,
)
