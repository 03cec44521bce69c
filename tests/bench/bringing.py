"""Files brought back from kept bytes, against a loop that copies them and hashes what it copies.

The loop does what has to be done once somebody knows which bytes are wanted: read, hash, write under a temporary name,
rename. Ours also looks whether a file is there, has the bytes on the disk before the name, so that no power cut leaves
half a file to be registered, and tells the journal. A loop that syncs each file as well is the other rival.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

from tests.bench.figures import AtMost, Figure, Size, against, in_turns, seconds
from tests.bench.pipe import Pipe, daemon_pipe, request
from tests.bench.places import folder, served
from tests.daemon_process import Workspace

CHUNK = 1024 * 1024
# How many files of how many bytes.
LOADS = ((200, 64 * 1024), (1, 60 * CHUNK))


def measure(size: Size) -> Iterator[Figure]:
    with folder() as place, served(place / "ours") as workspace, daemon_pipe(workspace, "runtime") as pipe:
        for full, length in LOADS:
            names = [f"turn_1/files/{length}/{number:04d}.bin" for number in range(size.of(full, least=1))]
            for number, name in enumerate(names):
                workspace.write(name, number.to_bytes(8, "big") * (length // 8))
            pipe.ask(request(2, "workspace/sync", {}))
            sources = [put_aside(workspace.out_dir / name, place / "aside" / name) for name in names]
            rounds = in_turns(
                size.rounds,
                lambda: _rehost(workspace, pipe, names),  # noqa: B023 - called at once
                lambda: copied(sources, place / "copies"),  # noqa: B023
                lambda: copied(sources, place / "synced", sync=True),  # noqa: B023
            )
            name = f"rehost of {len(names)} x {length // 1024} KiB from kept bytes"
            yield Figure(name, "copy and hash", seconds, against(rounds, ours=0, rival=1), AtMost(1 / 0.9))
            yield Figure(name, "copy, hash, fsync", seconds, against(rounds, ours=0, rival=2))


def put_aside(file: Path, aside: Path) -> Path:
    aside.parent.mkdir(parents=True, exist_ok=True)
    aside.write_bytes(file.read_bytes())
    return aside


def _rehost(workspace: Workspace, pipe: Pipe, names: Sequence[str]) -> float:
    for name in names:
        (workspace.out_dir / name).unlink()
    pipe.ask(request(3, "workspace/sync", {}))  # they are known to be gone before the clock starts
    began = perf_counter()
    answer = pipe.ask(request(4, "artifact/rehost", {"paths": list(names)}))
    spent = perf_counter() - began
    if [one["origin"] for one in answer["rehosted"]] != ["kept"] * len(names):
        raise ValueError(f"not every file came back from what was kept: {answer['missing'][:3]}")
    return spent


def copied(sources: Sequence[Path], target: Path, *, sync: bool = False) -> float:
    target.mkdir(exist_ok=True)
    began = perf_counter()
    for source in sources:
        hashing = hashlib.sha256()
        arriving = target / "arriving"
        with source.open("rb", buffering=0) as read, arriving.open("wb", buffering=0) as write:
            while chunk := read.read(CHUNK):
                hashing.update(chunk)
                write.write(chunk)
            if sync:
                os.fsync(write.fileno())
        hashing.hexdigest()
        os.replace(arriving, target / source.name)
    return perf_counter() - began
