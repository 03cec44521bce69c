"""Connections to PostgreSQL that cannot hang, and its schema."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sidecar.core.errors import StoreUnavailable
from sidecar.core.index_rows import Commit
from sidecar.stores.index_migrations import steps
from sidecar.stores.indexes import open_index
from sidecar.stores.postgres_faults import faults
from sidecar.stores.postgres_server import (
    _LOCKS,
    APPLYING,
    PostgresServer,
    _applied,
    _apply,
    is_quiet,
    lock_alone,
    lock_shared,
)  # fmt: skip
from tests.postgres import Postgres
from tests.stores.index_contract import EVERYTHING, SCOPE, names, put, row


def name_of(url: str) -> str:
    return url.rpartition("@/")[2].partition("?")[0]


@pytest.fixture
def server(postgres_database: str) -> PostgresServer:
    return PostgresServer(postgres_database)


def refused(server: PostgresServer) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as refusal:
        server.migrate()
    return refusal.value


def test_a_statement_has_a_limit_on_the_server(postgres_database: str) -> None:
    link = PostgresServer(postgres_database, statement_seconds=0.05).connect()
    with pytest.raises(StoreUnavailable) as refusal, faults():
        link.execute("SELECT pg_sleep(60)")
    assert refusal.value.fault == "timed_out"
    assert link.execute("SELECT 1").fetchall() == [(1,)]
    link.close()


def test_a_newer_schema_is_refused(server: PostgresServer, postgres: Postgres, postgres_database: str) -> None:
    server.migrate()
    postgres.execute("INSERT INTO conv_schema VALUES (99, '0099_later', 'then')", database=name_of(postgres_database))
    assert "schema 99" in refused(server).hint
    with pytest.raises(StoreUnavailable, match="schema 99"):
        server.states()


def test_a_step_that_fails_leaves_nothing(server: PostgresServer, postgres: Postgres, postgres_database: str) -> None:
    name = name_of(postgres_database)
    postgres.execute("CREATE TABLE conv_facts (theirs int)", database=name)
    assert "not ours" in refused(server).hint
    tables = "SELECT relname FROM pg_class WHERE relname LIKE 'conv\\_%' AND relkind = 'r'"
    assert postgres.execute(tables, database=name) == [("conv_facts",)]


def test_a_database_in_another_encoding_is_refused(postgres: Postgres) -> None:
    name = f"{postgres.database()}_latin"
    postgres.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' STRATEGY file_copy")
    assert "UTF-8" in refused(PostgresServer(postgres.url(name))).hint
    postgres.drop(name)


def test_a_server_that_only_reads_denies_changes_and_answers_questions(
    postgres: Postgres, postgres_database: str
) -> None:
    name = name_of(postgres_database)
    reading = f"ALTER DATABASE {name} SET default_transaction_read_only = on"
    postgres.execute(reading)
    assert refused(PostgresServer(postgres_database)).fault == "denied"
    postgres.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    index = open_index(postgres_database)
    put(index, row())
    index.close()
    postgres.execute(reading)
    index = open_index(postgres_database)
    assert names(index.rows(SCOPE, EVERYTHING)) == ["m1"]
    with pytest.raises(StoreUnavailable) as refusal:
        put(index, row("m2"))
    assert (refusal.value.fault, "only reads" in refusal.value.hint) == ("denied", True)
    index.close()


@pytest.fixture
def guest(postgres: Postgres, postgres_database: str) -> Iterator[str]:
    """The URL of the database for a role that may log in, and nothing else."""
    role = f"guest_{name_of(postgres_database)}"
    postgres.execute(f"CREATE ROLE {role} LOGIN")
    yield postgres.url(name_of(postgres_database), user=role)
    postgres.execute(f"DROP OWNED BY {role}", database=name_of(postgres_database))
    postgres.execute(f"DROP ROLE {role}")


def test_who_may_not_make_tables_is_denied(guest: str) -> None:
    assert refused(PostgresServer(guest)).fault == "denied"


def test_who_may_only_use_the_tables_can_work(
    guest: str, server: PostgresServer, postgres: Postgres, postgres_database: str
) -> None:
    """The owner of the database has made them; the daemons need no right to do so."""
    server.migrate()
    name, role = name_of(postgres_database), f"guest_{name_of(postgres_database)}"
    postgres.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}", database=name)
    index = open_index(guest)
    index.open()
    assert index.commit(SCOPE, Commit()) == 1
    index.close()


def test_who_waited_while_another_applied_a_step_sees_that_it_is_applied(
    server: PostgresServer, postgres: Postgres, postgres_database: str
) -> None:
    """However much PostgreSQL remembers in that connection of how it was before."""
    step, *_ = steps("postgresql")
    late, early = server.connect(), server.connect()
    assert _applied(late) == {}
    waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with ThreadPoolExecutor(1) as threads:
        with early.transaction():
            early.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_LOCKS, APPLYING))
            applying = threads.submit(_apply, late, step)
            while not postgres.execute(waits, database=name_of(postgres_database)):
                assert not applying.done()
            assert _apply(early, step)
        assert applying.result(30) is False
    late.close()
    early.close()


def test_the_steps_run_beside_other_tables(server: PostgresServer, postgres: Postgres, postgres_database: str) -> None:
    postgres.execute("CREATE TABLE theirs (x int)", database=name_of(postgres_database))
    assert server.migrate() == [step.name for step in steps("postgresql")]


def test_a_link_is_quiet_until_the_server_says_good_bye(server: PostgresServer, postgres: Postgres) -> None:
    link = server.connect()
    assert is_quiet(link)
    postgres.execute(f"SELECT pg_terminate_backend({link.info.backend_pid}, 10000)")
    assert not is_quiet(link)
    link.close()
    assert not is_quiet(link)


def test_the_locks_of_the_first_vector_are_of_one_transaction(server: PostgresServer) -> None:
    one, other = server.connect(), PostgresServer(server._url, statement_seconds=0.05).connect()
    with one.transaction():
        lock_shared(one)
        with other.transaction():
            lock_shared(other)
        with pytest.raises(StoreUnavailable), faults(), other.transaction():
            lock_alone(other)
    with other.transaction():
        lock_alone(other)
    one.close()
    other.close()
