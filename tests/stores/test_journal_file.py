"""The file under the journal: opened, read, refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.core.errors import JournalUnavailable
from sidecar.stores.journal import Journal
from sidecar.stores.journal_file import JournalFile, Row, seal
from sidecar.stores.journal_schema import JournalDamaged


def row(seq: int, kind: str = "block", head: bytes = b"{}", body: bytes = b"{}") -> Row:
    return Row(seq, kind, head, body, seal(seq, kind, head, body))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[JournalFile]:
    opened = JournalFile.open(str(tmp_path / "journal.db"))
    yield opened
    opened.close()


def scanned(file: JournalFile, after: int = 0) -> list[Row]:
    return [one for rows in file.scan(after=after) for one in rows]


@pytest.mark.rule("journal.rows-are-hashed")
@pytest.mark.parametrize(
    "other",
    [row(2), row(1, "source"), row(1, head=b"[]"), row(1, body=b"[]"), row(1, head=b"{", body=b"}{}")],
    ids=["seq", "kind", "head", "body", "boundary"],
)
def test_the_seal_covers_all_that_a_row_says(other: Row) -> None:
    assert other.h != row(1).h
    assert 0 <= other.h < 2**63


def test_rows_of_several_statements_are_one_transaction(file: JournalFile) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        file.write([*[row(seq) for seq in range(1, 200)], row(5)])
    assert scanned(file) == []
    file.write([row(seq) for seq in range(1, 200)])
    assert scanned(file, after=197) == [row(198), row(199)]


@pytest.mark.parametrize("kind", ["block", "", "größe", "x" * 300])
def test_a_row_comes_back_as_it_was_written(file: JournalFile, kind: str) -> None:
    file.write([row(1, kind, b"", b"\0\xff")])
    assert scanned(file) == [row(1, kind, b"", b"\0\xff")]
    assert file.bodies([1]) == [b"\0\xff"]


@pytest.mark.parametrize("column", ["kind", "head", "body", "h"])
@pytest.mark.parametrize("value", ["NULL", "7", "x'ff'", "'other'"])
def test_a_column_of_any_other_value_is_damage(file: JournalFile, column: str, value: str) -> None:
    file.write([row(1)])
    file._connection.execute(f"UPDATE journal SET {column} = {value}")
    with pytest.raises(JournalDamaged):
        scanned(file)


def test_a_journal_behind_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "journal.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        JournalFile.open(str(tmp_path / "journal.db"))
    with pytest.raises(JournalUnavailable, match="symbolic"):
        Journal.open(str(tmp_path))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.rule("cli.erase-forgets-a-turn-or-conversation")
def test_what_is_rewritten_leaves_no_trace_in_any_file(file: JournalFile, tmp_path: Path) -> None:
    secret = b"a secret that is long enough to lie on many pages " * 4000
    file.write([row(1), row(2, body=secret), row(3, body=secret[:60]), row(4)])
    file.rewrite([row(2, body=b"{}"), row(5)], [3])
    assert scanned(file) == [row(1), row(2), row(4), row(5)]
    file.rewrite([row(2, body=b"{}"), row(5)], [3])  # as after a kill
    assert scanned(file) == [row(1), row(2), row(4), row(5)]
    for name in ("journal.db", "journal.db-wal"):
        assert b"a secret" not in (tmp_path / name).read_bytes()


def test_a_rewrite_that_cannot_be_leaves_all_as_it_was(file: JournalFile) -> None:
    file.write([row(1), row(2)])
    with pytest.raises(sqlite3.Error):
        file.rewrite([row(1, body=b"other"), Row(3, "k", b"", b"", object())], [2])  # type: ignore[arg-type]
    assert scanned(file) == [row(1), row(2)]
