"""The operational context on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.requests.context import ContextBindParams, ContextFetchResult
from tests.protocol.fit import refused, taken


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("context/fetch", {"path": ""}),
        ("context/bind", {"tool_id": "t", "fetch_context": []}),
        (
            "context/bind",
            {
                "tool_id": "t",
                "params": {"a": None},
                "fetch_context": [{"path": "", "param_name": "sources_list"}],
                "budget_tokens": 0,
                "citation_aware": True,
                "generator": True,
                "write_tool": False,
                "tool_call_id": "tc_1",
                "request_id": "r",
            },
        ),
        (
            "context/map_slots",
            {"slots": [{"slot": "s", "path": "p", "draft": True, "gaps": "g"}], "contract": {"s": {}}},
        ),
        ("context/map_slots", {"slots": [{"slot": "s", "path": "p", "gaps": ["a", "b"]}]}),
        ("context/show_artifacts", {"paths": ["p"]}),
    ],
)
def test_these_are_taken(method: str, params: dict[str, Any]) -> None:
    taken(method, params)


@pytest.mark.parametrize(
    ("method", "params", "at"),
    [
        ("context/fetch", {}, "path"),
        ("context/bind", {"tool_id": "", "fetch_context": []}, "tool_id"),
        ("context/bind", {"tool_id": "t", "fetch_context": [{"path": "p"}]}, "fetch_context.0.param_name"),
        ("context/bind", {"tool_id": "t", "fetch_context": [], "budget_tokens": -1}, "budget_tokens"),
        ("context/map_slots", {"slots": []}, "slots"),
        ("context/map_slots", {"slots": [{"slot": "a.b", "path": "p"}]}, "slots.0.slot"),
        (
            "context/map_slots",
            {"slots": [{"slot": "a", "path": "p"}], "contract": {"a": {"type": "x"}}},
            "contract.a.type",
        ),
        ("context/show_artifacts", {"paths": []}, "paths"),
    ],
)
def test_these_are_refused(method: str, params: dict[str, Any], at: str) -> None:
    refused(method, params, at)


def test_a_tool_is_taken_for_a_write_tool_by_its_name_unless_somebody_says() -> None:
    assert ContextBindParams.model_validate({"tool_id": "t", "fetch_context": []}).write_tool is None


@pytest.mark.parametrize("ret", [None, "text", [1], {"a": None}, 3])
def test_anything_may_be_fetched(ret: object) -> None:
    assert ContextFetchResult.model_validate({"ret": ret, "err": None}).model_dump() == {"ret": ret, "err": None}
