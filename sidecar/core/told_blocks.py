"""The blocks that tell of a tool call: what was asked, what is to be noted, what came of it, and what it made.

A digest describes an artifact and may be shown to anybody; it never says where bytes are hosted. The content block
beside it carries the same digest in its `meta`, so that what the timeline knows outlives a compacted digest block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from sidecar.core.notices import Notice
from sidecar.core.paths import CallPath, Leaf

Block = dict[str, Any]

_DIGEST_FIELDS = (
    "artifact_path", "physical_path", "mime", "kind", "visibility", "channel", "tool_call_id", "edited", "ts",
    "size_bytes", "sha256", "description", "sources_used", "error",
)  # fmt: skip
_CONTENT_META = (
    "tool_call_id", "artifact_path", "physical_path", "mime", "kind", "visibility", "channel", "sources_used",
)  # fmt: skip
SHOWN_PARAM_CHARS = 100  # of a content, in the block that says what was asked


def digest_of(
    record: Mapping[str, Any],
    *,
    description: str | None = None,
    channel: str | None = None,
    sources_used: Iterable[int] = (),
    error: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The safe digest of an artifact record, in the order and with the fields of spec section 4 and no other.

    What is named beside the record wins over it. Empty values are left out, `edited: false` is not.
    """
    more = {
        "description": description,
        "channel": channel,
        "sources_used": sorted(set(sources_used)),
        "error": dict(error) if error else None,
    }
    said = {**record, **{key: value for key, value in more.items() if value}}
    return {key: said[key] for key in _DIGEST_FIELDS if said.get(key) not in (None, "", [])}


def digest_block(digest: Mapping[str, Any], *, turn_id: str, tool_call_id: str, tool_id: str) -> Block:
    """The metadata block of what a call made: the digest as text, at the call's result (seed 000)."""
    return _of_call("react.tool.result", "tool", (turn_id, tool_call_id, "result"), dict(digest), tool_id=tool_id)


def content_block(
    digest: Mapping[str, Any],
    *,
    content: str | None,
    packed: str | None,
    tool_id: str = "",
    type: str = "react.tool.result",  # noqa: A002 - a block's own word
) -> Block:
    """The block at the artifact's path: its text, its base64, or neither where it stays in its file.

    Hosting fields are not in it; they come into its `meta` when it is hosted.
    """
    meta: dict[str, Any] = {key: digest[key] for key in _CONTENT_META if key in digest}
    if tool_id:
        meta["tool_id"] = tool_id
    meta["digest"] = orjson.dumps(dict(digest)).decode()
    block: Block = {
        "type": type,
        "author": "agent" if type == "react.note" else "tool",
        "mime": digest["mime"],
        "path": digest["artifact_path"],
    }
    if content is not None:
        block["text"] = content
    elif packed is not None:
        block["base64"] = packed
    return {**block, "meta": meta}


def call_block(turn_id: str, tool_call_id: str, tool_id: str, params: Mapping[str, Any], ts: str) -> Block:
    """What was asked of a tool. `ts` is ISO 8601 UTC."""
    said = {"tool_id": tool_id, "tool_call_id": tool_call_id, "params": dict(params), "ts": ts}
    return _of_call("react.tool.call", "agent", (turn_id, tool_call_id, "call"), said, tool_id=tool_id)


def result_block(turn_id: str, tool_call_id: str, tool_id: str, said: Mapping[str, Any]) -> Block:
    """What a tool answered, as JSON."""
    return _of_call("react.tool.result", "tool", (turn_id, tool_call_id, "result"), dict(said), tool_id=tool_id)


def notice_block(turn_id: str, tool_call_id: str, notice: Notice, rel: str = "call") -> Block:
    """What is to be noted about a call; `rel` says whether it is about what was asked or about what came of it."""
    return _of_call("react.notice", "agent", (turn_id, tool_call_id, "notice"), dict(notice), rel=rel)


def shown_param(content: str, artifact_path: str) -> str:
    """A content as the block of its call shows it: its beginning, and where the whole of it is (seed-system 3.4)."""
    return content if len(content) <= SHOWN_PARAM_CHARS else f"{content[:SHOWN_PARAM_CHARS]}... [see {artifact_path}]"


def _of_call(kind: str, author: str, at: tuple[str, str, Leaf], said: Mapping[str, Any], **meta: str) -> Block:
    turn_id, tool_call_id, leaf = at
    return {
        "type": kind,
        "author": author,
        "turn_id": turn_id,
        "mime": "application/json",
        "path": CallPath(turn_id, tool_call_id, leaf).logical,
        "text": orjson.dumps(said).decode(),
        "meta": {"tool_call_id": tool_call_id, **meta},
    }
