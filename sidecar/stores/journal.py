"""The truth. One thread writes; what was queued while it wrote goes into the next commit, with no delay added.

A group is durable when its `done` hears None. After a refusal nothing is taken until every refused group has been told,
so that no later group can be committed that was decided on the strength of a refused one (spec section 10).
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import NamedTuple

from sidecar.core.errors import JournalUnavailable
from sidecar.core.limits import COMMIT_BYTES, COMMIT_GROUPS
from sidecar.ports import Joined, Record
from sidecar.stores.durable import make_folder
from sidecar.stores.journal_chapters import Chapter, Row, join
from sidecar.stores.journal_file import ROWS_AT_ONCE, JournalFile, NoRoom, sealed, take_lock
from sidecar.stores.journal_repair import Damage, open_sound, rescue
from sidecar.stores.journal_schema import SCHEMA, JournalDamaged, Schema
from sidecar.stores.kernel import trim

_log = logging.getLogger(__name__)

BYTES_AT_ONCE = 2**20  # that much is read between two commits
ROWS_NOW = 16  # so few are read faster than a thread is asked to
BYTES_NOW = 2**14  # of each of them
_PARTS_AHEAD = 4

Done = Callable[[Exception | None], None]
Post = Callable[[Callable[[], None]], None]


class _Group(NamedTuple):
    records: Sequence[Record]
    done: Done
    size: int


class _Reading(NamedTuple):
    seqs: Sequence[int]
    answer: Future[list[bytes]]


def _run_here(step: Callable[[], None]) -> None:
    step()


def _nobody_to_tell(_: Exception) -> None:
    return


class Journal:
    """The port `Journal` over SQLite; made by `open`.

    `post` decides where callbacks run. It is called from the writer thread, once per commit, with one function that
    runs all callbacks of that commit in order: `loop.call_soon_threadsafe` brings them to an event loop for one
    wake-up. Without it they run in the writer thread. Callbacks must not block; one that raises is logged and the rest
    go on.
    """

    damage: Damage | None
    """What was found broken at start and where the broken file is kept, or None."""

    failed: bool
    """True after a failed write or fsync: nothing is written any more, reads go on, the daemon exits 70."""

    @classmethod
    def open(
        cls,
        folder: str,
        *,
        post: Post = _run_here,
        on_fatal: Callable[[Exception], None] = _nobody_to_tell,
        schema: Schema = SCHEMA,
    ) -> Journal:
        """Own the journal of `folder` (made 0700 when missing); create, migrate or rescue it first.

        Raises JournalLocked, JournalNewer, or JournalUnavailable when the disk does not give it. `on_fatal` is called
        once, after the waiters have been told, when an I/O error leaves the state of the disk unknown.
        """
        try:
            make_folder(folder)
            return cls(folder, schema, post=post, on_fatal=on_fatal)
        except OSError as error:
            raise JournalUnavailable(folder, str(error)) from error

    def __init__(self, folder: str, schema: Schema, *, post: Post, on_fatal: Callable[[Exception], None]) -> None:
        self._folder = folder
        self._schema = schema
        self._post = post
        self._on_fatal = on_fatal
        self._lock = take_lock(folder)
        try:
            self._file, self.damage = open_sound(folder, schema)
        except BaseException:
            os.close(self._lock)
            raise
        self.failed = False
        self._turn = threading.Lock()  # whose turn it is at the connection
        self._changed = threading.Condition()  # guards the four below
        self._groups: deque[_Group] = deque()
        self._readings: list[_Reading] = []
        self._refusing = False
        self._closing = False
        self._writer = threading.Thread(target=self._write_until_closed, name="journal", daemon=True)
        self._writer.start()

    # Reading

    def load(self, *, joined: str = "") -> Iterator[Record | Joined]:
        """Every record in order of `seq`, each checked; those of the kind `joined` as runs of joined heads.

        Damage met on the way is put aside (see `damage`) and the intact records go on. Exhaust it before any append.
        """
        last = 0
        try:
            for part in _ahead(_checked(self._file)):
                yield from _records(part, joined)
                last = part[-1][0] if isinstance(part, list) else part.last
        except JournalDamaged as damaged:
            with self._turn:
                self._file.close()
                self._file, self.damage = rescue(self._folder, str(damaged), schema=self._schema)
            for part in self._file.read(after=last):
                yield from _records(part, joined)
        self._file.forget_pages()
        trim()

    def bodies(self, seqs: Sequence[int]) -> Iterator[bytes]:
        """The bodies of these records, in this order.

        They are read a mebibyte at a time, so that nobody holds what he has not come to, and no commit waits for all;
        each time waits at most for the commit under way. Raises JournalDamaged for a record that is not there or no
        longer what was written, and JournalUnavailable once the journal is closed.
        """
        at = 0
        while at < len(seqs):
            some = self._some_bodies(seqs[at : at + ROWS_AT_ONCE])
            at += len(some)
            yield from some

    def bodies_now(self, seqs: Sequence[int]) -> list[bytes] | None:
        """The same in the calling thread; None while a commit is under way, or where they are many or long.

        Never waits for a write or an fsync.
        """
        if len(seqs) > ROWS_NOW or not self._turn.acquire(blocking=False):
            return None
        try:
            self._must_be_open()
            return self._file.short_bodies(seqs, longest=BYTES_NOW)
        finally:
            self._turn.release()

    def _some_bodies(self, seqs: Sequence[int]) -> list[bytes]:
        if self._turn.acquire(blocking=False):
            try:
                self._must_be_open()
                return self._file.bodies(seqs, room=BYTES_AT_ONCE)
            finally:
                self._turn.release()
        # By way of the writer, which serves readers before it begins another commit: a bare lock has no such manners.
        reading = _Reading(seqs, Future())
        with self._changed:
            self._must_be_open()
            self._readings.append(reading)
            self._changed.notify()
        return reading.answer.result()

    # Writing

    @property
    def queued(self) -> int:
        """How many groups wait for a commit."""
        return len(self._groups)

    def append(self, records: Sequence[Record], done: Done) -> None:
        """Queue records as one all-or-nothing group. Does not block.

        `done(None)` once durable. `done(JournalUnavailable)` when refused: the disk is full and nothing was changed
        (the next append tries again), the journal has failed, or a group queued before this one was refused.
        """
        size = sum(len(record[2]) + len(record[3]) for record in records)
        with self._changed:
            self._must_be_open()
            self._groups.append(_Group(records, done, size))
            self._changed.notify()

    def close(self) -> None:
        """Commit what is queued, tell it, and let go of the file and its lock. Safe to call twice."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify()
        self._writer.join()
        with self._turn:  # of a reader that came before
            self._file.close()
        os.close(self._lock)

    def _must_be_open(self) -> None:
        if self._closing:
            raise JournalUnavailable("journal", "it is closed")

    # The writer thread

    def _write_until_closed(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._is_work)
                readings, self._readings = self._readings, []
                batch = [] if self._refusing else self._take_batch()
                ends = self._closing and not readings and not batch
            for reading in readings:
                self._answer(reading)
            if batch:
                self._commit(batch)
            if ends:
                return

    def _is_work(self) -> bool:
        return bool(self._readings or self._closing or (self._groups and not self._refusing))

    def _take_batch(self) -> list[_Group]:
        batch: list[_Group] = []
        room = COMMIT_BYTES
        while self._groups and len(batch) < COMMIT_GROUPS and (not batch or self._groups[0].size <= room):
            group = self._groups.popleft()
            room -= group.size
            batch.append(group)
        return batch

    def _take_all(self) -> list[_Group]:
        taken = list(self._groups)
        self._groups.clear()
        return taken

    def _answer(self, reading: _Reading) -> None:
        try:
            with self._turn:
                bodies = self._file.bodies(reading.seqs, room=BYTES_AT_ONCE)
        except Exception as failure:  # noqa: BLE001 - whoever asked gets it
            reading.answer.set_exception(failure)
        else:
            reading.answer.set_result(bodies)

    def _commit(self, batch: list[_Group]) -> None:
        if self.failed:
            self._refuse(batch, JournalUnavailable("journal", "an earlier write failed; the daemon is ending"))
            return
        rows = sealed(record for group in batch for record in group.records)
        try:
            with self._turn:
                self._file.write(rows)
        except NoRoom:
            _log.warning("the disk is full: %d records were refused", len(rows))
            self._refuse(batch, JournalUnavailable("journal", "the disk is full; make room and try again"))
        except Exception as error:  # noqa: BLE001 - whatever it is, the state of the disk is unknown now
            # Never once more: after a failed fsync the kernel may have dropped the pages and call them clean.
            _log.exception("the journal cannot be written")
            self.failed = True
            self._refuse(batch, JournalUnavailable("journal", str(error)))
        else:
            _hand_over(self._post, partial(_tell, batch, None))

    def _refuse(self, batch: list[_Group], failure: JournalUnavailable) -> None:
        with self._changed:
            self._refusing = True
            batch += self._take_all()
        _hand_over(self._post, partial(self._tell_refusal, batch, failure))

    def _tell_refusal(self, refused: list[_Group], failure: JournalUnavailable) -> None:
        """Where the callbacks run: tell all, and those that came meanwhile, before anything is taken again."""
        while refused:
            _tell(refused, failure)
            with self._changed:
                refused = self._take_all()
                if not refused:
                    self._refusing = False
                    self._changed.notify()
        if self.failed:
            on_fatal, self._on_fatal = self._on_fatal, _nobody_to_tell
            on_fatal(failure)


