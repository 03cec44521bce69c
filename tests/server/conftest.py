"""The workspace that tests of handlers ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.server.inside import Inside, awake


@pytest_asyncio.fixture
async def inside(tmp_path: Path) -> AsyncIterator[Inside]:
    async with awake(tmp_path) as workspace:
        yield workspace
