"""A second opinion on the LSP side: Emacs' own client, which shares no code and few habits with the other editors."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon_process import PROJECT, Workspace, environment
from tests.editors.agent_work import REPORT, AgentWork
from tests.editors.neovim import missing

SCRIPT = PROJECT / "tests/editors/eglot.el"
HOW = "run .ci/editors/neovim, which installs it, or: apt-get install -y --no-install-recommends emacs-nox elpa-eglot"
CHECKS = ("connect", "hover, after an emoji", "diagnostics", "definition", "completion", "shutdown")


@pytest.fixture
def emacs() -> str:
    """The program, or the test is skipped; in CI it fails."""
    found = shutil.which("emacs")
    if found is None:
        missing(f"no Emacs on PATH: {HOW}")
    assert found is not None
    if subprocess.run([found, "--batch", "--eval", "(require 'eglot)"], capture_output=True, timeout=60).returncode:
        missing(f"this Emacs has no eglot: {HOW}")
    return found


@pytest.mark.timeout(400)
@pytest.mark.rule("clients.eglot-agrees")
def test_eglot_shows_what_others_show(emacs: str, make_workspace: Callable[..., Workspace], tmp_path: Path) -> None:
    workspace = make_workspace().start()
    AgentWork(workspace).two_turns()
    report = workspace.out_dir / REPORT
    workspace.write(REPORT, report.read_text("utf-8") + "\n😀😀 The targets are in [[S:6]].\n")
    door = [sys.executable, "-m", "sidecar", "connect", "--role", "editor", *workspace.arguments]
    ended = subprocess.run(
        [emacs, "--batch", "-l", str(SCRIPT)],
        cwd=tmp_path,
        env=environment(
            HOME=str(tmp_path),
            LC_ALL="C.UTF-8",
            SIDECAR_TEST_COMMAND=json.dumps(door),
            SIDECAR_TEST_DOCUMENT=str(report),
        ),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr[-4000:]}"
    assert [line for line in ended.stdout.splitlines() if line.startswith("ok ")] == [f"ok {name}" for name in CHECKS]
