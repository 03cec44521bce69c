"""A restart: the journal loaded by a fresh process, against the same blocks parsed from one JSON array by another.

    python -m tests.bench.start journal STATE_DIR
    python -m tests.bench.start array FILE

Either prints the seconds it took, those of its threads on a processor, and the bytes it has resident afterwards.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import orjson

from sidecar.stores.journal import Journal
from sidecar.workspace import Workspace
from tests.bench.corpus import kept
from tests.bench.figures import AtMost, Figure, Size, in_turns, per_block, seconds
from tests.bench.machine import resident
from tests.daemon_process import PROJECT, environment


class Loaded(NamedTuple):
    seconds: float
    worked: float  # seconds of all its threads on a processor
    resident: int


def measure(size: Size) -> Iterator[Figure]:
    """A million in few rounds, because one of them is long."""
    yield from _measure(size.of(100_000, least=5000), size.rounds)
    yield from _measure(size.of(1_000_000, least=8000), (size.rounds + 1) // 2)


def _measure(blocks: int, number: int) -> Iterator[Figure]:
    full, empty = kept(blocks), kept(0)
    ours_empty, array_empty = _fresh("journal", empty / "journal"), _fresh("array", empty / "array.json")
    rounds = in_turns(number, lambda: _fresh("journal", full / "journal"), lambda: _fresh("array", full / "array.json"))
    took = [(ours.seconds, array.seconds) for ours, array in rounds]
    yield Figure(f"load {blocks:,} blocks from the journal", "orjson.loads of them", seconds, took, AtMost(1.0))
    worked = [(ours.worked, array.worked) for ours, array in rounds]
    yield Figure(f"processor time to load {blocks:,} blocks", "orjson.loads of them", seconds, worked)
    each = [
        ((ours.resident - ours_empty.resident) / blocks, (array.resident - array_empty.resident) / blocks)
        for ours, array in rounds
    ]
    yield Figure(f"resident per block, {blocks:,} loaded", "orjson.loads of them", per_block, each)


def _fresh(kind: str, path: Path) -> Loaded:
    command = [sys.executable, "-m", "tests.bench.start", kind, str(path)]
    done = subprocess.run(command, cwd=PROJECT, env=environment(), check=True, stdout=subprocess.PIPE)
    return Loaded(*json.loads(done.stdout))


def _load_journal(path: str) -> object:
    journal = Journal.open(path)
    workspace = Workspace(journal)
    workspace.load()
    return journal, workspace


def _load_array(path: str) -> object:
    return orjson.loads(Path(path).read_bytes())


_LOADERS: dict[str, Callable[[str], object]] = {"journal": _load_journal, "array": _load_array}


def main(kind: str, path: str) -> None:
    began, worked = perf_counter(), process_time()
    held = _LOADERS[kind](path)
    took = perf_counter() - began
    print(json.dumps([took, process_time() - worked, resident()]))
    del held  # and not before it was counted


if __name__ == "__main__":
    main(*sys.argv[1:])
