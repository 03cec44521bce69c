"""The line that says to the agent what a block is, and the lines below it that say when and where (spec section 12).

    [TOOL CALL tc_1].call react.write
    [ts: 2026-02-18T09:01:00Z]
    [path: tc:turn_1.tc_1.call]

Names come from models and from files. Whatever could end the line is one space in it, so that no name says more than
one label.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sidecar.core.blocks import CALL, FLAGS, MIME, PATH, SHOWN, SUMMARY, TS, TURN, TYPE, Head, digest_in, iso

Block = Mapping[str, Any]

_NAME_CHARS = 255


def opening(head: Head, block: Block, tool: str) -> str:
    """Label, time and path of a block, one per line, the last one ended too. `tool` is its call's, as far as known."""
    path = f"[path: {head[PATH]}]\n" if head[PATH] else ""
    return f"{label(head, block, tool)}\n[ts: {iso(head[TS])}]\n{path}"


def label(head: Head, block: Block, tool: str) -> str:
    """The label alone."""
    if head[FLAGS] & SHOWN:
        # A copy that a read brought is no second message of the user, nor another call.
        return _of_call("RESULT", head, block, "artifact", tool)
    kind = head[TYPE]
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in _MADE:
        return _MADE[kind](head, block, tool)
    if kind.startswith("stage."):
        return f"[STAGE {one_line(kind.removeprefix('stage.'))}]"
    return f"[{one_line(kind)}]"


def turn_label(turn_id: str) -> str:
    return f"[TURN {turn_id}]"


def call_of(head: Head, block: Block) -> str:
    """The call that brought a block into the timeline; for a copy that a read showed, the reading one."""
    reading = (block.get("meta") or {}).get("tool_call_id") if head[FLAGS] & SHOWN else None
    return reading if isinstance(reading, str) else head[CALL]


def one_line(text: str) -> str:
    """A name as it can stand within a line."""
    return _BREAKS.sub(" ", text[:_NAME_CHARS])


_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")

_FIXED = {
    "user.prompt": "[USER MESSAGE]",
    "assistant.completion": "[ASSISTANT MESSAGE]",
    "react.notes": "[AI Agent say]:",
    "react.note": "[INTERNAL NOTE]",
    "react.tool.code": "[AI Agent wrote code]",
    "react.decision.raw": "[AI Agent decided]",
    "react.notice": "[NOTICE]",
    "react.plan": "[PLAN]",
    "react.plan.ack": "[PLAN ACKNOWLEDGED]",
    "react.exit": "[EXIT]",
    "react.state": "[STATE]",
    "system.message": "[SYSTEM MESSAGE]",
    SUMMARY: "[SUMMARY OF EARLIER TURNS]",
    "announce": "[ANNOUNCE]",
    "context.artifact": "[ARTIFACT]",
    "context.slot": "[SLOT]",
    "context.event": "[EVENT]",
    "context.budget": "[BUDGET]",
}


def _of_call(side: str, head: Head, block: Block, part: str, tool: str) -> str:
    call = call_of(head, block)
    return f"[TOOL {side}{' ' if call else ''}{one_line(call)}].{part} {one_line(tool)}".rstrip()


def _call(head: Head, block: Block, tool: str) -> str:
    return _of_call("CALL", head, block, "call", tool)


def _result(head: Head, block: Block, tool: str) -> str:
    """Metadata of an artifact is a summary, what a tool said a result, and what stands at another path an artifact."""
    if digest_in(block) is not None:
        return _of_call("RESULT", head, block, "summary", tool)
    part = "result" if not head[PATH] or head[PATH].startswith("tc:") else "artifact"
    return _of_call("RESULT", head, block, part, tool)


def _attachment(head: Head, block: Block, _: str) -> str:
    name = head[PATH].partition(".user.attachments/")[2] or head[PATH] or "(attachment)"
    told = digest_in(block) or {}
    mime = told.get("mime")
    return f"[USER ATTACHMENT] {one_line(name)} | {one_line(mime if isinstance(mime, str) else head[MIME])}"


def _feedback(_: Head, block: Block, __: str) -> str:
    origin = (block.get("meta") or {}).get("origin") or block.get("author")
    return "[USER FEEDBACK]" if origin == "user" else "[AUTO FEEDBACK]"


_MADE: dict[str, Callable[[Head, Block, str], str]] = {
    "turn.header": lambda head, _, __: turn_label(head[TURN]),
    "react.tool.call": _call,
    "react.tool.result": _result,
    "user.attachment": _attachment,
    "user.attachment.meta": _attachment,
    "user.attachment.text": _attachment,
    "turn.feedback": _feedback,
}
