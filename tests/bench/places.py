"""Where a figure is measured: a private folder, a daemon in it, and no trace afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.pipe import daemon_pipe
from tests.daemon_process import Workspace


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="as-bench-") as name:
        yield Path(name)


@contextmanager
def served(place: Path) -> Iterator[Workspace]:
    """A workspace whose daemon is awake. It is killed in the end: nothing of it is worth writing down any more."""
    workspace = Workspace(place)
    try:
        workspace.start()
        with daemon_pipe(workspace, "runtime"):
            pass  # it takes connections long before it has loaded everything and answers
        yield workspace
    finally:
        workspace.clean_up(failed=True)
