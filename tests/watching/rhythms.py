"""Writers of every rhythm at work side by side, under syncs or under events: which states were registered."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

from tests.daemon_process import Workspace
from tests.rpc_client import CEILING, Client
from tests.watching.writers import WRITERS, over_an_older_one, sha256

PAUSES = (0.12, 0.3, 0.8)
FOLDER = "turn_1/files"
Way = Literal["syncs", "events"]
BY: tuple[Way, ...] = ("syncs", "events")
Work = dict[str, Future[set[str]]]


@dataclass(slots=True)
class Found:
    """`half` are files of which a state was registered that none of their writers had let go of."""

    files: int
    half: list[str] = field(default_factory=list[str])
    missed: list[str] = field(default_factory=list[str])


def set_to_work(workspace: Workspace, hands: ThreadPoolExecutor, pauses: Sequence[float] = PAUSES) -> Work:
    """Every writer at every pause, each on a file of its own, side by side."""
    (workspace.out_dir / FOLDER).mkdir(parents=True)
    under_way: Work = {}
    for writer in WRITERS:
        for pause in pauses:
            path = workspace.out_dir / FOLDER / f"{writer.__name__}_{pause}.txt"
            if writer is over_an_older_one:
                path.write_bytes(b"an older state")
            under_way[path.name] = hands.submit(writer, path, pause)
    return under_way


def halves(workspace: Workspace, way: Way, chance: random.Random, *, ceiling: float = CEILING) -> Found:
    """Watch them all, with pauses by chance around those three, and judge every state that was registered."""
    client = workspace.connect("runtime", ceiling=ceiling, events=["artifacts"] if way == "events" else [])
    pauses = tuple(round(pause * chance.uniform(0.7, 1.3), 4) for pause in PAUSES)
    with ThreadPoolExecutor(len(WRITERS) * len(PAUSES)) as hands:
        under_way = set_to_work(workspace, hands, pauses)
        told = _by_syncs(client, under_way) if way == "syncs" else _by_events(workspace, client, under_way)
    found = Found(len(under_way))
    for name, work in under_way.items():
        end = sha256((workspace.out_dir / FOLDER / name).read_bytes())
        found.half += [name] if set(told.get(name, ())) - work.result() else []
        found.missed += [name] if end not in told.get(name, ()) else []
    return found


def _by_syncs(client: Client, under_way: Work) -> dict[str, list[str]]:
    while not all(work.done() for work in under_way.values()):
        client.call("workspace/sync")
    client.call("workspace/sync")
    return {name: versions(client, name) for name in under_way}


def _by_events(workspace: Workspace, client: Client, under_way: Work) -> dict[str, list[str]]:
    for work in under_way.values():
        work.result()
    ends = {name: sha256((workspace.out_dir / FOLDER / name).read_bytes()) for name in under_way}
    told: dict[str, list[str]] = {name: [] for name in under_way}
    while any(ends[name] not in told[name] for name in under_way):
        for artifact in client.event("artifacts/changed")["artifacts"]:
            told.setdefault(artifact["physical_path"].rpartition("/")[2], []).append(artifact["sha256"])
    client.drop()
    return told


def versions(client: Client, name: str) -> list[str]:
    """The hash of every state of a file that was registered."""
    return [v["sha256"] for v in client.call("artifact/versions", {"path": f"{FOLDER}/{name}"})["versions"]]
