"""What the failures of PostgreSQL and of the way to it are called, as a real server makes them."""

from __future__ import annotations

import psycopg
import pytest

from sidecar.core.errors import StoreUnavailable
from sidecar.stores.postgres_faults import connecting, faults
from sidecar.stores.postgres_server import PostgresServer
from tests.postgres import PASSWORD, Postgres


def refused_at(url: str) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as refusal:
        PostgresServer(url).connect()
    assert PASSWORD not in str(refusal.value)
    assert (refusal.value.about, refusal.value.__cause__) == ("index", None)
    return refusal.value


@pytest.fixture(scope="module")
def locked(postgres: Postgres) -> Postgres:
    """The server with a role `locked` that has a password."""
    postgres.execute(f"CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'")
    return postgres


def test_with_the_password_the_door_opens(locked: Postgres) -> None:
    PostgresServer(locked.loopback_url(user="locked", password=PASSWORD)).connect().close()


def test_libpq_finds_the_password_by_itself(locked: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    PostgresServer(locked.loopback_url(user="locked")).connect().close()


@pytest.mark.parametrize("password", ["", f"not-{PASSWORD}"])
def test_without_the_password_we_are_denied(locked: Postgres, password: str) -> None:
    assert refused_at(locked.loopback_url(user="locked", password=password)).fault == "denied"


def test_a_role_that_is_not_there_is_denied(postgres: Postgres) -> None:
    assert refused_at(postgres.url(user="nobody_here")).fault == "denied"


def test_a_database_that_is_not_there_is_said_to_be_missing(postgres: Postgres) -> None:
    refusal = refused_at(postgres.url("nothing_here"))
    assert (refusal.fault, "no such database" in refusal.hint) == ("server_error", True)


@pytest.mark.parametrize(
    "url",
    [f"postgresql://u:{PASSWORD}@127.0.0.1:1/x", "postgresql:///x?host=/nowhere", "postgresql://nobody.invalid/x"],
)
def test_where_nobody_answers_is_unreachable(url: str) -> None:
    assert refused_at(url).fault == "unreachable"


def test_a_url_that_libpq_cannot_read_is_not_repeated() -> None:
    refusal = refused_at(f"postgresql://u:{PASSWORD}@127.0.0.1:1/x?{PASSWORD}=1")
    assert "parameter" in refusal.hint


STATEMENTS = [
    ("CREATE EXTENSION no_such_thing", "server_error", "pgvector"),
    ("SELECT 'a'::no_such_type", "server_error", "vector"),
    ("SELECT * FROM no_such_table", "server_error", "gone"),
    ("SET statement_timeout = 1; SELECT pg_sleep(30)", "timed_out", ""),
    ("SELECT pg_terminate_backend(pg_backend_pid())", "cut_off", ""),
    ("SELECT 1/0", "server_error", "22012"),
    ("BEGIN READ ONLY; CREATE TABLE t (x int)", "denied", "only reads"),
    ("SET ROLE pg_monitor; CREATE TABLE pg_catalog.t (x int)", "denied", "does not let us"),
    ("DO $$ BEGIN RAISE SQLSTATE '53100'; END $$", "disk_full", "room"),
    ("DO $$ BEGIN RAISE SQLSTATE '53300'; END $$", "server_error", "no more connections"),
    ("DO $$ BEGIN RAISE SQLSTATE 'XX001'; END $$", "server_error", "damaged"),
    ("DO $$ BEGIN RAISE SQLSTATE '57P03'; END $$", "unreachable", ""),
    ("DO $$ BEGIN RAISE SQLSTATE '08006'; END $$", "cut_off", ""),
    ("DO $$ BEGIN RAISE SQLSTATE '28000'; END $$", "denied", ""),
]


@pytest.mark.parametrize(("statement", "fault", "says"), STATEMENTS, ids=[statement for statement, *_ in STATEMENTS])
def test_each_failure_of_a_statement_has_its_name(postgres: Postgres, statement: str, fault: str, says: str) -> None:
    link = PostgresServer(postgres.url()).connect()
    with pytest.raises(StoreUnavailable) as refusal, faults():
        link.execute(statement.encode())
    assert (refusal.value.fault, says in refusal.value.hint, refusal.value.about) == (fault, True, "index")
    link.close()


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("FATAL:  the database system is starting up", "unreachable"),
        ("FATAL:  sorry, too many clients already", "server_error"),
        ("FATAL:  no pg_hba.conf entry for host", "denied"),
        ("FATAL:  etwas anderes", "server_error"),
        ("Connection refused", "unreachable"),
    ],
)
def test_what_a_server_says_at_the_door_has_its_name(said: str, fault: str) -> None:
    with pytest.raises(StoreUnavailable) as refusal, connecting():
        raise psycopg.OperationalError(said)
    assert (refusal.value.fault, said in str(refusal.value)) == (fault, False)
