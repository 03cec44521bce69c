"""The n-th change of a disk fails: nothing acknowledged is lost, and who waits is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.chance import a_seed
from tests.faults.disk_shim import require_shim
from tests.faults.lives import Falls, changes_of_a_life, fall_at, fault_points
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
