"""Daemons without sockets that are born in a fraction of a second, and die by our hand or by their disk's.

They are forked from a process that has imported everything already. Where a C compiler is, that process is under the
shim of `disk_shim.py`, which does nothing until a life asks it to.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from time import sleep
from typing import Any

import orjson

from tests.daemon_process import PROJECT
from tests.faults import mortal
from tests.faults.disk_shim import FAULTS, compiler, shim
from tests.faults.ledger import Ledger

ACKNOWLEDGED_AT_MOST = 120
LONGEST = 30.0  # seconds until a life says something
FALLS = 15  # acknowledgements after which a life whose disk did not fail is ended


@cache
def births() -> ForkServerContext:
    """Makes the processes. The first of them is its own, and lasts as long as we do."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([mortal.__name__])
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "LD_PRELOAD")}
    os.environ["PYTHONPATH"] = str(PROJECT)
    if compiler() is not None:
        os.environ["LD_PRELOAD"] = shim()
    try:
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
    return context


class Life:
    """A daemon without sockets, from its birth to its violent end."""

    def __init__(self, target: Callable[..., None], folder: Path, seed: int, *arguments: object) -> None:
        self._pipe, theirs = births().Pipe(duplex=False)
        self._process = births().Process(target=target, args=(str(folder), seed, theirs, *arguments))
        self._process.start()
        theirs.close()

    def hear(self) -> dict[str, Any]:
        """The next thing it says. Raises EOFError after its end."""
        assert self._pipe.poll(LONGEST), "it said nothing"
        said: dict[str, Any] = orjson.loads(self._pipe.recv_bytes())
        return said

    def kill(self) -> Iterator[dict[str, Any]]:
        """SIGKILL; what it had still said before."""
        self._process.kill()
        assert self._end() == -9, "it had ended by itself"
        yield from self._rest()

    def fall(self) -> int:
        """Wait for its end by its own hand, or end it; the exit code."""
        self._process.join(0.0 if self._process.exitcode is None else LONGEST)
        if self._process.exitcode is None:
            self._process.kill()
        return self._end()

    def _end(self) -> int | None:
        self._process.join()
        code = self._process.exitcode
        self._process.close()
        return code

    def _rest(self) -> Iterator[dict[str, Any]]:
        try:
            while True:
                yield self.hear()
        except (EOFError, OSError):  # the end, or the half of a message that was not said to its end
            self._pipe.close()


def live_and_die(life: Life, chance: random.Random, ledger: Ledger) -> None:
    """One life: what the one before left is checked, what it acknowledges is noted, and then it is killed."""
    if chance.random() < 0.15:
        sleep(chance.random() * 0.06)  # the moment of death: somewhere in its awakening
    else:
        ledger.wakes(life.hear())
        for _ in range(chance.randrange(ACKNOWLEDGED_AT_MOST)):
            ledger.note(life.hear())
        sleep(chance.random() * 0.004)
    for said in life.kill():
        if "woke" in said:
            ledger.wakes(said)
        else:
            ledger.note(said)


def die_often(folder: Path, *, kind: str, deaths: int, seed: int) -> Ledger:
    """Lives of one workspace, one after the other; `kind` is "works" or "turns". Raises AssertionError."""
    chance = random.Random(seed)
    ledger = Ledger()
    for _ in range(deaths):
        live_and_die(Life(mortal.live, folder, chance.randrange(2**32), kind), chance, ledger)
    last = Life(mortal.live, folder, seed, kind)
    ledger.wakes(last.hear())
    list(last.kill())
    return ledger


@dataclass(slots=True)
class Falls:
    """How many disks failed at one of their changes, and what was wrong then; `told` says how often a waiter heard."""

    points: int = 0
    told: int = 0
    faults: list[str] = field(default_factory=list[str])


def changes_of_a_life(folder: Path, seed: int, *, heard: int = FALLS) -> int:
    """How many changes of the disk a life of this length makes."""
    return _one_fall(folder, seed, ("EIO", 0), Ledger(), Falls(), heard)


def fall_at(folder: Path, *, fault: str, nth: int, seed: int, falls: Falls, heard: int = FALLS) -> None:
    """A new workspace whose disk fails at its `nth` change; then one that wakes on what is left."""
    ledger = Ledger()
    where = f"{fault} at change {nth}, seed {seed}"
    falls.points += 1
    try:
        folder.mkdir()
        _one_fall(folder, seed, (fault, nth), ledger, falls, heard)
        after = Life(mortal.live, folder, seed + 1, "turns")
        ledger.check(after.hear()["woke"])
        assert not [*(folder / "state").glob("*.damaged-*")], "the journal was found damaged"
        ledger.note(after.hear())  # it goes on
        list(after.kill())
    except (AssertionError, EOFError) as fault_found:
        falls.faults.append(f"{where}: {fault_found!r}"[:400])


def _one_fall(folder: Path, seed: int, point: tuple[str, int], ledger: Ledger, falls: Falls, enough: int) -> int:
    life = Life(mortal.fall, folder, seed, *point)
    changes = heard = 0
    try:
        while heard < enough:
            said = life.hear()
            changes = said.pop("changes", changes)
            if "ended_with" in said:
                falls.told += 1
                break
            if "woke" not in said:
                heard += 1
                ledger.note(said)
    except EOFError:
        pass  # it died of it
    life.fall()
    return changes


def fault_points(changes: int, *, most: int, seed: int) -> list[tuple[str, int]]:
    """Which changes fail how: all of them, or `most` by chance."""
    points = [(fault, nth) for fault in FAULTS for nth in range(1, changes + 1)]
    return points if most >= len(points) else sorted(random.Random(seed).sample(points, most), key=lambda one: one[1])
