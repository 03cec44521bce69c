"""The index on both engines: a test that takes `index` runs on a SQLite file and on a real PostgreSQL; and disks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.ports import Index
from sidecar.stores import kernel, outdir
from sidecar.stores.indexes import open_index
from sidecar.stores.opens import best_opener, by_kernel, held


@pytest.fixture
def memory_is_known(tmp_path: Path) -> None:
    """For tests of what is read only when it is in memory."""
    release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    with held(os.open(tmp_path, os.O_PATH)) as folder:
        is_told = kernel.file_system_type(folder) in outdir._READS_NOW
    if not is_told or release < (5, 12) or best_opener(str(tmp_path)) is not by_kernel:
        pytest.skip("Linux 5.12 tells what is in memory of ext4, xfs, btrfs and tmpfs; use --basetemp on one of them")


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an index of this engine is to be; nothing is there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "index" / "conversations.db")
    return request.getfixturevalue("postgres_database")


@pytest.fixture
def index(location: str) -> Iterator[Index]:
    """An empty index."""
    opened = open_index(location)
    opened.open()
    yield opened
    opened.close()
