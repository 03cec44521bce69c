"""What others make of a patch: `git apply --recount`, `patch` twice, and the whatthepatch library.

Each gets the patch as it is and the file under the name that the patch gives it, and either leaves a text or refuses.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import whatthepatch

from sidecar.core.patching import Patched, apply

Applier = Callable[[str, str], str | None]

_NAME = re.compile(r"^\+\+\+ (?:b/)?([\w./-]+)", re.MULTILINE)
SECONDS = 20.0


def ours(before: str, patch: str) -> str | None:
    match apply(before, patch):
        case Patched(text=text):
            return text
        case _:
            return None


def git_apply(before: str, patch: str) -> str | None:
    with tempfile.TemporaryDirectory(prefix="patching-") as folder:
        target = _target(Path(folder), before, patch)
        done = _run(["git", "apply", "--recount", "--whitespace=nowarn", "-"], folder, patch)
        return _read(target) if done else None


def plain_patch(before: str, patch: str) -> str | None:
    return _patch_program(before, patch)


def fuzzy_patch(before: str, patch: str) -> str | None:
    """As the old system called it."""
    return _patch_program(before, patch, "--fuzz=3", "-l")


def library(before: str, patch: str) -> str | None:
    """whatthepatch returns lines without their ends, so the ends of the file are put back."""
    try:
        lines: list[str] | None = None
        for diff in whatthepatch.parse_patch(patch):
            if diff.changes:
                lines = whatthepatch.apply_diff(diff, before if lines is None else lines)
    except Exception:  # noqa: BLE001  whatever a rival raises is its refusal
        return None
    if lines is None:
        return None
    end = "\r\n" if "\r\n" in before else "\n"
    return end.join(lines) + (end if lines and (before.endswith("\n") or not before) else "")


APPLIERS: Mapping[str, Applier] = {
    "ours": ours,
    "git apply --recount": git_apply,
    "patch": plain_patch,
    "patch --fuzz=3 -l": fuzzy_patch,
    "whatthepatch": library,
}


def _patch_program(before: str, patch: str, *options: str) -> str | None:
    with tempfile.TemporaryDirectory(prefix="patching-") as folder:
        target = _target(Path(folder), before, "")
        command = ["patch", "--batch", "--forward", "--silent", *options, "-r", "-", str(target)]
        return _read(target) if _run(command, folder, patch) else None


def _target(folder: Path, before: str, patch: str) -> Path:
    named = _NAME.search(patch)
    target = folder / (named[1] if named and ".." not in named[1] and not named[1].startswith("/") else "file.txt")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(before.encode())
    return target


def _read(path: Path) -> str | None:
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else None


def _run(command: list[str], folder: str, patch: str) -> bool:
    alone = {**os.environ, "GIT_CEILING_DIRECTORIES": folder, "GIT_DIR": "/nowhere"}
    done = subprocess.run(
        command, cwd=folder, env=alone, input=patch.encode(), capture_output=True, timeout=SECONDS, check=False
    )
    return done.returncode == 0
