"""One line of the table of reliability: how much was tried, how much was wrong, and what it is to be."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from tests.daemon_process import PROJECT, environment
from tests.faults import chance


class Outcome(NamedTuple):
    """`wrong` of `tried` were wrong; `said` is what else is worth knowing, `faults` what to look at."""

    tried: int
    wrong: int
    said: str = ""
    faults: tuple[str, ...] = ()


class NotMeasured(Exception):  # noqa: N818 - it says why
    """Something that is needed for it is not installed."""


class Run(NamedTuple):
    """One finding of a figure: what its chances come from, a folder of its own, how many processes it may take."""

    seed: int
    folder: Path
    jobs: int = 1


Measure = Callable[[Run], Outcome]


@dataclass(frozen=True, slots=True)
class Row:
    """A figure: its number and name, what it is to be, how the long run finds it, and the tests that find it daily."""

    number: int
    name: str
    aim: str
    long: Measure
    daily: tuple[str, ...]


def found_by(*tests: str, times: int = 1) -> Measure:
    """A figure that tests find: run them so often in their long size, and count cases and failures.

    Run number n of them takes its chances from the seed and n; a test that fails is run again by `FAULTS_SEED`.
    """

    def measure(run: Run) -> Outcome:
        tried = wrong = skipped = 0
        faults: list[str] = []
        for number in range(times):
            report = run.folder / f"report-{number}.xml"
            pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
            words = [*pytest, f"--hypothesis-seed={run.seed + number}", *tests]
            chances = environment(**{chance.SEED: str(run.seed + number), chance.SIZE: "long"})
            ran = subprocess.run(words, cwd=PROJECT, env=chances, capture_output=True, text=True, check=False)
            if not report.exists():
                raise NotMeasured(ran.stdout[-300:] + ran.stderr[-300:])
            for case in ET.parse(report).iter("testcase"):
                if case.find("skipped") is not None:
                    skipped += 1
                    continue
                tried += 1
                if case.find("failure") is not None or case.find("error") is not None:
                    wrong += 1
                    said = f"{chance.SEED}={run.seed + number} {case.get('classname')}::{case.get('name')}"
                    why = "".join(one.text or "" for one in (*case.iter("failure"), *case.iter("error")))
                    faults.append(f"{said}\n{why[-2000:]}")
        if not tried:
            raise NotMeasured(f"{skipped} cases were skipped, none ran")
        return Outcome(tried, wrong, f"{skipped} skipped" if skipped else "", tuple(faults))

    return measure


def measured(row: Row, seed: int, *, jobs: int = 1) -> Outcome | NotMeasured:
    """What was found. A figure that breaks is one that is wrong, and the next ones are found all the same."""
    with tempfile.TemporaryDirectory(prefix="as-figure-", ignore_cleanup_errors=True) as folder:
        try:
            return row.long(Run(seed, Path(folder), jobs))
        except NotMeasured as missing:
            return missing
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is a finding
            return Outcome(0, 1, f"it broke: {type(fault).__name__}", (traceback.format_exc(),))


def line(row: Row, seed: int, found: Outcome | NotMeasured, seconds: float) -> str:
    """The row of the table, in Markdown."""
    if isinstance(found, NotMeasured):
        return f"| {row.number} | {row.name} | {row.aim} | not measured: {' '.join(str(found).split())} | | | |"
    verdict = "met" if not found.wrong else "**MISSED**"
    cells = (
        row.number,
        row.name,
        row.aim,
        f"{found.tried:,}",
        found.wrong,
        found.said,
        seed,
        verdict,
        f"{seconds:.0f} s",
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |"


HEAD = """| # | what | is to be | tried | wrong | and | seed | | took |
| ---: | --- | --- | ---: | ---: | --- | ---: | --- | ---: |
"""


def table(lines: Iterable[str]) -> str:
    return HEAD + "\n".join(lines) + "\n"
