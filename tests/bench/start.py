"""A restart: the journal loaded by a fresh process, against the same blocks parsed from one JSON array by another.

    python -m tests.bench.start journal STATE_DIR
    python -m tests.bench.start array FILE

Either prints the seconds it took and the bytes it has resident afterwards.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import orjson

from sidecar.stores.journal import Journal
from sidecar.workspace import Workspace
from tests.bench.corpus import bodies, fill_journal
from tests.bench.figures import AtMost, Figure, Size, in_turns, per_block, seconds
from tests.bench.machine import resident
from tests.bench.places import folder
from tests.daemon_process import PROJECT, environment


class Loaded(NamedTuple):
    seconds: float
    resident: int


def measure(size: Size) -> Iterator[Figure]:
    blocks = size.of(100_000, least=5000)
    with folder() as place:
        fill_journal(place / "full", blocks)
        (place / "full.json").write_bytes(b"[%b]" % b",".join(bodies(blocks)))
        (place / "empty.json").write_bytes(b"[]")
        ours_empty, array_empty = _fresh("journal", place / "empty"), _fresh("array", place / "empty.json")
        rounds = in_turns(
            size.rounds,
            lambda: _fresh("journal", place / "full"),
            lambda: _fresh("array", place / "full.json"),
        )
    took = [(ours.seconds, array.seconds) for ours, array in rounds]
    yield Figure(f"load {blocks:,} blocks from the journal", "orjson.loads of them", seconds, took, AtMost(1.5))
    kept = [
        ((ours.resident - ours_empty.resident) / blocks, (array.resident - array_empty.resident) / blocks)
        for ours, array in rounds
    ]
    yield Figure(f"resident per block, {blocks:,} loaded", "orjson.loads of them", per_block, kept)


def _fresh(kind: str, path: Path) -> Loaded:
    command = [sys.executable, "-m", "tests.bench.start", kind, str(path)]
    done = subprocess.run(command, cwd=PROJECT, env=environment(), check=True, stdout=subprocess.PIPE)
    return Loaded(*json.loads(done.stdout))


def _load_journal(path: str) -> object:
    journal = Journal.open(path)
    workspace = Workspace(journal)
    workspace.load()
    gc.collect()
    gc.freeze()
    return journal, workspace


def _load_array(path: str) -> object:
    return orjson.loads(Path(path).read_bytes())


_LOADERS: dict[str, Callable[[str], object]] = {"journal": _load_journal, "array": _load_array}


def main(kind: str, path: str) -> None:
    began = perf_counter()
    held = _LOADERS[kind](path)
    took = perf_counter() - began
    print(json.dumps([took, resident()]))
    del held  # and not before it was counted


if __name__ == "__main__":
    main(*sys.argv[1:])
