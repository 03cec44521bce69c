"""The index in SQL as SQLite has it: what only this engine could do wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.core.index_rows import Commit, Filters, Written
from sidecar.stores.sqlite_file import SqliteFile
from sidecar.stores.sqlite_index import SqliteIndex
from sidecar.stores.sqlite_session import _NEWEST, _passing
from tests.stores.index_contract import EVERYTHING, NOON, OTHER, SCOPE, names, put, put_vectors, row

TABLES = ("conv_conversations", "conv_messages", "conv_tags", "conv_vectors", "conv_facts", "conv_words")


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(str(tmp_path / "index.db"))
    index.open()
    yield index
    index.close()


def count(tmp_path: Path) -> dict[str, int]:
    connection = SqliteFile(str(tmp_path / "index.db")).connect()
    try:
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in TABLES}
    finally:
        connection.close()


def test_what_is_replaced_leaves_nothing_in_the_other_tables(sqlite: SqliteIndex, tmp_path: Path) -> None:
    for text in ("one", "two", "three"):
        sqlite.commit(SCOPE, Commit(rows=[Written(row(text=text, tags=("a", text)), [1.0])], facts={"f": text}))
    assert count(tmp_path) == {**dict.fromkeys(TABLES, 1), "conv_tags": 2}


def test_what_is_forgotten_leaves_nothing_in_any_table(sqlite: SqliteIndex, tmp_path: Path) -> None:
    sqlite.commit(SCOPE, Commit(rows=[Written(row(text="one", tags=("a",)), [1.0])], facts={"f": "x"}))
    sqlite.forget(SCOPE)
    assert count(tmp_path) == dict.fromkeys(TABLES, 0)


def test_what_is_forgotten_stands_no_more_in_the_file(sqlite: SqliteIndex, tmp_path: Path) -> None:
    put(sqlite, row("gone", turn_id="t", text="xylophonist", tags=("sousaphone",)), facts={"f": "theremin"})
    put(sqlite, row("stays", text="accordionist"))
    put(sqlite, row("other", text="drummer"), scope=OTHER)

    def found() -> list[bytes]:
        everything = b"".join(path.read_bytes() for path in tmp_path.iterdir() if not path.name.endswith("-shm"))
        return [word for word in (b"xylophonist", b"sousaphone", b"theremin", b"accordionist") if word in everything]

    assert len(found()) == 4
    sqlite.forget(SCOPE, turn_id="t")
    assert found() == [b"theremin", b"accordionist"]
    sqlite.forget(SCOPE)
    assert found() == []
    assert names(sqlite.matching(OTHER, ["drummer"], EVERYTHING, limit=9)) == ["other"]


@pytest.mark.parametrize("words", ["and or not near", "words rowid rank", "_ __ _a a_", "7 07"])
def test_words_that_sqlite_has_a_meaning_for_are_words(sqlite: SqliteIndex, words: str) -> None:
    put(sqlite, row(text=words))
    for word in words.split():
        assert names(sqlite.matching(SCOPE, [word], EVERYTHING, limit=9)) == ["m1"]


def test_the_mark_of_a_conversation_is_no_word(sqlite: SqliteIndex) -> None:
    put(sqlite, row(text="#1 something"))
    assert sqlite.matching(SCOPE, ["#1"], EVERYTHING, limit=9) == []


@pytest.mark.parametrize(
    ("filters", "through"),
    [
        (EVERYTHING, "conv_messages_newest"),
        (Filters(since=NOON, until=NOON + 1), "conv_messages_newest"),
        (Filters(turn_ids=("t1",)), "conv_messages_turn"),
        (Filters(kinds=("turn.log",)), "conv_messages_kind"),
    ],
)
def test_rows_are_found_by_an_index(sqlite: SqliteIndex, tmp_path: Path, filters: Filters, through: str) -> None:
    where, values = _passing(SCOPE, filters)
    connection = SqliteFile(str(tmp_path / "index.db")).connect()
    query = f"EXPLAIN QUERY PLAN SELECT m.id FROM conv_messages m WHERE {where} ORDER BY {_NEWEST} LIMIT 20"
    plan = "\n".join(detail for *_, detail in connection.execute(query, values).fetchall())
    assert through in plan
    assert "SCAN m" not in plan
    connection.close()


def test_the_vectors_of_an_index_of_one_conversation_alone_are_read(sqlite: SqliteIndex) -> None:
    put_vectors(sqlite, {"here": [1.0, 0.0]})
    put_vectors(sqlite, {"there": [1.0, 0.0]}, scope=OTHER)
    assert names(sqlite.nearest(SCOPE, [1.0, 0.0], EVERYTHING, limit=9)) == ["here"]
