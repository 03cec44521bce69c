"""The file under the SQLite index: how it is opened and shared, how it gets our schema, and how it fails.

apsw brings its own SQLite, which is newer than 3.51.3: before that, two connections that checkpoint at once could
destroy a file, and here several daemons share one. A commit is on the disk when it returns (`synchronous=FULL`): the
journal of a workspace forgets what it has saved, so a row that a power cut took away would never be saved again.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sidecar.core.errors import Fault, StoreUnavailable
from sidecar.stores.durable import make_folder
from sidecar.stores.index_migrations import NOTES, Step, StepState, missing, states

if TYPE_CHECKING:
    import apsw

BUSY_SECONDS = 20.0
_SETTINGS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "trusted_schema=OFF",
    "cell_size_check=ON",
    "secure_delete=ON",  # what was erased is not left in free pages
    "journal_size_limit=16777216",
)


class SqliteFile:
    """A path, and connections to what stands there. Nothing is opened before `connect`."""

    def __init__(self, path: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._busy_seconds = busy_seconds

    def connect(self) -> apsw.Connection:
        """A new connection; the file is made (0600, its folder 0700) when there is none. Raises StoreUnavailable."""
        import apsw

        with faults():
            make_folder(os.path.dirname(self.path))
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            connection = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            with faults():
                self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def identity(self) -> tuple[int, int] | None:
        """Which file stands at the path now; None when there is none."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def migrate(self) -> list[str]:
        """Apply what is missing; answers the names of the steps that were applied. Raises StoreUnavailable."""
        connection = self.connect()
        try:
            with faults():
                todo = missing("sqlite", _applied(connection))
                return [step.name for step in todo if _apply(connection, step)]
        finally:
            connection.close()

    def states(self) -> list[StepState]:
        """Which steps are applied; looking makes no file. Raises StoreUnavailable."""
        if self.identity() is None:
            return states("sqlite", {})
        connection = self.connect()
        try:
            with faults():
                return states("sqlite", _applied(connection))
        finally:
            connection.close()

    def _configure(self, connection: apsw.Connection) -> None:
        import apsw

        connection.set_busy_timeout(round(self._busy_seconds * 1000))
        until = time.monotonic() + self._busy_seconds
        while True:
            try:
                # Before anything is changed, the journal mode included: it may be somebody else's file.
                _applied(connection)
                for setting in _SETTINGS:
                    connection.execute(f"PRAGMA {setting}").fetchall()
                return
            except apsw.BusyError:
                # Whoever makes the file a WAL needs it alone for a moment, and SQLite does not wait for that.
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)


@contextmanager
def faults() -> Generator[None, None, None]:
    """Raise StoreUnavailable about the index for what SQLite and the disk raise."""
    import apsw

    try:
        yield
    except apsw.Error as error:
        fault = _of_sqlite(error)
    except OSError as error:
        fault = _BY_ERRNO.get(error.errno or 0, "unreachable")
    else:
        return
    raise StoreUnavailable("index", _HINTS[fault], fault=fault)


@contextmanager
def transaction(connection: apsw.Connection, begin: str) -> Generator[None, None, None]:
    """One transaction, taken back when the body raises."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk or a failed commit may have taken it back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _applied(connection: apsw.Connection) -> dict[int, str]:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    if "conv_schema" in tables:
        return dict(connection.execute("SELECT number, applied FROM conv_schema").fetchall())
    if tables:
        raise StoreUnavailable(
            "index", "the file is a database, but no index: choose another file", fault="wrong_bytes"
        )
    return {}


def _apply(connection: apsw.Connection, step: Step) -> bool:
    """Apply a step, unless somebody else did so just now."""
    with transaction(connection, "BEGIN IMMEDIATE"):
        if step.number in _applied(connection):
            return False
        connection.execute(NOTES)
        connection.execute(step.sql)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        connection.execute("INSERT INTO conv_schema VALUES (?, ?, ?)", (step.number, step.name, now))
    return True


def _of_sqlite(error: apsw.Error) -> Fault:
    """By the class of the error. Without one it is apsw's own, which says that we have misused it."""
    for known in type(error).__mro__:
        if (fault := _BY_CLASS.get(known.__name__)) is not None:
            return fault
    return "server_error"


_BY_CLASS: dict[str, Fault] = {
    "BusyError": "timed_out",
    "LockedError": "timed_out",
    "FullError": "disk_full",
    "ReadOnlyError": "denied",
    "PermissionsError": "denied",
    "AuthError": "denied",
    "CantOpenError": "unreachable",
    "NotADBError": "wrong_bytes",
    "CorruptError": "wrong_bytes",
    "FormatError": "wrong_bytes",
}

_BY_ERRNO: dict[int, Fault] = {
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
}

_HINTS: dict[Fault, str] = {
    "timed_out": "another program keeps the index's file locked; ask again",
    "disk_full": "the disk of the index is full; make room and ask again",
    "denied": "we may not write the index's file or its folder",
    "unreachable": "the index's file cannot be opened: check --index",
    "wrong_bytes": "the index's file is damaged, or is no SQLite database: choose another, or bring back a copy",
    "server_error": "SQLite answers with an error; ask again",
}
