"""Ours beside those who only watch: from a closed file to its event, and ten thousand files until all are known.

Equal: the files, the disk, and a subscriber in this process. Not equal: watchman and watchfiles tell a name and nothing
else; neither reads, hashes or keeps a file, nor writes anything down. Watchman is asked a second time for the sha1 of
every file, so that it reads each of them once too. Their waits are their own defaults: watchman settles for 20 ms,
watchfiles gathers in steps of 50 ms. Of a tree that is renamed in watchfiles tells the folder alone and none of its
files, so there is no burst to compare.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, sleep
from typing import Any

from tests.bench.figures import Figure, Size, against, in_turns, seconds
from tests.bench.pipe import Pipe, daemon_pipe, request
from tests.bench.places import folder, served
from tests.bench.rivals.installed import watchman
from tests.bench.rivals.linear_scans import grown
from tests.daemon_process import PROJECT, Workspace, environment

FILES = 10_000
CEILING = 60.0
CONTENT = b"A line of a file that a program has just written.\n" * 80
Hear = Callable[[str], None]
_names = count()


def by_watchfiles(size: Size) -> Iterator[Figure]:
    """A program with watchfiles as its documentation has it, which says a name for each file."""
    with folder() as place, ExitStack() as stack:
        workspace, ours = _ours(place, stack)
        theirs = stack.enter_context(_watchfiles(place / "theirs"))
        rounds = _delays(size, [(workspace.out_dir / "turn_1/files", ours), (place / "theirs", theirs.hear)])
        yield Figure("file closed until a subscriber heard", "watchfiles", seconds, rounds)


def by_watchman(size: Size) -> Iterator[Figure]:
    with folder() as place, ExitStack() as stack:
        workspace, ours = _ours(place, stack)
        theirs = stack.enter_context(_watchman(place))
        rounds = _delays(size, [(workspace.out_dir / "turn_1/files", ours), (theirs.root, theirs.hear)])
        yield Figure("file closed until a subscriber heard", "watchman, subscribed", seconds, rounds)
        files = size.of(FILES, least=20)
        numbers = count()
        bursts = in_turns(
            max(1, size.rounds // 2),
            lambda: _synced(place, next(numbers), files, workspace),
            lambda: theirs.burst(place, next(numbers), files, ["name"]),
            lambda: theirs.burst(place, next(numbers), files, ["name", "size", "content.sha1hex"]),
        )
    name = f"burst of {files:,} files until all are known"
    yield Figure(name, "watchman, names alone", seconds, against(bursts, ours=0, rival=1))
    yield Figure(name, "watchman, with sha1", seconds, against(bursts, ours=0, rival=2))


# Ours --------------------------------------------------------------------------------------------------------------


def _ours(place: Path, stack: ExitStack) -> tuple[Workspace, Hear]:
    """A workspace with a subscriber."""
    workspace = stack.enter_context(served(place / "ours"))
    workspace.write("turn_1/files/first.txt", "first")
    pipe = stack.enter_context(daemon_pipe(workspace))
    pipe.ask(request(2, "workspace/sync", {}))
    listening = stack.enter_context(daemon_pipe(workspace, events=["artifacts"]))
    return workspace, partial(_heard, listening)


def _heard(pipe: Pipe, name: str) -> None:
    while name not in str(pipe.receive().get("params", {}).get("artifacts", "")):
        pass


def _synced(place: Path, number: int, files: int, workspace: Workspace) -> float:
    tree = grown(place / f"tree_{number}", files)
    with daemon_pipe(workspace) as pipe:
        began = perf_counter()
        tree.rename(workspace.out_dir / "turn_1/files" / tree.name)
        found = len(pipe.ask(request(3, "workspace/sync", {}))["artifacts"])
        spent = perf_counter() - began
    if found != files:
        raise ValueError(f"{files} files landed and {found} were registered")
    return spent


def _delays(size: Size, contenders: Sequence[tuple[Path, Hear]]) -> list[tuple[float, float]]:
    often = size.of(25, least=2)
    return against(in_turns(size.rounds, *(partial(_delay, often, *one) for one in contenders)), ours=0, rival=1)


def _delay(often: int, where: Path, hear: Hear) -> float:
    """Median seconds from closing a file to somebody having heard of it."""
    spent: list[float] = []
    for number in (next(_names) for _ in range(often)):
        name = f"landed_{number:06d}.txt"
        with (where / name).open("wb") as file:
            file.write(CONTENT)
            file.flush()
            began = perf_counter()
        hear(name)
        spent.append(perf_counter() - began)
    return median(spent)


# watchfiles --------------------------------------------------------------------------------------------------------

_TELLS = """
import sys
from watchfiles import watch
for changes in watch(sys.argv[1], yield_on_timeout=True, rust_timeout=200):
    print("\\n".join(path for _, path in changes) or "ready", flush=True)
