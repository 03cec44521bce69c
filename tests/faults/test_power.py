"""The power goes out under a daemon: whatever had not been synced may be gone, and nothing acknowledged is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.chance import a_seed
from tests.faults.disk_shim import require_shim
from tests.faults.power import cut_power
from tests.faults.power_scenes import SCENES, record
from tests.faults.quick_disk import in_memory

IMAGES = 12


@pytest.mark.timeout(300)
@pytest.mark.rule("journal.survives-power-loss")
@pytest.mark.parametrize("scene", SCENES)
def test_everything_acknowledged_is_on_every_disk_that_a_power_cut_may_leave(tmp_path: Path, scene: str) -> None:
    require_shim()
    seed = a_seed()
    with in_memory(tmp_path) as disk:
        found = cut_power(record(scene, disk, seed, acknowledgements=12), tmp_path, images=IMAGES, seed=seed)
    print(f"{found.images} images, {found.owed} acknowledgements owed in all")
    assert found.faults == []
    assert found.owed > IMAGES, "it was cut too early to have owed anything"
