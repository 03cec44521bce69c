"""Runs the kept tools that judge the project. One that is not installed is skipped by hand and a failure under CI."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.tree import PROJECT


def run_tool(name: str, *arguments: str) -> None:
    """Run a tool of this environment from the project's root. Fails with what it printed."""
    beside = Path(sys.executable).parent / name
    if not beside.exists():
        absent(f"{name} is not installed beside {sys.executable}")
    done = subprocess.run([str(beside), *arguments], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{name} {' '.join(arguments)}\n{done.stdout[-8000:]}{done.stderr[-4000:]}"


def run_module(*arguments: str, cwd: Path = PROJECT) -> str:
    """Run `python -m …` and return what it printed. Fails with what it complained of."""
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"python -m {' '.join(arguments)}\n{done.stdout[-8000:]}{done.stderr[-4000:]}"
    return done.stdout


def absent(reason: str) -> None:
    """Skip, or fail where everything is meant to be installed."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
