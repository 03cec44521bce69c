"""The index in SQL as PostgreSQL has it: what only this engine could do wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidecar.core.index_rows import Commit, Written
from sidecar.stores.index_vectors import unit
from sidecar.stores.postgres_index import PostgresIndex
from sidecar.stores.postgres_session import channel
from tests.postgres import Postgres
from tests.stores.index_contract import EVERYTHING, OTHER, SCOPE, names, put, put_vectors, row
from tests.stores.test_postgres_server import name_of


@pytest.fixture
def opened(postgres_database: str) -> Iterator[PostgresIndex]:
    index = PostgresIndex(postgres_database)
    index.open()
    yield index
    index.close()


def test_channels_are_names_that_tell_nothing() -> None:
    assert channel(SCOPE).isidentifier()
    assert len(channel(SCOPE)) < 64
    assert channel(SCOPE) != channel(OTHER)
    assert channel(SCOPE._replace(tenant="a", project="b")) != channel(SCOPE._replace(tenant="ab", project=""))


def test_what_is_forgotten_leaves_nothing_in_any_table(
    opened: PostgresIndex, postgres: Postgres, postgres_database: str
) -> None:
    opened.commit(SCOPE, Commit(rows=[Written(row(text="one", tags=("a",)), [1.0])], facts={"f": "x"}))
    opened.forget(SCOPE)
    tables = ("conv_conversations", "conv_messages", "conv_facts")
    counts = [
        postgres.execute(f"SELECT count(*) FROM {table}", database=name_of(postgres_database)) for table in tables
    ]
    assert counts == [[(0,)]] * 3


@pytest.mark.parametrize(
    "name", ["default_transaction_isolation", "timezone", "default_text_search_config", "bytea_output"]
)
def test_the_settings_of_a_database_make_no_difference(postgres: Postgres, postgres_database: str, name: str) -> None:
    values = {
        "default_transaction_isolation": "serializable",
        "timezone": "Asia/Kathmandu",
        "default_text_search_config": "german",
        "bytea_output": "escape",
    }
    postgres.execute(f"ALTER DATABASE {name_of(postgres_database)} SET {name} = '{values[name]}'")
    index = PostgresIndex(postgres_database)
    stored = row(ts=1_700_000_000.000001, text="die Häuser")
    put(index, stored)
    assert [one.ts for one in index.rows(SCOPE, EVERYTHING)] == [stored.ts]
    assert names(index.matching(SCOPE, ["die"], EVERYTHING, limit=1)) == ["m1"]
    index.close()


def test_vectors_are_stored_as_they_are_on_every_engine(
    opened: PostgresIndex, postgres: Postgres, postgres_database: str
) -> None:
    vector = [0.1, 1e-30, -7.25]
    put_vectors(opened, {"m1": vector})
    ((stored,),) = postgres.execute("SELECT embedding::real[] FROM conv_messages", database=name_of(postgres_database))
    assert stored == pytest.approx(unit(vector).tolist(), rel=1e-7, abs=0)
