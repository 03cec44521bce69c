"""The power goes out under a daemon: whatever had not been synced may be gone, and nothing acknowledged is."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.disk_shim import require_shim
from tests.faults.power import cut_power
from tests.faults.power_life import record
from tests.faults.quick_disk import in_memory

IMAGES = 30


@pytest.mark.timeout(300)
@pytest.mark.rule("journal.survives-power-loss")
def test_everything_acknowledged_is_on_every_disk_that_a_power_cut_may_leave(tmp_path: Path) -> None:
    require_shim()
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    with in_memory(tmp_path) as disk:
        found = cut_power(record(disk, seed, work=60), tmp_path, images=IMAGES, seed=seed)
    print(f"{found.images} images, {found.owed} acknowledgements owed in all")
    assert found.faults == []
    assert found.owed > IMAGES, "it was cut too early to have owed anything"
