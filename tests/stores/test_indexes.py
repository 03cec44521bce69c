"""Opening the index that a location names, and saying where its schema stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.core.errors import StoreUnavailable
from sidecar.core.index_rows import Commit
from sidecar.stores.index_migrations import steps
from sidecar.stores.indexes import migrate, migrations, open_index
from tests.stores.index_contract import SCOPE, run_together
from tests.tidy.tree import PROJECT

NAMES = [step.name for step in steps("sqlite")]


def test_a_location_that_cannot_be_is_refused() -> None:
    for ask in (open_index, migrations, migrate):
        with pytest.raises(ValueError, match="an index is"):
            ask("here")


def test_naming_an_index_touches_nothing(tmp_path: Path) -> None:
    for location in (str(tmp_path / "a" / "index.db"), "postgresql://127.0.0.1:1/nothing"):
        open_index(location).close()
    assert os.listdir(tmp_path) == []


def test_naming_an_index_loads_nothing_heavy() -> None:
    program = (
        "import sys; from sidecar.stores.indexes import open_index\n"
        "open_index('/nowhere/index.db'); open_index('postgresql://nowhere')\n"
        "print(*sorted({'apsw', 'numpy', 'psycopg'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_kind_is_known_before_anything_is_opened(location: str) -> None:
    assert open_index(location).kind == ("postgresql" if "://" in location else "sqlite")


def test_the_steps_are_missing_then_applied_once(location: str) -> None:
    assert [(one.name, one.applied) for one in migrations(location)] == [(name, None) for name in NAMES]
    assert (migrate(location), migrate(location)) == (NAMES, [])
    assert all(one.applied and one.applied.endswith("+00:00") for one in migrations(location))


def test_looking_at_the_steps_makes_no_file(tmp_path: Path) -> None:
    migrations(str(tmp_path / "index.db"))
    assert os.listdir(tmp_path) == []


def test_an_index_is_opened_by_its_first_use(location: str) -> None:
    index = open_index(location)
    assert index.commit(SCOPE, Commit()) == 1
    index.close()


def test_an_index_may_be_opened_again_and_again(location: str) -> None:
    index = open_index(location)
    index.open()
    index.commit(SCOPE, Commit())
    index.open()
    assert index.standing(SCOPE).change == 1
    index.close()
    index.close()


def test_a_closed_index_is_unavailable(location: str) -> None:
    index = open_index(location)
    index.open()
    index.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        index.standing(SCOPE)
    with pytest.raises(StoreUnavailable, match="closed"):
        index.commit(SCOPE, Commit())
    assert index.changed(SCOPE, 0, seconds=60) is False


def test_eight_programs_that_start_at_once_apply_each_step_once(location: str) -> None:
    assert run_together(location, "open", programs=8) == [0] * 8
    assert [one.name for one in migrations(location) if one.applied] == NAMES
