"""Figures of what must not get in or out: paths, hostile clients, hostile bytes."""

from __future__ import annotations

import asyncio
from statistics import quantiles

from tests.daemon_process import Workspace
from tests.faults import escapes
from tests.faults.figures import NotMeasured, Outcome, Run
from tests.faults.hostile import DEEDS
from tests.faults.test_clients import GROWTH, honest_clients, resident
from tests.fuzzing import figures
from tests.fuzzing.slot import NotInstalled

FUZZING_SECONDS = 300
CALM_ANSWERS = 2000
P99 = 0.02
RATIO = 5.0


def swapped(run: Run) -> Outcome:
    plan = ((escapes.reads, 50_000), (escapes.writes, 20_000), (escapes.scans, 15_000))
    found = []
    for deed, count in plan:
        (run.folder / deed.__name__).mkdir()
        found.append(deed(run.folder / deed.__name__, count=count))
    said = ", ".join(
        f"{one.tried:,} {deed.__name__} ({one.inside:,} inside)" for one, (deed, _) in zip(found, plan, strict=True)
    )
    return Outcome(sum(one.tried for one in found), sum(one.escaped for one in found), said)


def made_up(run: Run) -> Outcome:
    found = escapes.made_up(run.folder, count=50_000, seed=run.seed)
    share = found.inside / found.tried
    return Outcome(found.tried, found.escaped + (share < 0.2), f"{share:.0%} accepted")


def frames(run: Run) -> Outcome:
    """Every hostile deed against one daemon that serves four honest clients: it lives, remembers nothing of it, and
    keeps them waiting less than 20 ms, or on a busy machine no more than a few times as long as in calm.
    """
    p99s: dict[str, float] = {}
    grown: dict[str, int] = {}
    faults: list[str] = []

    async def measure(workspace: Workspace) -> float:
        async with honest_clients(workspace, ceiling=120.0) as times:
            await times.next(50)
            calm = _p99(await times.next(CALM_ANSWERS))
        for name, deed in DEEDS.items():
            async with honest_clients(workspace, ceiling=120.0) as times:
                await times.next(50)
                before = resident(workspace)
                link = await asyncio.to_thread(deed, workspace)
                p99s[name] = _p99(await times.next(400))
                grown[name] = resident(workspace) - before
                link.close()
            if not workspace.answers():
                faults.append(f"{name}: the daemon is gone")
        return calm

    with Workspace(run.folder) as workspace:
        calm = asyncio.run(measure(workspace))
        faults += [f"{name}: {size / 2**20:.0f} MiB" for name, size in grown.items() if size > GROWTH]
        faults += [f"{name}: {p99:.3f} s" for name, p99 in p99s.items() if p99 > max(P99, RATIO * calm)]
        if "Traceback (most recent call last)" in workspace.log.read_text("utf-8", "replace"):
            faults.append("a traceback in the daemon's log")
    worst, biggest = max(p99s, key=p99s.__getitem__), max(grown, key=grown.__getitem__)
    said = (
        f"others' p99 {calm * 1000:.0f} ms in calm, at worst {p99s[worst] * 1000:.0f} ms: {worst}; "
        f"memory at most {grown[biggest] / 2**20:+.0f} MiB: {biggest}"
    )
    return Outcome(len(p99s), len(faults), said, tuple(faults))


def _p99(seconds: list[float]) -> float:
    return quantiles(seconds, n=100)[98]


def fuzzed(run: Run) -> Outcome:
    """What coverage-guided fuzzing finds in a few minutes; hours of it run by its own command."""
    try:
        executions, findings, edges = figures.run(FUZZING_SECONDS, run.seed)
    except NotInstalled as missing:
        raise NotMeasured(str(missing)) from missing
    return Outcome(executions, findings, f"{edges:,} edges of the code covered, in {FUZZING_SECONDS} s")
