"""The n-th change of a disk fails: nothing acknowledged is lost, and who waits is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sidecar.stores.journal import Journal
from tests.faults import mortal
from tests.faults.chance import a_seed
from tests.faults.disk_shim import FAULTS, require_shim
from tests.faults.lives import Falls, Life, changes_of_a_life, fall_at, fault_points
from tests.faults.quick_disk import in_memory

POINTS = 20


@pytest.mark.timeout(300)
@pytest.mark.rule("journal.acknowledged-means-durable")
def test_whichever_change_of_the_disk_fails_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    require_shim()
    seed = a_seed()
    with in_memory(tmp_path) as disk:
        (disk / "count").mkdir()
        changes, falls = changes_of_a_life(disk / "count", seed), Falls()
        assert changes > 100, "the shim saw nothing"
        for number, (fault, nth) in enumerate(fault_points(changes, most=POINTS, seed=seed)):
            fall_at(disk / str(number), fault=fault, nth=nth, seed=seed, falls=falls)
    print(f"{falls.points} points of {changes} changes, {falls.told} lives said that they ended by it")
    assert falls.faults == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.rule("journal.acknowledged-means-durable")
def test_whichever_change_fails_while_a_journal_is_made_it_is_not_taken_for_damaged(tmp_path: Path, fault: str) -> None:
    require_shim()
    with in_memory(tmp_path) as disk:
        changes = founding(disk / "count", fault, 0)["changes"]
        assert changes > 10, "the shim saw nothing"
        for nth in range(1, changes + 1):
            folder = disk / str(nth)
            said = founding(folder, fault, nth)
            assert said["end"] in ("", "JournalUnavailable", "OSError", "dead"), (nth, said)
            journal = Journal.open(str(folder))
            assert journal.damage is None, (nth, said)
            assert not [*folder.glob("*.damaged-*")], (nth, said)
            journal.close()


def founding(folder: Path, fault: str, nth: int) -> dict[str, Any]:
    """How it ends when a journal is made in a new folder and the `nth` change of its disk fails."""
    folder.mkdir()
    life = Life(mortal.found, folder, 0, fault, nth)
    try:
        said = life.hear()
    except EOFError:
        said = {"end": "dead"}
    life.fall()
    return said