"""


class Told:
    """What a program says of a folder, a path a line."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def hear(self, name: str) -> None:
        while not next(self._lines).rstrip("\n").endswith(name):
            pass


@contextmanager
def _watchfiles(root: Path) -> Iterator[Told]:
    root.mkdir()
    command = [sys.executable, "-c", _TELLS, str(root)]
    with subprocess.Popen(command, cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        told = Told(iter(program.stdout))
        try:
            told.hear("ready")
            yield told
        finally:
            program.terminate()


# watchman ----------------------------------------------------------------------------------------------------------


class Watchman:
    """One connection of ours to a watchman of its own, which watches `root`."""

    def __init__(self, socket_path: Path, root: Path) -> None:
        self.root = root
        self._stream = _connected(socket_path)
        self._lines = self._stream.makefile("rb")
        self.ask("watch", str(root))
        self.ask("subscribe", str(root), "bench", {"fields": ["name"], "expression": ["type", "f"]})

    def ask(self, *words: Any) -> dict[str, Any]:
        """The answer to a command; what it tells by itself meanwhile is dropped. Raises ValueError."""
        self._stream.sendall(json.dumps(words).encode() + b"\n")
        while "subscription" in (said := json.loads(self._lines.readline())):
            pass
        if "error" in said:
            raise ValueError(f"{words} was answered with {said}")
        return said

    def hear(self, name: str) -> None:
        while name not in json.loads(self._lines.readline()).get("files", ()):
            pass

    def burst(self, place: Path, number: int, files: int, fields: list[str]) -> float:
        """A query waits until watchman has seen a cookie file of its own, as our sync waits for a look."""
        tree = grown(place / f"tree_{number}", files)
        began = perf_counter()
        tree.rename(self.root / tree.name)
        query = {"fields": fields, "expression": ["allof", ["type", "f"], ["dirname", tree.name]]}
        found = self.ask("query", str(self.root), {**query, "sync_timeout": 60_000})["files"]
        spent = perf_counter() - began
        if len(found) != files:
            raise ValueError(f"{files} files landed and {len(found)} are known")
        return spent


@contextmanager
def _watchman(place: Path) -> Iterator[Watchman]:
    """A server of our own, ended with us; nothing of anybody's other watchman is touched."""
    own, root = place / "watchman", place / "theirs"
    for made in (own, root):
        made.mkdir(mode=0o700)
    command = [watchman(), "--foreground", f"--sockname={own / 's'}", f"--logfile={own / 'log'}"]
    command = [*command, f"--statefile={own / 'state'}", f"--pidfile={own / 'pid'}"]
    with subprocess.Popen(command, cwd=own, stdin=subprocess.DEVNULL) as server:
        try:
            yield Watchman(own / "s", root)
        finally:
            server.terminate()


def _connected(path: Path) -> socket.socket:
    deadline = monotonic() + CEILING
    while True:
        stream = socket.socket(socket.AF_UNIX)
        if stream.connect_ex(str(path)) == 0:
            return stream
        stream.close()
        if monotonic() > deadline:
            raise TimeoutError("watchman does not listen")
        sleep(0.02)
