"""Ours beside a plain pygls server that scans lists: the same questions, each through a program's stdin and stdout.

Equal: the framing, the measuring client, the blocks, the rows and the files. Not equal: the rival knows no roles,
versions, visibility or limits, syncs nothing to the disk, and notices a file only when it is asked to look; ours
answers through a door in front of a daemon, which is one process more, and a file it takes in is kept and journalled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import orjson

from tests.bench.corpus import BLOCKS_PER_TURN, bodies, file_path, fill_journal
from tests.bench.figures import Figure, Size, against, in_turns, mebibytes, seconds
from tests.bench.machine import resident
from tests.bench.pipe import Pipe, daemon_pipe, request
from tests.bench.places import folder, served
from tests.daemon_process import Workspace

RIVAL = "pygls, linear scans"
SIZES = ((1000, 200), (100_000, 20), (1_000_000, 8))  # blocks, and how often the rival is asked each round
ROWS, ROWS_AT_ONCE = 10_000, 5
FOLDERS = 100
FILE = "A line of a file that is read.\n" * 66


def measure(size: Size) -> Iterator[Figure]:
    for full, asked in SIZES:
        yield from _among(size.of(full, least=50), asked, size, started=full == 100_000)
    yield from _others(size)
    yield from _bursts(size)


def door(workspace: Workspace, role: str = "exec") -> list[str]:
    return [sys.executable, "-m", "sidecar", "connect", "--role", role, *workspace.arguments]


def afternoon(out_dir: Path, state: Path) -> list[str]:
    return [sys.executable, "-m", "tests.bench.rivals.linear", str(out_dir), str(state)]


def _keep(state: Path, blocks: int, rows: int = 0) -> None:
    """The rival's file, with the blocks that our journal has."""
    told = b",".join(bodies(blocks))
    known = orjson.dumps([_row(sid) for sid in range(1, rows + 1)])
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_bytes(b'{"blocks":[%b],"rows":%b,"files":{}}' % (told, known))


def _row(sid: int) -> dict[str, Any]:
    return {"sid": sid, "url": f"https://example.org/{sid}", "title": f"About {sid}", "text": "What it says. " * 20}


# Among many blocks -------------------------------------------------------------------------------------------------


