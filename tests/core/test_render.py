"""What one block becomes for the agent: text, image and document messages, without a hosting field anywhere."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.blocks import Defaults, tell
from sidecar.core.render import Message, as_text, decode, encode, render_block, restored_header, tokens_of

FILE = "fi:turn_1.files/a.bin"
PACKED = base64.b64encode(b"12345678").decode()
DIGEST = {
    "artifact_path": "fi:turn_1.files/a.md",
    "physical_path": "turn_1/files/a.md",
    "mime": "text/markdown",
    "tool_call_id": "tc_1",
}
HOSTING = {"hosted_uri": "s3://b/k", "rn": "ef:x", "key": "cb/k"}


def rendered(tool: str = "", **block: Any) -> list[Message]:
    told = tell({"type": "react.tool.result", **block}, Defaults("turn_1", 0.0))
    return render_block(told.head, orjson.loads(told.body), tool=tool)


def body(**block: Any) -> str:
    """The one text that a block became, without its label and what is below that."""
    (message,) = rendered(**block)
    return "\n".join(line for line in message["text"].splitlines() if not line.startswith("["))


@pytest.mark.rule("render.messages-are-text-image-or-document")
@pytest.mark.parametrize(
    ("mime", "form"),
    [("image/png", "image"), ("image/svg+xml", "image"), ("application/pdf", "document"), ("IMAGE/PNG; a=b", "image")],
)
def test_pictures_and_pdf_follow_their_label(mime: str, form: str) -> None:
    label, held = rendered(path=FILE, mime=mime, base64=PACKED)
    assert label["type"] == "text"
    assert label["text"].startswith("[TOOL RESULT].artifact\n")
    assert held == {"type": form, "base64": PACKED, "mime": mime.partition(";")[0].lower(), "path": FILE}


@pytest.mark.rule("render.messages-are-text-image-or-document")
def test_other_binary_content_is_said_and_not_shown() -> None:
    said = body(path=FILE, mime="application/zip", base64=PACKED)
    assert said == "(binary content, application/zip, 8 bytes, is not shown; open turn_1/files/a.bin)"
    assert "; open" not in body(mime="application/zip", base64=PACKED)


def test_a_file_told_without_content_says_where_it_is() -> None:
    assert body(path=FILE) == "(its content is not in the timeline; open turn_1/files/a.bin)"


@pytest.mark.rule("blocks.unknown-types-are-rendered-as-text")
def test_a_block_of_an_unknown_type_is_text() -> None:
    (message,) = rendered(type="agent.dream", text="of sheep\n")
    assert message == {"type": "text", "text": "[agent.dream]\n[ts: 1970-01-01T00:00:00Z]\nof sheep\n"}


def test_a_block_that_holds_nothing_is_its_label() -> None:
    (message,) = rendered(type="react.exit")
    assert message["text"] == "[EXIT]\n[ts: 1970-01-01T00:00:00Z]"


@pytest.mark.rule("compaction.keeps-the-metadata-blocks")
def test_a_digest_stays_visible_without_hosting_fields() -> None:
    said = body(mime="application/json", path="tc:turn_1.tc_1.result", text=orjson.dumps(DIGEST | HOSTING).decode())
    assert orjson.loads(said) == DIGEST


@pytest.mark.parametrize(
    "block",
    [
        {"meta": HOSTING, "text": "plain", "path": FILE},
        {"text": orjson.dumps({"rows": [{"sid": 1, **HOSTING}]}).decode()},
        {"text": orjson.dumps({"artifact_path": "fi:x", "inner": orjson.dumps(DIGEST | HOSTING).decode()}).decode()},
        {"type": "turn.header", "text": orjson.dumps(DIGEST | HOSTING).decode()},
        {"type": "conv.range.summary", "text": orjson.dumps(DIGEST | HOSTING).decode()},
        {"hidden": True, "replacement_text": orjson.dumps(DIGEST | HOSTING).decode()},
    ],
)
def test_no_hosting_field_is_rendered(block: dict[str, Any]) -> None:
    text = orjson.dumps(rendered(**block)).decode()
    assert not any(value in text for value in HOSTING.values())
    assert not any(f'{field}\\"' in text for field in HOSTING)


@pytest.mark.rule("render.one-replacement-per-hidden-group")
def test_a_hidden_block_is_its_replacement_without_bytes() -> None:
    meta = {"hidden": True, "replacement_text": "HIDDEN: a picture"}
    (message,) = rendered(path=FILE, mime="image/png", base64=PACKED, meta=meta)
    assert message["type"] == "text"
    assert message["text"].endswith(f"[path: {FILE}]\nHIDDEN: a picture")


@pytest.mark.parametrize(
    "block",
    [
        {"hidden": True, "text": "secret"},
        {"hidden": True, "replacement_text": "", "text": "secret"},
        {"meta": {"hidden": True, "replacement_text": 7}, "text": "secret"},
        {"type": "react.thinking", "text": "secret"},
        {"type": "react.thinking", "text": "secret", "hidden": True, "replacement_text": "thought"},
    ],
)
def test_thinking_and_what_is_hidden_without_words_is_not_there(block: dict[str, Any]) -> None:
    assert rendered(**block) == []


@pytest.mark.parametrize(
    ("text", "beyond"),
    [
        ("[TURN turn_1]", ""),
        ("[TURN turn_1] ts=2026", ""),
        ("[TURN turn_1] of two", "of two"),
        ("first", "first"),
        (None, ""),
    ],
)
def test_a_header_is_not_said_twice(text: str | None, beyond: str) -> None:
    (message,) = rendered(type="turn.header", text=text)
    assert message["text"] == f"[TURN turn_1]\n[ts: 1970-01-01T00:00:00Z]\n{beyond}".removesuffix("\n")


def test_a_turn_that_has_no_header_gets_one_when_it_is_cut() -> None:
    assert restored_header("turn_1") == [{"type": "text", "text": "[TURN turn_1]"}]


@pytest.mark.rule("compaction.forgotten-refs-are-listed")
def test_a_summary_is_shown_with_the_paths_it_forgot() -> None:
    digest = {"forgotten": ["fi:turn_1.files/a", 7, "fi:turn_1.files/b"]}
    (message,) = rendered(type="conv.range.summary", text="All went well.", meta={"compaction_digest": digest})
    assert message["text"].endswith(
        "All went well.\n\n[ARTIFACTS NOT NAMED ABOVE]\nfi:turn_1.files/a\nfi:turn_1.files/b"
    )


@pytest.mark.parametrize("digest", [None, [], {"forgotten": "x"}, {"forgotten": []}])
def test_a_summary_that_forgot_nothing_is_its_text(digest: Any) -> None:
    (message,) = rendered(type="conv.range.summary", text="All.", meta={"compaction_digest": digest})
    assert message["text"].endswith("Z]\nAll.")


@pytest.mark.rule("render.tokens-are-a-quarter-of-the-bytes")
def test_messages_count_as_a_quarter_of_their_bytes() -> None:
    assert tokens_of({"type": "text", "text": "abcde"}) == 2
    assert tokens_of({"type": "image", "base64": PACKED, "mime": "image/png"}) == 2


def test_as_text_a_picture_is_named_and_not_shown() -> None:
    assert (
        as_text({"type": "image", "base64": PACKED, "mime": "image/png"}) == "(image/png, 8 bytes, is not shown here)"
    )


@given(st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text(st.characters(codec="utf-8"))})))
def test_encoding_loses_nothing(messages: list[Message]) -> None:
    assert decode(encode(messages)) == messages


def test_what_a_tool_was_asked_is_rendered_without_what_we_gave_out() -> None:
    asked = {"tool_id": "share", "params": {"rn": "ef:t", "key": "cb/k", "to": "you"}}
    path = "tc:turn_1.tc_1.call"
    shown = body(type="react.tool.call", path=path, mime="application/json", text=orjson.dumps(asked).decode())
    assert '"to":"you"' in shown
    assert "ef:t" not in shown
    assert "cb/k" not in shown
