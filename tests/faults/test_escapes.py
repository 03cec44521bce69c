"""No path leads out of OUT_DIR: not while folders are swapped for links, and not by any spelling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.chance import a_seed
from tests.faults.escapes import Tried, made_up, reads, scans, writes


@pytest.mark.parametrize("deed", [reads, writes, scans], ids=lambda deed: deed.__name__)
def test_a_folder_that_changes_places_with_a_link_lets_nothing_out(deed: Callable[..., Tried], tmp_path: Path) -> None:
    found = deed(tmp_path, count=3000)
    assert found.escaped == 0
    assert found.inside > 0, "a test in which everything is refused proves nothing"


def test_paths_made_up_by_chance_open_what_is_inside_or_nothing(tmp_path: Path) -> None:
    seed = a_seed()
    found = made_up(tmp_path, count=1500, seed=seed)
    assert found.escaped == 0
    assert found.inside >= 0.2 * found.tried, "a test in which everything is refused proves nothing"
