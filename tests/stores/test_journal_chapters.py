"""A chapter says all that its rows say, and one that was changed in any way is noticed at the next start."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.ports import Joined, Record
from sidecar.stores import journal_chapters
from sidecar.stores.journal import Journal
from sidecar.stores.journal_chapters import ROWS, Chapter, OpenChapter, Row, Sealed, join
from sidecar.stores.journal_file import JournalFile, seal, sealed
from sidecar.stores.journal_schema import JournalDamaged


def rows(*seqs: int, kind: str = "block", body: bytes = b"{}") -> list[Row]:
    return sealed(Record(seq, kind, b"[%d]" % seq, body) for seq in seqs)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[JournalFile]:
    with closing(JournalFile.open(str(tmp_path / "journal.db"))) as opened:
        yield opened


def chapters(file: JournalFile) -> list[tuple[int, int]]:
    return [(part.first, part.last) for part in file.read() if isinstance(part, Chapter)]


def numbers(file: JournalFile) -> list[int]:
    parts = [list(part.records()) if isinstance(part, Chapter) else part for part in file.read()]
    return [record[0] for part in parts for record in part]


@pytest.mark.rule("journal.chapters-stand-for-their-rows")
def test_full_chapters_are_sealed_as_they_are_written(file: JournalFile) -> None:
    file.write(rows(*range(1, ROWS)))
    assert chapters(file) == []
    file.write(rows(ROWS, ROWS + 1))
    assert chapters(file) == [(1, ROWS)], "what was open goes on after reading"
    file.write(rows(*range(ROWS + 2, 2 * ROWS + 10)))
    assert chapters(file) == [(1, ROWS), (ROWS + 1, 2 * ROWS)]
    assert numbers(file) == list(range(1, 2 * ROWS + 10))


def test_a_chapter_ends_early_where_its_rows_are_large(file: JournalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_chapters, "BYTES", 100)
    file.write(rows(*range(1, 6), body=b"x" * 46))
    assert chapters(file) == [(1, 3)]  # one more than that: the room was counted before
    assert numbers(file) == [1, 2, 3, 4, 5]


def test_rows_that_are_in_no_chapter_get_into_one_after_they_were_read(file: JournalFile) -> None:
    file.write(rows(*range(1, 2 * ROWS)))
    file._connection.execute("DELETE FROM chapters")
    assert (chapters(file), numbers(file)) == ([], list(range(1, 2 * ROWS)))
    file.write(rows(2 * ROWS))
    assert chapters(file) == [(1, ROWS), (ROWS + 1, 2 * ROWS)]


def test_a_gap_is_between_two_chapters(file: JournalFile) -> None:
    file.write(rows(1, 2, 3, 7, 8))
    file.write(rows(*range(10, 10 + ROWS)))
    assert chapters(file) == [(1, 3), (7, 8), (10, 9 + ROWS)]
    assert numbers(file) == [1, 2, 3, 7, 8, *range(10, 10 + ROWS)]


def test_rows_in_no_order_are_read_in_order(file: JournalFile) -> None:
    for seq in (9, 8, 3, 4, 1, 2, 5):
        file.write(rows(seq))
    assert numbers(file) == [1, 2, 3, 4, 5, 8, 9]


def test_a_refused_write_seals_nothing(file: JournalFile) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        file.write([*rows(*range(1, ROWS + 9)), *rows(5)])
    assert (chapters(file), numbers(file)) == ([], [])
    file.write(rows(*range(1, ROWS + 9)))
    assert chapters(file) == [(1, ROWS)]


@pytest.mark.parametrize(
    "record",
    [Record(5, "block", b"[\n]", b"{}"), Record(5, "block", b"[]", b"{\n}"), Record(5, "a\nb", b"", b"")],
    ids=["head", "body", "kind"],
)
def test_a_newline_in_a_row_sends_its_chapter_back_to_rows(file: JournalFile, record: Record) -> None:
    stored = [*rows(*range(1, 5)), *sealed([record]), *rows(*range(6, ROWS + 2))]
    file.write(stored)
    read = list(file.read())
    assert not any(isinstance(part, Chapter) for part in read)
    assert [tuple(row) for part in read if isinstance(part, list) for row in part] == [tuple(row) for row in stored]


@pytest.mark.rule("journal.chapters-stand-for-their-rows")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE journal SET body = x'7b20' WHERE seq = 7",
        "UPDATE journal SET head = x'5b385d' WHERE seq = 7",
        "UPDATE journal SET kind = 'blocK' WHERE seq = 7",
        "UPDATE journal SET h = h + 1 WHERE seq = 7",
        "UPDATE journal SET h = NULL WHERE seq = 7",
        "UPDATE journal SET body = NULL WHERE seq = 7",
        "DELETE FROM journal WHERE seq = 7",
        "UPDATE journal SET seq = 0 WHERE seq = 7",
        "UPDATE journal SET seq = -seq WHERE seq IN (7, 8)",
        "DELETE FROM journal WHERE seq <= 1024",
        "UPDATE chapters SET h = h + 1",
        "UPDATE chapters SET h = NULL",
        "UPDATE chapters SET last = last - 1",
        "UPDATE chapters SET first = 2",
        "UPDATE chapters SET first = 'x'",
    ],
)
def test_a_chapter_that_is_not_what_was_written_is_damage(tmp_path: Path, change: str) -> None:
    with closing(JournalFile.open(str(tmp_path / "journal.db"))) as file:
        file.write(rows(*range(1, ROWS + 5)))
        assert chapters(file) == [(1, ROWS)]
        file._connection.execute(change)
        columns = "SELECT seq, kind, head, body, h FROM journal WHERE kind IS NOT NULL AND body IS NOT NULL"
        intact = [row[0] for row in file._connection.execute(columns) if seal(*row[:4]) == row[4]]
        with pytest.raises(JournalDamaged):
            list(file.read())
    with closing(Journal.open(str(tmp_path))) as journal:
        assert [record.seq for record in journal.load() if isinstance(record, Record)] == sorted(intact)
        assert journal.damage is not None


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["a", "b", ""]), st.binary(max_size=3))))
def test_chapters_and_rows_tell_the_same_records(told: list[tuple[int, str, bytes]]) -> None:
    at, records = 0, list[Record]()
    for step, kind, body in told:
        at += step
        records.append(Record(at, kind, b"[%d]" % at, body))
    for kind in ("a", "b"):
        runs = list(join(records, kind))
        heads = [(run.seqs, run.heads) if isinstance(run, Joined) else ([run.seq], run.head) for run in runs]
        assert [seq for seqs, _ in heads for seq in seqs] == [record.seq for record in records]
        assert b",".join([head for _, head in heads]) == b",".join([record.head for record in records])
        assert [run.kind for run in runs if isinstance(run, Record)] == [
            one.kind for one in records if one.kind != kind
        ]


def test_the_open_chapter_answers_what_sql_makes_of_its_rows(file: JournalFile) -> None:
    taken = rows(*range(1, ROWS + 1), body=b"")
    (made,) = OpenChapter().take(taken)
    file.write(taken)
    (chapter,) = file.read()
    assert isinstance(chapter, Chapter)
    assert made == Sealed(ROWS, 1, chapter.seal())
