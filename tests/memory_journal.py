"""A journal in memory: durable at once or refused, as the test says, and always told on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from sidecar.core.errors import JournalUnavailable
from sidecar.ports import Joined, Record

Done = Callable[[Exception | None], None]


class MemoryJournal:
    """The `Journal` port over a list. What was appended while it is held waits for `release`."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self.records = list(records)
        self.groups: list[int] = []  # how many records each append brought
        self.refusing = False
        self.closed = False
        self._held = False
        self._waiting: list[tuple[Sequence[Record], Done]] = []

    def load(self, *, joined: str = "") -> Iterator[Record | Joined]:
        for record in list(self.records):
            yield Joined((record.seq,), record.head) if record.kind == joined else record

    def append(self, records: Sequence[Record], done: Done) -> None:
        if self.closed:
            raise JournalUnavailable("journal", "it is closed")
        self.groups.append(len(records))
        self._waiting.append((records, done))
        if not self._held:
            asyncio.get_running_loop().call_soon(self._decide)

    def bodies(self, seqs: Sequence[int]) -> Iterator[bytes]:
        by_seq = {record.seq: record.body for record in self.records}
        return (by_seq[seq] for seq in seqs)

    def bodies_now(self, seqs: Sequence[int]) -> list[bytes] | None:
        return [*self.bodies(seqs)]

    def close(self) -> None:
        self.closed = True

    def hold(self) -> None:
        """Decide nothing until `release`."""
        self._held = True

    def release(self) -> None:
        self._held = False
        asyncio.get_running_loop().call_soon(self._decide)

    def _decide(self) -> None:
        waiting, self._waiting = self._waiting, []
        for records, done in waiting:
            if self.refusing:
                done(OSError("no space left"))
                continue
            expected = self.records[-1].seq + 1 if self.records else 1
            assert [record.seq for record in records] == list(range(expected, expected + len(records)))
            self.records += records
            done(None)
