"""The conversation on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.requests.conversation import (
    FetchTurnsResult,
    IndexItem,
    LatestReaction,
    SaveParams,
    TurnHit,
)
from protocol.requests.turn import TurnFeedbackParams
from tests.protocol.fit import refused, refused_by_the_model, taken

NOTE = {"kind": "my.note", "content": {"a": 1}}
GIVEN = {"turn_id": "turn_1", "reaction": "ok", "text": "", "origin": "user"}


@pytest.mark.parametrize(
    "params",
    [
        NOTE,
        {"kind": "my:note-1", "content_str": ""},
        {
            **NOTE,
            "content_str": "x",
            "turn_id": "turn_1",
            "tags": ["a b", "ü"],
            "embedding": [1, 0.5],
            "request_id": "r",
        },
        {**NOTE, "index_only": True, "embedding": [1]},
        {**NOTE, "store_only": True},
        {"kind": "my.note", "message_id": "m", "embedding": [1], "request_id": "r"},
        {"kind": "accounting", "content": {"tokens": 3}, "turn_id": "turn_1"},
    ],
)
def test_these_can_be_saved(params: dict[str, Any]) -> None:
    assert isinstance(taken("conversation/save", params), SaveParams)


@pytest.mark.parametrize(
    ("params", "at"),
    [
        ({}, "kind"),
        ({"kind": "My note", "content": {}}, "kind"),
        ({"kind": "my.note", "content": ["x"]}, "content"),
        ({"kind": "my.note", "content": None}, "content"),
        ({**NOTE, "tags": ["t"] * 65}, "tags"),
        ({**NOTE, "tags": ["t" * 257]}, "tags.0"),
        ({**NOTE, "tags": ["a\nb"]}, "tags.0"),
        ({**NOTE, "embedding": []}, "embedding"),
        ({**NOTE, "embedding": ["x"]}, "embedding.0"),
        ({**NOTE, "turn_id": "a turn"}, "turn_id"),
        ({**NOTE, "colour": "red"}, "colour"),
    ],
)
def test_these_cannot_be_saved(params: dict[str, Any], at: str) -> None:
    refused("conversation/save", params, at)


@pytest.mark.rule("store.store-only-writes-no-row")
@pytest.mark.parametrize(
    ("params", "at"),
    [
        ({"kind": "my.note"}, ""),
        ({**NOTE, "index_only": True, "store_only": True}, ""),
        ({**NOTE, "store_only": True, "embedding": [1]}, ""),
        ({"kind": "my.note", "message_id": "m"}, ""),
        ({**NOTE, "message_id": "m", "embedding": [1]}, ""),
        ({"kind": "my.note", "message_id": "m", "embedding": [1], "tags": []}, ""),
        ({"kind": "accounting", "content_str": "x"}, ""),
        ({"kind": "accounting", "content": {}, "tags": ["x"]}, ""),
        ({**NOTE, "embedding": [0, 0.0]}, "embedding"),
    ],
)
def test_these_would_have_no_meaning(params: dict[str, Any], at: str) -> None:
    refused_by_the_model("conversation/save", params, at)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("conversation/fetch", {}),
        ("conversation/fetch", {"turn_ids": ["turn_1"], "kinds": ["turn.log"], "limit": 1, "cursor": "turn_1"}),
        ("conversation/recent", {"kinds": [], "tags": ["a"], "turn_ids": [], "since": 1.5, "with_payload": True}),
        ("conversation/recent", {"days": 0.5}),
        ("conversation/search", {"query": "x"}),
        ("conversation/search", {"embedding": [1], "since": "2026-01-01", "until": 3, "limit": 100}),
        ("conversation/reactions", {"turn_ids": ["turn_1"], "since": 1}),
        ("turn/feedback", {**GIVEN, "confidence": 0, "ts": 1, "request_id": "r"}),
        ("turn/feedback", {**GIVEN, "text": "x" * 65_536, "origin": "machine", "reaction": "not_ok"}),
    ],
)
def test_these_can_be_asked(method: str, params: dict[str, Any]) -> None:
    taken(method, params)


@pytest.mark.parametrize(
    ("method", "params", "at"),
    [
        ("conversation/fetch", {"limit": 0}, "limit"),
        ("conversation/fetch", {"turn_ids": ["a turn"]}, "turn_ids.0"),
        ("conversation/recent", {"days": 0}, "days"),
        ("conversation/recent", {"limit": 1001}, "limit"),
        ("conversation/search", {"query": ""}, "query"),
        ("conversation/search", {"query": "x", "limit": 101}, "limit"),
        ("conversation/reactions", {"kinds": []}, "kinds"),
        ("turn/feedback", {**GIVEN, "reaction": "fine"}, "reaction"),
        ("turn/feedback", {**GIVEN, "origin": "me"}, "origin"),
        ("turn/feedback", {**GIVEN, "confidence": 1.1}, "confidence"),
        ("turn/feedback", {**GIVEN, "text": "x" * 65_537}, "text"),
        ("turn/feedback", {"turn_id": "turn_1", "reaction": "ok", "origin": "user"}, "text"),
    ],
)
def test_these_cannot_be_asked(method: str, params: dict[str, Any], at: str) -> None:
    refused(method, params, at)


@pytest.mark.parametrize(
    ("method", "params"),
    [("conversation/search", {}), ("conversation/recent", {"since": 1, "days": 1})],
)
def test_these_would_ask_for_nothing_or_for_two_things(method: str, params: dict[str, Any]) -> None:
    refused_by_the_model(method, params, "")


def test_feedback_is_sure_unless_it_says_otherwise() -> None:
    params = taken("turn/feedback", GIVEN)
    assert isinstance(params, TurnFeedbackParams)
    assert params.confidence == 1.0


def test_what_is_answered_fits() -> None:
    turn = {"turn_id": "t", "attachments": [], "files": [], "thinking": [], "timeline_text": [], "sources_used": []}
    FetchTurnsResult.model_validate({"conversation": {}, "turns": [turn], "next_cursor": None})
    row = {"message_id": "m", "kind": "k", "turn_id": "", "ts": "2026-01-01T00:00:00Z"}
    IndexItem.model_validate({**row, "tags": [], "text": "", "missing": "gone"})
    TurnHit.model_validate({**row, "score": 0.5, "snippet": ""})
    LatestReaction.model_validate(
        {
            "turn_id": "t",
            "message_id": "m",
            "reaction": "ok",
            "text": "",
            "confidence": 1,
            "origin": "user",
            "ts": "now",
        }
    )
