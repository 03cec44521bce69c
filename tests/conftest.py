"""Fixtures that start real daemons. A test that passed has read every message and left no traceback in the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon_process import Workspace

_reports: pytest.StashKey[dict[str, pytest.TestReport]] = pytest.StashKey()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report: pytest.TestReport = yield
    item.stash.setdefault(_reports, {})[report.when] = report
    return report


def has_failed(request: pytest.FixtureRequest) -> bool:
    reports = request.node.stash.get(_reports, {})
    return "call" not in reports or reports["call"].failed


@pytest.fixture
def make_workspace(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Workspace]]:
    """A factory: `make_workspace(options=..., settings=...)` is a workspace whose daemon is not started yet."""
    made: list[Workspace] = []

    def make(**arguments: Any) -> Workspace:
        made.append(Workspace(tmp_path / f"w{len(made)}", **arguments))
        return made[-1]

    yield make
    for workspace in made:
        workspace.clean_up(failed=has_failed(request))


@pytest.fixture
def workspace(make_workspace: Callable[..., Workspace]) -> Workspace:
    """A workspace with its daemon running."""
    return make_workspace().start()
