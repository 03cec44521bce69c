"""Ours beside Google ADK's artifact services: save, load, versions and list of a thousand texts of 2 kB.

Equal: names, texts and how many versions there are. Not equal: the rival is a library in the caller's own process,
asked without any wire, and syncs nothing to the disk (its memory service writes nothing at all); ours is asked through
a program's stdin and stdout, hashes, keeps and journals what it is given, and a write is durable when it is answered.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from tests.bench.figures import Figure, Size, against, in_turns, seconds
from tests.bench.pipe import Pipe, request
from tests.bench.places import folder, served
from tests.bench.rivals.installed import adk_python
from tests.bench.rivals.linear_scans import door
from tests.daemon_process import environment

TEXT = "A line of a report that an agent wrote.\n" * 50
KINDS = ("file", "memory")
Timed = Callable[[], float]


class Adk:
    """One of its services, at work in its own process."""

    def __init__(self, kind: str, place: Path) -> None:
        command = [adk_python(), str(Path(__file__).with_name("adk_service.py")), kind, str(place)]
        self._process = subprocess.Popen(
            command,
            env=environment(PYTHONPATH=""),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._hear()

    def __enter__(self) -> Adk:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # closes its stdin, which ends it
            pass

    def do(self, what: str, names: Sequence[str], wanted: int, text: str = "") -> float:
        """Median seconds of one operation. Raises ValueError when it did not find what it should."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, "names": names, "text": text}) + "\n")
        self._process.stdin.flush()
        spent, found = self._hear()
        if found != wanted:
            raise ValueError(f"{what} found {found} and not {wanted}")
        return float(spent)

    def _hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ConnectionError("the service ended")
        return json.loads(line)


def measure(size: Size) -> Iterator[Figure]:
    adk_python()
    artifacts, often = size.of(1000, least=4), size.of(200, least=2)
    names = [f"report_{number:05d}.md" for number in range(artifacts)]
    with folder() as place, ExitStack() as stack:
        workspace = stack.enter_context(served(place / "ours"))
        ours = stack.enter_context(Pipe.through(door(workspace, "runtime")).shake_hands())
        theirs = {kind: stack.enter_context(Adk(kind, place / kind)) for kind in KINDS}
        ours.ask(request(2, "turn/begin", {"turn_id": "turn_1"}))
        _write(ours, names, "the first\n" + TEXT)
        for one in theirs.values():
            one.do("save", names, artifacts, "the first\n" + TEXT)
        versions = [1]  # of the names that are saved again

        def again() -> str:
            versions[0] += 1
            return f"version {versions[0]}\n{TEXT}"

        texts = iter([again() for _ in range(size.rounds)] * len(KINDS))
        chosen = names[:: max(1, artifacts // often)][:often]
        saves = [_saved(ours, theirs, chosen, next(texts)) for _ in range(size.rounds)]
        yield from _figures("save of a 2 kB text, by stdio", saves)
        yield from _figures(
            "load of a 2 kB text, by stdio",
            in_turns(
                size.rounds,
                lambda: _median_of(ours, [("artifact/read", {"paths": [_path(name)]}) for name in chosen], "blocks", 1),
                *(_asked(one, "load", chosen, len(chosen)) for one in theirs.values()),
            ),
        )
        found = versions[0] * len(chosen)
        yield from _figures(
            f"versions of an artifact that has {versions[0]}, by stdio",
            in_turns(
                size.rounds,
                lambda: _median_of(
                    ours, [("artifact/versions", {"path": _path(name)}) for name in chosen], "versions", versions[0]
                ),
                *(_asked(one, "versions", chosen, found) for one in theirs.values()),
            ),
        )
        yield from _figures(
            f"list of {artifacts:,} artifacts, by stdio",
            in_turns(
                size.rounds,
                lambda: _median_of(ours, [("artifact/list", {"turn_id": "turn_1"})], "artifacts", artifacts),
                *(_asked(one, "list", [""], artifacts) for one in theirs.values()),
            ),
        )


def _figures(name: str, rounds: Sequence[tuple[float, ...]]) -> Iterator[Figure]:
    for number, kind in enumerate(KINDS, start=1):
        yield Figure(name, f"ADK, {kind} service", seconds, against(rounds, ours=0, rival=number))


def _saved(ours: Pipe, theirs: dict[str, Adk], names: Sequence[str], text: str) -> tuple[float, ...]:
    return _write(ours, names, text), *(one.do("save", names, len(names), text) for one in theirs.values())


def _write(pipe: Pipe, names: Sequence[str], text: str) -> float:
    asked = [("artifact/write", {"path": name, "content": text, "kind": "file"}) for name in names]
    return _median_of(pipe, asked, "artifact", 1)


def _asked(service: Adk, what: str, names: Sequence[str], wanted: int) -> Timed:
    return lambda: service.do(what, names, wanted)


def _path(name: str) -> str:
    return f"turn_1/files/{name}"


def _median_of(pipe: Pipe, asked: Sequence[tuple[str, Any]], told: str, least: int) -> float:
    """Median seconds of one question; each must be answered with that much under a name."""
    spent: list[float] = []
    for number, (method, params) in enumerate(asked, start=3):
        began = perf_counter()
        answer = pipe.ask(request(number, method, params))
        spent.append(perf_counter() - began)
        if len(answer[told]) < least:
            raise ValueError(f"{method} answered {answer}")
    return median(spent)
