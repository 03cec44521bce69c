"""What a person wants to know of an index before trusting it: its engine, whether it can be written, what is in it.

Nothing is made and nothing is changed.
"""

from __future__ import annotations

from typing import NamedTuple

from sidecar.core.errors import StoreUnavailable
from sidecar.stores.index_location import IndexFile, IndexServer, parse_index
from sidecar.stores.postgres_faults import faults as postgres_faults
from sidecar.stores.postgres_server import PostgresServer
from sidecar.stores.sqlite_file import SqliteFile, faults, transaction


class Engine(NamedTuple):
    """`vectors` says what compares vectors; empty where nothing can."""

    version: str
    vectors: str
    writable: bool


class Census(NamedTuple):
    """`latest` is the moment of the newest row, in seconds since the epoch; None without any."""

    conversations: int
    rows: int
    latest: float | None


def engine(location: str) -> Engine:
    """What is there. Raises StoreUnavailable, and ValueError for a location that is none."""
    match parse_index(location):
        case IndexFile(path):
            connection = SqliteFile(path).connect()
            try:
                with faults():
                    ((version,),) = connection.execute("SELECT sqlite_version()").fetchall()
                try:
                    with faults(), transaction(connection, "BEGIN IMMEDIATE"):
                        pass
                except StoreUnavailable as refusal:
                    if refusal.fault not in ("denied", "disk_full"):
                        raise
                    return Engine(f"SQLite {version}", "numpy", writable=False)
            finally:
                connection.close()
            return Engine(f"SQLite {version}", "numpy", writable=True)
        case IndexServer(url):
            with PostgresServer(url).connect() as link, postgres_faults():
                ((version, vectors, writable),) = link.execute(_ENGINE.encode()).fetchall()
            return Engine(f"PostgreSQL {version}", f"pgvector {vectors}" if vectors else "", writable=bool(writable))


def census(location: str) -> Census:
    """How much is in an index whose schema is made. Raises StoreUnavailable."""
    match parse_index(location):
        case IndexFile(path):
            connection = SqliteFile(path).connect()
            try:
                with faults():
                    ((conversations, rows, latest),) = connection.execute(_SQLITE).fetchall()
            finally:
                connection.close()
        case IndexServer(url):
            with PostgresServer(url).connect() as link, postgres_faults():
                ((conversations, rows, latest),) = link.execute(_POSTGRESQL.encode()).fetchall()
    return Census(conversations, rows, float(latest) if latest is not None else None)


_COUNTS = "SELECT (SELECT count(*) FROM conv_conversations), (SELECT count(*) FROM conv_messages), "
_SQLITE = f"{_COUNTS}(SELECT max(ts) / 1e6 FROM conv_messages)"
_POSTGRESQL = f"{_COUNTS}(SELECT extract(epoch FROM max(ts)) FROM conv_messages)"
_ENGINE = """
SELECT split_part(current_setting('server_version'), ' ', 1),
       (SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector'),
       current_setting('transaction_read_only') = 'off' AND has_schema_privilege(current_schema(), 'CREATE')
"""
