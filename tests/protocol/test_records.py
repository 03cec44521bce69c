"""Blocks and rows keep what nobody knows of; every other record has the fields it declares."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from protocol.records import Artifact, Block, Change, Conversation, SourceRow

BLOCK = TypeAdapter(Block)
ROW = TypeAdapter(SourceRow)

ARTIFACT: dict[str, Any] = {
    "artifact_path": "fi:turn_1.files/a.txt",
    "physical_path": "turn_1/files/a.txt",
    "turn_id": "turn_1",
    "kind": "file",
    "mime": "text/plain",
    "visibility": "external",
    "edited": False,
    "version": 1,
    "origin": "seen",
    "on_disk": True,
    "hidden": False,
    "ts": "2026-01-01T00:00:00Z",
    "sources_used": [],
}


def test_a_block_keeps_every_key_it_was_told_with() -> None:
    told = {"type": "react.note", "call_id": "c", "score": 0.5, "nested": {"a": [1, None]}, "hidden": True}
    assert BLOCK.validate_python(told) == told


def test_a_row_keeps_every_key_it_was_given() -> None:
    given = {"url": "https://a.example", "provider_rank": 3, "author": ["A", "B"], "favicon": "data:,"}
    assert ROW.validate_python(given) == given


@pytest.mark.parametrize("key", ["author", "turn_id", "ts", "mime", "path", "text", "base64", "meta"])
def test_null_in_a_block_means_absent(key: str) -> None:
    assert BLOCK.validate_python({"type": "x", key: None}) == {"type": "x", key: None}


@pytest.mark.parametrize("ts", ["2026-01-01T00:00:00Z", 1767225600, 1767225600.25])
def test_a_block_is_dated_by_text_or_by_number(ts: str | float) -> None:
    assert BLOCK.validate_python({"type": "x", "ts": ts})["ts"] == ts


@pytest.mark.parametrize(
    "block",
    [
        {},
        {"type": ""},
        {"type": None},
        {"type": 1},
        {"type": "x", "text": 5},
        {"type": "x", "base64": ["a"]},
        {"type": "x", "meta": "text"},
        {"type": "x", "meta": []},
        {"type": "x", "ts": True},
        {"type": "x", "ts": "2" * 65},
        {"type": "x", "path": 3},
        ["type", "x"],
        "x",
    ],
)
def test_these_are_no_blocks(block: object) -> None:
    with pytest.raises(ValidationError):
        BLOCK.validate_python(block)


@pytest.mark.parametrize(
    "row",
    [
        {"sid": "1"},
        {"sid": True},
        {"sid": 1.0},
        {"source_type": "rumour"},
        {"url": 5},
        {"size_bytes": -1},
        {"physical_path": ["a"]},
        [],
    ],
)
def test_these_are_no_rows(row: object) -> None:
    with pytest.raises(ValidationError):
        ROW.validate_python(row)


def test_an_artifact_is_sent_without_the_fields_it_has_nothing_for() -> None:
    assert Artifact.model_validate(ARTIFACT).model_dump(exclude_none=True) == ARTIFACT


@pytest.mark.parametrize("key", ARTIFACT.keys() - {"physical_path", "turn_id"})
def test_an_artifact_always_has(key: str) -> None:
    with pytest.raises(ValidationError):
        Artifact.model_validate({name: value for name, value in ARTIFACT.items() if name != key})


@pytest.mark.parametrize(
    "part",
    ["", ".", "..", "a\nb", "a\x00b", "a\x7fb", "a" * 129],
    ids=["empty", "dot", "dots", "line", "nul", "del", "long"],
)
def test_no_part_of_an_identity_is(part: str) -> None:
    with pytest.raises(ValidationError):
        Conversation.model_validate({"conversation_id": part})


@pytest.mark.parametrize("part", ["...", ".a", "a b", "gr\u00fc\u00dfe", "a/b", "a" * 128])
def test_a_part_of_an_identity_may_be(part: str) -> None:
    assert Conversation.model_validate({"tenant": part}).tenant == part


def test_a_change_says_what_it_was_about() -> None:
    for about in ({"path": "fi:turn_1.files/a"}, {"sid": 1}, {"index": 0}):
        Change.model_validate({"revision": 1, "kind": "artifact", **about})
    with pytest.raises(ValidationError):
        Change.model_validate({"revision": 1, "kind": "rumour", "sid": 1})
