"""The file under the journal: its lock, its rows and the hash in each of them.

One SQLite connection in WAL mode that nobody shares. `synchronous=FULL` makes COMMIT mean "on the disk"; the exclusive
lock mode does without a shared-memory file. SQLite's own checks find a broken structure but no flipped bit inside a
row, so every row carries a hash of all it says (spec section 10), and every chapter of rows one of all of theirs.

A `flock` on a file beside it decides who owns the journal: SQLite's POSIX locks are dropped as soon as the owner opens
and closes the database once more in any way, and a process id proves nothing.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from itertools import accumulate, chain, takewhile
from typing import cast
from urllib.parse import quote

from xxhash import xxh3_64_intdigest as xxh3

from sidecar.core.errors import JournalUnavailable
from sidecar.ports import Record
from sidecar.stores import journal_chapters as chapters
from sidecar.stores.journal_chapters import Chapter, OpenChapter, Row, Sealed
from sidecar.stores.journal_schema import SCHEMA, JournalDamaged, Schema, agree, take_back

DATABASE = "journal.db"
LOCK = "journal.lock"
PAGE = 4096

_ROWS_PER_INSERT = 64
_ROWS_PER_FETCH = 512
_LAST = 2**63 - 1
_READ_SIZES = (1, 4, 16, 64, 256)
ROWS_AT_ONCE = _READ_SIZES[-1]
# What SQLite says of a damaged file quotes it, and what it quotes may be no text.
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
# The plain error comes of statements that make no sense to SQLite: ours do, unless its tables are not ours any more.
_NO_DATABASE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
_FORMATS = (b"", b"\1\1", b"\2\2")  # what the header of a file that SQLite both reads and writes says at 18


class JournalLocked(Exception):  # noqa: N818 - named as the port's callers speak of it
    """Somebody else owns this journal. `owner` is the process id written into the lock file, for people only."""

    def __init__(self, path: str, owner: str) -> None:
        super().__init__(f"{path} is held by another process ({owner or 'unknown'})")
        self.owner = owner


class NoRoom(Exception):  # noqa: N818
    """The disk is full, the transaction was rolled back cleanly and the file is as it was before."""


class _Kinds(dict[str, int]):
    def __missing__(self, kind: str) -> int:
        seed = self[kind] = xxh3(kind.encode())
        return seed


_kinds = _Kinds()


def seal(seq: int, kind: str, head: bytes, body: bytes) -> int:
    """The hash that a row carries: over its number, kind, head and body, in 63 bits since SQLite counts with a sign."""
    return xxh3(body, xxh3(head, _kinds[kind] ^ seq)) >> 1


def sealed(records: Iterable[Record]) -> list[Row]:
    """The rows of records; as plain tuples in the order of `Row`, which is faster."""
    kinds, digest = _kinds, xxh3
    return [
        cast("Row", (seq, kind, head, body, digest(body, digest(head, kinds[kind] ^ seq)) >> 1))
        for seq, kind, head, body in records
    ]


def take_lock(folder: str) -> int:
    """The descriptor whose lock makes this process the owner of `folder`. Raises JournalLocked.

    It is closed in children (CLOEXEC), or a child would stay the owner after the daemon died.
    """
    path = os.path.join(folder, LOCK)
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        os.close(lock)
        raise JournalLocked(path, owner) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


class JournalFile:
    """One open database. Its methods may be called from any thread, by one thread at a time."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._chapter = OpenChapter()
        self._complete: list[Sealed] = []  # chapters that go with the next write

    @classmethod
    def open(cls, path: str, schema: Schema = SCHEMA) -> JournalFile:
        """Open or create. Raises JournalNewer, JournalDamaged, JournalLocked, or JournalUnavailable for I/O errors."""
        # SQLite gives the -wal file the mode of the database, so this one call keeps both private.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if os.pread(descriptor, 2, 18) not in _FORMATS:
                raise JournalDamaged(f"{path} says that it is not to be written")  # which SQLite would obey for ever
        finally:
            os.close(descriptor)
        connection = sqlite3.connect(
            path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=2 * _ROWS_PER_INSERT
        )
        try:
            _configure(connection)
            agree(connection, path, schema)
        except _UNREADABLE as error:
            connection.close()
            raise _translated(error, path) from error
        except BaseException:
            connection.close()
            raise
        return cls(path, connection)

    def write(self, rows: Sequence[Row]) -> None:
        """All rows durable, or none. Raises NoRoom; any other failure means that the file must not be written again."""
        # One statement per 64 rows and none for a transaction around a single one: between two steps of SQLite Python
        # hands the interpreter lock to whoever is busy, and waits milliseconds to get it back.
        chunks = [rows[start : start + _ROWS_PER_INSERT] for start in range(0, len(rows), _ROWS_PER_INSERT)]
        complete = [*self._complete, *self._chapter.take(rows)]
        is_one_step = len(chunks) == 1 and not complete
        execute = self._connection.execute
        try:
            if not is_one_step:
                execute("BEGIN IMMEDIATE")
            for chunk in chunks:
                execute(_insert(len(chunk)), list(chain.from_iterable(chunk)))
            if complete:
                self._connection.executemany(chapters.INSERT, complete)
            if not is_one_step:
                execute("COMMIT")
            self._complete.clear()
        except sqlite3.Error as error:
            self._chapter.forget()
            take_back(self._connection)
            if _primary(error) == sqlite3.SQLITE_FULL:
                raise NoRoom(str(error)) from error
            raise

    def bodies(self, seqs: Sequence[int], *, room: int = _LAST) -> list[bytes]:
        """The bodies of the first of these rows, in this order, that have room for all their bytes: of one at least.

        Raises JournalDamaged for a row that is not there or not itself.
        """
        if room < _LAST and len(seqs) > 1:
            lengths = dict(self._connection.execute(*_asking("SELECT seq, length(body) FROM journal", seqs)))
            ends = accumulate(lengths.get(seq) or 0 for seq in seqs)
            seqs = seqs[: max(1, sum(1 for _ in takewhile(lambda end: end <= room, ends)))]
        found: dict[int, bytes] = {}
        for seq, kind, head, body, h in self._connection.execute(*_asking(_COLUMNS, seqs)):
            if not _intact(seq, kind, head, body, h):
                raise JournalDamaged(f"row {seq} of {self.path} is not what was written")
            found[seq] = body
        try:
            return [found[seq] for seq in seqs]
        except KeyError as missing:
            raise JournalDamaged(f"row {missing} of {self.path} is not there") from None

    def short_bodies(self, seqs: Sequence[int], *, longest: int) -> list[bytes] | None:
        """The bodies of these rows, in this order; None where one is longer, whose bytes are not read then.

        Raises as `bodies` does.
        """
        lengths = self._connection.execute(*_asking("SELECT max(length(body)) FROM journal", seqs)).fetchone()
        if (lengths[0] or 0) > longest:
            return None
        return self.bodies(seqs)

    def is_folded(self) -> bool:
        """Whether all is in the database and nothing in its log, as an owner that closed it leaves it."""
        log = f"{self.path}-wal"
        return not os.path.exists(log) or os.path.getsize(log) == 0

    def check(self, *, beside: bool = False) -> None:
        """Let SQLite look over its structure, about 0.7 µs per row. Raises JournalDamaged.

        `beside` looks at the database alone, by a connection of its own that takes no lock: where the log is folded in,
        and while nothing is written, it may go on in one thread while others read.
        """
        try:
            with closing(_unlocked(self.path)) if beside else nullcontext(self._connection) as connection:
                ((answer,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
        except _UNREADABLE as error:
            raise _translated(error, self.path) from error
        if answer != "ok":
            raise JournalDamaged(f"{self.path}: {answer}")

    def read(self, *, after: int = 0) -> Iterator[Chapter | list[Row]]:
        """All rows with a higher seq, in order and checked: plain chapters, and the rows that are in none.

        Used once, before anything is written. Raises JournalDamaged.
        """
        self._chapter.forget()
        self._complete.clear()
        try:
            for first, last, h, *columns in self._connection.execute(chapters.SELECT, (after,)):
                if first <= after:
                    continue  # one that overlaps another says nothing new
                yield from self._keep(self.scan(after=after, until=first - 1))
                chapter = Chapter(first, last, *columns)
                if chapter.seal() != h:
                    raise JournalDamaged(f"rows {first} to {last} of {self.path} are not what was written")
                yield from (chapter,) if chapter.is_plain() else self.scan(after=first - 1, until=last)
                after = last
        except (*_UNREADABLE, TypeError, AttributeError) as error:  # a NULL, or text that is no UTF-8
            raise _translated(error, self.path) from error
        yield from self._keep(self.scan(after=after))

    def forget_pages(self) -> None:
        """Let go of the pages that reading everything left behind: few of them are asked for again."""
        self._connection.execute("PRAGMA shrink_memory")

    def _keep(self, found: Iterator[list[Row]]) -> Iterator[list[Row]]:
        for rows in found:
            self._complete += self._chapter.take(rows)
            yield rows

    def scan(self, *, after: int, until: int = _LAST) -> Iterator[list[Row]]:
        """All rows with a higher seq, in order, in lists, each row checked. Raises JournalDamaged.

        They are plain tuples in the order of `Row`, which is faster.
        """
        cursor = self._connection.cursor()
        kinds, digest = _kinds, xxh3
        try:
            cursor.execute(f"{_COLUMNS} WHERE seq > ? AND seq <= ? ORDER BY seq", (after, until))
            while rows := cursor.fetchmany(_ROWS_PER_FETCH):
                for seq, kind, head, body, h in rows:
                    if seq <= after or digest(body, digest(head, kinds[kind] ^ seq)) >> 1 != h:
                        raise JournalDamaged(f"row {seq} of {self.path} is not what was written")
                    after = seq
                yield rows
        except (*_UNREADABLE, TypeError, AttributeError) as error:  # a NULL, or text that is no UTF-8
            raise _translated(error, self.path) from error
        finally:
            cursor.close()

    def rewrite(self, rows: Sequence[Row], gone: Sequence[int]) -> None:
        """Put these rows in place of what has their numbers and remove others, all or nothing, and leave no trace.

        What was there before is overwritten with zeros and then the file is written anew, so that its bytes are in it
        no more. Done again after a kill it goes on. Raises NoRoom when there is no room for the second copy.
        """
        execute = self._connection.execute
        try:
            execute("PRAGMA secure_delete=ON")
            execute("BEGIN IMMEDIATE")
            self._connection.executemany("DELETE FROM journal WHERE seq=?", [(seq,) for seq in gone])
            self._connection.executemany("INSERT OR REPLACE INTO journal VALUES(?,?,?,?,?)", rows)
            execute("DELETE FROM chapters")  # their rows are read one by one at the next start, and sealed anew
            execute("COMMIT")
            for statement in ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                execute(statement).fetchall()
        except sqlite3.Error as error:
            take_back(self._connection)
            if _primary(error) == sqlite3.SQLITE_FULL:
                raise NoRoom(str(error)) from error
            raise

    def close(self) -> None:
        """Fold the log into the database and let go. What was committed is safe whatever happens here."""
        self._connection.close()


# A flipped bit can turn a blob into a text of the same bytes; the casts make the row say the same either way.
_COLUMNS = "SELECT seq, CAST(kind AS TEXT), CAST(head AS BLOB), CAST(body AS BLOB), h FROM journal"


def _intact(seq: int, kind: object, head: object, body: object, h: object) -> bool:
    match kind, head, body:
        case str(), bytes(), bytes():
            return seal(seq, kind, head, body) == h
        case _:
            return False


def _insert(rows: int) -> str:
    return "INSERT INTO journal VALUES" + ",".join(["(?,?,?,?,?)"] * rows)


def _asking(what: str, seqs: Sequence[int]) -> tuple[str, list[int | None]]:
    """A statement for these rows, of which there are few kinds, so that SQLite has it ready."""
    size = next((size for size in _READ_SIZES if size >= len(seqs)), len(seqs))
    return f"{what} WHERE seq IN ({','.join('?' * size)})", [*seqs, *[None] * (size - len(seqs))]


def _unlocked(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(path)}?immutable=1", uri=True)
    connection.execute("PRAGMA cell_size_check=ON")
    return connection


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    for setting in (
        f"page_size={PAGE}",
        "trusted_schema=OFF",
        "cell_size_check=ON",
        "synchronous=FULL",
        "cache_size=-16384",
    ):
        connection.execute(f"PRAGMA {setting}")


def _primary(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _translated(error: Exception, path: str) -> Exception:
    code = _primary(error) if isinstance(error, sqlite3.Error) else 0
    if code == sqlite3.SQLITE_BUSY:
        return JournalLocked(path, "a program that does not know our lock")
    # Without a code it is Python that could not make sense of a value: text that is no UTF-8, a NULL.
    if code in (0, *_NO_DATABASE) or "malformed" in str(error):
        return JournalDamaged(f"{path}: {error}")
    return JournalUnavailable(path, str(error))
