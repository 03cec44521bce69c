"""A closed file is told of by itself, and soon: how soon is a figure, that it is told a promise."""

from __future__ import annotations

import random

from tests.daemon_process import Workspace
from tests.faults.chance import a_seed
from tests.watching.promptness import told_after_close


def test_every_closed_file_is_told_of_without_being_asked_for(workspace: Workspace) -> None:
    seconds = told_after_close(workspace, 20, random.Random(a_seed()), ceiling=60.0)
    print(f"slowest {max(seconds) * 1000:.0f} ms")
    assert len(seconds) == 20
