"""The begin and the end of a call on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.requests.call import CallEndParams
from tests.protocol.fit import refused, taken

BEGIN = {"tool_call_id": "c-1", "tool_id": "web_tools.web_search", "params": {"q": [1, None, {"deep": True}]}}


def test_a_call_begins_with_any_params() -> None:
    assert taken("call/begin", BEGIN).model_dump()["params"] == BEGIN["params"]


@pytest.mark.parametrize(
    ("changed", "at"),
    [
        ({"tool_call_id": "a b"}, "tool_call_id"),
        ({"tool_id": ""}, "tool_id"),
        ({"params": []}, "params"),
        ({"params": None}, "params"),
        ({"params": "{}"}, "params"),
        ({"turn_id": "a.b"}, "turn_id"),
        ({"tool": "x"}, "tool"),
    ],
)
def test_a_call_does_not_begin_with(changed: dict[str, Any], at: str) -> None:
    refused("call/begin", {**BEGIN, **changed}, at)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"result": {"ok": True}},
        {"result": "text"},
        {"result": [1, 2]},
        {"error": "it broke"},
        {"error": {"code": "timeout", "message": "it took too long", "where": "search"}},
        {"expect": []},
        {"expect": ["a.txt", {"path": "b.txt", "visibility": "internal", "description": "notes"}]},
    ],
)
def test_a_call_ends_with(params: dict[str, Any]) -> None:
    taken("call/end", {"tool_call_id": "c", **params})


@pytest.mark.parametrize(
    ("params", "at"),
    [
        ({"error": 5}, "error"),
        ({"error": None}, "error"),
        ({"expect": "a.txt"}, "expect"),
        ({"expect": [5]}, "expect.0"),
        ({"expect": [{"visibility": "internal"}]}, "expect.0"),
        ({"expect": [{"path": "a", "visibility": "pending"}]}, "expect.0"),
        ({"expect": [{"path": "a", "mode": 7}]}, "expect.0"),
        ({"expect": ["a"] * 10_001}, "expect"),
    ],
)
def test_a_call_does_not_end_with(params: dict[str, Any], at: str) -> None:
    refused("call/end", {"tool_call_id": "c", **params}, at)


def test_a_call_that_answered_null_is_told_from_one_that_answered_nothing() -> None:
    assert "result" in CallEndParams.model_validate({"tool_call_id": "c", "result": None}).model_fields_set
    assert "result" not in CallEndParams.model_validate({"tool_call_id": "c"}).model_fields_set
