"""kill -9 at any instant: everything acknowledged is there afterwards, and no number is given twice (spec section 10).

Two hundred deaths are died by a daemon without sockets, which wakes in a fraction of a second; a dozen by a whole one
(`test_kill_whole.py`).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.faults import mortal
from tests.faults.chance import a_seed
from tests.faults.ledger import Ledger
from tests.faults.lives import die_often
from tests.server.inside import awake

WORKSPACES, DEATHS = 8, 25
DEATHS_IN_TURNS = 12
UNDISTURBED = 2000


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(WORKSPACES))
def test_everything_acknowledged_before_a_kill_is_there_after_it(tmp_path: Path, number: int) -> None:
    seed = a_seed()
    ledger = die_often(tmp_path, kind="works", deaths=DEATHS, seed=seed)
    print(f"{DEATHS} deaths, {ledger.acknowledged} acknowledgements")
    assert ledger.acknowledged > DEATHS, "it died too early to have done anything"


@pytest.mark.timeout(300)
def test_what_turns_leave_behind_survives_a_kill_wherever_it_comes(tmp_path: Path) -> None:
    """Hosting, the index, files that are written and patched, the ends of turns and what people think of them."""
    seed = a_seed()
    ledger = die_often(tmp_path, kind="turns", deaths=DEATHS_IN_TURNS, seed=seed)
    print(f"{DEATHS_IN_TURNS} deaths, {ledger.acknowledged} acknowledgements")
    assert ledger.acknowledged > DEATHS_IN_TURNS, "it died too early to have done anything"


@pytest.mark.parametrize("number", range(3))
async def test_works_that_go_on_at_once_undo_nothing_of_each_other(tmp_path: Path, number: int) -> None:
    """The same without a death: calls end while looks find newer states, and what was synced stays synced."""
    seed = a_seed()
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
