"""Nothing that a program makes is missed, and nothing half made is registered: by one sync, and by events alone.

`python -m tests.watching` does the same in full size, ten times each.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pytest

from tests.daemon_process import Workspace
from tests.faults.chance import a_seed
from tests.watching.deaths import through_a_death
from tests.watching.deeds import DEEDS
from tests.watching.overflow import through_a_stop
from tests.watching.trial import WAYS

RUNS = 2
SIZES = dict(zip(DEEDS, (12, 40, 200, 300, 2000), strict=True))

if sys.platform != "linux":
    pytest.skip("the daemon runs on Linux", allow_module_level=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", DEEDS)
def test_every_file_is_registered_whole(workspace: Workspace, name: str, way: str) -> None:
    for run in range(RUNS):
        outcome = WAYS[way](workspace, name, f"turn_{run}", SIZES[name])
        assert outcome.is_clean, str(outcome)


def test_a_sync_after_a_stop_misses_nothing(workspace: Workspace) -> None:
    # A new file takes four places of the kernel's queue, which has 16,384.
    outcome = through_a_stop(workspace, "sync", "turn_1", 5000)
    assert outcome.is_clean, str(outcome)


@pytest.mark.timeout(240)
def test_twenty_thousand_files_overflow_the_kernels_queue_and_none_is_missed(workspace: Workspace) -> None:
    outcome = through_a_stop(workspace, "events", "turn_1", 20_000)
    assert outcome.is_clean, str(outcome)


def test_a_restart_in_the_middle_of_a_deed_misses_nothing(make_workspace: Callable[..., Workspace]) -> None:
    seed = a_seed()
    chance = random.Random(seed)
    workspace = make_workspace().start()
    for run in range(3):
        outcome = through_a_death(workspace, f"turn_{run}", at=chance.randrange(50, 1500))
        assert outcome.is_clean, f"seed {seed}: {outcome}"
