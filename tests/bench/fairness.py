"""Does anybody notice what another client does? The slowest of many resolves beside a glutton, against a calm daemon.

The resolves are asked at a steady pace by one client; the glutton is another process that never pauses.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing.synchronize import Event
from pathlib import Path

from tests.bench.corpus import blocks
from tests.bench.figures import AtMost, Figure, Size, against, in_turns, seconds
from tests.bench.pipe import Pipe, daemon_pipe, request
from tests.bench.places import folder, served
from tests.daemon_process import Workspace

SEED = 1
FIRST_ID = 100_000
PICTURE_BYTES = 4 * 1024 * 1024 - 4096  # the largest that is answered as base64
BLOCKS = 5000
GROUP = 32
PAUSE = 0.001  # between one resolve and the next
AIM = AtMost(2.0)


def measure(size: Size) -> Iterator[Figure]:
    with folder() as place, served(place / "ours") as workspace:
        _fill(workspace, size)
        number = size.of(1000, least=10)
        with daemon_pipe(workspace) as calm:
            for name, role, frames in _gluttons(size):
                rounds = in_turns(
                    size.rounds,
                    partial(_slowest_beside, workspace, role, frames, calm, number),
                    partial(_slowest, calm, number),
                )
                title = f"99th percentile of a resolve beside one that {name}"
                yield Figure(title, "the same, calm", seconds, against(rounds, ours=0, rival=1), AIM)


def _gluttons(size: Size) -> Iterator[tuple[str, str, Sequence[bytes]]]:
    """What each of them does, in which role, and the frames that it sends over and over."""
    pictures = [f"fi:turn_1.files/picture_{at}.png" for at in range(2)]
    yield "fetches 6 MB all the time", "exec", [request(FIRST_ID, "artifact/fetch", {"path": pictures[0]})]
    yield "reads 11 MB all the time", "runtime", [request(FIRST_ID, "artifact/read", {"paths": pictures})]
    yield "renders the timeline", "runtime", [request(FIRST_ID, "timeline/render", {"as": "text"})]
    yield "lists the artifacts", "editor", [request(FIRST_ID, "artifact/list", {"limit": 1000})]
    told = blocks(1_000_000)
    groups = [list(islice(told, GROUP)) for _ in range(size.of(100, least=2))]
    appends = [request(FIRST_ID, "timeline/append", {"blocks": group}) for group in groups]
    # The last of them, since a render of what it leaves behind is more than one answer holds.
    yield f"appends {GROUP} blocks at a time", "runtime", appends


def _slowest(client: Pipe, number: int) -> float:
    asked = [request(FIRST_ID, "artifact/resolve", {"paths": ["fi:turn_1.files/report.md"]})]
    spent: list[float] = []
    for _ in range(number):
        spent.append(client.one_at_a_time(asked))
        time.sleep(PAUSE)
    return sorted(spent)[min(number - 1, round(0.99 * number))]


def _slowest_beside(workspace: Workspace, role: str, frames: Sequence[bytes], client: Pipe, number: int) -> float:
    with _glutton(workspace.socket(role), frames):
        return _slowest(client, number)


@contextmanager
def _glutton(path: Path, frames: Sequence[bytes]) -> Iterator[None]:
    """A process that asks all of it again and again; it has had its first answer when this begins."""
    processes = multiprocessing.get_context("fork")
    served = processes.Event()
    glutton = processes.Process(target=_feast, args=(path, frames, served), daemon=True)
    glutton.start()
    try:
        if not served.wait(60):
            raise TimeoutError("the other client was not answered")
        yield
    finally:
        glutton.kill()
        glutton.join()


def _feast(path: Path, frames: Sequence[bytes], served: Event) -> None:
    with Pipe.direct(path).shake_hands() as pipe:
        pipe.ask(frames[0])  # raises what is wrong with it
        served.set()
        while True:
            pipe.one_at_a_time(frames)


def _fill(workspace: Workspace, size: Size) -> None:
    chance = random.Random(SEED)
    workspace.write("turn_1/files/report.md", "# Report\n\nA line of a report.\n")
    for at in range(2):
        picture = b"\x89PNG\r\n\x1a\n" + chance.randbytes(min(PICTURE_BYTES, size.of(10 * PICTURE_BYTES, least=4096)))
        (workspace.out_dir / f"turn_1/files/picture_{at}.png").write_bytes(picture)
    for at in range(size.of(1000, least=5)):
        workspace.write(f"turn_2/files/part_{at:04d}.dat", f"part {at}")
    with daemon_pipe(workspace, "runtime") as runtime:
        runtime.ask(request(2, "workspace/sync", {}))
        told = blocks(1)
        for _ in range(size.of(BLOCKS // 500, least=1)):
            runtime.ask(request(3, "timeline/append", {"blocks": list(islice(told, 500))}))
