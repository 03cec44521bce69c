"""The blocks that tell of a call and of what it made."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from sidecar.core.blocks import INTERNAL, Defaults, holds_hosting, tell
from sidecar.core.notices import notice
from sidecar.core.told_blocks import (
    call_block,
    content_block,
    digest_block,
    digest_of,
    notice_block,
    result_block,
    shown_param,
)

RECORD: dict[str, Any] = {
    "artifact_path": "fi:turn_1.files/a.md",
    "physical_path": "turn_1/files/a.md",
    "turn_id": "turn_1",
    "kind": "file",
    "mime": "text/markdown",
    "visibility": "external",
    "edited": False,
    "version": 1,
    "origin": "both",
    "on_disk": True,
    "hidden": False,
    "ts": "2026-02-18T10:00:00Z",
    "sources_used": [2, 1],
    "tool_call_id": "tc_1",
    "size_bytes": 3,
    "sha256": "aa",
    "sid": 4,
    "hosted_uri": "s3://b/k",
    "rn": "ef:x",
    "key": "k",
}


@pytest.mark.rule("blocks.carry-turn-author-type-and-path")
def test_every_block_names_its_call_its_turn_and_its_author() -> None:
    said = notice("protocol_violation.path_rewritten", original="a", normalized="b")
    rows = [
        (call_block("turn_1", "tc_1", "react.write", {"path": "a"}, "now"), "react.tool.call", "agent", "call"),
        (result_block("turn_1", "tc_1", "react.write", {"ok": True}), "react.tool.result", "tool", "result"),
        (notice_block("turn_1", "tc_1", said), "react.notice", "agent", "notice"),
        (
            digest_block(digest_of(RECORD), turn_id="turn_1", tool_call_id="tc_1", tool_id="react.write"),
            "react.tool.result",
            "tool",
            "result",
        ),
    ]
    for block, kind, author, leaf in rows:
        assert (block["type"], block["author"], block["turn_id"]) == (kind, author, "turn_1")
        assert block["path"] == f"tc:turn_1.tc_1.{leaf}"
        assert block["mime"] == "application/json"
        assert block["meta"]["tool_call_id"] == "tc_1"
        assert isinstance(orjson.loads(block["text"]), dict)


def test_a_digest_holds_what_a_digest_may_hold_and_no_more() -> None:
    digest = digest_of(RECORD, description="words", sources_used=[3, 1, 3])
    assert list(digest) == [
        "artifact_path", "physical_path", "mime", "kind", "visibility", "tool_call_id", "edited", "ts", "size_bytes",
        "sha256", "description", "sources_used",
    ]  # fmt: skip
    assert digest["sources_used"] == [1, 3]
    assert not holds_hosting(digest)


def test_what_is_not_known_is_left_out_and_not_edited_is_said() -> None:
    digest = digest_of({"artifact_path": "fi:turn_1.files/a", "edited": False, "sources_used": [], "size_bytes": 0})
    assert digest == {"artifact_path": "fi:turn_1.files/a", "edited": False, "size_bytes": 0}
    assert digest_of({"edited": False}, error={"code": "x"}) == {"edited": False, "error": {"code": "x"}}


def test_a_content_block_carries_the_digest_and_no_hosting_field() -> None:
    digest = digest_of(RECORD)
    block = content_block(digest, content="abc", packed=None, tool_id="react.write")
    assert (block["path"], block["mime"], block["text"]) == ("fi:turn_1.files/a.md", "text/markdown", "abc")
    assert orjson.loads(block["meta"]["digest"]) == digest
    assert block["meta"]["physical_path"] == "turn_1/files/a.md"
    assert not holds_hosting(block)


@pytest.mark.parametrize(
    ("content", "packed", "held"),
    [("", None, {"text": ""}), (None, "QUJD", {"base64": "QUJD"}), (None, None, {})],
)
def test_a_content_block_holds_text_or_base64_or_stays_bare(
    content: str | None, packed: str | None, held: dict[str, str]
) -> None:
    block = content_block(digest_of(RECORD), content=content, packed=packed)
    assert {key: block[key] for key in ("text", "base64") if key in block} == held


def test_a_note_is_the_agents_own_and_internal() -> None:
    digest = digest_of({**RECORD, "visibility": "internal"}, channel="internal")
    block = content_block(digest, content="abc", packed=None, type="react.note")
    assert (block["type"], block["author"], block["meta"]["channel"]) == ("react.note", "agent", "internal")
    told = tell(block, Defaults("turn_1", 1.0))
    assert told.head[-1] & INTERNAL
    assert told.part is not None
    assert told.part["content"]["visibility"] == "internal"


def test_the_index_reads_back_what_was_told() -> None:
    digest = digest_of(RECORD)
    told = tell(
        digest_block(digest, turn_id="turn_1", tool_call_id="tc_1", tool_id="react.write"), Defaults("turn_9", 1.0)
    )
    assert told.part == {"digest": digest, "at": "fi:turn_1.files/a.md"}
    assert tell(call_block("turn_1", "tc_1", "react.write", {}, "now"), Defaults("turn_9", 1.0)).part == {
        "tool": "react.write"
    }


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("x" * 100, "x" * 100),
        ("x" * 101, "x" * 100 + "... [see fi:turn_1.files/a.md]"),
    ],
)
def test_a_long_content_is_cut_in_the_block_of_its_call(content: str, shown: str) -> None:
    assert shown_param(content, "fi:turn_1.files/a.md") == shown
