"""What tables the journal has: how a new file gets them, an older one is lifted, and a newer one is left alone."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from sidecar.core.errors import JournalUnavailable
from sidecar.stores import journal_chapters as chapters
from sidecar.stores.durable import sync_folder


class JournalNewer(Exception):  # noqa: N818
    """Written by a later version. Nothing was changed; the daemon exits 65 (spec section 13)."""


class JournalDamaged(Exception):  # noqa: N818
    """What is stored is not what was written: a hash differs or SQLite cannot read its own structure."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema number, the statements that make a new file of it, and those that lift a file of number n to n+1."""

    number: int
    create: tuple[str, ...]
    migrations: Mapping[int, tuple[str, ...]]


# A number for every change of what the rows may say, so that an older daemon refuses what it could not read. 2: what is
# saved and what was used. 3: chapters, which an older daemon would not keep up.
SCHEMA = Schema(
    number=3,
    create=(
        "CREATE TABLE journal(seq INTEGER PRIMARY KEY, kind TEXT, head BLOB, body BLOB, h INTEGER)",
        chapters.CREATE,
    ),
    migrations={1: (), 2: (chapters.CREATE,)},
)


def free_name(path: str, label: str) -> str:
    """`<path>.<label>-<time>`, a name that nobody has yet."""
    stem = f"{path}.{label}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    return next(name for n in count(1) if not os.path.lexists(name := stem if n == 1 else f"{stem}-{n}"))


def agree(connection: sqlite3.Connection, path: str, schema: Schema) -> None:
    """Bring the file to `schema`: nothing is written before it is known to be ours and not newer."""
    ((number,),) = connection.execute("PRAGMA user_version").fetchall()
    if number > schema.number:
        raise JournalNewer(f"{path} has schema {number}; this version reads up to {schema.number}")
    # What SQLite made for itself, as ANALYZE does, is no damage.
    made = connection.execute("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").fetchall()
    told = {sql for (sql,) in made}
    journal, *others = (statement.replace("IF NOT EXISTS ", "") for statement in schema.create)  # as SQLite keeps them
    possible = {journal, *others} if number else set[str]()
    needed = possible if number in (0, schema.number) else {journal}
    if number < 0 or not needed <= told <= possible:
        raise JournalDamaged(f"{path} has no tables as we make them")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA wal_autocheckpoint=1000")
    if number == 0:
        _upgrade(connection, schema.create, schema.number)
        sync_folder(os.path.dirname(path))
    elif number < schema.number:
        _copy(connection, free_name(path, f"schema{number}"))
        steps = [schema.migrations[step] for step in range(number, schema.number)]
        _upgrade(connection, [statement for step in steps for statement in step], schema.number)


def _upgrade(connection: sqlite3.Connection, statements: Sequence[str], number: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version={number}")
        connection.execute("COMMIT")
    except BaseException as error:
        take_back(connection)
        if isinstance(error, sqlite3.OperationalError):
            raise JournalUnavailable("journal", f"it cannot be brought to schema {number}: {error}") from error
        raise


def _copy(connection: sqlite3.Connection, path: str) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    target = sqlite3.connect(path)
    try:
        connection.backup(target)
    finally:
        target.close()
    sync_folder(os.path.dirname(path))


def take_back(connection: sqlite3.Connection) -> None:
    """Nothing is left of a transaction that failed."""
    if connection.in_transaction:  # a full or failing disk may have taken it back already
        connection.execute("ROLLBACK")
