"""Merging and listing sources on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.base import ROWS
from protocol.requests.sources import MergeResult, SourcesListResult
from sidecar.core import limits
from tests.protocol.fit import refused, taken


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{}],
        [{"url": "https://a.example"}] * 1000,
        [{"sid": 1, "source_type": "manual", "title": "t", "authority": {"any": "thing"}, "text": None}],
    ],
    ids=["none", "blank", "many", "odd"],
)
def test_merge_takes(rows: list[dict[str, Any]]) -> None:
    taken("sources/merge", {"rows": rows})


@pytest.mark.parametrize(
    ("params", "at"),
    [
        ({}, "rows"),
        ({"rows": {}}, "rows"),
        ({"rows": [{}] * 1001}, "rows"),
        ({"rows": [{}, {"sid": "1"}]}, "rows.1.sid"),
        ({"rows": [{"source_type": "rumour"}]}, "rows.0.source_type"),
        ({"rows": ["https://a.example"]}, "rows.0"),
    ],
)
def test_merge_refuses(params: dict[str, Any], at: str) -> None:
    refused("sources/merge", params, at)


def test_the_wire_and_the_daemon_take_the_same_number_of_rows() -> None:
    assert ROWS == limits.MERGE_ROWS


@pytest.mark.parametrize("selector", ["", "1,3-5", "so:sources_pool[1, 3-5]", "rubbish]"])
def test_a_selector_is_read_by_the_grammar_and_not_by_the_wire(selector: str) -> None:
    taken("sources/list", {"selector": selector})


@pytest.mark.parametrize("selector", [1, [1], None, "1" * 65_537], ids=["number", "list", "null", "long"])
def test_a_selector_is_a_bounded_text(selector: object) -> None:
    refused("sources/list", {"selector": selector}, "selector")


def test_the_answers_keep_what_nobody_knows_of() -> None:
    row = {"sid": 1, "source_type": "web", "favicon": "x"}
    merged = {"rows": [row], "sid_map": {"7": 1}, "added": [1], "path": "so:sources_pool[1]"}
    assert MergeResult.model_validate(merged).model_dump(exclude_none=True) == merged
    listed = {"rows": [row], "missing": [2]}
    assert SourcesListResult.model_validate(listed).model_dump(exclude_none=True) == listed
