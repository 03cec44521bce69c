"""How an answer is compared with what a case says of it.

An object matches by the fields named; a list matches item by item, in length too; all else must be equal. `"$any"` is
anything that is there, `"$absent"` is a field that is not, `{"$kept": name}` is what an earlier step kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

ANY = "$any"
ABSENT = "$absent"
KEPT = "$kept"

_nothing = object()


def differences(expected: Any, actual: Any, where: str = "$") -> Iterator[str]:
    """Every place where `actual` is not as `expected`, as a sentence each; none when it matches."""
    match expected:
        case "$any":
            if actual is _nothing:
                yield f"{where} is absent, but must be there"
        case "$absent":
            if actual is not _nothing:
                yield f"{where} is {_shown(actual)}, but must be absent"
        case _ if actual is _nothing:
            yield f"{where} is absent, but must be {_shown(expected)}"
        case dict():
            yield from _objects(expected, actual, where)
        case list():
            yield from _lists(expected, actual, where)
        case _:
            # In Python 1 == True; in JSON they are two things.
            if expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
                yield f"{where} is {_shown(actual)}, but must be {_shown(expected)}"


def _objects(expected: Mapping[str, Any], actual: Any, where: str) -> Iterator[str]:
    if not isinstance(actual, dict):
        yield f"{where} is {_shown(actual)}, but must be an object"
        return
    for key, value in expected.items():
        yield from differences(value, actual.get(key, _nothing), f"{where}.{key}")


def _lists(expected: list[Any], actual: Any, where: str) -> Iterator[str]:
    if not isinstance(actual, list):
        yield f"{where} is {_shown(actual)}, but must be a list"
        return
    if len(expected) != len(actual):
        yield f"{where} has {len(actual)} items, but must have {len(expected)}: {_shown(actual)}"
    for index, (inner, item) in enumerate(zip(expected, actual, strict=False)):
        yield from differences(inner, item, f"{where}[{index}]")


def fill(value: Any, kept: Mapping[str, Any]) -> Any:
    """`value` with every `{"$kept": name}` replaced by what was kept under that name."""
    match value:
        case {"$kept": str(name)}:
            return kept[name]
        case dict():
            return {key: fill(inner, kept) for key, inner in value.items()}
        case list():
            return [fill(inner, kept) for inner in value]
        case _:
            return value


def pick(value: Any, place: str) -> Any:
    """What stands at a dotted place: `results.0.artifact.sha256`. Raises LookupError."""
    for part in place.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + "…"
