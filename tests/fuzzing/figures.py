"""The page of what fuzzing came to, and a run of it as the table of reliability wants one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.fuzzing import corpus, ledger
from tests.fuzzing.rotation import Rotation
from tests.fuzzing.slot import Done
from tests.fuzzing.table import NAMES, all_targets, target_of
from tests.fuzzing.target import Target

FIGURES = Path(__file__).with_name("FIGURES.md")
MARK = "<!-- Everything below is written by `python -m tests.fuzzing --write`. -->\n"


def run(seconds: int, seed: int) -> tuple[int, int, int]:
    """Fuzz every target for its share of so many seconds: executions, ways to fail that were found, edges covered.

    Raises NotInstalled where there is no atheris.
    """
    found: list[tuple[str, Done]] = []
    rotation = Rotation([target_of(name) for name in NAMES], seconds=max(1, seconds // len(NAMES)), seed=seed)
    rotation.run(lambda target, _, done: found.append((target.name, done)))
    edges = {name: max(done.edges for told, done in found if told == name) for name, _ in found}
    faults = {(name, mark) for name, done in found for mark in done.faults}
    return sum(done.executions for _, done in found), len(faults), sum(edges.values())


def slot_line(target: Target, seed: int, done: Done) -> str:
    """What one slot came to, for people."""
    words = f"{target.name}, seed {seed}: {done.executions:,} executions in {done.seconds:.0f} s of CPU"
    found = "".join(f"\n  {_first_said(one)}" for one in done.faults.values())
    return f"{words}, {done.edges:,} edges, {len(done.faults)} findings{found}"


def write() -> None:
    """Put the totals into FIGURES.md."""
    head, mark, _ = FIGURES.read_text("utf-8").partition(MARK)
    FIGURES.write_text(f"{head}{mark}\n{table()}", "utf-8")


def table() -> str:
    totals, targets = ledger.totals(), all_targets().values()
    rows = [_row(target, totals.get(target.name, ledger.Total())) for target in targets]
    return f"{_HEADER}{''.join(rows)}\n{_sentences(targets)}"


def _row(target: Target, total: ledger.Total) -> str:
    kept, mended = corpus.kept(target.name), corpus.findings(target.name)
    cells = (
        target.name, f"{total.seconds / 3600:.2f}", f"{total.executions:,}", f"{total.edges:,}", len(kept),
        f"{sum(map(len, kept)):,}", len(mended), len(ledger.open_findings(target)),
        f"{total.growth:.1f}" if target.plainly is not None else "", total.seed,
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |\n"


def _sentences(targets: Iterable[Target]) -> str:
    return "".join(f"- **{target.name}**: {target.says}.\n" for target in targets)


_COLUMNS = ("CPU hours", "executions", "edges", "inputs kept", "bytes", "found and mended", "open", "growth", "seed")
_HEADER = f"| target | {' | '.join(_COLUMNS)} |\n| --- |{' ---: |' * len(_COLUMNS)}\n"


def _first_said(fault: str) -> str:
    said = [line for line in fault.rstrip().splitlines() if line]
    return f"{said[-1][:200]} for {said[0][:200]}"
