"""The inputs that are kept in the project, a line each and readable, and those that grow beside it.

A target has two pages here: `<target>.txt`, what a merge left of all that was found worth keeping, and
`<target>.found.txt`, what once showed a defect and is tried for ever.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable
from pathlib import Path

from platformdirs import user_cache_path

KEPT = Path(__file__).with_name("corpus")
SETTING = "ARTIFACT_SIDECAR_FUZZING"


def growing() -> Path:
    """The folder of what is not kept in the project: the working corpus, findings, the ledger."""
    return Path(os.environ.get(SETTING) or user_cache_path("artifact-sidecar-fuzzing"))


def kept(target: str) -> list[bytes]:
    return _read(KEPT / f"{target}.txt")


def findings(target: str) -> list[bytes]:
    return _read(KEPT / f"{target}.found.txt")


def keep(target: str, inputs: Iterable[bytes]) -> None:
    """Put these in place of what is kept of a target; the shortest first."""
    KEPT.mkdir(exist_ok=True)
    lines = (f"{one!r}\n" for one in sorted(set(inputs), key=lambda one: (len(one), one)))
    (KEPT / f"{target}.txt").write_text("".join(lines), "utf-8")


def _read(page: Path) -> list[bytes]:
    if not page.exists():
        return []
    lines = page.read_text("utf-8").splitlines()
    return [ast.literal_eval(line) for line in lines if line and not line.startswith("#")]
