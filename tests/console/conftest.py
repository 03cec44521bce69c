"""Commands run in this process against daemons that are real."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sidecar.__main__ import main
from tests.daemon_process import Workspace, environment

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on a workspace: its exit code, what it printed, what it complained of."""
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])

    def run(workspace: Workspace, name: str, *words: str) -> tuple[int, str, str]:
        code = main([name, *words, *workspace.arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run
