"""How an index is and what is in it, alike on both engines; asking changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.core.errors import StoreUnavailable
from sidecar.core.index_rows import Commit, IndexRow, Scope, Written
from sidecar.stores.index_census import Census, census, engine
from sidecar.stores.indexes import migrate, migrations, open_index


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_database"))
    return str(tmp_path / "index.db")


def test_an_empty_index_is_counted_as_empty(location: str) -> None:
    migrate(location)
    assert census(location) == Census(0, 0, None)


def test_rows_and_the_newest_moment_are_counted(location: str) -> None:
    index = open_index(location)
    index.open()
    for number, name in enumerate(("one", "two")):
        row = IndexRow(message_id="m", kind="k", turn_id="t", ts=100.5 + number, text="", tags=())
        index.commit(Scope("t", "p", "u", name), Commit(rows=[Written(row)]))
    index.close()
    assert census(location) == Census(2, 2, 101.5)


def test_the_engine_is_known_before_there_is_a_schema(location: str) -> None:
    found = engine(location)
    assert found.writable
    assert found.version.partition(" ")[0] in ("SQLite", "PostgreSQL")
    assert found.vectors
    assert not any(step.applied for step in migrations(location))


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable):
        engine("postgresql://nobody@127.0.0.1:1/none")
