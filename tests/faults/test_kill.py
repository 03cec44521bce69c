"""kill -9 at any instant: everything acknowledged is there afterwards, and no number is given twice (spec section 10).

Two hundred deaths are died by a daemon without sockets, which wakes in a fraction of a second; a dozen by a whole one
(`test_kill_whole.py`).
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
from collections.abc import Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path
from time import sleep
from typing import Any

import orjson
import pytest

from tests.daemon_process import PROJECT
from tests.faults import mortal
from tests.faults.ledger import Ledger
from tests.server.inside import awake

WORKSPACES, DEATHS = 8, 25
ACKNOWLEDGED_AT_MOST = 120
UNDISTURBED = 2000
LONGEST = 10.0  # seconds until a life says something


@pytest.fixture
def lives(monkeypatch: pytest.MonkeyPatch) -> ForkServerContext:
    """Makes processes from one that has imported everything already."""
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([mortal.__name__])
    return context


class Life:
    """A daemon without sockets, from its birth to its violent end."""

    def __init__(self, lives: ForkServerContext, folder: Path, seed: int) -> None:
        self._pipe, theirs = lives.Pipe(duplex=False)
        self._process = lives.Process(target=mortal.live, args=(str(folder), seed, theirs))
        self._process.start()
        theirs.close()

    def hear(self) -> dict[str, Any]:
        """The next thing it says. Raises EOFError after its end."""
        assert self._pipe.poll(LONGEST), "it said nothing"
        return orjson.loads(self._pipe.recv_bytes())

    def kill(self) -> Iterator[dict[str, Any]]:
        """SIGKILL; what it had still said before."""
        self._process.kill()
        self._process.join()
        assert self._process.exitcode == -9, f"it ended by itself with {self._process.exitcode}"
        self._process.close()
        try:
            while True:
                yield self.hear()
        except (EOFError, OSError):  # the end, or the half of a message that was not said to its end
            self._pipe.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(WORKSPACES))
def test_everything_acknowledged_before_a_kill_is_there_after_it(
    lives: ForkServerContext, tmp_path: Path, number: int
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    ledger = Ledger()
    for _ in range(DEATHS):
        live_and_die(Life(lives, tmp_path, chance.randrange(2**32)), chance, ledger)
    last = Life(lives, tmp_path, seed)
    ledger.check(last.hear()["woke"])
    list(last.kill())
    print(f"{DEATHS} deaths, {ledger.acknowledged} acknowledgements")
    assert ledger.acknowledged > DEATHS, "it died too early to have done anything"


@pytest.mark.parametrize("number", range(3))
async def test_works_that_go_on_at_once_undo_nothing_of_each_other(tmp_path: Path, number: int) -> None:
    """The same without a death: calls end while looks find newer states, and what was synced stays synced."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    ledger, enough = Ledger(), asyncio.Event()

    def say(said: dict[str, Any]) -> None:
        ledger.note(said)
        if ledger.acknowledged >= UNDISTURBED:
            enough.set()

    async with awake(tmp_path) as inside:
        ends = asyncio.create_task(enough.wait())
        work = asyncio.create_task(mortal.Mortal(inside, seed, say).work())
        await asyncio.wait((work, ends), return_when=asyncio.FIRST_COMPLETED)
        assert not work.done(), work.exception()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        ledger.check(mortal.inventory(inside))


def live_and_die(life: Life, chance: random.Random, ledger: Ledger) -> None:
    """One life: what the one before left is checked, what it acknowledges is noted, and then it is killed."""
    if chance.random() < 0.15:
        sleep(chance.random() * 0.06)  # the moment of death: somewhere in its awakening
    else:
        ledger.check(life.hear()["woke"])
        for _ in range(chance.randrange(ACKNOWLEDGED_AT_MOST)):
            ledger.note(life.hear())
        sleep(chance.random() * 0.004)
    for said in life.kill():
        if "woke" in said:
            ledger.check(said["woke"])
        else:
            ledger.note(said)


def test_a_ledger_that_is_short_of_something_is_noticed() -> None:
    woke: dict[str, Any] = {"revision": 5, "blocks": ["a:0:0:1"], "rows": {"1": "k"}, "files": {}, "open_calls": []}
    for said in (
        {"blocks": [[1, "a:1:0:1"]], "revision": 5},
        {"blocks": [[0, "b:0:0:1"]], "revision": 5},
        {"blocks": [], "revision": 6},
        {"rows": {"2": "other"}},
        {"rows": {"1": "other"}},
        {"file": "turn_1/files/a", "sha256": "x", "sid": None},
    ):
        ledger = Ledger()
        ledger.note(said)
        with pytest.raises(AssertionError):
            ledger.check(woke)
    Ledger().check(woke)
    with pytest.raises(AssertionError, match="in part"):
        Ledger().check({**woke, "blocks": ["a:0:0:2"]})
