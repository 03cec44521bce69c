"""Citations on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.fit import refused, taken


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("citations/extract", {"text": ""}),
        ("citations/replace", {"text": "[[S:1]]", "mime": "text/html"}),
        ("citations/stream", {"stream_id": "s"}),
        ("citations/stream", {"stream_id": "s", "chunk": "[[S:", "flush": True, "mime": "text/plain"}),
    ],
)
def test_it_takes(method: str, params: dict[str, Any]) -> None:
    taken(method, params)


@pytest.mark.parametrize(
    ("method", "params", "at"),
    [
        ("citations/extract", {}, "text"),
        ("citations/extract", {"text": None}, "text"),
        ("citations/replace", {"text": ["x"]}, "text"),
        ("citations/replace", {"text": "x", "mime": ""}, "mime"),
        ("citations/replace", {"text": "x", "mime": "m" * 256}, "mime"),
        ("citations/stream", {}, "stream_id"),
        ("citations/stream", {"stream_id": ""}, "stream_id"),
        ("citations/stream", {"stream_id": "s" * 129}, "stream_id"),
        ("citations/stream", {"stream_id": "s", "chunk": 5}, "chunk"),
        ("citations/stream", {"stream_id": "s", "flush": "yes"}, "flush"),
    ],
)
def test_it_refuses(method: str, params: dict[str, Any], at: str) -> None:
    refused(method, params, at)


@pytest.mark.parametrize("method", ["citations/extract", "citations/replace"])
def test_a_text_is_markdown_unless_it_says_otherwise(method: str) -> None:
    assert taken(method, {"text": "x"}).model_dump()["mime"] == "text/markdown"
