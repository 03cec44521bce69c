"""What all the runs came to, target by target, in a file beside the growing corpus."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.fuzzing import corpus
from tests.fuzzing.slot import Done, still_fails
from tests.fuzzing.target import Target


@dataclass(frozen=True, slots=True)
class Total:
    """Of one target. `edges` is the most that a slot reached, `growth` the most by which the time of
    one input, `grown`, grew over its length.
    """

    seconds: float = 0.0
    executions: int = 0
    edges: int = 0
    seed: int = 0
    growth: float = 0.0
    grown: str = ""

    def and_also(self, done: Done, seed: int) -> Total:
        return replace(
            self,
            seconds=self.seconds + done.seconds,
            executions=self.executions + done.executions,
            edges=max(self.edges, done.edges),
            seed=seed,
            growth=max(self.growth, done.growth),
            grown=done.grown if done.growth > self.growth else self.grown,
        )


def totals() -> dict[str, Total]:
    page = _page()
    told = json.loads(page.read_text("utf-8")) if page.exists() else {}
    return {name: Total(**total) for name, total in told.items()}


def add(target: Target, done: Done, *, seed: int) -> None:
    """Write it down at once, and the findings too, the shortest input of each."""
    known = totals()
    known[target.name] = known.get(target.name, Total()).and_also(done, seed)
    page = _page()
    page.parent.mkdir(parents=True, exist_ok=True)
    draft = page.with_suffix(".draft")
    draft.write_text(json.dumps({name: asdict(total) for name, total in known.items()}, indent=1), "utf-8")
    draft.replace(page)
    folder = _found(target)
    folder.mkdir(parents=True, exist_ok=True)
    for mark, fault in done.faults.items():
        before = folder / f"{mark}.txt"
        if not before.exists() or len(fault.partition("\n")[0]) < len(before.read_text("utf-8").partition("\n")[0]):
            before.write_text(fault, "utf-8")


def open_findings(target: Target) -> dict[str, str]:
    """What was found in any run and is so today."""
    pages = sorted(_found(target).glob("*.txt"))
    faults = {page.stem: page.read_text("utf-8") for page in pages}
    return {mark: fault for mark, fault in faults.items() if still_fails(target, fault)}


def _page() -> Path:
    return corpus.growing() / "ledger.json"


def _found(target: Target) -> Path:
    return corpus.growing() / "findings" / target.name
