"""Rendering and compaction on the wire."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from protocol.requests import rendering
from protocol.requests.rendering import CompactResult, PlanResult, RenderParams, RenderResult
from sidecar.core import limits
from tests.protocol.fit import refused, refused_by_the_model, taken

NOTHING = {"artifacts": [], "tool_outputs": [], "hidden_blocks": []}


def test_a_render_holds_everything_unless_it_is_asked_not_to() -> None:
    params = taken("timeline/render", {})
    assert isinstance(params, RenderParams)
    assert (params.include_sources, params.include_announce, params.max_tokens, params.form) == (
        True, True, None, "messages",
    )  # fmt: skip


def test_the_form_is_asked_for_with_as() -> None:
    params = taken("timeline/render", {"as": "text", "max_tokens": 0, "include_sources": False})
    assert isinstance(params, RenderParams)
    assert (params.form, params.max_tokens, params.include_sources) == ("text", 0, False)


@pytest.mark.parametrize(
    ("method", "params", "at"),
    [
        ("timeline/render", {"form": "text"}, "form"),
        ("timeline/render", {"as": "html"}, "as"),
        ("timeline/render", {"max_tokens": -1}, "max_tokens"),
        ("timeline/render", {"include_sources": 1}, "include_sources"),
        ("timeline/announce", {}, "blocks"),
        ("timeline/announce", {"blocks": [{}]}, "blocks.0.type"),
        ("timeline/announce", {"blocks": [{"type": "x"}] * 101}, "blocks"),
        ("timeline/announce", {"blocks": [], "request_id": "r"}, "request_id"),
        ("timeline/plan_compaction", {}, "keep_recent_tokens"),
        ("timeline/plan_compaction", {"keep_recent_tokens": -1}, "keep_recent_tokens"),
        ("timeline/compact", {"summary": "x"}, "cut"),
        ("timeline/compact", {"cut": 1}, "summary"),
        ("timeline/compact", {"cut": None, "summary": "x"}, "cut"),
        ("timeline/compact", {"cut": 1, "summary": ""}, "summary"),
        ("timeline/compact", {"cut": 1, "summary": "x" * (rendering.SUMMARY_CHARS + 1)}, "summary"),
        ("timeline/compact", {"cut": 1, "summary": "x", "embedding": []}, "embedding"),
        ("timeline/compact", {"cut": 1, "summary": "x", "embedding": [0.5] * 4097}, "embedding"),
        ("timeline/compact", {"cut": 1, "summary": "x", "embedding": ["1"]}, "embedding.0"),
    ],
)
def test_params_that_cannot_be_are_refused(method: str, params: dict[str, Any], at: str) -> None:
    refused(method, params, at)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_vector_is_of_finite_numbers(number: float) -> None:
    refused_by_the_model("timeline/compact", {"cut": 1, "summary": "x", "embedding": [0.5, number]}, "embedding.1")


def test_a_vector_may_hold_whole_numbers() -> None:
    taken("timeline/compact", {"cut": 1, "summary": "x", "embedding": [0.5, 1, -2], "request_id": "r"})


def test_the_limits_of_announce_are_those_of_the_daemon() -> None:
    assert rendering.ANNOUNCED == limits.ANNOUNCED_BLOCKS


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        (RenderResult, {"messages": [{"type": "text", "text": "x"}], "tokens": 1, "cache_points": [0]}),
        (RenderResult, {"text": "", "tokens": 0, "cache_points": [], "over_by": 3, "cut": None}),
        (PlanResult, {"cut": None, "text": "", "digest": NOTHING, "covered_turn_ids": []}),
        (CompactResult, {"path": "su:t.conv.range.summary", "cut": 3, "notices": []}),
    ],
)
def test_answers_fit(model: type[Any], answer: dict[str, Any]) -> None:
    model.model_validate(answer)


def test_a_message_is_of_one_of_three_types() -> None:
    with pytest.raises(ValidationError):
        RenderResult.model_validate({"messages": [{"type": "audio"}], "tokens": 1, "cache_points": []})
