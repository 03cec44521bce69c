"""Fixtures that start real daemons. A test that passed has read every message and left no traceback in the log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.daemon_process import Workspace
from tests.faulty_front import FaultyFront
from tests.postgres import NotInstalled as NoPostgres
from tests.postgres import Postgres
from tests.radosgw import NotInstalled, Radosgw

_reports: pytest.StashKey[dict[str, pytest.TestReport]] = pytest.StashKey()


def pytest_sessionstart() -> None:
    """Whoever ends this very process would end the run as if all had passed."""
    leave, run = os._exit, os.getpid()

    def guarded(code: int) -> NoReturn:
        if os.getpid() == run:
            raise AssertionError(f"a test tried to end the whole run with {code}")
        leave(code)

    os._exit = guarded


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


@pytest.fixture(scope="session")
def radosgw() -> Iterator[Radosgw]:
    """A real S3 server, one for the whole run. Where it is not installed its tests are skipped, but never in CI."""
    try:
        server = Radosgw()
    except NotInstalled as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    yield server
    server.stop()


@pytest.fixture
def s3(radosgw: Radosgw, monkeypatch: pytest.MonkeyPatch) -> Radosgw:
    """The server, with its credentials where boto3 finds them, for us and for daemons that we start."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in radosgw.environment().items():
        monkeypatch.setenv(name, value)
    return radosgw


@pytest.fixture(scope="module")
def bucket(radosgw: Radosgw) -> str:
    """An empty bucket for the tests of one module."""
    return radosgw.make_bucket()


@pytest.fixture
def front(s3: Radosgw) -> Iterator[FaultyFront]:
    """A front before the S3 server that fails when told to."""
    standing = FaultyFront(s3.http)
    yield standing
    standing.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL with pgvector, one for the whole run. Where it is not installed its tests are skipped."""
    try:
        server = Postgres()
    except NoPostgres as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    yield server
    server.stop()


@pytest.fixture
def postgres_database(postgres: Postgres) -> Iterator[str]:
    """The URL of an empty database of this test's own."""
    name = postgres.database()
    yield postgres.url(name)
    postgres.drop(name)
