"""Appending and reading blocks on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.requests.timeline import AppendResult, BlocksResult
from sidecar.core import limits
from tests.protocol.fit import refused, taken


def test_a_block_comes_through_with_every_key() -> None:
    block = {"type": "react.note", "ts": 1.5, "meta": {"a": {"b": [None]}}, "score": 3, "hidden": True}
    assert taken("timeline/append", {"blocks": [block]}).model_dump()["blocks"] == [block]


def test_ten_thousand_blocks_may_come_at_once() -> None:
    taken("timeline/append", {"blocks": [{"type": "x"}] * 10_000})


@pytest.mark.parametrize(
    ("params", "at"),
    [
        ({}, "blocks"),
        ({"blocks": []}, "blocks"),
        ({"blocks": [{"type": "x"}] * 10_001}, "blocks"),
        ({"blocks": [{"type": "x"}, {}]}, "blocks.1.type"),
        ({"blocks": [{"type": "x" * 257}]}, "blocks.0.type"),
        ({"blocks": [{"type": "x", "meta": "{}"}]}, "blocks.0.meta"),
        ({"blocks": [{"type": "x", "ts": []}]}, "blocks.0.ts"),
        ({"blocks": {"type": "x"}}, "blocks"),
    ],
    ids=["absent", "none", "many", "no type", "long type", "meta text", "ts list", "no list"],
)
def test_append_refuses(params: dict[str, Any], at: str) -> None:
    refused("timeline/append", params, at)


@pytest.mark.parametrize("params", [{}, {"path": "ar:t.user.prompt", "turn_id": "t", "since": 5, "limit": 1}])
def test_blocks_takes(params: dict[str, Any]) -> None:
    taken("timeline/blocks", params)


def test_blocks_are_paged_by_the_daemon_s_own_limit() -> None:
    assert taken("timeline/blocks", {}).model_dump()["limit"] == limits.BLOCKS_PAGE


def test_a_block_without_a_path_is_answered_without_one() -> None:
    answer = {"revision": 2, "blocks": [{"index": 0}, {"index": 1, "path": "ar:t.user.prompt"}]}
    assert AppendResult.model_validate(answer).model_dump(exclude_none=True) == answer


def test_blocks_are_answered_as_they_were_told() -> None:
    answer = {"blocks": [{"type": "x", "odd": {"a": 1}}], "next_since": 1, "revision": 2}
    assert BlocksResult.model_validate(answer).model_dump() == answer
