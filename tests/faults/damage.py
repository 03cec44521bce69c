"""Journals whose files are not what was written: torn, flipped, changed in a row; and how long a recovery takes."""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from sidecar.ports import Record
from sidecar.stores.journal import Journal


@dataclass(slots=True)
class Damaged:
    """`noticed` of `tried` were noticed; `faults` are those that were not, or served something wrong."""

    tried: int = 0
    noticed: int = 0
    faults: list[str] = field(default_factory=list[str])


def records(count: int, chance: random.Random) -> list[Record]:
    return [Record(seq, "block", b"{}", chance.randbytes(chance.randrange(20, 900))) for seq in range(1, count + 1)]


def write(folder: Path, wanted: Sequence[Record], *, at_once: int = 500) -> Journal:
    """An open journal that holds these records, each group durable."""
    journal = Journal.open(str(folder))
    for at in range(0, len(wanted), at_once):
        durable, failures = threading.Event(), list[Exception | None]()

        def done(
            failure: Exception | None, durable: threading.Event = durable, told: list[Exception | None] = failures
        ) -> None:
            told.append(failure)
            durable.set()

        journal.append(wanted[at : at + at_once], done)
        durable.wait()
        assert failures == [None]
    return journal


def torn_logs(folder: Path, *, count: int, seed: int) -> Damaged:
    """Cut the log anywhere, or flip a bit of it: what is left must be a clean prefix, and it goes on."""
    chance, found = random.Random(seed), Damaged()
    wanted = records(80, chance)
    with closing(write(folder / "live", wanted, at_once=1)):
        database = (folder / "live" / "journal.db").read_bytes()
        log = (folder / "live" / "journal.db-wal").read_bytes()
    for attempt in range(count):
        place = folder / f"torn-{attempt}"
        place.mkdir()
        (place / "journal.db").write_bytes(database)
        cut = chance.randrange(len(log))
        flipped = bytes([log[cut] ^ (1 << chance.randrange(8))])
        (place / "journal.db-wal").write_bytes(log[:cut] if attempt % 2 else log[:cut] + flipped + log[cut + 1 :])
        found.tried += 1
        with closing(Journal.open(str(place))) as journal:
            left = list(journal.load())
        if left == wanted[: len(left)]:
            found.noticed += 1
        else:
            found.faults.append(f"{'cut' if attempt % 2 else 'flipped'} at {cut}: no prefix")
        shutil.rmtree(place)
    return found


def changed_rows(folder: Path, *, count: int, seed: int) -> Damaged:
    """Flip a bit in the stored bytes of a row: it must be noticed, never served, and cost no other row."""
    chance, found = random.Random(seed), Damaged()
    wanted = records(300, chance)
    write(folder / "live", wanted).close()
    content = (folder / "live" / "journal.db").read_bytes()
    for attempt in range(count):
        place = folder / f"flip-{attempt}"
        place.mkdir()
        victim = chance.choice(wanted)
        at = content.index(victim.body[:20])  # what is longer goes on in another page
        flipped = bytearray(content)
        flipped[at + chance.randrange(20)] ^= 1 << chance.randrange(8)
        (place / "journal.db").write_bytes(flipped)
        found.tried += 1
        with closing(Journal.open(str(place))) as journal:
            left = list(journal.load())
            noticed = journal.damage is not None
        if noticed and left == [one for one in wanted if one != victim]:
            found.noticed += 1
        else:
            found.faults.append(f"row {victim.seq}: noticed {noticed}, {len(left)} of {len(wanted)} left")
        shutil.rmtree(place)
    return found


def recovery(folder: Path, *, blocks: int, seed: int) -> tuple[float, int]:
    """Seconds to open and load a journal of that many blocks whose owner was killed, and how many there were."""
    wanted = records(blocks, random.Random(seed))
    journal = write(folder / "live", wanted, at_once=20_000)
    shutil.copytree(folder / "live", folder / "left")  # as a kill leaves it: the log is not folded in
    journal.close()
    began = perf_counter()
    with closing(Journal.open(str(folder / "left"))) as left:
        count = sum(1 for _ in left.load())
        return perf_counter() - began, count


def integrity_check_alone(folder: Path, *, count: int, seed: int) -> int:
    """How many of so many changed rows SQLite's own check notices: the rival of the hash in each row."""
    chance = random.Random(seed)
    wanted = records(300, chance)
    write(folder / "rival", wanted).close()
    content, noticed = (folder / "rival" / "journal.db").read_bytes(), 0
    for _ in range(count):
        flipped = bytearray(content)
        flipped[content.index(chance.choice(wanted).body[:20]) + 3] ^= 1
        (folder / "rival" / "journal.db").write_bytes(flipped)
        with closing(sqlite3.connect(folder / "rival" / "journal.db")) as database:
            noticed += database.execute("PRAGMA integrity_check").fetchone()[0] != "ok"
    return noticed
