"""The index in PostgreSQL with pgvector, for more than one machine."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sidecar.core.errors import StoreUnavailable
from sidecar.core.index_rows import Scope
from sidecar.stores.index_links import Links
from sidecar.stores.index_session import Session
from sidecar.stores.index_texts import checked_scope
from sidecar.stores.postgres_faults import faults
from sidecar.stores.postgres_server import STATEMENT_SECONDS, PostgresServer, begin, is_quiet
from sidecar.stores.postgres_session import PostgresSession, channel
from sidecar.stores.row_index import ANSWERS, RowIndex

if TYPE_CHECKING:
    import psycopg

    Link = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")

TRIES = 3  # of what PostgreSQL has taken back and asks to be tried again
_PENDING, _FAILED = 2, 3  # what libpq calls PQTRANS_INTRANS and PQTRANS_INERROR


class PostgresIndex(RowIndex):
    """The port `Index`. Nothing is touched before `open` or the first question.

    When the answer to a COMMIT is lost, nobody knows whether it happened: StoreUnavailable with `cut_off` says that it
    did not, and may be wrong. Everything that the port puts may be put again.
    """

    kind: Literal["sqlite", "postgresql"] = "postgresql"

    def __init__(self, url: str, *, statement_seconds: float = STATEMENT_SECONDS) -> None:
        self._server = PostgresServer(url, statement_seconds=statement_seconds)
        self._links: Links[Link] = Links(_close)
        self._opening = threading.Lock()
        self._opened = False
        self._ear = Ear(self._server)

    def open(self) -> None:
        """Make the tables or bring them to our schema. Raises StoreUnavailable."""
        with self._opening:
            self._server.migrate()
            self._opened = True

    def changed(self, scope: Scope, known: int, *, seconds: float) -> bool:
        """Wait at most so long until the conversation has changed beyond this number; see the port."""
        checked_scope(scope)
        if self._links.closed:
            return False
        self._require_open()
        return self._ear.await_change(scope, known, seconds=seconds)

    def close(self) -> None:
        """Let go of the connections; whoever waits for changes is told that there are none."""
        self._links.close()
        self._ear.close()

    def _ask(self, work: Callable[[Session], T]) -> T:
        self._require_open()
        link = self._link()
        try:
            return self._question(link, work)
        except StoreUnavailable as refusal:
            if refusal.fault != "cut_off":
                raise
        # A question changes nothing, so it may be asked again on a connection that is new.
        self._links.discard_waiting()
        return self._question(self._server.connect(), work)

    def _question(self, link: Link, work: Callable[[Session], T]) -> T:
        return self._used(link, lambda: work(PostgresSession(link)))

    def _change(self, work: Callable[[Session], T]) -> T:
        self._require_open()
        for left in reversed(range(TRIES)):
            link = self._begun()
            try:
                return self._used(link, lambda link=link: _committed(link, work))
            except _Again:
                if not left:
                    raise
        raise AssertionError("the last try answers or raises")

    def _used(self, link: Link, work: Callable[[], T]) -> T:
        """Work on a link, which is kept only when it is as good as before."""
        try:
            with faults():
                answer = work()
        except ANSWERS:
            self._links.give_back(link)
            raise
        except BaseException:
            self._links.discard(link)
            raise
        self._links.give_back(link)
        return answer

    def _begun(self) -> Link:
        """A link on which a transaction has begun. While it has not, another link is as good."""
        for link in (self._link(), None):
            link = link or self._server.connect()
            try:
                with faults():
                    begin(link)
                return link
            except StoreUnavailable as refusal:
                _close(link)
                self._links.discard_waiting()
                failure = refusal
        raise failure

    def _link(self) -> Link:
        while (link := self._links.take()) is not None:
            if is_quiet(link):
                return link
            self._links.discard(link)
        return self._server.connect()

    def _require_open(self) -> None:
        if self._links.closed:
            raise StoreUnavailable("index", "it is closed", fault="unreachable")
        if not self._opened:
            self.open()


class _Again(StoreUnavailable):
    """PostgreSQL took the transaction back because of another one: it may be tried again as it is."""

    kind = "store_unavailable"


def _committed(link: Link, work: Callable[[Session], T]) -> T:
    import psycopg

    try:
        answer = work(PostgresSession(link))
        link.execute("COMMIT")
        return answer
    except BaseException as error:
        # Anything else is a link that is broken, or still waits for an answer: it is let go of, which takes all back.
        if link.info.transaction_status in (_PENDING, _FAILED):
            link.execute("ROLLBACK")
        if isinstance(error, psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure):
            raise _Again("index", "PostgreSQL is too busy with others; ask again") from None
        raise


def _close(link: Link) -> None:
    link.close()


class Ear:
    """One connection that listens. PostgreSQL only rings: whatever it rings for is read from the table."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._waiting = threading.Lock()
        self._link: Link | None = None
        self._channel = ""
        self._closed = False
        self._rang = False
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def await_change(self, scope: Scope, known: int, *, seconds: float) -> bool:
        """Raises StoreUnavailable when the connection is lost and cannot be had again at once."""
        try:
            with self._waiting:
                return self._await(scope, known, time.monotonic() + seconds)
        finally:
            if self._closed:
                self._let_go()

    def close(self) -> None:
        """Whoever waits is told that nothing has changed. Does not wait for whoever reads from a server that hangs."""
        if self._closed:
            return
        os.eventfd_write(self._wake, 1)
        self._closed = True  # from now on whoever waits may be the one to let go, of what wakes it too
        self._let_go()

    def _let_go(self) -> None:
        """Let go of everything; whoever still waits does so afterwards."""
        if not self._waiting.acquire(blocking=False):
            return
        try:
            self._hang_up()
            wake, self._wake = self._wake, -1
            if wake >= 0:
                os.close(wake)
        finally:
            self._waiting.release()

    def _await(self, scope: Scope, known: int, until: float) -> bool:
        if self._closed:
            return False
        if self._link is not None:
            try:
                return self._listen(scope, known, until)
            except StoreUnavailable:
                self._hang_up()
        if self._closed:
            return False
        self._link, self._channel = self._server.connect(), ""
        self._link.add_notify_handler(self._ring)
        try:
            return self._listen(scope, known, until)
        except StoreUnavailable:
            self._hang_up()
            raise

    def _listen(self, scope: Scope, known: int, until: float) -> bool:
        link = self._link
        assert link is not None
        poll = select.poll()
        poll.register(link.pgconn.socket, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        with faults():
            self._tune(link, channel(scope))
            while not self._closed:
                self._rang = False
                if self._read(link, scope) > known:
                    return True
                left = until - time.monotonic()
                if left <= 0:
                    return False
                # What rang while we read was taken from the socket by the reading: then it is read again, at once.
                if not (self._rang or link.pgconn.notifies()):
                    poll.poll(left * 1000)
                    link.pgconn.consume_input()
                while link.pgconn.notifies():
                    pass
        return False

    def _ring(self, _: object) -> None:
        self._rang = True

    def _tune(self, link: Link, name: str) -> None:
        if self._channel != name:
            link.execute("UNLISTEN *")
            link.execute(f"LISTEN {name}".encode())
            self._channel = name

    def _read(self, link: Link, scope: Scope) -> int:
        conversation = PostgresSession(link).find(scope)
        return 0 if conversation is None else conversation.change

    def _hang_up(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()
