"""The index in PostgreSQL when connections end, servers die and come back, and nobody answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from typing import Any

import orjson
import psycopg
import pytest

from sidecar.core.errors import StoreUnavailable
from sidecar.core.index_rows import Commit, IndexRow, Standing
from sidecar.stores import postgres_server
from sidecar.stores.postgres_index import Ear, PostgresIndex
from sidecar.stores.postgres_session import PostgresSession
from tests.faults.tcp_front import TcpFront
from tests.postgres import Postgres
from tests.stores.index_contract import EVERYTHING, OTHER, SCOPE, names, put, row
from tests.stores.test_postgres_server import name_of


@pytest.fixture
def opened(postgres_database: str) -> Iterator[PostgresIndex]:
    index = PostgresIndex(postgres_database, statement_seconds=5)
    index.open()
    yield index
    index.close()


@pytest.fixture(scope="module")
def mortal() -> Iterator[Postgres]:
    """A server of our own, which may be killed. Its commits are with the system before they are acknowledged."""
    server = Postgres()
    server.execute("ALTER SYSTEM SET synchronous_commit = on")
    server.execute("SELECT pg_reload_conf()")
    yield server
    server.stop()


@pytest.fixture
def fragile(mortal: Postgres) -> Iterator[PostgresIndex]:
    """An index on it."""
    index = PostgresIndex(mortal.url(mortal.database()), statement_seconds=1)
    index.open()
    yield index
    index.close()


def cut(postgres: Postgres, url: str) -> int:
    """End every connection to a database but our own; answers how many that were."""
    ended = (
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity"
        f" WHERE datname = '{name_of(url)}' AND pid <> pg_backend_pid()"
    )
    return postgres.execute(ended)[0][0]


def test_connections_are_used_again_and_few(opened: PostgresIndex, postgres: Postgres, postgres_database: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: put(opened, row(f"m{n}")), range(50)))
    assert len(opened._links._waiting) <= 4
    assert cut(postgres, postgres_database) <= 4


def test_after_connections_were_cut_the_next_call_works(
    opened: PostgresIndex, postgres: Postgres, postgres_database: str
) -> None:
    put(opened, row("m1"))
    assert cut(postgres, postgres_database) > 0
    assert put(opened, row("m2")) == 2
    assert cut(postgres, postgres_database) > 0
    assert names(opened.rows(SCOPE, EVERYTHING)) == ["m2", "m1"]


def test_a_connection_cut_unseen_is_replaced_before_anything_is_lost(
    opened: PostgresIndex, postgres: Postgres, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a firewall forgets it: nothing is to be seen until something is sent."""
    monkeypatch.setattr("sidecar.stores.postgres_index.is_quiet", lambda link: True)
    put(opened, row("m1"))
    cut(postgres, postgres_database)
    assert put(opened, row("m2")) == 2
    cut(postgres, postgres_database)
    assert names(opened.rows(SCOPE, EVERYTHING)) == ["m2", "m1"]


