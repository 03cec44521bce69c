"""Pulling assets on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.requests.assets import LOCKED, PullResult
from tests.protocol.fit import refused, taken

SHA = "0" * 64


@pytest.mark.parametrize(
    "params",
    [
        {"content": ""},
        {"content": "# x", "mime": "text/markdown", "tool_call_id": "c", "tool_id": "rendering_tools.write_pdf"},
        {"path": "fi:turn_1.files/a.html", "request_id": "r"},
        {"path": "turn_1/files/a.html", "lock": [{"path": "turn_1/files/a.png", "sha256": SHA}]},
        {"content": "x", "lock": [{"path": "turn_1/files/a.png", "sha256": ""}]},
    ],
)
def test_pull_takes(params: dict[str, Any]) -> None:
    taken("assets/pull", params)


@pytest.mark.parametrize(
    ("params", "at"),
    [
        ({}, ""),
        ({"content": "x", "path": "turn_1/files/a.html"}, ""),
        ({"content": 1}, "content"),
        ({"content": "x", "mime": ""}, "mime"),
        ({"content": "x", "tool_call_id": "a b"}, "tool_call_id"),
        ({"content": "x", "tool_id": "x" * 257}, "tool_id"),
        ({"content": "x", "lock": [{"path": "a", "sha256": "abc"}]}, "lock.0.sha256"),
        ({"content": "x", "lock": [{"path": "a", "sha256": SHA}] * (LOCKED + 1)}, "lock"),
        ({"content": "x", "depth": 9}, "depth"),
    ],
)
def test_pull_refuses(params: dict[str, Any], at: str) -> None:
    refused("assets/pull", params, at)


def test_an_answer_with_holes_fits() -> None:
    asset = {"path": "a.png", "physical_path": "turn_1/files/a.png", "sha256": SHA, "sid": 1, "spellings": ["a.png"]}
    PullResult.model_validate(
        {
            "present": [asset],
            "rehosted": [{"path": "b", "physical_path": "b", "sha256": ""}],
            "missing": [{"path": "../x", "reason": "unsafe_path"}],
            "files_of_sources": {"1": "turn_1/files/a.png"},
            "sources_used": [1],
            "notices": [],
            "lock": [{"path": "turn_1/files/a.png", "sha256": SHA}],
            "drift": [{"path": "c", "expected": SHA}],
        }
    )
