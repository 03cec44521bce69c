"""Blocks of the older context are checked when they are appended, each fault at its place."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.context_blocks import CONTEXT_BLOCKS
from sidecar.core.context_blocks import TYPES
from tests.protocol.fit import refused, taken

ARTIFACT = {"type": "context.artifact", "artifact_id": "a", "artifact_kind": "inline", "value": {"any": [1]}}
ROWS = [{"sid": 1, "url": "https://x"}]


def test_the_index_knows_the_same_types() -> None:
    assert CONTEXT_BLOCKS.keys() == TYPES


@pytest.mark.rule("context.kinds-and-producers")
@pytest.mark.parametrize(
    "block",
    [
        {**ARTIFACT, "own": {"a": None}, "producer": "generator", "inputs": {}, "sources_used": [1, {"sid": 2}]},
        {**ARTIFACT, "value": None},
        {**ARTIFACT, "artifact_kind": "search", "value": ROWS},
        {**ARTIFACT, "artifact_kind": "search", "value": {"https://x": ROWS[0]}},
        {**ARTIFACT, "artifact_kind": "file", "value": {"path": "a.pdf"}, "producer": "codegen"},
        {**ARTIFACT, "artifact_kind": "file", "value": {"path": "a.pdf"}, "producer": "exec", "text_surrogate": "x"},
        {"type": "context.slot", "slot": "report", "value": {"type": "file", "path": "a.pdf", "gaps": ["x"]}},
        {"type": "context.event", "event": "param_binding", "data": {"a": 1}, "tool_call_id": "tc_1"},
        {"type": "context.event", "event": "exit"},
        {"type": "context.budget", "caps": {"searches": 3, "usd": 0.5}, "used": {"searches": 1}},
        {"type": "context.other", "anything": 1},
    ],
)
def test_a_record_is_taken_with_every_field(block: dict[str, Any]) -> None:
    assert taken("timeline/append", {"blocks": [block]}).model_dump()["blocks"] == [block]


@pytest.mark.rule("context.kinds-and-producers")
@pytest.mark.parametrize(
    ("block", "at"),
    [
        ({**ARTIFACT, "artifact_kind": "picture"}, "artifact_kind"),
        ({**ARTIFACT, "artifact_id": "a.b"}, "artifact_id"),
        ({key: ARTIFACT[key] for key in ("type", "artifact_id", "artifact_kind")}, "value"),
        ({**ARTIFACT, "producer": "exec"}, "producer"),
        ({**ARTIFACT, "producer": "codegen", "artifact_kind": "search", "value": ROWS}, "producer"),
        ({**ARTIFACT, "content_lineage": "a path"}, "content_lineage"),
        ({**ARTIFACT, "sources_used": ["1"]}, "sources_used"),
        ({"type": "context.slot", "slot": "a b", "value": {}}, "slot"),
        ({"type": "context.slot", "slot": "a", "value": "text"}, "value"),
        ({"type": "context.slot", "slot": "a", "value": {"type": "video"}}, "value.type"),
        ({"type": "context.event", "event": "nap"}, "event"),
        ({"type": "context.event", "event": "exit", "data": "x"}, "data"),
        ({"type": "context.budget", "caps": {"searches": "many"}}, "caps.searches"),
        ({"type": "context.budget"}, "caps"),
    ],
)
def test_a_malformed_record_is_refused_at_its_place(block: dict[str, Any], at: str) -> None:
    refused("timeline/append", {"blocks": [{"type": "x"}, block]}, f"blocks.1.{at}")


@pytest.mark.rule("context.kinds-and-producers")
@pytest.mark.parametrize(
    ("block", "at"),
    [
        ({**ARTIFACT, "artifact_kind": "file", "value": "a.pdf"}, "value"),
        ({**ARTIFACT, "artifact_kind": "file", "value": {"filename": "a.pdf"}}, "value.path"),
        ({**ARTIFACT, "artifact_kind": "search", "value": "rows"}, "value"),
        ({**ARTIFACT, "artifact_kind": "search", "value": [1]}, "value"),
    ],
)
def test_a_value_is_of_its_kind(block: dict[str, Any], at: str) -> None:
    refused("timeline/append", {"blocks": [block]}, f"blocks.0.{at}")
