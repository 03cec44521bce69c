"""A real VS Code in a browser: the server of one build, the extension in it, and programs that drive its page.

The builds lie in the cache that `.ci/editors/vscode` fills. Every run has folders of its own, and nothing outlives it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import node
from tests.daemon_process import PROJECT, Workspace, environment, eventually
from tests.editors import process_tree

DRIVERS = PROJECT / "tests/editors/vscode"
EXTENSION = PROJECT / "clients/vscode"
START_CEILING = 90.0
DRIVE_CEILING = 480.0
Acts = Mapping[str, Callable[..., Any]]

# What a first start would ask, fetch or advertise is switched off; the rest is as it comes.
SETTINGS = {
    "chat.disableAIFeatures": True,
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": False,
    "extensions.ignoreRecommendations": True,
    "files.autoSave": "off",
    "git.enabled": False,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "window.commandCenter": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
}
KEYS = [{"key": "ctrl+alt+shift+l", "command": "workbench.action.toggleLightDarkThemes"}]


@dataclass(frozen=True, slots=True)
class Build:
    """One version of VS Code and the folder of its Node, both below the cache."""

    version: str
    node: str

    def __str__(self) -> str:
        return self.version


BUILDS = (Build("1.139.1", "node24"), Build("1.100.3", "node20"))


def cache() -> Path:
    """Where the editors of the tests lie."""
    named = os.environ.get("ARTIFACT_SIDECAR_EDITORS")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(named) if named else Path(home, "artifact-sidecar-editors")


def require(build: Build) -> None:
    """Skip, saying how to get it, where this build or a browser is not there; never in CI."""
    missing = [name for name in (build.node, f"vscode-{build}") if not (cache() / name / ".complete").exists()]
    missing += [] if shutil.which("chromium") else ["chromium"]
    if not missing:
        return
    reason = f"{', '.join(missing)} not found; to run the VS Code tests: .ci/editors/vscode && apt-get install chromium"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def package(into: Path) -> Path:
    """The extension as a user installs it, made anew; the path of the .vsix."""
    node.installed(EXTENSION)
    vsix = into / "artifact-sidecar.vsix"
    node.required().run_npm("run", "package", "--", "--out", str(vsix), cwd=EXTENSION)
    return vsix


class Server:
    """One VS Code server with its own folders below `folder`; its extension host has `variables` and nothing of ours.

    `folder/server.log` is what it says; `pictures` is where the pictures of a run are left.
    """

    def __init__(self, build: Build, folder: Path, *, pictures: Path, variables: Mapping[str, str]) -> None:
        self.build, self.folder, self.pictures = build, folder, pictures
        self.log = folder / "server.log"
        self.variables = dict(variables)
        self._places = [part for name in ("sd", "user", "ext") for part in (_FLAGS[name], str(folder / name))]
        self._process: subprocess.Popen[Any] | None = None
        (folder / "user/User").mkdir(parents=True)
        (folder / "user/User/settings.json").write_text(json.dumps(SETTINGS), "utf-8")
        (folder / "user/User/keybindings.json").write_text(json.dumps(KEYS), "utf-8")
        pictures.mkdir(parents=True, exist_ok=True)

    def install(self, vsix: Path) -> None:
        """Install an extension as its user would."""
        subprocess.run(
            [*self._program(), "--install-extension", str(vsix)],
            env=self._environment(),
            check=True,
            capture_output=True,
            timeout=START_CEILING,
        )

    def start(self) -> Server:
        """Start, and wait until the page can be had."""
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/"
        flags = ["--host", "127.0.0.1", "--port", str(port), "--without-connection-token", "--enable-smoke-test-driver"]
        self._process = process_tree.start(
            [*self._program(), *flags], cwd=self.folder, env=self._environment(), log=self.log
        )
        eventually(lambda: self._listens(port), ceiling=START_CEILING)
        return self

    def _listens(self, port: int) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"VS Code ended at its start\n{self.tail()}"
        with socket.socket() as link:
            return link.connect_ex(("127.0.0.1", port)) == 0

    def drive(self, script: str, *, acts: Acts | None = None, **settings: Any) -> str:
        """Run one of our scripts on its page; what it said. It may ask for `acts` by name. Raises AssertionError.

        A line `{"act": name, "given": [...]}` of its stdout is a request, which is answered by a line of its stdin.
        """
        here = node.required()
        given = {
            "chromium": shutil.which("chromium"),
            "log": str(self.folder / "console.log"),
            "pictures": str(self.pictures),
            "url": self.url,
            "version": str(self.build),
            **settings,
        }
        driver = process_tree.start(
            [here.program, str(DRIVERS / script), json.dumps(given)],
            cwd=node.installed(DRIVERS),
            env=here.environment(),
            log=self.folder / "driver.log",
            pipes=True,
        )
        late = threading.Timer(DRIVE_CEILING, driver.send_signal, [signal.SIGTERM])
        late.start()
        said: list[str] = []
        try:
            assert driver.stdin is not None
            assert driver.stdout is not None
            for line in driver.stdout:
                if line.startswith('{"act":'):
                    asked = json.loads(line)
                    answer = (acts or {})[asked["act"]](*asked["given"])
                    driver.stdin.write(json.dumps(answer) + "\n")
                    driver.stdin.flush()
                else:
                    said.append(line)
            code = driver.wait()
        finally:
            late.cancel()
            process_tree.stop(driver)
            for pipe in (driver.stdin, driver.stdout):
                if pipe is not None:
                    pipe.close()
        words = "".join(said)
        assert code == 0, f"{script} ended with {code}\n{words[-6000:]}\n{_tail(self.folder / 'driver.log')}"
        return words

    def stop(self) -> None:
        """End the server and all that it started."""
        if self._process is not None:
            process_tree.stop(self._process)
            self._process = None

    def keep_logs(self) -> None:
        """Leave what was said beside the pictures."""
        for log in (self.log, self.folder / "console.log", self.folder / "driver.log"):
            if log.exists():
                shutil.copy(log, self.pictures)

    def tail(self) -> str:
        """The end of what the server said."""
        return _tail(self.log)

    def _program(self) -> list[str]:
        here = cache()
        main = here / f"vscode-{self.build}/lib/vscode/out/server-main.js"
        quiet = ("--accept-server-license-terms", "--telemetry-level", "off", "--force-disable-user-env")
        return [str(here / self.build.node / "bin/node"), str(main), *quiet, *self._places]

    def _environment(self) -> dict[str, str]:
        """Without a gallery it asks nobody for extensions; our Python's folder is not on its PATH."""
        ours = environment(EXTENSIONS_GALLERY="{}", **self.variables)
        ours.pop("PYTHONPATH")
        beside = str(Path(sys.executable).parent)
        ours["PATH"] = os.pathsep.join(part for part in ours["PATH"].split(os.pathsep) if part != beside)
        return ours


def door_of(workspace: Workspace) -> dict[str, str]:
    """The variables by which an editor finds this workspace, with a program that starts the daemon of this checkout."""
    program = workspace.folder / "artifact-sidecar"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{PROJECT}" exec "{sys.executable}" -m sidecar "$@"\n', "utf-8")
    program.chmod(0o755)
    return {
        "ARTIFACT_SIDECAR_PROGRAM": str(program),
        "ARTIFACT_SIDECAR_SOCKET_DIR": str(workspace.socket_dir),
        "ARTIFACT_SIDECAR_STATE_DIR": str(workspace.state_dir),
        "OUT_DIR": str(workspace.out_dir),
    }


def _tail(log: Path) -> str:
    return log.read_text("utf-8", "replace")[-4000:] if log.exists() else ""


_FLAGS = {"sd": "--server-data-dir", "user": "--user-data-dir", "ext": "--extensions-dir"}
