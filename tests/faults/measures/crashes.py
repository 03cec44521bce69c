"""Figures of deaths and disks: what was acknowledged is there, and how soon it is there again."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from tests.faults import damage, known_bugs
from tests.faults.disk_shim import NEEDED, compiler
from tests.faults.figures import NotMeasured, Outcome, Run
from tests.faults.lives import Falls, changes_of_a_life, die_often, fall_at, fault_points
from tests.faults.power import cut_power
from tests.faults.power_scenes import SCENES, record
from tests.faults.quick_disk import in_memory
from tests.faults.whole_deaths import die_whole
from tests.faults.workers import spread

FALLS = 45  # acknowledgements in the long run: a life with two whole turns


class _Batch(NamedTuple):
    kind: str
    deaths: int
    seed: int


class _Died(NamedTuple):
    batch: _Batch
    acknowledged: Counter[str]
    recoveries: list[float]
    fault: str


def _die(batch: _Batch) -> _Died:
    with tempfile.TemporaryDirectory(prefix="as-", ignore_cleanup_errors=True) as top:
        try:
            die = die_whole if batch.kind == "whole" else die_often
            ledger = die(Path(top), kind=batch.kind, deaths=batch.deaths, seed=batch.seed)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is a finding
            return _Died(batch, Counter(), [], f"{batch.kind}, seed {batch.seed}: {fault!r}"[:400])
    return _Died(batch, ledger.kinds, ledger.recoveries, "")


def kills(run: Run, *, works: int = 18, turns: int = 18, whole: int = 4) -> Outcome:
    """Lives of `works`, of whole `turns`, and of whole daemons under clients; 25 deaths in each workspace."""
    kinds = ["works"] * works + ["turns"] * turns + ["whole"] * whole
    died = [*spread(_die, [_Batch(kind, 25, run.seed + at) for at, kind in enumerate(kinds)], jobs=run.jobs)]
    acknowledged: Counter[str] = sum((one.acknowledged for one in died), Counter())
    whose: dict[bool, list[float]] = {False: [], True: []}
    for one in died:
        whose[one.batch.kind == "whole"] += one.recoveries
    said = ", ".join(f"{count:,} {kind}" for kind, count in acknowledged.most_common())
    faults = tuple(one.fault for one in died if one.fault)
    times = f"first answer after {_times(whose[False])} without the start of Python, {_times(whose[True])} with it"
    return Outcome(25 * len(kinds), len(faults), f"acknowledged: {said}; {times}", faults)


def _times(seconds: Sequence[float]) -> str:
    if len(seconds) < 2:
        return "unknown"
    return f"p50 {median(seconds) * 1000:.0f} ms, p99 {quantiles(seconds, n=100)[98] * 1000:.0f} ms"


class _Points(NamedTuple):
    points: list[tuple[str, int]]
    seed: int


def _fall(some: _Points) -> Falls:
    falls = Falls()
    with in_memory(Path(tempfile.gettempdir())) as disk:
        for number, (fault, nth) in enumerate(some.points):
            fall_at(disk / str(number), fault=fault, nth=nth, seed=some.seed, falls=falls, heard=FALLS)
            shutil.rmtree(disk / str(number), ignore_errors=True)
    return falls


def failing_calls(run: Run) -> Outcome:
    """All changes of one life, six ways each. A later life makes a few more or fewer: those points do nothing."""
    _needs_shim()
    with in_memory(run.folder) as disk:
        (disk / "count").mkdir()
        changes = changes_of_a_life(disk / "count", run.seed, heard=FALLS)
    points = fault_points(changes, most=10**6, seed=run.seed)
    random.Random(run.seed).shuffle(points)  # so that no process gets the short lives alone
    parts = [_Points(points[at::40], run.seed) for at in range(40)]
    fell = [*spread(_fall, parts, jobs=run.jobs)]
    faults = tuple(fault for one in fell for fault in one.faults)
    told = sum(one.told for one in fell)
    said = f"all {changes} changes of one life, 6 ways each; {told} lives ended by it and said so"
    return Outcome(sum(one.points for one in fell), len(faults), said, faults)


class _Film(NamedTuple):
    scene: str
    images: int
    seed: int


class _Cut(NamedTuple):
    scene: str
    images: int
    owed: int
    faults: tuple[str, ...]


def _cut(film: _Film) -> _Cut:
    kept = Path(tempfile.mkdtemp(prefix="as-cut-"))
    with in_memory(kept) as disk:
        recording = record(film.scene, disk, film.seed)
        found = cut_power(recording, kept, images=film.images, seed=film.seed)
    if not found.faults:
        shutil.rmtree(kept)
    faults = tuple(f"{film.scene}, seed {film.seed}, kept in {kept}: {fault}" for fault in found.faults)
    return _Cut(film.scene, found.images, found.owed, faults)


def power_cuts(run: Run, *, recordings: int = 40, images: int = 500) -> Outcome:
    """Half of the recordings show ordinary work, the others in turn what happens more rarely."""
    _needs_shim()
    usual, *rare = SCENES
    scenes = [usual if at % 2 else rare[at // 2 % len(rare)] for at in range(recordings)]
    films = [_Film(scene, images, run.seed + at) for at, scene in enumerate(scenes)]
    cut = [*spread(_cut, films, jobs=run.jobs)]
    by_scene = Counter[str]()
    for one in cut:
        by_scene[one.scene] += one.images
    shown = ", ".join(f"{count:,} of {scene}" for scene, count in by_scene.items())
    owed = sum(one.owed for one in cut)
    faults = tuple(fault for one in cut for fault in one.faults)
    said = f"{recordings} recordings: {shown}; {owed:,} acknowledgements owed in all"
    return Outcome(sum(one.images for one in cut), len(faults), said, faults)


def torn_logs(run: Run) -> Outcome:
    found = damage.torn_logs(run.folder, count=3052, seed=run.seed)
    return Outcome(found.tried, len(found.faults), "each a clean prefix", tuple(found.faults))


def changed_rows(run: Run) -> Outcome:
    found = damage.changed_rows(run.folder, count=600, seed=run.seed)
    rival = damage.integrity_check_alone(run.folder, count=600, seed=run.seed)
    said = f"SQLite's own check notices {rival} of 600"
    return Outcome(found.tried, len(found.faults), said, tuple(found.faults))


def recovery(run: Run) -> Outcome:
    seconds = [damage.recovery(run.folder / str(blocks), blocks=blocks, seed=run.seed) for blocks in (10_000, 100_000)]
    wrong = (seconds[0][0] > 0.2) + (seconds[1][0] > 1) + (seconds[0][1] != 10_000) + (seconds[1][1] != 100_000)
    return Outcome(2, wrong, f"{seconds[0][0] * 1000:.0f} and {seconds[1][0] * 1000:.0f} ms")


def bugs(_: Run) -> Outcome:
    _needs_shim()
    found = {bug.__name__.replace("_", " "): bug() for bug in known_bugs.BUGS}
    quiet = tuple(name for name, one in found.items() if one.failed == 0)
    right = known_bugs.RIGHT()
    said = "; ".join(f"{name}: {one.failed} of {one.tries}" for name, one in found.items())
    return Outcome(len(found) + 1, len(quiet) + bool(right.failed), f"{said}; done right: {right.failed}", quiet)


def _needs_shim() -> None:
    if compiler() is None:
        raise NotMeasured(NEEDED)
