"""Rows are found in the pages of a journal whatever leads to them, and none that was never committed."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sidecar.stores.journal_file import PAGE, JournalFile, Row, seal
from sidecar.stores.journal_pages import intact_rows
from sidecar.stores.journal_repair import rescue

EDGES = (0, 1, 11, 127, 128, 440, 2000, PAGE - 80, PAGE - 35, PAGE - 34, PAGE, 2 * PAGE, 8185, 70_000)


def row(seq: int, size: int, kind: str = "block") -> Row:
    head, body = b"{}", random.Random(seq).randbytes(size)
    return Row(seq, kind, head, body, seal(seq, kind, head, body))


def found(path: Path) -> list[Row]:
    return sorted(set(intact_rows(str(path))))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def write(path: Path, rows: Iterable[Row]) -> JournalFile:
    file = JournalFile.open(str(path))
    for one in rows:
        file.write([one])
    return file


def around() -> Iterator[int]:
    return (size + more for size in EDGES for more in range(-3, 4) if size + more >= 0)


def test_rows_of_every_length_are_found_in_the_file_and_in_its_log(path: Path) -> None:
    rows = [row(seq, size, kind="rows" * (seq % 3)) for seq, size in enumerate(around(), 1)]
    rows += [row(2**40 + 1, 9), row(2**62, 9)]
    with closing(write(path, rows)):
        assert os.path.getsize(f"{path}-wal") > PAGE
        assert found(path) == rows
    assert not os.path.exists(f"{path}-wal")
    assert found(path) == rows


def test_what_was_not_committed_is_not_found(path: Path) -> None:
    rows = [row(seq, 900) for seq in range(1, 40)]
    with closing(write(path, rows[:9])) as file:
        file._connection.execute("PRAGMA cache_size=1")
        file._connection.execute("BEGIN IMMEDIATE")
        file._connection.executemany("INSERT INTO journal VALUES(?,?,?,?,?)", rows[9:])
        assert found(path) == rows[:9]
        file._connection.execute("ROLLBACK")


@pytest.mark.parametrize("seed", range(4))
def test_of_a_torn_log_as_much_is_found_as_sqlite_reads(path: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with closing(write(path, [row(seq, 300) for seq in range(1, 60)])):
        shutil.copytree(tmp_path, tmp_path / "copy")
    log = (tmp_path / "copy" / "journal.db-wal").read_bytes()
    for attempt in range(12):
        place = tmp_path / str(attempt)
        shutil.copytree(tmp_path / "copy", place)
        at = chance.randrange(len(log))
        flipped = log[:at] + bytes([log[at] ^ 1 << chance.randrange(8)]) + log[at + 1 :]
        (place / "journal.db-wal").write_bytes(flipped if attempt % 2 else log[:at])
        ours = found(place / "journal.db")
        with closing(sqlite3.connect(place / "journal.db")) as database:
            try:
                theirs = database.execute("SELECT * FROM journal ORDER BY seq").fetchall()
            except sqlite3.OperationalError:
                theirs = []  # not even the table is left
        assert [tuple(one) for one in ours] == theirs


@pytest.mark.parametrize("page", [1, 2, 3])
def test_damage_of_a_page_that_holds_no_rows_costs_none(path: Path, tmp_path: Path, page: int) -> None:
    """Found by fuzzing: the header, the schema and the root are in three pages on which all others hang."""
    rows = [row(seq, 400) for seq in range(1, 60)]
    write(path, rows).close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * PAGE : page * PAGE] = b"\xff" * PAGE
    path.write_bytes(content)
    assert found(path) == rows
    file, damage = rescue(str(tmp_path), "a broken page")
    assert [one for rows in file.scan(after=0) for one in rows] == rows
    assert (damage.rescued, damage.lost) == (len(rows), 0)
    file.close()


@pytest.mark.parametrize("size", [9, 400, 3900, 9000])
@pytest.mark.parametrize("seq", [1, 2, 30, 58, 59])
@pytest.mark.parametrize("damaged", [0, 7, 31, 100])
def test_a_row_whose_number_was_damaged_is_known_by_its_place(path: Path, size: int, seq: int, damaged: int) -> None:
    """Found by fuzzing. A number of one byte stands behind the size of its row."""
    rows = [row(number, size) for number in range(1, 60)]
    with closing(JournalFile.open(str(path))) as file:
        file.write(rows)
    content = bytearray(path.read_bytes())
    at = content.index(rows[seq - 1].head + rows[seq - 1].body[:9])
    at = content.rindex(bytes([seq]), 0, at - len("block") - 4)
    content[at] = damaged
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as database:
        numbers = [number for (number,) in database.execute("SELECT seq FROM journal NOT INDEXED WHERE +seq > -1")]
    assert numbers == [*range(1, seq), damaged, *range(seq + 1, 60)]
    assert found(path) == rows


@pytest.mark.parametrize("content", [b"", b"x", b"\x0d" * PAGE * 3, b"\xff" * PAGE * 3, bytes(PAGE * 2)])
def test_of_what_is_no_journal_nothing_is_found(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    (path.parent / "journal.db-wal").write_bytes(content)
    assert found(path) == []


def test_a_journal_that_is_not_there_has_no_rows(path: Path) -> None:
    assert found(path) == []
