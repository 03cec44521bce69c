"""How long until a program that opens a door has its first answer, against a program that only starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from time import perf_counter

from tests.bench.figures import AtMost, Figure, Size, against, in_turns, seconds
from tests.bench.pipe import Pipe
from tests.bench.places import folder, served
from tests.daemon_process import PROJECT, Workspace, environment

BARE = (sys.executable, "-S", "-c", "pass")
# What the door asks of the standard library, with nothing of ours.
EMPTY = "import _json, _socket, _thread, os, sys, time\n"
AIM = AtMost(1.3)


def connect_command(workspace: Workspace) -> list[str]:
    """The door as a user opens it."""
    return [sys.executable, "-m", "sidecar", "connect", *_place(workspace)]


def bare_command(workspace: Workspace) -> list[str]:
    """The door as a file by itself, which a sandbox may have a copy of."""
    return [sys.executable, "-S", "-E", str(PROJECT / "sidecar/server/bridge.py"), *_place(workspace)]


def measure(size: Size) -> Iterator[Figure]:
    with folder() as place, served(place) as workspace:
        program = place / "empty"
        program.mkdir()
        (program / "__main__.py").write_text(EMPTY)
        (program / "__init__.py").touch()
        (place / "alone.py").write_text(EMPTY)
        rounds = in_turns(
            size.rounds * size.of(4, least=1),
            lambda: _until_answered(connect_command(workspace)),
            lambda: _until_ended((sys.executable, "-m", "empty"), PYTHONPATH=f"{PROJECT}{os.pathsep}{place}"),
            lambda: _until_answered(bare_command(workspace)),
            lambda: _until_ended((sys.executable, "-S", "-E", str(place / "alone.py"))),
            lambda: _until_ended(BARE),
        )
    same = "an empty program, same imports and flags"
    yield Figure("door, `connect` until initialized", same, seconds, against(rounds, ours=0, rival=1), AIM)
    yield Figure("door, `bridge.py` until initialized", same, seconds, against(rounds, ours=2, rival=3), AIM)
    yield Figure("door, `connect` until initialized", "python -S -c pass", seconds, against(rounds, ours=0, rival=4))
    yield Figure("door, `bridge.py` until initialized", "python -S -c pass", seconds, against(rounds, ours=2, rival=4))


def _place(workspace: Workspace) -> list[str]:
    return ["--out-dir", str(workspace.out_dir), "--socket-dir", str(workspace.socket_dir)]


def _until_answered(command: Sequence[str]) -> float:
    began = perf_counter()
    with Pipe.through(command) as pipe:
        pipe.shake_hands()
        return perf_counter() - began


def _until_ended(command: Sequence[str], **more: str) -> float:
    began = perf_counter()
    subprocess.run(command, env=environment(**more), check=True)
    return perf_counter() - began