def _among(blocks: int, asked: int, size: Size, *, started: bool) -> Iterator[Figure]:
    with folder() as place, ExitStack() as stack:
        fill_journal(place / "ours/state", blocks)
        _keep(place / "theirs/state.json", blocks)
        if started:
            rounds = in_turns(
                max(1, size.rounds // 2), lambda: _daemon_starts(place / "ours"), lambda: _afternoon_starts(place)
            )
            yield Figure(
                f"start with {blocks:,} blocks until a resolve", RIVAL, seconds, against(rounds, ours=0, rival=1)
            )
        workspace = stack.enter_context(served(place / "ours"))
        ours = stack.enter_context(Pipe.through(door(workspace)).shake_hands())
        theirs = stack.enter_context(Pipe.through(_afternoon(place)).shake_hands())
        random = Random(blocks)
        turns = [random.randrange(blocks // BLOCKS_PER_TURN) for _ in range(200)]
        frames = [
            request(number, "artifact/resolve", {"paths": [file_path(turn)]}) for number, turn in enumerate(turns, 2)
        ]
        for pipe in (ours, theirs):
            if not pipe.ask(frames[0])["results"][0]["found"]:
                raise ValueError("a block that was told is not found")
        contenders = partial(ours.one_at_a_time, frames), partial(theirs.one_at_a_time, frames[:asked])
        rounds = in_turns(size.rounds, *contenders)
        yield Figure(f"resolve among {blocks:,} blocks, by stdio", RIVAL, seconds, against(rounds, ours=0, rival=1))
        held = float(resident(_pid(workspace))), float(resident(_child(theirs)))
        yield Figure(f"resident with {blocks:,} blocks", RIVAL, mebibytes, [held])


def _afternoon(place: Path) -> list[str]:
    return afternoon(place / "ours/out", place / "theirs/state.json")


def _daemon_starts(place: Path) -> float:
    """From nothing to the answer of a daemon that has loaded its journal."""
    workspace = Workspace(place)
    try:
        began = perf_counter()
        workspace.start()
        with daemon_pipe(workspace) as pipe:
            _resolved(pipe)
            return perf_counter() - began
    finally:
        workspace.clean_up(failed=True)


def _afternoon_starts(place: Path) -> float:
    began = perf_counter()
    with Pipe.through(_afternoon(place)).shake_hands() as pipe:
        _resolved(pipe)
        return perf_counter() - began


def _resolved(pipe: Pipe) -> None:
    pipe.ask(request(2, "artifact/resolve", {"paths": [file_path(0)]}))


# Rows, files and lists ---------------------------------------------------------------------------------------------


def _others(size: Size) -> Iterator[Figure]:
    rows, files, often = (size.of(full, least=least) for full, least in ((ROWS, 10), (1000, 5), (200, 3)))
    with folder() as place, ExitStack() as stack:
        _keep(place / "theirs/state.json", 1000, rows)
        workspace = stack.enter_context(served(place / "ours"))
        for number in range(files):
            workspace.write(f"turn_1/files/{number:05d}.txt", f"{number}\n{FILE}")
        with daemon_pipe(workspace, "runtime") as runtime:
            runtime.ask(request(2, "workspace/sync", {}))
            for first in range(1, rows + 1, 1000):
                merged = [{**_row(sid), "sid": sid + files} for sid in range(first, min(first + 1000, rows + 1))]
                runtime.ask(request(3, "sources/merge", {"rows": merged}))
        ours = stack.enter_context(Pipe.through(door(workspace)).shake_hands())
        theirs = stack.enter_context(Pipe.through(_afternoon(place)).shake_hands())
        theirs.ask(request(2, "workspace/sync", {}))
        random = Random(1)
        sids = [sorted(random.sample(range(1, rows + 1), ROWS_AT_ONCE)) for _ in range(often)]
        names = [f"turn_1/files/{random.randrange(files):05d}.txt" for _ in range(often)]
        asked: dict[str, tuple[Sequence[tuple[str, Any]], Sequence[tuple[str, Any]]]] = {
            f"fetch of {ROWS_AT_ONCE} of {rows:,} rows": (
                [
                    ("artifact/fetch", {"path": f"so:sources_pool[{','.join(str(s + files) for s in one)}]"})
                    for one in sids
                ],
                [("sources/rows", {"sids": one}) for one in sids],
            ),
            "read of a 2 kB file": (
                [("artifact/read", {"paths": [name]}) for name in names],
                [("artifact/read", {"path": name}) for name in names],
            ),
            f"list of {files:,} files": (
                [("artifact/list", {"turn_id": "turn_1"})] * 5,
                [("artifact/list", {"prefix": "turn_1/"})] * 5,
            ),
        }
        for name, (mine, rivals) in asked.items():
            pipes = ((ours, mine), (theirs, rivals))
            contenders = [
                partial(pipe.one_at_a_time, [request(number, *one) for number, one in enumerate(questions, 4)])
                for pipe, questions in pipes
            ]
            rounds = in_turns(size.rounds, *contenders)
            yield Figure(f"{name}, by stdio", RIVAL, seconds, against(rounds, ours=0, rival=1))


# A burst -----------------------------------------------------------------------------------------------------------


def _bursts(size: Size) -> Iterator[Figure]:
    files = size.of(10_000, least=FOLDERS)
    with folder() as place, ExitStack() as stack:
        _keep(place / "theirs/state.json", 1000)
        (place / "theirs/out").mkdir()
        workspace = stack.enter_context(served(place / "ours"))
        workspace.write("turn_1/files/first.txt", "first")
        ours = stack.enter_context(Pipe.through(door(workspace)).shake_hands())
        command = afternoon(place / "theirs/out", place / "theirs/state.json")
        theirs = stack.enter_context(Pipe.through(command).shake_hands())
        ours.ask(request(2, "workspace/sync", {}))
        numbers = iter(range(1000))
        rounds = in_turns(
            max(1, size.rounds // 2),
            lambda: _burst(place, next(numbers), files, ours, workspace.out_dir / "turn_1/files"),
            lambda: _burst(place, next(numbers), files, theirs, place / "theirs/out"),
        )
    yield Figure(f"burst of {files:,} files until synced, by stdio", RIVAL, seconds, against(rounds, ours=0, rival=1))


def _burst(place: Path, number: int, files: int, pipe: Pipe, where: Path) -> float:
    tree = grown(place / f"tree_{number}", files)
    os.sync()  # what growing it left to be written is not for the next one to wait for
    began = perf_counter()
    tree.rename(where / tree.name)
    synced = pipe.ask(request(3, "workspace/sync", {}))
    spent = perf_counter() - began
    if len(synced["artifacts"]) != files:
        raise ValueError(f"{files} files landed and {len(synced['artifacts'])} were registered")
    return spent


def grown(tree: Path, files: int) -> Path:
    """A tree of files, each of its own."""
    for number in range(files):
        path = tree / f"{number % FOLDERS:03d}" / f"{number:05d}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{tree} {number}\n{FILE[:1000]}", "utf-8")
    return tree


def _pid(daemon: Workspace) -> int:
    assert daemon.daemon is not None
    return daemon.daemon.pid


def _child(pipe: Pipe) -> int:
    """The process behind a pipe, which has told its id beside the answers."""
    assert pipe.pid is not None
    return pipe.pid
