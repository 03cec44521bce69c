"""How long until a program that opens a door has its first answer, against a Python that does nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from time import perf_counter

from tests.bench.figures import Figure, Size, against, in_turns, seconds
from tests.bench.pipe import Pipe
from tests.bench.places import folder, served
from tests.daemon_process import PROJECT, Workspace, environment

NOTHING = (sys.executable, "-S", "-c", "pass")


def connect_command(workspace: Workspace) -> list[str]:
    """The door as a user opens it."""
    return [sys.executable, "-m", "sidecar", "connect", *_place(workspace)]


def bare_command(workspace: Workspace) -> list[str]:
    """The door as a file by itself, which a sandbox may have a copy of."""
    return [sys.executable, "-S", "-E", str(PROJECT / "sidecar/server/bridge.py"), *_place(workspace)]


def measure(size: Size) -> Iterator[Figure]:
    with folder() as place, served(place) as workspace:
        rounds = in_turns(
            size.rounds * size.of(4, least=1),
            lambda: _until_answered(connect_command(workspace)),
            lambda: _until_answered(bare_command(workspace)),
            _nothing,
        )
    rival = "python -S -c pass"
    yield Figure("door, `connect` until initialized", rival, seconds, against(rounds, ours=0, rival=2))
    yield Figure("door, `bridge.py` until initialized", rival, seconds, against(rounds, ours=1, rival=2))


def _place(workspace: Workspace) -> list[str]:
    return ["--out-dir", str(workspace.out_dir), "--socket-dir", str(workspace.socket_dir)]


def _until_answered(command: Sequence[str]) -> float:
    began = perf_counter()
    with Pipe.through(command) as pipe:
        pipe.shake_hands()
        return perf_counter() - began


def _nothing() -> float:
    began = perf_counter()
    subprocess.run(NOTHING, env=environment(), check=True)
    return perf_counter() - began
