"""What belongs to a turn goes from any record, what belongs to others stays as it was, and numbers stay given."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidecar.core.forgetting import Doomed, placeholder, tombstone

DOOMED = Doomed("turn_1", frozenset({3}), frozenset({"turn_4"}))


@pytest.mark.parametrize(
    ("text", "owned"),
    [
        ("fi:turn_1.files/a.md", True),
        ("turn_1/files/a.md", True),
        ("./turn_1/attachments/a.pdf", True),
        ("fi:turn_1/odd.txt", True),
        ("ar:turn_1.user.prompt", True),
        ("tc:turn_1.tc_1.result", True),
        ("su:turn_4.conv.range.summary", True),
        ("fi:turn_4.files/a.md", False),
        ("fi:turn_10.files/a.md", False),
        ("turn_10/files/a.md", False),
        ("so:sources_pool[1]", False),
        ("https://example.com/turn_1/x", False),
        ("turn_1", False),
        (None, False),
    ],
)
def test_a_path_is_known_in_either_spelling(text: object, owned: bool) -> None:
    assert DOOMED.owns_path(text) is owned


def block(turn: str, **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "turn_id": turn, "ts": "2026-01-01T00:00:00Z", "text": "words", "meta": {}, **more}


@pytest.mark.parametrize(
    "owned",
    [
        block("turn_1"),
        block("turn_2", path="fi:turn_1.files/a.md"),
        block("turn_2", meta={"about": ["fi:turn_1.files/a.md"]}),
        block("turn_4", type="conv.range.summary"),
    ],
)
def test_a_block_of_the_turn_leaves_a_placeholder(owned: dict[str, Any]) -> None:
    after = DOOMED.cleaned({"blocks": [owned, block("turn_2")], "indexes": [0, 1]})
    assert after == {
        "blocks": [placeholder(owned["turn_id"], owned["ts"]), block("turn_2")],
        "indexes": [0, 1],
    }


def test_a_source_leaves_a_tombstone_and_a_file_nothing() -> None:
    pool = {
        "sources_pool": [{"sid": 2, "url": "https://a"}, {"sid": 3, "text": "secret"}],
        "files": [{"physical_path": "turn_1/files/a.md"}, {"physical_path": "turn_2/files/b.md"}],
    }
    assert DOOMED.cleaned(pool) == {
        "sources_pool": [{"sid": 2, "url": "https://a"}, tombstone(3)],
        "files": [{"physical_path": "turn_2/files/b.md"}],
    }


def test_what_tells_nothing_of_the_turn_is_the_same_object() -> None:
    value = {"blocks": [block("turn_2")], "turn_ids": ["turn_1", "turn_2"], "sources_pool": [{"sid": 2}]}
    assert DOOMED.cleaned(value) is value


def test_a_text_is_cleaned_where_it_is_json() -> None:
    text = json.dumps({"sources_pool": [{"sid": 3, "title": "secret"}]})
    assert "secret" not in DOOMED.cleaned_text(text)
    assert DOOMED.cleaned_text("no JSON: turn_1/files/a.md") == "no JSON: turn_1/files/a.md"
