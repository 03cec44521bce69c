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


ONE = {"name": "a.txt", "text": "x"}


@pytest.mark.parametrize(
    "more",
    [
        {"attachments": []},
        {"attachments": [ONE, {"name": "b", "base64": "", "mime": "a/b", "summary": ""}, {"name": "c", "path": "x"}]},
        {"rehost": "all"},
        {"rehost": ["fi:turn_1.files/a.txt"]},
    ],
)
def test_it_takes_what_was_attached_and_what_to_bring_back(more: dict[str, Any]) -> None:
    taken("turn/begin", {"turn_id": "t", **more})


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({"attachments": [{"name": "a"}]}, "attachments.0"),
        ({"attachments": [{**ONE, "base64": "eA=="}]}, "attachments.0"),
        ({"attachments": [{"text": "x"}]}, "attachments.0.name"),
        ({"attachments": [{**ONE, "name": ""}]}, "attachments.0.name"),
        ({"attachments": [{**ONE, "size": 1}]}, "attachments.0.size"),
        ({"attachments": ONE}, "attachments"),
    ],
)
def test_it_refuses_what_is_no_attachment(more: dict[str, Any], at: str) -> None:
    refused("turn/begin", {"turn_id": "t", **more}, at)


@pytest.mark.parametrize("rehost", ["some", [], 7, [1]])
def test_it_refuses_what_names_no_files(rehost: Any) -> None:
    refused("turn/begin", {"turn_id": "t", "rehost": rehost}, "rehost")


@pytest.mark.parametrize(
    "params",
    [
        {"turn_id": "t"},
        {"turn_id": "t", "completion": {"text": ""}, "status": "failed", "request_id": "r"},
        {"turn_id": "t", "completion": {"text": "x", "sources_used": [1, 2]}},
        {"turn_id": "t", "embeddings": {"turn.log": [0.5, 1], "conv:sources_pool": [1.0]}},
    ],
)
def test_the_end_takes(params: dict[str, Any]) -> None:
    taken("turn/end", params)


@pytest.mark.parametrize(
    ("params", "at"),
    [
        ({}, "turn_id"),
        ({"turn_id": "t", "completion": "x"}, "completion"),
        ({"turn_id": "t", "completion": {}}, "completion.text"),
        ({"turn_id": "t", "completion": {"text": "x", "sources_used": [0]}}, "completion.sources_used.0"),
        ({"turn_id": "t", "status": "Very Bad"}, "status"),
        ({"turn_id": "t", "embeddings": {"turn.log": []}}, "embeddings"),
    ],
)
def test_the_end_refuses(params: dict[str, Any], at: str) -> None:
    refused("turn/end", params, at)


def test_a_vector_is_of_finite_numbers() -> None:
    refused_by_the_model("turn/end", {"turn_id": "t", "embeddings": {"turn.log": [float("nan")]}}, "embeddings")
