"""The index on both engines: a test that takes `index` runs on a SQLite file and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.ports import Index
from sidecar.stores.indexes import open_index


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
