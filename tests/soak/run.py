"""One soak: a real daemon, its clients for as long as wanted, a kill, and the daemon after it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from tests.daemon_process import Workspace, eventually
from tests.rpc_client import AsyncClient
from tests.soak import agent, clients, lander, programs
from tests.soak.holding import Holding
from tests.soak.report import Outcome
from tests.soak.sampling import Sample, descriptors, memory, processor_seconds, sizes, threads
from tests.soak.world import CEILING, World

Worker = Callable[[World], Coroutine[Any, Any, None]]
WORKERS: dict[str, Worker] = {
    "agent": agent.agent,
    "lander": lander.lander,
    "probe": clients.probe,
    "listening runtime": partial(clients.listener, role="runtime"),
    "listening renderer": partial(clients.listener, role="renderer"),
    "program": clients.program,
    "renderer, by a door": clients.renderer,
    "onlooking editor": clients.onlooker,
    "program, by a door": clients.tool,
    "passer-by": clients.passer_by,
    "victim, by a door": clients.victim,
    "deaf": clients.deaf,
    "typing editor, by a door": programs.typist,
    "MCP client": programs.assistant,
    "Python client": programs.library,
    "watch": programs.watcher,
}
log = logging.getLogger("tests.soak")
KEEP_BYTES = 64 << 20
SETTLING = 120.0  # seconds for the workers to end
FAULTS = re.compile(
    r"incident=|Traceback|never retrieved|never awaited|was destroyed|Unhandled|CRITICAL|took [0-9.]+ seconds"
)
_INSIDE = Path(__file__).with_name("inside")


@dataclass(frozen=True, slots=True)
class Plan:
    """What kind of soak. `settings` name store and index; `inside` is a folder for counts of the daemon's objects."""

    minutes: float
    seed: int
    rate: float = 1.0
    every: float = 10.0
    settings: tuple[tuple[str, str], ...] = ()
    inside: Path | None = None
    series: Path | None = None
    least: tuple[str, ...] = ()  # operations each of which is to be met once, however long that takes


def soak(plan: Plan, folder: Path) -> Outcome:
    """Run it. SIGINT and SIGTERM end it early, and it is reported all the same."""
    workspace = Workspace(folder, settings={"keep_bytes": str(KEEP_BYTES), **dict(plan.settings)})
    lander.first_files(workspace.out_dir)
    try:
        with _seen_inside(workspace):
            workspace.start()
            return asyncio.run(_soak(plan, workspace))
    except Exception:
        print(workspace.tail(), file=sys.stderr)
        raise
    finally:
        if workspace.daemon is not None:
            workspace.kill9()
        workspace.clean_up(failed=True)


@contextmanager
def _seen_inside(workspace: Workspace) -> Iterator[None]:
    """Daemons that start meanwhile say what they hold when they are asked by a signal."""
    before = os.environ.get("PYTHONPATH")
    paths = [str(_INSIDE), *filter(None, (before,))]
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "SOAK_INSIDE": str(_said(workspace))}
    try:
        yield
    finally:
        del os.environ["SOAK_INSIDE"]
        os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


def _said(workspace: Workspace) -> Path:
    return workspace.log.with_name("inside.json")


async def _soak(plan: Plan, workspace: Workspace) -> Outcome:
    world = World(workspace, Random(plan.seed), plan.rate)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, world.over.set)
    what = f"{len(WORKERS)} clients at rate {plan.rate:g}, " + ", ".join(
        f"{k} {v}" for k, v in plan.settings if "url" not in k
    )
    outcome = Outcome(what.rstrip(", "), plan.seed, world.accounts)
    async with world.client("runtime") as status:
        outcome.empty = await _holding(workspace)
        tasks = [asyncio.create_task(_worked(world, name, work), name=name) for name, work in WORKERS.items()]
        await _sampled(plan, world, status, outcome)
        world.over.set()
        _, late = await asyncio.wait(tasks, timeout=SETTLING)
        for task in late:
            world.accounts.surprised(task.get_name(), TimeoutError("it did not end"))
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        outcome.promises = world.ledger.entries
        outcome.soaked = await _holding(workspace)
        outcome.lost = await world.ledger.lost(status)
    outcome.minutes = (monotonic() - world.began) / 60
    workspace.kill9()
    await asyncio.to_thread(workspace.start)
    async with world.client("runtime") as status:
        await status.call("workspace/status")
        outcome.anew = await _holding(workspace)
        outcome.lost += [f"after a kill -9: {one}" for one in await world.ledger.lost(status)]
        outcome.asked = await _holding(workspace)
    await asyncio.to_thread(workspace.stop)
    outcome.log = [one for one in _log(workspace) if FAULTS.search(one)]
    return outcome


async def _worked(world: World, name: str, work: Worker) -> None:
    """A worker goes on until the soak is over; when it ends before, that is unexpected and it begins anew."""
    while not world.over.is_set():
        try:
            await work(world)
        except Exception as error:
            world.accounts.surprised(name, error)
            log.warning("%s", name, exc_info=error)
            await world.beat(5.0)
        else:
            if not world.over.is_set():
                world.accounts.surprised(name, EOFError("it ended by itself"))
                await world.beat(5.0)


async def _sampled(plan: Plan, world: World, status: AsyncClient, outcome: Outcome) -> None:
    """Samples until the time is over. The first is taken at once."""
    ends, pid = world.began + plan.minutes * 60, _pid(world.workspace)
    number = 0
    while True:
        outcome.samples.append(await _sample(world, status, pid))
        if plan.series is not None:
            with plan.series.open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome.samples[-1].record()) + "\n")
        if plan.inside is not None and number % 6 == 0:
            plan.inside.mkdir(parents=True, exist_ok=True)
            shutil.move(await _look_inside(world.workspace), plan.inside / f"said-{number:05d}.json")
        number += 1
        try:
            await asyncio.wait_for(world.over.wait(), min(plan.every, max(0.1, ends - monotonic())))
        except TimeoutError:
            if monotonic() < ends or not all(world.accounts.counts[name] for name in plan.least):
                continue
        outcome.samples.append(await _sample(world, status, pid))
        return


async def _sample(world: World, status: AsyncClient, pid: int) -> Sample:
    said = await asyncio.wait_for(status.call("workspace/status"), CEILING)
    rss, pss, uss = memory(pid)
    return Sample(
        at=monotonic() - world.began,
        rss=rss,
        pss=pss,
        uss=uss,
        fds=descriptors(pid),
        threads=threads(pid),
        cpu=processor_seconds(pid),
        counts=said["counts"],
        clients=len(said["clients"]),
        queued=sum(client["queued"] for client in said["clients"]),
        **await asyncio.to_thread(sizes, world.workspace.state_dir, world.workspace.out_dir),
    )


async def _look_inside(workspace: Workspace) -> Path:
    """The file in which the daemon has just said what it holds."""
    said = _said(workspace)
    said.unlink(missing_ok=True)
    os.kill(_pid(workspace), signal.SIGUSR2)
    await asyncio.to_thread(eventually, said.exists, ceiling=SETTLING)
    return said


async def _holding(workspace: Workspace) -> Holding:
    return Holding.of(json.loads((await _look_inside(workspace)).read_bytes()))


def _log(workspace: Workspace) -> Iterator[str]:
    with workspace.log.open(encoding="utf-8", errors="replace") as lines:
        yield from (one.rstrip("\n") for one in lines)


def _pid(workspace: Workspace) -> int:
    assert workspace.daemon is not None
    return workspace.daemon.pid
