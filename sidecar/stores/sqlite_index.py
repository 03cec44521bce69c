"""The index in one SQLite file, which any number of daemons on this machine may share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeVar

from sidecar.core.errors import StoreUnavailable
from sidecar.core.index_rows import Scope
from sidecar.stores.index_links import Links
from sidecar.stores.index_session import Session
from sidecar.stores.index_texts import checked_scope
from sidecar.stores.row_index import ANSWERS, RowIndex
from sidecar.stores.sqlite_file import BUSY_SECONDS, SqliteFile, faults, transaction
from sidecar.stores.sqlite_session import SqliteSession

if TYPE_CHECKING:
    import apsw

T = TypeVar("T")

LOOK_SECONDS = 0.1  # between two looks whether anybody has written
FOLD_MILLISECONDS = 1000  # for those who read just now; else the next commit that needs the room overwrites the log


class SqliteIndex(RowIndex):
    """The port `Index`. Nothing is touched before `open` or the first question."""

    kind: Literal["sqlite", "postgresql"] = "sqlite"

    def __init__(self, path: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._file = SqliteFile(path, busy_seconds=busy_seconds)
        self._links: Links[apsw.Connection] = Links(_close)
        self._writing = threading.Lock()  # threads of ours wait here and not in SQLite, which makes them sleep
        self._opening = threading.Lock()
        self._opened: tuple[int, int] | None = None  # which file it was
        self._closed = threading.Event()

    def open(self) -> None:
        """Make the file or bring it to our schema. Raises StoreUnavailable."""
        with self._opening:
            self._require_open()
            self._file.migrate()
            # Connections to a file that stood here before would write where nobody looks.
            self._links.close()
            self._links = Links(_close)
            self._opened = self._file.identity()

    def forget(self, scope: Scope, *, turn_id: str | None = None) -> list[str]:
        """See the port. What was removed does not go on standing in the log beside the file either."""
        keys = super().forget(scope, turn_id=turn_id)
        _, link = self._link()
        try:
            with faults():
                link.set_busy_timeout(FOLD_MILLISECONDS)
                link.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            link.close()
        return keys

    def changed(self, scope: Scope, known: int, *, seconds: float) -> bool:
        """Wait at most so long until the conversation has changed beyond this number; see the port."""
        checked_scope(scope)
        if self._closed.is_set():
            return False
        until = time.monotonic() + seconds
        _, link = self._link()
        try:
            with faults():
                return self._await(link, scope, known, until)
        finally:
            link.close()

    def close(self) -> None:
        """Let go of the file; whoever waits for changes is told that there are none."""
        self._closed.set()
        self._links.close()

    def _await(self, link: apsw.Connection, scope: Scope, known: int, until: float) -> bool:
        session = SqliteSession(link)
        seen = None
        while True:
            # The version moves when another connection commits, of ours or of anybody: it costs no look at a table.
            version = link.execute("PRAGMA data_version").fetchall()
            if version != seen:
                conversation = session.find(scope)
                if conversation is not None and conversation.change > known:
                    return True
            seen = version
            left = until - time.monotonic()
            if left <= 0 or self._closed.wait(min(left, LOOK_SECONDS)):
                return False

    def _ask(self, work: Callable[[Session], T]) -> T:
        return self._run("BEGIN", work)

    def _change(self, work: Callable[[Session], T]) -> T:
        with self._writing:
            return self._run("BEGIN IMMEDIATE", work)

    def _run(self, begin: str, work: Callable[[Session], T]) -> T:
        links, link = self._link()
        try:
            with faults(), transaction(link, begin):
                answer = work(SqliteSession(link))
        except ANSWERS:
            links.give_back(link)
            raise
        except BaseException:
            links.discard(link)
            raise
        links.give_back(link)
        return answer

    def _link(self) -> tuple[Links[apsw.Connection], apsw.Connection]:
        """A connection to the file that stands at the path now, whoever put it there, and where it goes afterwards."""
        self._require_open()
        if self._opened is None or self._file.identity() != self._opened:
            self.open()
        links = self._links
        return links, links.take() or self._file.connect()

    def _require_open(self) -> None:
        if self._closed.is_set():
            raise StoreUnavailable("index", "it is closed", fault="unreachable")


def _close(connection: apsw.Connection) -> None:
    connection.close()
