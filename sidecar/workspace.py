"""The one owner of state. Everything that changes goes through `stage`.

`stage` is synchronous: it numbers the entries against what is staged already, and hands them to the journal in groups.
When a group is durable its entries are applied in order, its requester is answered and listeners are told. When it is
refused, everything staged behind it is refused as well, because it was decided on top of it. Neither staging nor
applying awaits, so no reader sees half a change and there is no lock.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import orjson

from sidecar.claims import Claims
from sidecar.core.entries import BLOCK, BlockTold, Entry, Stored, decode, encode
from sidecar.core.errors import JournalUnavailable, ShuttingDown
from sidecar.core.happened import Happened
from sidecar.core.inventory import StatKey
from sidecar.core.paths import FilePath
from sidecar.core.state import State
from sidecar.ports import Joined, Journal, Record

GROUPS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a staged change: the revision it ended at and the numbers of its blocks, in order."""

    revision: int
    blocks: tuple[int, ...]


class _Group:
    __slots__ = ("answer", "blocks", "entries", "first", "records")

    def __init__(
        self, first: int, entries: Sequence[Entry], encoded: Sequence[Stored], answer: asyncio.Future[Applied]
    ) -> None:
        self.first = first
        self.entries = entries
        self.blocks = sum(map(_is_block, entries))
        stored = [*encoded, *map(encode, entries[len(encoded) :])]
        self.records = [Record(first + at, *one) for at, one in enumerate(stored)]
        self.answer = answer


