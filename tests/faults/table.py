"""The figures of reliability, each as the long run finds it, and the tests that find the same in small every day."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from statistics import quantiles

import psutil

from tests.daemon_process import Workspace
from tests.faults import damage, escapes, known_bugs
from tests.faults.disk_shim import NEEDED, compiler
from tests.faults.figures import NotMeasured, Outcome, Row, found_by
from tests.faults.hostile import DEEDS
from tests.faults.lives import Falls, changes_of_a_life, die_often, fall_at, fault_points
from tests.faults.power import cut_power
from tests.faults.power_life import record
from tests.faults.quick_disk import in_memory
from tests.faults.test_clients import honest_clients
from tests.rpc_client import Client
from tests.watching.__main__ import one_run
from tests.watching.deeds import FULL_SIZE


def _shim() -> None:
    if compiler() is None:
        raise NotMeasured(NEEDED)


def files_lost(seed: int, _: Path) -> Outcome:
    outcomes = [one_run(name, "events", f"turn_{seed}_{run}") for name in FULL_SIZE for run in range(3)]
    wrong = [str(one) for one in outcomes if not one.is_clean]
    slowest = max(one.seconds for one in outcomes)
    missed = sum(len(one.missed) + len(one.half) + len(one.unnumbered) for one in outcomes)
    return Outcome(sum(one.made for one in outcomes), missed, f"slowest {slowest:.2f} s after the end", tuple(wrong))


def burst(seed: int, _: Path) -> Outcome:
    outcomes = [one_run("many_files_in_a_hundred_folders", "events", f"turn_{seed}_{run}") for run in range(3)]
    seconds = max(one.seconds for one in outcomes)
    missed = sum(len(one.missed) for one in outcomes)
    return Outcome(sum(one.made for one in outcomes), missed + (seconds > 3), f"{seconds:.2f} s, all durable")


def idle(_: int, __: Path) -> Outcome:
    """CPU of a daemon that nobody asks anything, in percent of one core, with 0 and with 10,000 files."""
    shares: list[float] = []
    for count in (0, 10_000):
        with tempfile.TemporaryDirectory() as top, Workspace(Path(top)) as workspace:
            for at in range(count):
                workspace.write(f"turn_{at % 10}/files/f{at % 100}/{at}.txt", f"{at}")
            client: Client = workspace.connect("runtime", ceiling=120)
            client.call("workspace/sync")
            client.close()
            assert workspace.daemon is not None
            process = psutil.Process(workspace.daemon.pid)
            process.cpu_percent(20)  # what the files have stirred up is over then
            shares.append(process.cpu_percent(60))
    wrong = (shares[0] > 0.5) + (shares[1] > 3)
    return Outcome(2, wrong, f"{shares[0]:.2f} % with none, {shares[1]:.2f} % with 10,000 files, of one core")


def kills(seed: int, folder: Path) -> Outcome:
    deaths = acknowledged = 0
    faults: list[str] = []
    for number, kind in enumerate(["works"] * 28 + ["turns"] * 12):
        place = folder / str(number)
        place.mkdir()
        try:
            acknowledged += die_often(place, kind=kind, deaths=25, seed=seed + number).acknowledged
        except AssertionError as fault:
            faults.append(f"{kind}, seed {seed + number}: {fault}"[:300])
        deaths += 25
        shutil.rmtree(place, ignore_errors=True)
    return Outcome(deaths, len(faults), f"{acknowledged:,} acknowledgements", tuple(faults))


def failing_calls(seed: int, folder: Path) -> Outcome:
    _shim()
    with in_memory(folder) as disk:
        (disk / "count").mkdir()
        changes, falls = changes_of_a_life(disk / "count", seed), Falls()
        for number, (fault, nth) in enumerate(fault_points(changes, most=2000, seed=seed)):
            fall_at(disk / str(number), fault=fault, nth=nth, seed=seed, falls=falls)
            shutil.rmtree(disk / str(number), ignore_errors=True)
    said = f"of {changes} changes of one life, 5 ways each; {falls.told} lives ended by it and said so"
    return Outcome(falls.points, len(falls.faults), said, tuple(falls.faults))


def power_cuts(seed: int, folder: Path, *, recordings: int = 10, images: int = 2000) -> Outcome:
    _shim()
    tried = owed = 0
    faults: list[str] = []
    for number in range(recordings):
        with in_memory(folder) as disk:
            found = cut_power(record(disk, seed + number, work=80), folder, images=images, seed=seed + number)
        tried, owed = tried + found.images, owed + found.owed
        faults += [f"seed {seed + number}: {fault}" for fault in found.faults]
    return Outcome(tried, len(faults), f"{recordings} recordings, {owed:,} acknowledgements owed in all", tuple(faults))


def torn(seed: int, folder: Path) -> Outcome:
    found = damage.torn_logs(folder, count=3052, seed=seed)
    return Outcome(found.tried, len(found.faults), "each a clean prefix", tuple(found.faults))


def rows(seed: int, folder: Path) -> Outcome:
    found = damage.changed_rows(folder, count=600, seed=seed)
    rival = damage.integrity_check_alone(folder, count=600, seed=seed)
    said = f"SQLite's own check notices {rival} of 600"
    return Outcome(found.tried, len(found.faults), said, tuple(found.faults))


def recovery(seed: int, folder: Path) -> Outcome:
    seconds = [damage.recovery(folder / str(blocks), blocks=blocks, seed=seed) for blocks in (10_000, 100_000)]
    wrong = (seconds[0][0] > 0.2) + (seconds[1][0] > 1) + (seconds[0][1] != 10_000) + (seconds[1][1] != 100_000)
    return Outcome(2, wrong, f"{seconds[0][0] * 1000:.0f} and {seconds[1][0] * 1000:.0f} ms")


def swapped(_: int, folder: Path) -> Outcome:
    plan = ((escapes.reads, 50_000), (escapes.writes, 20_000), (escapes.scans, 15_000))
    found = []
    for deed, count in plan:
        (folder / deed.__name__).mkdir()
        found.append(deed(folder / deed.__name__, count=count))
    said = ", ".join(
        f"{one.tried:,} {deed.__name__} ({one.inside:,} inside)" for one, (deed, _) in zip(found, plan, strict=True)
    )
    return Outcome(sum(one.tried for one in found), sum(one.escaped for one in found), said)


def made_up(seed: int, folder: Path) -> Outcome:
    found = escapes.made_up(folder, count=50_000, seed=seed)
    share = found.inside / found.tried
    return Outcome(found.tried, found.escaped + (share < 0.2), f"{share:.0%} accepted")


def frames(_: int, folder: Path) -> Outcome:
    """Every hostile deed against a daemon that serves four honest clients. A ratio, for the machine is shared."""
    p99s: dict[str, float] = {}

    async def measure(workspace: Workspace) -> float:
        async with honest_clients(workspace) as times:
            await times.next(20)
            calm = _p99(await times.next(400))
        for name, deed in DEEDS.items():
            async with honest_clients(workspace) as times:
                await times.next(20)
                link = await asyncio.to_thread(deed, workspace)
                p99s[name] = _p99(await times.next(400))
                link.close()
        return calm

    with Workspace(folder) as workspace:
        calm = asyncio.run(measure(workspace))
        alive = workspace.answers()
    worst = max(p99s, key=p99s.__getitem__)
    said = f"others' p99 {calm * 1000:.0f} ms in calm, at worst {p99s[worst] * 1000:.0f} ms: {worst}"
    return Outcome(len(p99s), 0 if alive else len(p99s), said)


def _p99(seconds: list[float]) -> float:
    return quantiles(seconds, n=100)[98]


def bugs(_: int, __: Path) -> Outcome:
    _shim()
    found = {bug.__name__.replace("_", " "): bug() for bug in known_bugs.BUGS}
    quiet = tuple(name for name, one in found.items() if one.failed == 0)
    right = known_bugs.RIGHT()
    said = "; ".join(f"{name}: {one.failed} of {one.tries}" for name, one in found.items())
    return Outcome(len(found) + 1, len(quiet) + bool(right.failed), f"{said}; done right: {right.failed}", quiet)


_FAULTS, _WATCHING, _STORES = "tests/faults/", "tests/watching/", "tests/stores/"
_FOLDERS = (f"{_WATCHING}test_odd_folders.py", f"{_WATCHING}test_watch_limit.py", f"{_STORES}test_bell.py")
_OVERFLOW = f"{_WATCHING}test_workloads.py::test_twenty_thousand_files_overflow_the_kernels_queue_and_none_is_missed"
_PATHS = (f"{_STORES}test_opens.py", f"{_STORES}test_placing.py", f"{_FAULTS}test_paths.py")
_FULL = (f"{_FAULTS}test_disk.py", f"{_FAULTS}test_writing.py")
_S3 = (f"{_FAULTS}test_store.py", f"{_STORES}test_s3_sending.py", f"{_STORES}test_s3_reading.py")
_ROLES = ("tests/protocol/test_methods.py", "tests/server/test_routes.py", "tests/server/test_dispatch.py")
_SECRETS = (
    f"{_FAULTS}test_disk.py",
    "tests/server/test_wire.py",
    "tests/server/test_failures.py",
    "tests/server/test_requestlog.py",
)
_SIDS = ("tests/core/test_sources.py", f"{_WATCHING}test_odd_folders.py")

ROWS: tuple[Row, ...] = (
    Row(
        1,
        "files lost by the watch path, five scenarios, events alone",
        "0",
        files_lost,
        (f"{_WATCHING}test_workloads.py",),
    ),
    Row(
        2,
        "files missing after a sync",
        "0",
        found_by(f"{_WATCHING}test_barrier.py", times=40),
        (f"{_WATCHING}test_barrier.py",),
    ),
    Row(
        3,
        "half-written files registered, by writers of every rhythm",
        "0",
        found_by(f"{_WATCHING}test_writers.py", times=10),
        (f"{_WATCHING}test_writers.py",),
    ),
    Row(5, "a burst of 10,000 files", "0 lost, <= 3 s", burst, (f"{_WATCHING}test_workloads.py",)),
    Row(6, "idle CPU", "<= 0.5 %, <= 3 %", idle, ()),
    Row(7, "faults of watching that are survived", "all", found_by(*_FOLDERS, _OVERFLOW), (*_FOLDERS, _OVERFLOW)),
    Row(
        8,
        "kill -9, over all that is written",
        "0 lost, 0 unreadable",
        kills,
        (f"{_FAULTS}test_kill.py", f"{_FAULTS}test_kill_whole.py"),
    ),
    Row(
        9,
        "the n-th change of the disk fails, five ways",
        "0 lost, the waiter is told",
        failing_calls,
        (f"{_FAULTS}test_failing_disk.py",),
    ),
    Row(10, "images of a disk after a power cut", "0 lost, 0 unreadable", power_cuts, (f"{_FAULTS}test_power.py",)),
    Row(11, "logs of the journal that are torn or flipped", "clean prefix", torn, (f"{_FAULTS}test_damage.py",)),
    Row(12, "rows that changed silently", "all noticed", rows, (f"{_FAULTS}test_damage.py",)),
    Row(13, "disks that are full, fail, and have room again", "all", found_by(*_FULL), _FULL),
    Row(14, "recovery of 10,000 and 100,000 blocks", "<= 0.2, <= 1 s", recovery, (f"{_FAULTS}test_damage.py",)),
    Row(
        15,
        "escapes while folders and links change places",
        "0",
        swapped,
        (f"{_FAULTS}test_escapes.py", f"{_STORES}test_opens.py"),
    ),
    Row(16, "table of paths by operations by openers", "all", found_by(*_PATHS), _PATHS),
    Row(17, "paths made up by chance", "0 outside, >= 20 % accepted", made_up, (f"{_FAULTS}test_escapes.py",)),
    Row(18, "hostile clients", "the daemon lives", frames, (f"{_FAULTS}test_clients.py",)),
    Row(20, "faults of an S3 store: right file or clear error", "all", found_by(*_S3), _S3),
    Row(21, "roles by methods", "all", found_by(*_ROLES), _ROLES),
    Row(22, "secrets that others of the same uid see, in memory, answers and logs", "0", found_by(*_SECRETS), _SECRETS),
    Row(23, "source numbers: stable, never given twice", "0", found_by(*_SIDS, times=5), _SIDS),
    Row(24, "known bugs that must still fail", "all fail", bugs, (f"{_FAULTS}test_known_bugs.py",)),
)
ELSEWHERE = {
    4: "close to durable: `python -m tests.bench landing`, tests/bench/FIGURES.md",
    19: "fuzzing with coverage: not part of this suite",
}
