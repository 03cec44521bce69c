"""How much dearer than an echo is an answer? Direct socket against direct socket, door against door."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from sidecar.unchanged import MOST
from tests.bench.doors import connect_command
from tests.bench.echo import answer
from tests.bench.figures import AtLeast, AtMost, Figure, Size, against, in_turns, per_second, seconds
from tests.bench.machine import one_core
from tests.bench.pipe import Pipe, daemon_pipe, listens, request
from tests.bench.places import folder, served
from tests.daemon_process import PROJECT, Workspace, environment, eventually

WINDOW = 64
FIRST_ID = 100_000  # every id has the same number of digits, and so every frame the same length
_TEXT = "# Report\n\n" + "A line of a report that somebody will read.\n" * 45


class Asking(NamedTuple):
    """One kind of request. `share` is how many of it are asked, against the cheapest kind."""

    name: str
    method: str
    params: Sequence[dict[str, Any]]  # asked in turns; all are answered alike
    share: float

    def frames(self, number: int) -> list[bytes]:
        return [request(FIRST_ID + at, self.method, self.params[at % len(self.params)]) for at in range(number)]


# More than the daemon keeps answers for, so that in turns none is answered from what was kept.
_PATHS = [f"fi:turn_1.files/report_{at}.md" for at in range(1000, 1000 + MOST + 500)]
ASKINGS = (
    Asking("resolve", "artifact/resolve", [{"paths": [path]} for path in _PATHS], 1.0),
    Asking("resolve of the same again", "artifact/resolve", [{"paths": _PATHS[:1]}], 1.0),
    Asking("fetch of 5 rows", "artifact/fetch", [{"path": "so:sources_pool[1-5]"}], 1.0),
    Asking("fetch of a 2 kB file", "artifact/fetch", [{"path": _PATHS[0]}], 0.25),
)


def measure(size: Size) -> Iterator[Figure]:
    with folder() as place, served(place / "ours") as workspace:
        for path in _PATHS:
            workspace.write(path.removeprefix("fi:").replace(".", "/", 1), f"{_TEXT}{path}\n")
        for at, asking in enumerate(ASKINGS):
            with _echo(place / f"echo-{at}", asking, length=_length(workspace, asking)) as (echo, process):
                yield from _compare(size, asking, workspace, echo)
                assert workspace.daemon is not None
                yield _on_one_core(size, asking, (workspace, workspace.daemon.pid), (echo, process))


def _length(workspace: Workspace, asking: Asking) -> int:
    """How many bytes the daemon answers this with, framing aside."""
    with daemon_pipe(workspace) as pipe:
        pipe.ask(request(2, "workspace/sync", {}))
        return len(orjson.dumps({"jsonrpc": "2.0", "id": FIRST_ID, "result": pipe.ask(asking.frames(1)[0])}))


def _compare(size: Size, asking: Asking, workspace: Workspace, echo: Workspace) -> Iterator[Figure]:
    one_by_one = asking.frames(size.of(round(2000 * asking.share), least=5))
    many = asking.frames(size.of(round(2500 * asking.share), least=2 * WINDOW))
    rounds = 3 * size.rounds  # many short ones: on few cores the scheduler decides much, and seldom for long
    for way in ("direct", "door"):
        with _joined(way, workspace) as ours, _joined(way, echo) as rival:
            for pipe in (ours, rival):
                pipe.in_flight(many[: 2 * WINDOW], WINDOW)
            alone = in_turns(rounds, lambda: ours.one_at_a_time(one_by_one), lambda: rival.one_at_a_time(one_by_one))
            loaded = in_turns(rounds, lambda: ours.in_flight(many, WINDOW), lambda: rival.in_flight(many, WINDOW))
        name = f"{asking.name}, {way}"
        # The aims are for a resolve, which is answered from memory; a file is read from the disk, which no echo does.
        slowest, least = (AtMost(1.5), AtLeast(0.5)) if asking.name == "resolve" else (None, None)
        yield Figure(f"{name}, one at a time", f"echo, {way}", seconds, against(alone, ours=0, rival=1), slowest)
        yield Figure(f"{name}, {WINDOW} in flight", f"echo, {way}", per_second, against(loaded, ours=0, rival=1), least)


def _on_one_core(size: Size, asking: Asking, ours: tuple[Workspace, int], rival: tuple[Workspace, int]) -> Figure:
    """One at a time once more, client and servers on the same core: without what it costs to wake another core up."""
    frames = asking.frames(size.of(round(2000 * asking.share), least=5))
    with one_core(os.getpid(), ours[1], rival[1]), _joined("direct", ours[0]) as a, _joined("direct", rival[0]) as b:
        took = in_turns(3 * size.rounds, lambda: a.one_at_a_time(frames), lambda: b.one_at_a_time(frames))
    aim = AtMost(1.5) if asking.name == "resolve" else None
    name = f"{asking.name}, direct, one at a time, one core"
    return Figure(name, "echo, direct, same core", seconds, against(took, ours=0, rival=1), aim)


def _joined(way: str, workspace: Workspace) -> Pipe:
    if way == "direct":
        return Pipe.direct(workspace.socket("exec")).shake_hands()
    return Pipe.through(connect_command(workspace)).shake_hands()


@contextmanager
def _echo(place: Path, asking: Asking, *, length: int) -> Iterator[tuple[Workspace, int]]:
    """An echo where a daemon's socket would be, so that a door leads to it; its answers have this length."""
    workspace = Workspace(place)
    path = workspace.socket("exec")
    for folder_of_ours in (path.parent.parent, path.parent):
        folder_of_ours.mkdir(mode=0o700)
    bare = orjson.dumps(answer({"id": FIRST_ID, "params": asking.params[0]}, ""))
    command = [sys.executable, "-m", "tests.bench.echo", str(path), str(max(0, length - len(bare)))]
    with subprocess.Popen(command, cwd=PROJECT, env=environment()) as server:
        try:
            eventually(lambda: listens(path))
            yield workspace, server.pid
        finally:
            server.terminate()
            workspace.clean_up(failed=True)
