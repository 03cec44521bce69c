"""One daemon with a story for all tests of a module that only read, and a desk at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.daemon_process import Workspace
from tests.server.editor.desk import Desk, desk_of, story


@dataclass(frozen=True)
class Told:
    """The workspace of the story, and the numbers of its two sources of the web."""

    workspace: Workspace
    good: int
    trap: int


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    with Workspace(tmp_path_factory.mktemp("story")) as workspace:
        yield Told(workspace, *story(workspace))


@pytest.fixture
def sit(told: Told) -> Iterator[Callable[..., Desk]]:
    """A factory of desks at the daemon of the story."""
    with ExitStack() as stack:

        def make(**options: Any) -> Desk:
            return stack.enter_context(desk_of(told.workspace, **options))

        yield make


@pytest.fixture(params=["utf-8", "utf-16"])
def desk(request: pytest.FixtureRequest, sit: Callable[..., Desk]) -> Desk:
    """A desk of a client that can do everything, in either of the usual encodings."""
    return sit(encoding=request.param)
