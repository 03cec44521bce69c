"""Open the index that a location names, and say or change where its schema stands.

Nothing is touched before it is asked. What an index stands on (apsw, psycopg, numpy) is imported at its first use.
"""

from __future__ import annotations

from sidecar.ports import Index
from sidecar.stores.index_location import IndexFile, IndexServer, parse_index
from sidecar.stores.index_migrations import StepState
from sidecar.stores.postgres_index import PostgresIndex
from sidecar.stores.postgres_server import PostgresServer
from sidecar.stores.sqlite_file import SqliteFile
from sidecar.stores.sqlite_index import SqliteIndex


def open_index(location: str) -> Index:
    """The index of an absolute path, or of `postgresql://…`. Raises ValueError, in a sentence that repeats neither."""
    match parse_index(location):
        case IndexFile(path):
            return SqliteIndex(path)
        case IndexServer(url):
            return PostgresIndex(url)


def migrations(location: str) -> list[StepState]:
    """Every step of the schema, in order, and when it was applied; nothing is changed.

    Raises ValueError as `open_index` does, and StoreUnavailable, also when the schema is newer than we know.
    """
    return _place(location).states()


def migrate(location: str) -> list[str]:
    """Apply the steps that are missing, and answer their names. Raises as `migrations` does."""
    return _place(location).migrate()


def _place(location: str) -> SqliteFile | PostgresServer:
    match parse_index(location):
        case IndexFile(path):
            return SqliteFile(path)
        case IndexServer(url):
            return PostgresServer(url)
