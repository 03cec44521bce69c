"""Write, patch and hide on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.fit import refused, refused_by_the_model, taken

WRITE = {"path": "a.md", "kind": "file", "content": "x"}
SHA = "0" * 64


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"content": ""},
        {"kind": "display", "channel": "timeline_text"},
        {"channel": "internal", "visibility": "external"},
        {"visibility": "internal", "mime": "text/x-own", "description": "words", "sources_used": [1]},
        {"expected_sha256": SHA, "tool_call_id": "tc_1", "request_id": "r"},
        {"expected_sha256": ""},
    ],
)
def test_it_is_written_with(more: dict[str, Any]) -> None:
    taken("artifact/write", {**WRITE, **more})


def test_bytes_are_written_as_base64() -> None:
    taken("artifact/write", {"path": "a.png", "kind": "file", "base64": "AAEC"})


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({"kind": "inline"}, "kind"),
        ({"channel": "chat"}, "channel"),
        ({"visibility": "pending"}, "visibility"),
        ({"content": None}, "content"),
        ({"content": 5}, "content"),
        ({"mime": ""}, "mime"),
        ({"sources_used": [0]}, "sources_used.0"),
        ({"expected_sha256": "abc"}, "expected_sha256"),
        ({"expected_sha256": SHA.replace("0", "A")}, "expected_sha256"),
        ({"tool_call_id": "a b"}, "tool_call_id"),
        ({"text": "x"}, "text"),
        ({"base64": "AAEC"}, ""),
    ],
)
def test_it_is_not_written_with(more: dict[str, Any], at: str) -> None:
    refused("artifact/write", {**WRITE, **more}, at)


@pytest.mark.parametrize("without", ["path", "kind"])
def test_it_is_not_written_without(without: str) -> None:
    refused("artifact/write", {key: value for key, value in WRITE.items() if key != without}, without)


def test_it_is_not_written_without_a_content() -> None:
    refused("artifact/write", {"path": "a.md", "kind": "file"}, "")


@pytest.mark.parametrize("held", [{"base64": "AAEC"}, {"content": "a\0b"}])
def test_a_display_is_text(held: dict[str, str]) -> None:
    refused_by_the_model("artifact/write", {"path": "a.md", "kind": "display", **held}, "")


@pytest.mark.parametrize("more", [{}, {"kind": "display", "channel": "canvas"}, {"expected_sha256": SHA}])
def test_it_is_patched_with(more: dict[str, Any]) -> None:
    taken("artifact/patch", {"path": "a.md", "patch": "new", **more})


@pytest.mark.parametrize(
    ("more", "at"), [({"patch": ""}, "patch"), ({"patch": None}, "patch"), ({"visibility": "internal"}, "visibility")]
)
def test_it_is_not_patched_with(more: dict[str, Any], at: str) -> None:
    refused("artifact/patch", {"path": "a.md", "patch": "new", **more}, at)


def test_it_is_hidden_with_words() -> None:
    taken("artifact/hide", {"paths": ["a", "ar:turn_1.user.prompt"], "replacement": "x", "tool_call_id": "tc"})


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({"paths": []}, "paths"),
        ({"paths": "a"}, "paths"),
        ({"replacement": ""}, "replacement"),
        ({"replacement": "x" * 4097}, "replacement"),
    ],
)
def test_it_is_not_hidden_with(more: dict[str, Any], at: str) -> None:
    refused("artifact/hide", {"paths": ["a"], "replacement": "x", **more}, at)
