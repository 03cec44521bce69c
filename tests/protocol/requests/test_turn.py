"""The begin of a turn on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.fit import refused, refused_by_the_model, taken


@pytest.mark.parametrize(
    "params",
    [
        {"turn_id": "turn_1"},
        {"turn_id": "A-z_0", "prompt": "", "ts": "2026-01-01T00:00:00Z"},
        {"turn_id": "t", "ts": 1767225600},
        {"turn_id": "t", "ts": 1767225600.5, "request_id": "r"},
        {"turn_id": "t", "conversation": {}},
        {
            "turn_id": "t",
            "conversation": {"tenant": "a", "project": "b", "user_id": "c", "user_type": "d", "title": "e"},
        },
    ],
)
def test_it_takes(params: dict[str, Any]) -> None:
    taken("turn/begin", params)


@pytest.mark.parametrize(
    ("params", "at"),
    [
        ({}, "turn_id"),
        ({"turn_id": "t", "prompt": ["x"]}, "prompt"),
        ({"turn_id": "t", "prompt": None}, "prompt"),
        ({"turn_id": "t", "ts": True}, "ts"),
        ({"turn_id": "t", "conversation": "c"}, "conversation"),
        ({"turn_id": "t", "conversation": {"colour": "red"}}, "conversation.colour"),
        ({"turn_id": "t", "conversation": {"user_id": ""}}, "conversation.user_id"),
        ({"turn_id": "t", "conversation": {"user_id": 7}}, "conversation.user_id"),
    ],
)
def test_it_refuses(params: dict[str, Any], at: str) -> None:
    refused("turn/begin", params, at)


def test_a_part_of_an_identity_is_no_folder_of_its_own() -> None:
    refused_by_the_model("turn/begin", {"turn_id": "t", "conversation": {"tenant": ".."}}, "conversation.tenant")


@pytest.mark.parametrize("later", ["attachments", "rehost"])
def test_what_does_not_work_yet_is_not_declared(later: str) -> None:
    refused("turn/begin", {"turn_id": "t", later: []}, later)
