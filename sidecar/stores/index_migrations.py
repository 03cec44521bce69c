"""The numbered SQL that makes the index what it is: which files there are, and which of them are still to be applied.

Each engine applies a file in one transaction and notes its number in `conv_schema`, behind a lock, so that daemons that
start together apply it once.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from sidecar.core.errors import StoreUnavailable

Kind = Literal["sqlite", "postgresql"]
FOLDER = Path(__file__).parent / "index_schema"
NOTES = "CREATE TABLE IF NOT EXISTS conv_schema (number integer PRIMARY KEY, name text NOT NULL, applied text NOT NULL)"


class Step(NamedTuple):
    """One file: `0001_rows.sql` has the number 1 and the name `0001_rows`."""

    number: int
    name: str
    sql: str


class StepState(NamedTuple):
    """A step, and when it was applied (ISO 8601), None when it was not."""

    name: str
    applied: str | None


@cache
def steps(kind: Kind) -> tuple[Step, ...]:
    """All steps of an engine, in order."""
    files = sorted((FOLDER / kind).glob("[0-9]*.sql"))
    return tuple(Step(int(file.stem.partition("_")[0]), file.stem, file.read_text("utf-8")) for file in files)


def missing(kind: Kind, applied: Collection[int]) -> tuple[Step, ...]:
    """The steps that are not applied yet. Raises StoreUnavailable when one is applied that we do not know."""
    known = steps(kind)
    if unknown := max((number for number in applied if number > known[-1].number), default=0):
        hint = f"the index has schema {unknown}, and this version knows up to {known[-1].number}: use the newer version"
        raise StoreUnavailable("index", hint)
    return tuple(step for step in known if step.number not in applied)


def states(kind: Kind, applied: dict[int, str]) -> list[StepState]:
    """Every step with the moment it was applied. Raises StoreUnavailable as `missing` does."""
    missing(kind, applied)
    return [StepState(step.name, applied.get(step.number)) for step in steps(kind)]
