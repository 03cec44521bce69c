"""What a turn showed to people, taken from its blocks."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from sidecar.core.streams import artifact_items, name_of, thinking_items, timeline_text_items
from sidecar.core.told_blocks import content_block, digest_block, digest_of

TS = "2026-02-18T09:00:00Z"
MS = 1771405200000
PATH = "fi:turn_1.files/out/a.md"


def block(kind: str, path: str = "", text: str | None = None, ts: str = TS, **meta: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"type": kind, "ts": ts, "meta": meta}
    return told | ({"path": path} if path else {}) | ({"text": text} if text is not None else {})


def made(path: str = PATH, text: str = "# A", call: str = "tc_1", ts: str = TS, **said: Any) -> list[dict[str, Any]]:
    """The digest and the content of an artifact, as a call tells them."""
    record = {
        "artifact_path": path, "mime": "text/markdown", "kind": "file", "visibility": "external", "tool_call_id": call,
        **said,
    }  # fmt: skip
    digest = digest_of(record, channel=said.get("channel"))
    kind = "react.note" if said.get("channel") == "internal" else "react.tool.result"
    return [
        {**digest_block(digest, turn_id="turn_1", tool_call_id=call, tool_id="t"), "ts": ts},
        {**content_block(digest, content=text, packed=None, type=kind), "ts": ts},
    ]


@pytest.mark.rule("store.thinking-is-synthesised")
def test_thoughts_are_told_though_they_are_hidden_from_the_agent() -> None:
    blocks = [
        block("react.thinking", "ar:turn_1.react.thinking.0", "first", hidden=True, title="Plan"),
        block("user.prompt", "ar:turn_1.user.prompt", "hello"),
        block("react.thinking", "ar:turn_1.react.thinking.1", "second", iteration=7),
    ]
    assert thinking_items(blocks) == [
        {"title": "Plan", "text": "first", "ts_first": MS, "ts_last": MS, "iteration": 0},
        {"title": "", "text": "second", "ts_first": MS, "ts_last": MS, "iteration": 7},
    ]


def test_a_thought_told_in_pieces_is_one() -> None:
    path = "ar:turn_1.react.thinking.0"
    pieces = [block("react.thinking", path, "a"), block("react.thinking", path, "b", ts="2026-02-18T09:00:01.5Z")]
    assert thinking_items(pieces) == [
        {"title": "", "text": "a\n\nb", "ts_first": MS, "ts_last": MS + 1500, "iteration": 0}
    ]
    assert len(thinking_items([block("react.thinking", "", "a"), block("react.thinking", "", "b")])) == 2


def test_what_is_said_beside_the_answer_are_notes_and_what_was_written_there() -> None:
    blocks = [
        block("react.notes", "ar:turn_1.react.notes.tc_1", "looking", channel="timeline_text"),
        block("react.notes", "ar:turn_1.react.notes.tc_2", "for me", channel="internal"),
        block("assistant.completion", "ar:turn_1.assistant.completion", "done", channel="timeline_text"),
        *made(channel="timeline_text"),
        *made("fi:turn_1.files/b.md", channel="canvas"),
        *made("fi:turn_1.files/c.md", channel="timeline_text", visibility="internal"),
    ]
    assert [(item["artifact_name"], item["text"]) for item in timeline_text_items(blocks)] == [
        ("react.notes.tc_1", "looking"),
        ("out/a.md", "# A"),
    ]


def test_of_a_document_beside_the_answer_the_latest_text_is_told() -> None:
    blocks = [
        *made(channel="timeline_text"),
        *made(text="# B", call="tc_2", channel="timeline_text", ts="2026-02-18T09:01:00Z"),
    ]
    (item,) = timeline_text_items(blocks)
    assert (item["text"], item["ts_first"], item["ts_last"]) == ("# B", MS, MS + 60_000)


def test_artifacts_are_told_once_as_their_latest_version_says() -> None:
    blocks = [*made(), *made(text="# B", call="tc_2", mime="text/plain", kind="display", channel="canvas")]
    assert artifact_items(blocks) == [
        {
            "artifact_name": "out/a.md",
            "artifact_path": PATH,
            "mime": "text/plain",
            "kind": "display",
            "channel": "canvas",
            "text": "# B",
            "ts_first": MS,
            "ts_last": MS,
        }
    ]


@pytest.mark.parametrize(
    "said",
    [
        {"visibility": "internal"},
        {"channel": "internal", "visibility": "internal"},
        {"channel": "timeline_text"},
        {"error": {"code": "x"}},
    ],
)
def test_what_is_internal_or_shown_elsewhere_or_failed_is_no_artifact_of_the_stream(said: dict[str, Any]) -> None:
    assert artifact_items(made(**said)) == []


def test_an_artifact_that_became_internal_is_left_out_and_the_reverse() -> None:
    assert artifact_items([*made(), *made(call="tc_2", visibility="internal")]) == []
    assert len(artifact_items([*made(visibility="internal"), *made(call="tc_2")])) == 1


def test_attachments_code_copies_and_calls_are_not_made() -> None:
    attached = "fi:turn_1.user.attachments/a.md"
    blocks = [
        block("user.attachment.meta", attached, orjson.dumps({"artifact_path": attached}).decode()),
        block("user.attachment.text", attached, "mine"),
        block("react.tool.code", "fi:turn_1.code.tc_1", "print()"),
        block("react.tool.result", PATH, "read again", rel="read"),
        block("react.tool.call", "tc:turn_1.tc_1.call", "{}"),
    ]
    assert artifact_items(blocks) == []


def test_a_content_without_a_digest_is_told_as_far_as_it_is_known() -> None:
    (item,) = artifact_items([{**block("react.tool.result", PATH, "x"), "mime": "text/plain"}])
    assert (item["mime"], item["kind"], item["channel"]) == ("text/plain", "display", None)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("fi:turn_1.files/out/a.md", "out/a.md"),
        ("fi:turn_1.user.attachments/x.pdf", "x.pdf"),
        ("ar:turn_1.react.notes.tc_1", "react.notes.tc_1"),
        ("fi:turn_1.code.tc_1", "code.tc_1"),
        ("", ""),
        ("zz:nonsense", "zz:nonsense"),
    ],
)
def test_a_path_has_a_name_within_its_turn(path: str, name: str) -> None:
    assert name_of(path) == name
