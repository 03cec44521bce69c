"""The way to a PostgreSQL database: connections that cannot hang, and its schema.

libpq finds users and passwords where people keep them: in the URL, `~/.pgpass`, `PGPASSWORD`, service files.
"""

from __future__ import annotations

import select
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from sidecar.core.errors import StoreUnavailable
from sidecar.stores.index_migrations import NOTES, Step, StepState, missing, states
from sidecar.stores.postgres_faults import connecting, faults

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 3
STATEMENT_SECONDS = 20.0
PATIENCE_SECONDS = 5.0  # beyond that, for a server that does not even say that it took too long
BEGIN_SECONDS = 5.0  # for what waits for nobody: a server that is there begins a transaction at once
APPLYING, FIRST_VECTOR = 1, 2
_LOCKS = 0x53494458  # the first half of our advisory locks

# What a firewall forgets, or a machine that is gone, is noticed in half a minute and not in two hours.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "fallback_application_name": "artifact-sidecar",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "client_encoding": "UTF8",
}


class PostgresServer:
    """A URL, and connections to what answers there. Nothing is opened before `connect`."""

    def __init__(self, url: str, *, statement_seconds: float = STATEMENT_SECONDS) -> None:
        self._url = url
        self._seconds = statement_seconds

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A new connection in autocommit mode. Raises StoreUnavailable."""
        from psycopg.conninfo import conninfo_to_dict

        with connecting():
            settings: dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(self._url)}
            link = _bounded(self._seconds + PATIENCE_SECONDS).connect(
                **settings, autocommit=True, prepare_threshold=None
            )
        try:
            with faults():
                limits = {
                    "statement_timeout": f"{round(self._seconds * 1000)}ms",
                    "idle_in_transaction_session_timeout": f"{round(self._seconds * 2000)}ms",
                    "default_transaction_isolation": "read committed",
                    "timezone": "UTC",
                    "datestyle": "ISO",  # the only one that psycopg reads
                }
                setting = ", ".join(["set_config(%s, %s, false)"] * len(limits))
                values = [part for pair in limits.items() for part in pair]
                link.execute(f"SELECT {setting}".encode(), values)
        except BaseException:
            link.close()
            raise
        return link

    def migrate(self) -> list[str]:
        """Apply what is missing; answers the names of the steps that were applied. Raises StoreUnavailable."""
        with self.connect() as link, faults():
            _require_unicode(link)
            todo = missing("postgresql", _applied(link))
            return [step.name for step in todo if _apply(link, step)]

    def states(self) -> list[StepState]:
        """Which steps are applied. Raises StoreUnavailable."""
        with self.connect() as link, faults():
            return states("postgresql", _applied(link))


def begin(link: psycopg.Connection[Any]) -> None:
    """Begin a transaction, or find out soon that nobody is there any more. Raises what psycopg raises."""
    usual, link.patience = link.patience, BEGIN_SECONDS  # type: ignore[attr-defined]
    try:
        link.execute("BEGIN")
    finally:
        link.patience = usual  # type: ignore[attr-defined]


def is_quiet(link: psycopg.Connection[Any]) -> bool:
    """Whether a link that nobody uses is as it was left: a server that says anything then says good-bye."""
    if link.closed:
        return False
    poll = select.poll()
    poll.register(link.pgconn.socket, select.POLLIN)
    return not poll.poll(0)


@cache
def _bounded(seconds: float) -> type[psycopg.Connection[tuple[Any, ...]]]:
    """A connection that waits so long for any answer, and no longer."""
    import psycopg

    class Bounded(psycopg.Connection[tuple[Any, ...]]):
        patience = seconds

        def wait(self, gen: Any, interval: float = 1.0, timeout: float | None = None) -> Any:
            until = monotonic() + self.patience
            try:
                return super().wait(gen, interval, self.patience if timeout is None else timeout)
            except psycopg.OperationalError as error:
                if timeout is None and not error.sqlstate and monotonic() >= until:
                    raise psycopg.errors.QueryCanceled("no answer in time") from None
                raise

    return cast("type[psycopg.Connection[tuple[Any, ...]]]", Bounded)


def _require_unicode(link: psycopg.Connection[tuple[Any, ...]]) -> None:
    if link.info.parameter_status("server_encoding") != "UTF8":
        raise StoreUnavailable("index", "the database is not in UTF-8: make one with ENCODING 'UTF8'")


def _applied(link: psycopg.Connection[tuple[Any, ...]]) -> dict[int, str]:
    # Not `to_regclass`, which may answer from memory what was so before we waited for a lock.
    there = "SELECT FROM pg_class WHERE relname = 'conv_schema' AND pg_table_is_visible(oid)"
    if not link.execute(there).fetchall():
        return {}
    return dict(link.execute("SELECT number, applied FROM conv_schema").fetchall())


def _apply(link: psycopg.Connection[tuple[Any, ...]], step: Step) -> bool:
    """Apply a step, unless somebody else did so just now."""
    with link.transaction():
        link.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_LOCKS, APPLYING))
        if step.number in _applied(link):
            return False
        link.execute(NOTES)
        link.execute(step.sql.encode())
        moment = "to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"+00:00\"')"
        link.execute(f"INSERT INTO conv_schema VALUES (%s, %s, {moment})".encode(), (step.number, step.name))
    return True


def lock_shared(link: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Until the end of the transaction, beside others who put vectors of the length that is settled."""
    link.execute("SELECT pg_advisory_xact_lock_shared(%s, %s)", (_LOCKS, FIRST_VECTOR))


def lock_alone(link: psycopg.Connection[tuple[Any, ...]]) -> None:
    """The same, alone, to settle which length vectors have."""
    link.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_LOCKS, FIRST_VECTOR))
