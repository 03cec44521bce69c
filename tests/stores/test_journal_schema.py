"""An older journal is copied, then lifted; what fails on the way leaves it as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.core.errors import JournalUnavailable
from sidecar.stores.journal_file import JournalFile, Row, seal
from sidecar.stores.journal_schema import SCHEMA, Schema, free_name


def row(seq: int) -> Row:
    return Row(seq, "block", b"{}", b"{}", seal(seq, "block", b"{}", b"{}"))


def scanned(file: JournalFile) -> list[Row]:
    return [one for rows in file.scan(after=0) for one in rows]


@pytest.mark.rule("journal.schema-has-a-number")
def test_an_older_file_is_copied_then_migrated(tmp_path: Path) -> None:
    path = str(tmp_path / "journal.db")
    old = JournalFile.open(path)
    old.write([row(1)])
    old.close()
    steps = ("UPDATE journal SET seq = seq + 10", "CREATE TABLE more(n INTEGER)")
    next_schema = Schema(SCHEMA.number + 1, SCHEMA.create, {SCHEMA.number: steps})
    migrated = JournalFile.open(path, next_schema)
    assert migrated._connection.execute("SELECT seq FROM journal").fetchall() == [(11,)]
    migrated.close()
    (copy,) = tmp_path.glob(f"journal.db.schema{SCHEMA.number}-*")
    assert copy.stat().st_mode & 0o777 == 0o600
    kept = JournalFile.open(str(copy))
    assert scanned(kept) == [row(1)]
    kept.close()


@pytest.mark.rule("journal.schema-has-a-number")
def test_a_journal_of_the_first_schema_is_read_as_it_is(tmp_path: Path) -> None:
    path = str(tmp_path / "journal.db")
    old = JournalFile.open(path, Schema(1, SCHEMA.create[:1], {}))
    old.write([row(1)])
    old.close()
    now = JournalFile.open(path)
    assert scanned(now) == [row(1)]
    now.close()


def test_a_migration_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = str(tmp_path / "journal.db")
    old = JournalFile.open(path)
    old.write([row(1)])
    old.close()
    steps = ("UPDATE journal SET seq = 10", "no SQL at all")
    broken = Schema(SCHEMA.number + 1, SCHEMA.create, {SCHEMA.number: steps})
    with pytest.raises(JournalUnavailable):
        JournalFile.open(path, broken)
    same = JournalFile.open(path)
    assert scanned(same) == [row(1)]
    same.close()


def test_a_name_is_never_given_twice(tmp_path: Path) -> None:
    path = str(tmp_path / "journal.db")
    names = set()
    for _ in range(3):
        name = free_name(path, "damaged")
        Path(name).touch()
        names.add(name)
    assert len(names) == 3
