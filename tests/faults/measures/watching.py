"""Figures of watching: nothing is missed, nothing half is registered, and how soon and how cheaply."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from statistics import median, quantiles

import psutil

from tests.daemon_process import Workspace
from tests.faults.figures import Outcome, Run
from tests.watching.__main__ import one_run
from tests.watching.barrier import random_writes
from tests.watching.deeds import FULL_SIZE
from tests.watching.promptness import told_after_close
from tests.watching.rhythms import BY, halves

PATIENT = 120.0  # seconds that an answer may take here: what counts is what is in it
BURST = "many_files_in_a_hundred_folders"


def files_lost(run: Run) -> Outcome:
    outcomes = [one_run(name, "events", f"turn_{run.seed}_{time}") for name in FULL_SIZE for time in range(3)]
    wrong = [str(one) for one in outcomes if not one.is_clean]
    slowest = max(one.seconds for one in outcomes)
    missed = sum(len(one.missed) + len(one.half) + len(one.unnumbered) for one in outcomes)
    return Outcome(sum(one.made for one in outcomes), missed, f"slowest {slowest:.2f} s after the end", tuple(wrong))


def read_your_writes(run: Run, *, daemons: int = 10, writes: int = 1000) -> Outcome:
    missing: list[str] = []
    for number in range(daemons):
        with tempfile.TemporaryDirectory() as top, Workspace(Path(top)) as workspace:
            seed = run.seed + number
            found = random_writes(workspace, writes, random.Random(seed), ceiling=PATIENT)
            missing += [f"seed {seed}: {one}" for one in found]
    return Outcome(daemons * writes, len(missing), f"{daemons} daemons", tuple(missing))


def half_written(run: Run, *, times: int = 6) -> Outcome:
    files = wrong = 0
    faults: list[str] = []
    for number in range(times):
        for way in BY:
            with tempfile.TemporaryDirectory() as top, Workspace(Path(top)) as workspace:
                found = halves(workspace, way, random.Random(run.seed + number), ceiling=PATIENT)
            files, wrong = files + found.files, wrong + len(found.half) + len(found.missed)
            faults += [f"seed {run.seed + number}, {way}: {one}" for one in (*found.half, *found.missed)]
    return Outcome(files, wrong, "each with six rhythms of writing, seen by syncs and by events", tuple(faults))


def close_to_durable(run: Run, *, files: int = 600) -> Outcome:
    """Ten files a second; an event comes when what it tells is durable."""
    with Workspace(run.folder) as workspace:
        seconds = told_after_close(workspace, files, random.Random(run.seed), ceiling=PATIENT)
    p50, p99 = median(seconds), quantiles(seconds, n=100)[98]
    wrong = (p50 > 0.025) + (p99 > 0.15) + (len(seconds) != files)
    return Outcome(files, wrong, f"p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms until its event")


def burst(run: Run) -> Outcome:
    outcomes = [one_run(BURST, "events", f"turn_{run.seed}_{time}") for time in range(3)]
    seconds = max(one.seconds for one in outcomes)
    missed = sum(len(one.missed) for one in outcomes)
    said = f"{', '.join(f'{one.seconds:.2f}' for one in outcomes)} s after the last write, all durable"
    faults = tuple(str(one) for one in outcomes if not one.is_clean)
    return Outcome(sum(one.made for one in outcomes), missed + (seconds > 3), said, faults)


def idle(_: Run) -> Outcome:
    """CPU of a daemon that nobody asks anything, in percent of one core, with 0 and with 10,000 files."""
    shares: list[float] = []
    for count in (0, 10_000):
        with tempfile.TemporaryDirectory() as top, Workspace(Path(top)) as workspace:
            for at in range(count):
                workspace.write(f"turn_{at % 10}/files/f{at % 100}/{at}.txt", f"{at}")
            client = workspace.connect("runtime", ceiling=PATIENT)
            client.call("workspace/sync")
            client.close()
            assert workspace.daemon is not None
            process = psutil.Process(workspace.daemon.pid)
            process.cpu_percent(20)  # what the files have stirred up is over then
            shares.append(process.cpu_percent(60))
    wrong = (shares[0] > 0.5) + (shares[1] > 3)
    return Outcome(2, wrong, f"{shares[0]:.2f} % with none, {shares[1]:.2f} % with 10,000 files, of one core")
