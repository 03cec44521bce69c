"""A case: a story about a workspace as JSON, told to a server from outside."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

HERE = Path(__file__).resolve().parent
CASES = HERE / "cases"


class MalformedCaseError(ValueError):
    """A case that is not one, with the place and the reason."""


@dataclass(frozen=True, slots=True)
class Case:
    """`name` is the file's, without its ending."""

    name: str
    about: str
    rules: tuple[str, ...]
    given: dict[str, Any]
    acting: str
    steps: tuple[dict[str, Any], ...]


@cache
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((HERE / "case.schema.json").read_text("utf-8")))


def from_json(name: str, story: dict[str, Any]) -> Case:
    """Raises MalformedCaseError for what the schema does not allow."""
    fault = jsonschema.exceptions.best_match(_validator().iter_errors(story))
    if fault is not None:
        raise MalformedCaseError(f"{name}: {fault.json_path}: {fault.message}")
    return Case(
        name=name,
        about=story["about"],
        rules=tuple(story["rules"]),
        given=story.get("given", {}),
        acting=story.get("as", "runtime"),
        steps=tuple(story["steps"]),
    )


def load(path: Path) -> Case:
    """Raises MalformedCaseError for what is no JSON or no case."""
    try:
        story = json.loads(path.read_text("utf-8"))
    except ValueError as fault:
        raise MalformedCaseError(f"{path.name}: {fault}") from None
    return from_json(path.stem, story)


def paths() -> list[Path]:
    """The case files, in order."""
    return sorted(CASES.glob("*.json"))