class Workspace(State):
    """The state of one OUT_DIR, and the only way to change it."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self.listeners: list[Callable[[Happened], None]] = []
        self.closing = False
        self.asking: dict[str, tuple[str, int]] = {}  # request ids under way: a hash of the params, and how many ask
        self.claims = Claims()
        self._journal = journal
        self._staged_revision = 0
        self._staged_blocks = 0
        self._waiting: list[_Group] = []
        self._in_flight: list[_Group] = []

    @property
    def is_empty(self) -> bool:
        return self.revision == 0

    @property
    def next_revision(self) -> int:
        """The revision that the next staged entry will get."""
        return self._staged_revision + 1

    @property
    def next_block(self) -> int:
        """The number that the next staged block will get."""
        return self._staged_blocks

    @property
    def busy(self) -> bool:
        """Whether changes are on their way to the journal."""
        return bool(self._waiting or self._in_flight)

    def bodies(self, numbers: Iterable[int]) -> list[bytes]:
        """The JSON of these blocks, in this order. Blocks: call it off the loop."""
        return [*self.bodies_in_turn(numbers)]

    def bodies_in_turn(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """The same, each read when it is about to be asked for. Blocks: go through it off the loop."""
        seqs = self.timeline.seqs
        return self._journal.bodies([seqs[number] for number in numbers])

    def bodies_now(self, numbers: Sequence[int]) -> list[bytes] | None:
        """The same without waiting; None while a commit is under way, or where they are many or long."""
        seqs = self.timeline.seqs
        return self._journal.bodies_now([seqs[number] for number in numbers])

    def answer_at(self, revision: int) -> dict[str, Any]:
        """The result that was journalled at this revision. Blocks: call it off the loop."""
        (body,) = self._journal.bodies([revision])
        return orjson.loads(body)

    def recorded(self, revision: int) -> Any:
        """What was journalled at this revision beside its head: a vector, what was saved. Blocks: off the loop."""
        (body,) = self._journal.bodies([revision])
        return orjson.loads(body)

    def stage(self, *entries: Entry, encoded: Sequence[Stored] = ()) -> asyncio.Future[Applied]:
        """Decide a change. The answer comes when it is durable and applied, or raises JournalUnavailable.

        Staging nothing waits for everything staged before. `encoded` are the first entries as the journal stores them,
        where somebody took the time for that beforehand.
        """
        if self.closing:
            raise ShuttingDown("workspace", "the daemon is ending; connect again")
        answer: asyncio.Future[Applied] = asyncio.get_running_loop().create_future()
        if not entries and not self.busy:
            answer.set_result(Applied(self.revision, ()))
            return answer
        group = _Group(self._staged_revision + 1, entries, encoded, answer)
        for at, entry in enumerate(entries):
            self.decide(entry, group.first + at)
        self._staged_revision += len(entries)
        self._staged_blocks += group.blocks
        self._waiting.append(group)
        if not self._in_flight and len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._submit)
        return answer

    def rekey(self, path: FilePath, key: StatKey) -> None:
        """A known file was given its name again by ourselves, and is another to the kernel, not to anybody else.

        Nothing is journalled: after a restart a look finds it out by reading it once more.
        """
        known, artifact = self.files.get(path.physical), self.artifact(path)
        if known is None or known[:4] != key[:4] or artifact is None or artifact.fact is None:
            return
        self.files[path.physical] = key
        if artifact.fact.key == known:
            artifact.fact = replace(artifact.fact, key=key)

    def load(self) -> int:
        """Take in the whole journal, at start. Answers how many records there were."""
        count = 0
        happened = Happened()  # nobody listens yet
        with _building():
            for found in self._journal.load(joined=BLOCK):
                if isinstance(found, Joined):
                    self.apply_blocks(found.seqs, orjson.loads(b"[%b]" % found.heads), happened)
                    count += len(found.seqs)
                    continue
                seq, kind, head, body = found
                # What was answered stays in the journal until somebody asks again.
                self.apply(seq, decode(kind, head, b"{}" if kind == "answered" else body), happened)
                count += 1
            gc.freeze()  # all of it stays: the collector need not look through it even once
        self._staged_revision, self._staged_blocks = self.revision, len(self.timeline)
        self.recall()
        return count

    def _submit(self) -> None:
        if self._in_flight or not self._waiting:
            return
        self._in_flight, self._waiting = self._waiting[:GROUPS_AT_ONCE], self._waiting[GROUPS_AT_ONCE:]
        records = [record for group in self._in_flight for record in group.records]
        try:
            self._journal.append(records, self._settle)
        except JournalUnavailable as refusal:  # it is closed
            self._refuse(refusal)

    def _settle(self, refused: Exception | None) -> None:
        """The journal has decided on the batch in flight. Runs on the loop."""
        if refused is not None:
            self._refuse(refused)
            return
        batch, self._in_flight = self._in_flight, []
        happened = Happened()
        block = len(self.timeline)
        with _building():
            self._apply_all(batch[0].first, [entry for group in batch for entry in group.entries], happened)
        for group in batch:
            last, first = group.first + len(group.entries) - 1, block
            block += group.blocks
            if not group.answer.done():
                group.answer.set_result(Applied(last, tuple(range(first, block))))
        happened.revision = self.revision
        self._submit()
        for listener in self.listeners:
            listener(happened)

    def _apply_all(self, seq: int, entries: Iterable[Entry], happened: Happened) -> None:
        """Apply what became durable, from this revision on, in order; a run of blocks at once."""
        for is_block, entries_of_a_kind in groupby(entries, _is_block):
            run: list[Any] = list(entries_of_a_kind)
            if is_block:
                self.apply_told(range(seq, seq + len(run)), [entry.told for entry in run], happened)
            else:
                for at, entry in enumerate(run, seq):
                    self.apply(at, entry, happened)
            seq += len(run)

    def _refuse(self, reason: Exception) -> None:
        refused, self._in_flight, self._waiting = [*self._in_flight, *self._waiting], [], []
        self._staged_revision, self._staged_blocks = self.revision, len(self.timeline)
        self.drop()
        failure = reason if isinstance(reason, JournalUnavailable) else JournalUnavailable("journal", str(reason))
        for group in refused:
            if not group.answer.done():
                group.answer.set_exception(failure)


def _is_block(entry: Entry) -> bool:
    return type(entry) is BlockTold


@contextmanager
def _building() -> Generator[None]:
    """What is built here stays; looking through it again and again would take longer than building it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
