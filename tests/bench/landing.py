"""A file lands: how soon a subscribed client hears of it, and how long a burst of ten thousand takes.

The event is measured against a program that has to do the same before it may tell: hear the doorbell, which is
watchfiles with our settings, hash the file and commit a row. What inotify itself would allow, with and without that
work, is the limit beside it. A burst is measured against walking, hashing and committing, and against the same with a
copy of every file, since ours keeps one.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from tests.bench.engine import Engine
from tests.bench.figures import AtMost, Figure, Size, against, in_turns, seconds
from tests.bench.pipe import Pipe, daemon_pipe, request
from tests.bench.places import folder, served
from tests.daemon_process import PROJECT, environment

FILE = b"A line of a file that a program has just written.\n" * 80
FOLDERS = 100
Hear = Callable[[str], None]
Land = Callable[[Path], float]


def measure(size: Size) -> Iterator[Figure]:
    yield from _events(size)
    yield from _bursts(size)


# One file ---------------------------------------------------------------------------------------------------------


def _events(size: Size) -> Iterator[Figure]:
    files = size.of(25, least=2)
    with folder() as place, served(place / "ours") as workspace, ExitStack() as stack:
        workspace.write("turn_1/files/first.txt", "first")
        with daemon_pipe(workspace) as pipe:
            pipe.ask(request(2, "workspace/sync", {}))
        listening = stack.enter_context(daemon_pipe(workspace, events=["artifacts"]))
        raw, working, belled = place / "raw", place / "working", place / "belled"
        hearings: list[tuple[Path, Hear]] = [
            (workspace.out_dir / "turn_1/files", partial(_hear_event, listening)),
            (belled, stack.enter_context(_teller("doorbell", belled, place / "belled.db"))),
            (working, stack.enter_context(_teller("inotify", working, place / "engine.db"))),
            (raw, stack.enter_context(_teller("inotify", raw))),
        ]
        names = (f"{number:06d}.txt" for number in count())
        for way, land in (("closed", _close), ("renamed in", _rename)):
            contenders = [partial(_delay, names, files, land, where, hear) for where, hear in hearings]
            rounds = in_turns(size.rounds, *contenders)
            name = f"file {way} until its event"
            yield Figure(name, "doorbell, hash, one commit", seconds, against(rounds, ours=0, rival=1), AtMost(1.5))
            yield Figure(name, "inotify, hash, one commit", seconds, against(rounds, ours=0, rival=2))
            yield Figure(name, "raw inotify", seconds, against(rounds, ours=0, rival=3))


def _delay(names: Iterator[str], files: int, land: Land, where: Path, hear: Hear) -> float:
    """Median seconds from a file being complete to somebody having heard of it."""
    spent: list[float] = []
    for name in islice(names, files):
        began = land(where / name)
        hear(name)
        spent.append(perf_counter() - began)
    return median(spent)


def _close(target: Path) -> float:
    with target.open("wb") as file:
        file.write(FILE)
        file.flush()
        return perf_counter()  # what is left to do is to close it


def _rename(target: Path) -> float:
    arriving = target.parents[3] / f"arriving-{target.name}"  # beside OUT_DIR and the other folders, on the same disk
    arriving.write_bytes(FILE)
    began = perf_counter()
    arriving.rename(target)
    return began


def _hear_event(pipe: Pipe, name: str) -> None:
    while not _tells_of(pipe.receive(), name):
        pass


def _tells_of(message: dict[str, Any], name: str) -> bool:
    return message.get("method") == "artifacts/changed" and any(
        artifact["physical_path"].endswith(name) for artifact in message["params"]["artifacts"]
    )


@contextmanager
def _teller(way: str, where: Path, *databases: Path) -> Iterator[Hear]:
    where.mkdir()
    command = [sys.executable, "-m", "tests.bench.teller", way, str(where), *map(str, databases)]
    with subprocess.Popen(command, cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, bufsize=0) as teller:
        assert teller.stdout is not None
        told = teller.stdout

        def hear(name: str) -> None:
            if not told.read(1):
                raise ConnectionError(f"the teller ended before it told of {name}")

        try:
            hear("anything")
            yield hear
        finally:
            teller.terminate()


# Ten thousand files -------------------------------------------------------------------------------------------------


def _bursts(size: Size) -> Iterator[Figure]:
    files = size.of(10_000, least=FOLDERS)
    with folder() as place, served(place / "ours") as workspace, daemon_pipe(workspace) as pipe:
        workspace.write("turn_1/files/first.txt", "first")
        pipe.ask(request(2, "workspace/sync", {}))
        engine = Engine(place / "engine.db")
        rounds = [
            _burst(
                _grow(place / f"tree_{number}", files), workspace.out_dir / f"turn_1/files/burst_{number}", pipe, engine
            )
            for number in range(max(1, size.rounds // 2))
        ]
        engine.close()
    name = f"burst of {files:,} files in {FOLDERS} folders until synced"
    yield Figure(name, "walk, hash, one commit", seconds, against(rounds, ours=0, rival=1), AtMost(2))
    yield Figure(name, "walk, hash, copy, one commit", seconds, against(rounds, ours=0, rival=2), AtMost(2))


def _burst(tree: Path, target: Path, pipe: Pipe, engine: Engine) -> tuple[float, float, float]:
    """Seconds of ours, of walking, hashing and one transaction, and of that with copies. The tree comes by a rename."""
    began = perf_counter()
    found = _walk_and_hash(tree)
    _commit(engine, found)
    committed = perf_counter() - began
    copies = tree.with_name(f"{tree.name}-copies")
    copies.mkdir()
    began = perf_counter()
    _commit(engine, _walk_and_copy(tree, copies))
    copied = perf_counter() - began
    began = perf_counter()
    tree.rename(target)
    synced = pipe.ask(request(3, "workspace/sync", {}))
    ours = perf_counter() - began
    if len(synced["artifacts"]) != len(found):
        raise ValueError(f"{len(found)} files landed and {len(synced['artifacts'])} were registered")
    return ours, committed, copied


def _grow(tree: Path, files: int) -> Path:
    for number in range(files):
        path = tree / f"{number % FOLDERS:03d}" / f"{number:05d}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%b %d\n%b" % (os.fsencode(tree.name), number, FILE[:1000]))
    return tree


_seqs = count(1)


def _commit(engine: Engine, found: Sequence[tuple[str, str]]) -> None:
    engine.write([(next(_seqs), "file", f"{path} {digest}".encode(), b"", 0) for path, digest in found])


def _walk_and_copy(tree: Path, copies: Path) -> list[tuple[str, str]]:
    """The copies are named by their hash, each by one rename: what a half one would be called is nobody's name."""
    found: list[tuple[str, str]] = []
    arriving = os.path.join(copies, "arriving")
    for where, _, names in os.walk(tree):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                content = file.read()
            with open(arriving, "wb") as file:
                file.write(content)
            digest = hashlib.sha256(content).hexdigest()
            os.replace(arriving, os.path.join(copies, digest))
            found.append((path, digest))
    return found


def _walk_and_hash(tree: Path) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for where, _, names in os.walk(tree):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found.append((path, hashlib.file_digest(file, "sha256").hexdigest()))
    return found
