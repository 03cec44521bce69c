"""A disk in memory, for tests that make up by themselves what a disk loses: syncing it costs nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = "/dev/shm"
ROOM = 2**30


@contextmanager
def in_memory(otherwise: Path) -> Iterator[Path]:
    """A folder that is removed at the end: in memory where there is enough of it, else below `otherwise`."""
    has_room = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    folder = Path(tempfile.mkdtemp(prefix="as-", dir=MEMORY if has_room else otherwise))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
