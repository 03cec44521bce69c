"""The process in which one target is fuzzed: atheris leads, and what is found is written down and is not the end.

`python -m tests.fuzzing.inside TARGET FOLDER [what libFuzzer takes]`. FOLDER gets the findings, and the input
whose time grew fastest with its length.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from time import thread_time

import atheris

from tests.fuzzing.table import target_of
from tests.fuzzing.target import Target

INSTRUMENTED = ["sidecar", "markdown_it", "tinycss2"]

LENGTHS = (8_192, 32_768)  # to which an input is repeated, to see how the time grows
EVERY = 100  # so many inputs are tried for one that is repeated
LEAST_SECONDS = 0.002  # below which a time says little


class Watcher:
    """Tries inputs, and remembers for each way to fail the shortest input that does, and whose time grew fastest."""

    def __init__(self, target: Target, folder: Path) -> None:
        self._target = target
        self._folder = folder
        self._shortest: dict[str, int] = {}
        self._steepest = 0.0
        self._tried = 0

    def __call__(self, data: bytes) -> None:
        self._tried += 1
        try:
            self._target.check(data)
            if self._target.plainly is not None and data and self._tried % EVERY == 0:
                self._lengthen(data, self._target.plainly)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is a finding
            self._remember(data, fault)

    def _lengthen(self, data: bytes, plainly: Callable[[bytes], object]) -> None:
        """Does four times as much take four times as long? Reported, and no finding: time is shared with others."""
        short, long = (seconds(plainly, data * (length // len(data))) for length in LENGTHS)
        grown = long / max(short, LEAST_SECONDS) / (LENGTHS[1] / LENGTHS[0])
        if grown > self._steepest:
            self._steepest = grown
            (self._folder / "steepest").write_text(f"{grown}\n{data!r}\n", "utf-8")

    def _remember(self, data: bytes, fault: Exception) -> None:
        mark = mark_of(fault)
        if len(data) < self._shortest.get(mark, len(data) + 1):
            self._shortest[mark] = len(data)
            said = "".join(traceback.format_exception(fault))
            (self._folder / f"{mark}.txt").write_text(f"{data!r}\n\n{said}", "utf-8", "backslashreplace")


def seconds(plainly: Callable[[bytes], object], data: bytes) -> float:
    began = thread_time()
    plainly(data)
    return thread_time() - began


def mark_of(fault: Exception) -> str:
    """The same for the same way to fail: what was raised, where, and what the check was about to see."""
    places = [f"{Path(frame.filename).name} {frame.line}" for frame in traceback.extract_tb(fault.__traceback__)]
    return hashlib.sha256(repr((type(fault).__name__, places[2:4], places[-1])).encode()).hexdigest()[:12]


def main() -> None:
    name, folder, *rest = sys.argv[1:]
    with atheris.instrument_imports(include=INSTRUMENTED):
        target = target_of(name)
    again = shlex.join([sys.executable, "-m", "tests.fuzzing.inside", name, folder])  # what a merge hands to a shell
    atheris.Setup([again, *rest], Watcher(target, Path(folder)))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
