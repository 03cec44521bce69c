"""The runner's own verdicts: what it lets pass and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.case import Case, MalformedCaseError, from_json
from tests.conformance.disk import Disk
from tests.conformance.matching import differences, fill, pick


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ("$any", None),
        ({"a": "$any"}, {"a": []}),
        ({"a": "$absent"}, {"b": 1}),
        ([1, {"x": "$any"}], [1, {"x": 2, "y": 3}]),
        (None, None),
    ],
)
def test_what_matches(expected: Any, actual: Any) -> None:
    assert list(differences(expected, actual)) == []


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        ({"a": 1}, {"a": 2}, "$.a is 2, but must be 1"),
        ({"a": 1}, {}, "$.a is absent, but must be 1"),
        ({"a": "$any"}, {}, "$.a is absent, but must be there"),
        ({"a": "$absent"}, {"a": None}, "$.a is None, but must be absent"),
        ([1], [1, 2], "$ has 2 items, but must have 1: [1, 2]"),
        ({}, [], "$ is [], but must be an object"),
        (1, True, "$ is True, but must be 1"),
        ({"a": None}, {}, "$.a is absent, but must be None"),
    ],
)
def test_what_does_not_match(expected: Any, actual: Any, said: str) -> None:
    assert list(differences(expected, actual)) == [said]


def test_what_was_kept_is_filled_in_everywhere() -> None:
    assert fill({"a": [{"$kept": "n"}]}, {"n": 7}) == {"a": [7]}


def test_a_dotted_place_leads_through_lists() -> None:
    assert pick({"results": [{"sha": "x"}]}, "results.0.sha") == "x"


@pytest.mark.parametrize(
    "step",
    [
        {"call": "workspace/sync"},
        {"call": "workspace/sync", "result": {}, "error": 1},
        {"write": {}, "delete": ["x"]},
        {"sleep": 1},
        {"call": "workspace/sync", "result": {}, "as": "nobody"},
    ],
)
def test_a_step_that_says_too_little_or_too_much_is_refused(step: dict[str, Any]) -> None:
    with pytest.raises(MalformedCaseError):
        case_of(step)


def test_a_file_on_disk_is_compared_byte_for_byte(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.take("write", {"a/b.txt": "one\n"})
    assert disk.take("on_disk", {"a/b.txt": "one\n", "a/c.txt": "$absent"}) == []
    assert disk.take("on_disk", {"a/b.txt": "one", "a/c.txt": "x"}) == [
        "a/b.txt holds b'one\\n', but must hold b'one'",
        "a/c.txt is not on disk",
    ]


def case_of(*steps: dict[str, Any]) -> Case:
    return from_json("x", {"about": "A case.", "rules": ["a.b"], "steps": list(steps)})
