"""Files of the journal that are not what was written are noticed, and cost what was damaged and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.chance import a_seed
from tests.faults.damage import changed_rows, integrity_check_alone, recovery, torn_logs


@pytest.fixture
def seed() -> int:
    return a_seed()


def test_a_torn_or_flipped_log_is_a_clean_prefix(tmp_path: Path, seed: int) -> None:
    found = torn_logs(tmp_path, count=100, seed=seed)
    assert (found.noticed, found.faults) == (100, [])


@pytest.mark.rule("journal.rows-are-hashed")
def test_a_row_that_changed_is_noticed_and_costs_itself_alone(tmp_path: Path, seed: int) -> None:
    found = changed_rows(tmp_path, count=60, seed=seed)
    assert (found.noticed, found.faults) == (60, [])
    assert integrity_check_alone(tmp_path, count=20, seed=seed) == 0, "then the hashes would be needless"


def test_a_journal_of_a_killed_daemon_is_recovered_whole(tmp_path: Path, seed: int) -> None:
    seconds, blocks = recovery(tmp_path, blocks=5000, seed=seed)
    print(f"{seconds * 1000:.0f} ms")
    assert blocks == 5000
