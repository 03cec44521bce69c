"""A real Neovim without a screen: the builds that `.ci/editors/neovim` unpacks, the plugin, and a file of its tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.daemon_process import PROJECT, Workspace, environment

PLUGIN = PROJECT / "clients/neovim"
HOW = "run .ci/editors/neovim, which unpacks it into the cache that ARTIFACT_SIDECAR_EDITORS names"
CEILING = 300.0  # seconds for one file of tests; each wait in it ends earlier and says what it waited for


@dataclass(frozen=True, slots=True)
class Build:
    """One Neovim, by the name of its folder in the cache."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def program(self) -> Path:
        return cache() / self.name / "bin/nvim"

    def required(self) -> Build:
        """Itself, or the test is skipped and says how to get it; in CI it fails."""
        if not self.program.exists():
            missing(f"no Neovim at {self.program}: {HOW}")
        return self


OLDEST, NEWEST = Build("nvim-0.10"), Build("nvim-newest")
BUILDS = (OLDEST, NEWEST)


def cache() -> Path:
    """Where the editors of the tests lie."""
    named = os.environ.get("ARTIFACT_SIDECAR_EDITORS")
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(named) if named else Path(home).expanduser() / "artifact-sidecar-editors"


def missing(words: str) -> None:
    """Skip the test; in CI, where all must be there, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(words)
    pytest.skip(words)


def options(workspace: Workspace) -> dict[str, object]:
    """What a user of this workspace would write into `vim.g.artifact_sidecar`."""
    places = ["--state-dir", str(workspace.state_dir), "--socket-dir", str(workspace.socket_dir), "--idle-exit", "600"]
    return {"command": [sys.executable, "-m", "sidecar"], "args": places}


def surroundings(workspace: Workspace, folder: Path, **extra: str) -> dict[str, str]:
    """The environment of a Neovim whose own files lie in `folder`, which is made."""
    homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    for home in homes.values():
        Path(home).mkdir(parents=True, exist_ok=True)
    return environment(
        **homes,
        OUT_DIR=str(workspace.out_dir),
        SIDECAR_TEST_OPTIONS=json.dumps(options(workspace)),
        SIDECAR_TEST_SUPPORT=str(PLUGIN / "test/support.lua"),
        **extra,
    )


def arguments(build: Build) -> list[str]:
    """A Neovim with the plugin and with nothing of the user's own."""
    return [
        *(str(build.program), "--clean"),
        *("--cmd", f"set runtimepath^={PLUGIN}"),
        *("--cmd", "lua vim.g.artifact_sidecar = vim.json.decode(vim.env.SIDECAR_TEST_OPTIONS)"),
    ]


def run(build: Build, script: str, workspace: Workspace, folder: Path, extra: Mapping[str, str] | None = None) -> str:
    """Run `clients/neovim/test/<script>.lua` in a Neovim; what it said.

    Fails with all of that when one of its tests does.
    """
    command = [*arguments(build), "--headless", "-c", f"luafile {PLUGIN / 'test' / script}.lua"]
    env = surroundings(workspace, folder, **(extra or {}))
    try:
        ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=CEILING)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"{script} did not end\n{late.stdout!r}\n{late.stderr!r}\n{_log(folder)}") from None
    said = f"{ended.stdout}\n{ended.stderr}"
    assert ended.returncode == 0, f"{script} in {build} ended with {ended.returncode}\n{said}\n{_log(folder)}"
    assert " failed" in ended.stdout, f"{script} ran no tests\n{said}"
    return said


def _log(folder: Path) -> str:
    """What Neovim's own client wrote, for messages of failed tests."""
    logs = sorted((folder / "state").rglob("lsp.log"))
    return "\n".join(log.read_text("utf-8", "replace")[-2000:] for log in logs)
