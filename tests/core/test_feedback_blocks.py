"""Reactions as blocks, and as rows of what is announced."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.core.blocks import PATH, TYPE, Defaults, tell
from sidecar.core.feedback_blocks import announced, feedback_block
from sidecar.core.labels import label
from sidecar.core.limits import FEEDBACKS_ANNOUNCED


def reaction(turn: str = "turn_1", **more: Any) -> dict[str, Any]:
    return {
        "type": "feedback",
        "ts": "2026-02-18T09:00:00Z",
        "text": "too long",
        "confidence": 0.5,
        "from_turn_id": turn,
        "origin": "user",
        "reaction": "not_ok",
    } | more


@pytest.mark.parametrize(
    ("origin", "author", "words"),
    [("user", "user", "[USER FEEDBACK]"), ("machine", "system", "[AUTO FEEDBACK]")],
)
def test_a_reaction_is_a_block_of_its_turn(origin: str, author: str, words: str) -> None:
    block = feedback_block(reaction(origin=origin))
    told = tell(block, Defaults("turn_9", 1.0))
    assert (told.head[TYPE], told.head[PATH]) == ("turn.feedback", "ar:turn_1.feedback.latest")
    assert block["author"] == author
    assert block["text"] == "too long"
    assert block["meta"] == {"origin": origin, "reaction": "not_ok", "confidence": 0.5, "from_turn_id": "turn_1"}
    assert label(told.head, block, "") == words


def test_what_is_announced_is_a_row_each() -> None:
    (block,) = announced([reaction(text="first\nline | second"), reaction("turn_2", reaction="ok")])
    rows = block["text"].splitlines()
    assert rows == [
        "[NEW USER FEEDBACKS]",
        "turn turn_1 | feedback_ts=2026-02-18T09:00:00Z | reaction=not_ok | origin=user | text=first line | second",
        "turn turn_2 | feedback_ts=2026-02-18T09:00:00Z | reaction=ok | origin=user | text=too long",
    ]


def test_nothing_is_announced_of_nothing_and_the_newest_of_much() -> None:
    assert announced([]) == []
    (block,) = announced(reaction(f"turn_{number}", text="x" * 10_000) for number in range(100))
    rows = block["text"].splitlines()
    assert len(rows) == 1 + FEEDBACKS_ANNOUNCED
    assert max(map(len, rows)) < 1200
