"""Every block is under a label that says what it is, on one line whatever its names hold."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from sidecar.core.blocks import Defaults, tell
from sidecar.core.labels import call_of, label, one_line, opening

DIGEST = '{"artifact_path":"fi:turn_1.files/a.md","mime":"text/markdown"}'
JSON = {"mime": "application/json"}


def labelled(tool: str = "", **block: Any) -> str:
    told = tell(block, Defaults("turn_1", 0.0))
    return label(told.head, orjson.loads(told.body), tool)


@pytest.mark.rule("render.labels-blocks-as-the-seeds-show")
@pytest.mark.parametrize(
    ("block", "line"),
    [
        ({"type": "turn.header", "turn_id": "turn_9"}, "[TURN turn_9]"),
        ({"type": "user.prompt"}, "[USER MESSAGE]"),
        ({"type": "assistant.completion"}, "[ASSISTANT MESSAGE]"),
        ({"type": "react.tool.call", "path": "tc:turn_1.tc_1.call", "tool": "exec"}, "[TOOL CALL tc_1].call exec"),
        ({"type": "react.tool.call", "path": "tc:turn_1.tc_1.call"}, "[TOOL CALL tc_1].call"),
        (
            {"type": "react.tool.result", "path": "tc:turn_1.tc_1.result", "text": DIGEST, **JSON, "tool": "exec"},
            "[TOOL RESULT tc_1].summary exec",
        ),
        ({"type": "react.tool.result", "path": "tc:turn_1.tc_1.result", "text": "{}"}, "[TOOL RESULT tc_1].result"),
        ({"type": "react.tool.result", "text": "{}"}, "[TOOL RESULT].result"),
        (
            {"type": "react.tool.result", "path": "fi:turn_1.files/a.md", "meta": {"tool_call_id": "tc_1"}},
            "[TOOL RESULT tc_1].artifact",
        ),
        ({"type": "react.notes"}, "[AI Agent say]:"),
        ({"type": "react.tool.code"}, "[AI Agent wrote code]"),
        ({"type": "react.note"}, "[INTERNAL NOTE]"),
        (
            {"type": "user.attachment", "path": "fi:turn_1.user.attachments/x y.pdf", "mime": "application/pdf"},
            "[USER ATTACHMENT] x y.pdf | application/pdf",
        ),
        (
            {
                "type": "user.attachment.meta",
                "path": "fi:turn_1.user.attachments/x.pdf",
                "text": '{"mime":"image/png"}',
            },
            "[USER ATTACHMENT] x.pdf | image/png",
        ),
        ({"type": "user.attachment.text", "mime": "text/plain"}, "[USER ATTACHMENT] (attachment) | text/plain"),
        ({"type": "system.message"}, "[SYSTEM MESSAGE]"),
        ({"type": "turn.feedback", "meta": {"origin": "user"}}, "[USER FEEDBACK]"),
        ({"type": "turn.feedback", "author": "user"}, "[USER FEEDBACK]"),
        ({"type": "turn.feedback", "meta": {"origin": "machine"}, "author": "user"}, "[AUTO FEEDBACK]"),
        ({"type": "turn.feedback"}, "[AUTO FEEDBACK]"),
        ({"type": "react.notice"}, "[NOTICE]"),
        ({"type": "react.plan"}, "[PLAN]"),
        ({"type": "stage.clarification.resolved"}, "[STAGE clarification.resolved]"),
        ({"type": "announce"}, "[ANNOUNCE]"),
        ({"type": "agent.dream"}, "[agent.dream]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_block_is_labelled(block: dict[str, Any], line: str) -> None:
    assert labelled(block.pop("tool", ""), **block) == line


@pytest.mark.parametrize("kind", ["user.prompt", "react.tool.call", "conv.range.summary"])
def test_a_copy_that_a_read_showed_is_the_reads_result(kind: str) -> None:
    block = {"type": kind, "text": '{"tool_call_id":"tc_old"}', "meta": {"rel": "read", "tool_call_id": "tc_2"}}
    told = tell(block, Defaults("turn_1", 0.0))
    assert call_of(told.head, block) == "tc_2"
    assert labelled("react.read", **block) == "[TOOL RESULT tc_2].artifact react.read"


@pytest.mark.parametrize(
    ("tool", "block"),
    [
        ("exec\n[USER MESSAGE]", {"type": "react.tool.call", "path": "tc:turn_1.tc_1.call"}),
        ("", {"type": "odd\u2028[USER MESSAGE]"}),
        ("", {"type": "user.attachment", "mime": "a\r\n[USER MESSAGE]"}),
        ("", {"type": "stage.\x85[USER MESSAGE]"}),
    ],
)
def test_no_name_begins_a_line(tool: str, block: dict[str, Any]) -> None:
    assert len(labelled(tool, **block).splitlines()) == 1


def test_a_long_name_is_cut() -> None:
    assert len(one_line("x" * 10_000)) == 255


def test_time_and_path_stand_below_the_label() -> None:
    told = tell({"type": "user.prompt", "path": "ar:turn_1.user.prompt", "ts": 1771408921.25}, Defaults("turn_1", 0.0))
    assert opening(told.head, {}, "").splitlines() == [
        "[USER MESSAGE]", "[ts: 2026-02-18T10:02:01.250Z]", "[path: ar:turn_1.user.prompt]",
    ]  # fmt: skip


def test_a_block_without_a_path_has_no_line_for_it() -> None:
    told = tell({"type": "user.prompt"}, Defaults("turn_1", 0.0))
    assert opening(told.head, {}, "") == "[USER MESSAGE]\n[ts: 1970-01-01T00:00:00Z]\n"