def test_a_change_that_is_cut_in_the_middle_did_not_happen(
    opened: PostgresIndex, postgres: Postgres, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce = PostgresSession.announce

    def cut_then_announce(session: PostgresSession, scope: object, change: int) -> None:
        cut(postgres, postgres_database)
        announce(session, SCOPE, change)

    with monkeypatch.context() as patch:
        patch.setattr(PostgresSession, "announce", cut_then_announce)
        with pytest.raises(StoreUnavailable) as refusal:
            put(opened, row("m1"))
    assert refusal.value.fault == "cut_off"
    assert (opened.rows(SCOPE, EVERYTHING), put(opened, row("m1"))) == ([], 1)


def test_who_waits_hears_of_changes_after_its_connection_was_cut(
    opened: PostgresIndex, postgres: Postgres, postgres_database: str
) -> None:
    other = PostgresIndex(postgres_database)
    put(opened, row("m1"))
    assert opened.changed(SCOPE, 0, seconds=0)
    with ThreadPoolExecutor(1) as waiter:
        waiting = waiter.submit(opened.changed, SCOPE, 1, seconds=60)
        cut(postgres, postgres_database)
        put(other, row("m2"))
        assert waiting.result(30) is True
    other.close()


def test_one_ear_can_turn_to_another_conversation(opened: PostgresIndex) -> None:
    put(opened, row())
    put(opened, row(), scope=OTHER)
    asked = [opened.changed(scope, known, seconds=0) for scope in (SCOPE, OTHER) for known in (0, 1)]
    assert asked == [True, False, True, False]


def test_whoever_holds_a_conversation_too_long_is_not_waited_for(postgres_database: str) -> None:
    index = PostgresIndex(postgres_database, statement_seconds=0.2)
    put(index, row("m1"))
    with psycopg.connect(postgres_database) as other:
        other.execute("SELECT * FROM conv_conversations FOR UPDATE")
        with pytest.raises(StoreUnavailable) as refusal:
            put(index, row("m2"))
        assert refusal.value.fault == "timed_out"
        assert names(index.rows(SCOPE, EVERYTHING)) == ["m1"]
    assert put(index, row("m2")) == 2
    index.close()


def test_what_postgresql_takes_back_is_tried_again(opened: PostgresIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    announce = PostgresSession.announce
    tries: list[int] = []

    def fail_once(session: PostgresSession, scope: object, change: int) -> None:
        tries.append(change)
        if len(tries) == 1:
            session._run("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$")
        announce(session, SCOPE, change)

    monkeypatch.setattr(PostgresSession, "announce", fail_once)
    assert (put(opened, row("m1")), tries) == (1, [1, 1])


def test_what_is_always_taken_back_is_refused_in_the_end(
    opened: PostgresIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(session: PostgresSession, scope: object, change: int) -> None:
        session._run("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")

    with monkeypatch.context() as patch:
        patch.setattr(PostgresSession, "announce", fail)
        with pytest.raises(StoreUnavailable, match="too busy"):
            put(opened, row("m1"))
    assert put(opened, row("m1")) == 1


def test_a_server_that_dies_is_unavailable_and_works_again_when_it_is_back(
    fragile: PostgresIndex, mortal: Postgres
) -> None:
    put(fragile, row("m1"))
    mortal.kill()
    faults = []
    for ask in (
        lambda: put(fragile, row("m2")),
        lambda: fragile.standing(SCOPE),
        lambda: fragile.changed(SCOPE, 1, seconds=9),
    ):
        with pytest.raises(StoreUnavailable) as refusal:
            ask()
        faults.append(refusal.value.fault)
    mortal.start()
    assert set(faults) <= {"unreachable", "cut_off"}
    assert (put(fragile, row("m2")), names(fragile.rows(SCOPE, EVERYTHING))) == (2, ["m2", "m1"])
    assert fragile.changed(SCOPE, 1, seconds=9) is True


def test_everything_acknowledged_is_there_after_the_server_died_under_writers(
    fragile: PostgresIndex, mortal: Postgres
) -> None:
    acknowledged: list[str] = []
    many, back = threading.Event(), threading.Event()

    def write(who: int) -> int:
        refusals = 0
        for n in range(60):
            try:
                put(fragile, row(f"{who}-{n}"))
                acknowledged.append(f"{who}-{n}")
            except StoreUnavailable:
                refusals += 1
                back.wait(60)
            if len(acknowledged) > 40:
                many.set()
        return refusals

    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(write, who) for who in range(4)]
        assert many.wait(60)
        mortal.kill()
        mortal.start()
        back.set()
        refusals = sum(one.result(90) for one in writing)
    found = names(fragile.rows(SCOPE, EVERYTHING))
    assert set(acknowledged) <= set(found)
    assert len(found) <= len(acknowledged) + refusals
    # A change whose answer was lost may have happened; but none is missing in between.
    assert fragile.standing(SCOPE).change == len(found)


def test_a_frozen_server_is_not_waited_for_forever(mortal: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.stores.postgres_server.PATIENCE_SECONDS", 0.5)
    index = PostgresIndex(f"{mortal.url(mortal.database())}&connect_timeout=1", statement_seconds=0.5)
    put(index, row("m1"))
    mortal.freeze()
    try:
        faults = []
        for _ in range(2):
            with pytest.raises(StoreUnavailable) as refusal:
                index.commit(SCOPE, Commit())
            faults.append(refusal.value.fault)
    finally:
        mortal.thaw()
    assert faults == ["timed_out", "timed_out"]
    assert put(index, row("m2")) == 2
    index.close()


def test_a_frozen_server_costs_a_change_no_more_than_it_takes_to_notice(
    mortal: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a statement may take: nothing has been asked yet that could take long."""
    monkeypatch.setattr("sidecar.stores.postgres_server.BEGIN_SECONDS", 0.3)
    index = PostgresIndex(f"{mortal.url(mortal.database())}&connect_timeout=1", statement_seconds=600)
    put(index, row("m1"))
    mortal.freeze()
    try:
        with pytest.raises(StoreUnavailable) as refusal:
            put(index, row("m2"))
    finally:
        mortal.thaw()
    assert refusal.value.fault == "timed_out"
    assert put(index, row("m2")) == 2
    index.close()


def test_the_end_does_not_wait_for_who_listens_to_a_frozen_server(
    mortal: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PostgresIndex(mortal.url(mortal.database()), statement_seconds=5)
    put(index, row("m1"))
    reading, read = threading.Event(), Ear._read

    def tell_and_read(ear: Ear, *asked: Any) -> int:
        reading.set()
        return read(ear, *asked)

    assert not index.changed(SCOPE, 1, seconds=0)
    monkeypatch.setattr(Ear, "_read", tell_and_read)
    with ThreadPoolExecutor(1) as waiter:
        mortal.freeze()
        try:
            waiting = waiter.submit(index.changed, SCOPE, 1, seconds=60)
            assert reading.wait(30)
            index.close()
            assert not waiting.done(), "it reads, and nobody waited for it"
        finally:
            mortal.thaw()
        assert waiting.result(30) is False
    assert (index._ear._link, index._ear._wake) == (None, -1)
    assert index.changed(SCOPE, 0, seconds=9) is False


def test_an_answer_that_was_changed_on_its_way_is_none(
    postgres: Postgres, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One bit of each piece: it may be a value, its type, its length, or the word for what follows."""
    index = PostgresIndex(postgres_database, statement_seconds=1)
    index.open()
    for number in range(4):
        put(index, row(f"m{number}", tags=("a", "b")))
    index.close()
    door = TcpFront(postgres.port, seed=8)
    url = f"postgresql://postgres@127.0.0.1:{door.port}/{name_of(postgres_database)}"
    monkeypatch.setattr(postgres_server, "PATIENCE_SECONDS", -1.5)  # what a lie cut short is waited for half a second
    monkeypatch.setattr(postgres_server, "BEGIN_SECONDS", 0.5)
    index = PostgresIndex(url, statement_seconds=2)
    index.open()
    questions: list[Callable[[], Any]] = [
        lambda: index.standing(SCOPE),
        lambda: index.claim(SCOPE, "me", "label", seconds=30),
        lambda: index.rows(SCOPE, EVERYTHING),
        lambda: index.row(SCOPE, "m1"),
        lambda: index.facts(SCOPE),
        lambda: index.matching(SCOPE, ["word"], EVERYTHING, limit=5),
        lambda: index.commit(SCOPE, Commit(next_block=7)),
    ]
    refused = 0
    for ask in questions * 8:
        door.be("through")
        with suppress(StoreUnavailable):  # a busy machine may take longer
            index.standing(SCOPE)  # on a connection that is good until now
        door.be("lying")
        try:
            answer = ask()
        except StoreUnavailable:
            refused += 1
        else:
            for one in answer if isinstance(answer, list) else [answer]:
                assert one is None or orjson.dumps(_plain(one))
    index.close()
    door.stop()
    assert refused


def _plain(answer: Any) -> Any:
    """The answer as JSON has it, for what is of another type than it says is caught by that."""
    match answer:
        case Standing():
            assert {type(answer.change), type(answer.next_block), type(answer.generation)} == {int}
            assert {type(answer.holder), type(answer.label)} == {str}
        case IndexRow():
            assert {type(answer.ttl_days), type(answer.change)} == {int}
            assert {type(value) for value in (answer.message_id, answer.text, answer.key, *answer.tags)} == {str}
        case _:
            pass
    return asdict(answer) if is_dataclass(answer) and not isinstance(answer, type) else answer
