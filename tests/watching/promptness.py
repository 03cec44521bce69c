"""How soon a closed file is durable: from the writer's `close` to the event that tells of it."""

from __future__ import annotations

import random
from time import perf_counter, sleep

from tests.daemon_process import Workspace
from tests.rpc_client import CEILING

PER_SECOND = 10


def told_after_close(
    workspace: Workspace, files: int, chance: random.Random, *, ceiling: float = CEILING
) -> list[float]:
    """Seconds for each file, ten of them a second, every second one in a folder that is new or changed by chance."""
    client = workspace.connect("runtime", ceiling=ceiling, events=["artifacts"])
    client.call("turn/begin", {"turn_id": "turn_1"})
    client.call("workspace/sync")
    seconds: list[float] = []
    for at in range(files):
        path = f"turn_1/files/{f'd{chance.randrange(20)}/' if at % 2 else ''}f{at}.txt"
        target = workspace.out_dir / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.write(chance.randbytes(chance.randrange(1, 20_000)))
            file.flush()
            closed = perf_counter()  # what is left to do is to close it
        while not any(one["physical_path"] == path for one in client.event("artifacts/changed")["artifacts"]):
            pass
        seconds.append(perf_counter() - closed)
        sleep(max(0.0, 1 / PER_SECOND - seconds[-1]) * chance.uniform(0.5, 1.5))
    client.drop()
    return seconds
