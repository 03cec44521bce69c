"""Does a resolve cost the same among a thousand blocks and a million, and what does a block keep in memory?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from random import Random

from tests.bench.corpus import BLOCKS_PER_TURN, file_path, kept
from tests.bench.figures import AtMost, Figure, Size, against, in_turns, per_block, seconds
from tests.bench.machine import one_core, resident
from tests.bench.pipe import daemon_pipe, request
from tests.bench.places import folder, served
from tests.daemon_process import Workspace

BYTES_PER_BLOCK = 400
PATHS = 100


def measure(size: Size) -> Iterator[Figure]:
    """Three daemons at once; each is asked for as many different files of its own, chosen at random.

    They are few enough for the smallest one, so that what differs is the index and not how often a path is new. All run
    on one core, because waking another one up costs more than a resolve and is dealt out by chance.
    """
    few, more, many = (size.of(full, least=least) for full, least in ((1000, 50), (100_000, 500), (1_000_000, 5000)))
    with folder() as place, ExitStack() as stack:
        daemons = [stack.enter_context(_loaded(place, blocks)) for blocks in (few, more, many)]
        pipes = [stack.enter_context(daemon_pipe(daemon)) for daemon in daemons]
        asked = [_frames(blocks, size.of(2000, least=20)) for blocks in (few, more, many)]
        for pipe, frames in zip(pipes, asked, strict=True):
            pipe.one_at_a_time(frames)
        held = [resident(_pid(daemon)) for daemon in daemons]
        contenders = [partial(pipe.one_at_a_time, frames) for pipe, frames in zip(pipes, asked, strict=True)]
        with one_core(os.getpid(), *map(_pid, daemons)):
            rounds = in_turns(2 * size.rounds, *contenders)
    rival = f"resolve among {few:,}"
    yield Figure(f"resolve among {more:,} blocks", rival, seconds, against(rounds, ours=1, rival=0), AtMost(1.05))
    yield Figure(f"resolve among {many:,} blocks", rival, seconds, against(rounds, ours=2, rival=0), AtMost(1.05))
    each = (held[2] - held[0]) / (many - few)
    name = f"resident per block, daemon with {many:,}"
    yield Figure(name, "the limit; no payload is held", per_block, [(each, BYTES_PER_BLOCK)], AtMost(1.0))


def _loaded(place: Path, blocks: int) -> AbstractContextManager[Workspace]:
    (place / f"{blocks}").mkdir()
    shutil.copytree(kept(blocks) / "journal", place / f"{blocks}" / "state")
    return served(place / f"{blocks}")


def _pid(daemon: Workspace) -> int:
    assert daemon.daemon is not None
    return daemon.daemon.pid


def _frames(blocks: int, number: int) -> list[bytes]:
    random = Random(blocks)
    turns = random.sample(range(blocks // BLOCKS_PER_TURN), min(PATHS, blocks // BLOCKS_PER_TURN))
    return [
        request(100_000 + at, "artifact/resolve", {"paths": [file_path(random.choice(turns))]}) for at in range(number)
    ]
