"""How much of what the engine can commit reaches those who append: durable blocks per second."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from time import perf_counter

from sidecar.stores.journal_file import seal
from tests.bench.corpus import BLOCKS_PER_TURN, blocks, records
from tests.bench.engine import Engine, Row
from tests.bench.figures import AtLeast, Figure, Size, against, in_turns, per_second
from tests.bench.pipe import Pipe, daemon_pipe, listens, request
from tests.bench.places import folder, served
from tests.daemon_process import PROJECT, environment, eventually

# Appenders, blocks per append, appends per round.
LOADS = ((1, 1, 200), (8, 1, 1000), (64, 1, 4000), (1, 32, 100), (8, 32, 400), (64, 32, 800))


def measure(size: Size) -> Iterator[Figure]:
    """The engine commits what all appenders have under way as one transaction, which is the most it could be given.

    Between it and us stands a bare server: what anybody can have who receives blocks by a socket in Python.
    """
    with (
        folder() as place,
        served(place / "ours") as workspace,
        daemon_pipe(workspace, "runtime") as pipe,
        _bare(place) as bare_pipe,
    ):
        told, bare = _Told(pipe), _Told(bare_pipe)
        alone = _Alone(Engine(place / "engine.db"))
        for appenders, batch, full in LOADS:
            appends = size.of(full, least=2 * appenders)
            rounds = in_turns(
                size.rounds,
                lambda: told.rate(appends, batch=batch, appenders=appenders),  # noqa: B023 - called at once
                lambda: alone.rate(appends * batch, group=appenders * batch),  # noqa: B023
                lambda: bare.rate(appends, batch=batch, appenders=appenders),  # noqa: B023
            )
            name = f"append {batch} at a time, {appenders} under way, blocks"
            rival = f"SQLite, {appenders * batch} per commit"
            yield Figure(name, rival, per_second, against(rounds, ours=0, rival=1), AtLeast(0.9))
            yield Figure(name, "bare socket, then SQLite", per_second, against(rounds, ours=0, rival=2))
        told.check()
        alone.close()


@contextmanager
def _bare(place: Path) -> Iterator[Pipe]:
    path = place / "bare.sock"
    command = [sys.executable, "-m", "tests.bench.appender", str(path), str(place / "bare.db")]
    with subprocess.Popen(command, cwd=PROJECT, env=environment()) as server:
        try:
            eventually(lambda: listens(path), ceiling=60)
            with Pipe.direct(path) as pipe:
                yield pipe
        finally:
            server.terminate()


class _Told:
    """The daemon, told of turn after turn."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._blocks = 0

    def rate(self, appends: int, *, batch: int, appenders: int) -> float:
        fresh = islice(blocks(self._blocks // BLOCKS_PER_TURN + 1), appends * batch)
        frames = [
            request(100_000 + at, "timeline/append", {"blocks": list(islice(fresh, batch))}) for at in range(appends)
        ]
        self._blocks += appends * batch
        return self._pipe.in_flight(frames, appenders) * batch

    def check(self) -> None:
        """Raises ValueError when a block was refused."""
        known = self._pipe.ask(request(2, "workspace/status", {}))["counts"]["blocks"]
        if known != self._blocks:
            raise ValueError(f"{self._blocks} blocks were appended and {known} are there")


class _Alone:
    """The engine, given the rows that the journal would give it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._first = 1

    def rate(self, number: int, *, group: int) -> float:
        rows: list[Row] = [(*record, seal(*record)) for record in records(number, self._first)]
        self._first += number
        began = perf_counter()
        for at in range(0, number, group):
            self._engine.write(rows[at : at + group])
        return number / (perf_counter() - began)

    def close(self) -> None:
        self._engine.close()
