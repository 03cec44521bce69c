"""The plugin in two real Neovims: the oldest that it supports, and the newest there is.

What is asserted stands in `clients/neovim/test/*.lua` and runs inside the editor; here is the world around it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.daemon_process import Workspace, environment
from tests.editors import neovim
from tests.editors.agent_work import AgentWork

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(params=neovim.BUILDS, ids=str)
def build(request: pytest.FixtureRequest) -> neovim.Build:
    return request.param.required()


def worked_in(workspace: Workspace) -> Workspace:
    """The workspace with two turns of an agent's work in it, a third one open, and something of no turn."""
    work = AgentWork(workspace).two_turns()
    note = {"type": "note", "turn_id": "turn_3", "path": "fi:notes.txt", "mime": "text/plain", "text": "of no turn"}
    work.runtime.call("timeline/append", {"blocks": [note]})
    return workspace


@pytest.fixture
def world(make_workspace: Callable[..., Workspace]) -> Workspace:
    """A workspace of this test's own."""
    return worked_in(make_workspace().start())


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """One for all tests that only look."""
    with Workspace(tmp_path_factory.mktemp("shared")) as workspace:
        yield worked_in(workspace)


@pytest.mark.rule("clients.neovim-tree-is-live")
def test_the_tree_shows_what_was_made_and_what_lands(build: neovim.Build, world: Workspace, tmp_path: Path) -> None:
    neovim.run(build, "tree", world, tmp_path)


@pytest.mark.rule("clients.neovim-versions-and-diff")
def test_old_versions_open_and_are_compared(build: neovim.Build, shared_world: Workspace, tmp_path: Path) -> None:
    neovim.run(build, "versions", shared_world, tmp_path)


@pytest.mark.rule("clients.neovim-previews-cite")
def test_a_preview_has_links_for_citations(build: neovim.Build, shared_world: Workspace, tmp_path: Path) -> None:
    neovim.run(build, "preview", shared_world, tmp_path)


@pytest.mark.rule("clients.neovim-picks")
def test_artifacts_and_sources_are_picked(build: neovim.Build, world: Workspace, tmp_path: Path) -> None:
    neovim.run(build, "pickers", world, tmp_path)


@pytest.mark.rule("clients.neovim-outlives-daemons", "clients.neovim-says-its-health")
def test_it_outlives_the_daemon(build: neovim.Build, world: Workspace, tmp_path: Path) -> None:
    assert world.daemon is not None
    try:
        neovim.run(build, "life", world, tmp_path, {"SIDECAR_TEST_DAEMON": str(world.daemon.pid)})
    finally:
        world.kill9()  # it was killed from within the editor; what runs now was started by the door
        stop = [sys.executable, "-m", "sidecar", "stop", *world.arguments]
        subprocess.run(stop, env=environment(), capture_output=True, timeout=120)


@pytest.mark.rule("clients.neovim-finds-its-daemon", "clients.neovim-says-its-health")
def test_it_finds_its_daemon_or_says_what_is_missing(
    build: neovim.Build, shared_world: Workspace, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    program = elsewhere / "bin/artifact-sidecar"
    program.parent.mkdir(parents=True)
    command = neovim.options(shared_world)["command"]
    assert isinstance(command, list)
    program.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n', "utf-8")
    program.chmod(0o755)
    neovim.run(build, "unconfigured", shared_world, tmp_path, {"SIDECAR_TEST_ELSEWHERE": str(elsewhere)})


@pytest.mark.rule("clients.neovim-speaks-lsp")
def test_hover_links_diagnostics_and_completion_are_there(
    build: neovim.Build, world: Workspace, tmp_path: Path
) -> None:
    neovim.run(build, "language", world, tmp_path)


@pytest.mark.rule("clients.neovim-help-is-whole")
def test_every_tag_of_the_help_is_found(build: neovim.Build, shared_world: Workspace, tmp_path: Path) -> None:
    neovim.run(build, "documentation", shared_world, tmp_path)


@pytest.mark.rule("clients.neovim-holds-no-rules")
def test_no_rule_about_paths_citations_or_visibility_stands_in_lua() -> None:
    grammar = re.compile(r"\[\[S:|\bfi:|\bso:|%\[%\[|/files/|/attachments/|\.user\.|internal|visibility")
    found = [
        f"{file.name}: {line.strip()}"
        for file in sorted(neovim.PLUGIN.glob("**/*.lua"))
        if "test" not in file.parts
        for line in file.read_text("utf-8").splitlines()
        if grammar.search(line)
    ]
    assert found == []