def _checked(file: JournalFile) -> Iterator[Chapter | list[Row]]:
    """All that the file holds. Its structure is looked at beside it where that can be, else afterwards.

    Where numbers are missing, nothing goes on before that look has said that they were taken out, and are not hidden.
    It is taken once, however often its outcome is asked for.
    """
    with ThreadPoolExecutor(1, "journal-check") as checker:
        check = checker.submit(file.check, beside=True) if file.is_folded() else None
        sound = check.result if check is not None else cache(file.check)
        following = 1
        for part in file.read():
            first, last = (part[0][0], part[-1][0]) if isinstance(part, list) else (part.first, part.last)
            if first != following or (isinstance(part, list) and last - first + 1 != len(part)):
                sound()
            following = last + 1
            yield part
        sound()


def _ahead(parts: Iterator[Chapter | list[Row]]) -> Iterator[Chapter | list[Row]]:
    """The same, read in a thread of its own while earlier ones are used: SQLite does not need the interpreter."""
    with ThreadPoolExecutor(1, "journal-reader") as reader:
        coming = deque(reader.submit(next, parts, None) for _ in range(_PARTS_AHEAD))
        while (part := coming.popleft().result()) is not None:
            coming.append(reader.submit(next, parts, None))
            yield part


def _records(part: Chapter | list[Row], kind: str) -> Iterator[Record | Joined]:
    return part.joined(kind) if isinstance(part, Chapter) else join([Record(*row[:4]) for row in part], kind)


def _tell(groups: Iterable[_Group], failure: Exception | None) -> None:
    for group in groups:
        try:
            group.done(failure)
        except Exception:  # noqa: BLE001 - the others must still be told
            _log.exception("a callback of the journal raised")


def _hand_over(post: Post, step: Callable[[], None]) -> None:
    try:
        post(step)
    except RuntimeError:  # the loop is closed: nobody is left to be told
        _log.warning("a commit could not be told: its event loop is closed")
