"""Reactions, as rows say them and as turn logs mirror them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.feedback import Reaction, feedback_of, feedback_summary, in_order, mirrored, summary_with
from sidecar.core.index_rows import IndexRow


def row(text: str = "", *, ts: float = 0.0, change: int = 1, message_id: str = "m", origin: str = "user") -> IndexRow:
    return IndexRow(
        message_id=message_id,
        kind="turn.log.reaction",
        turn_id="turn_1",
        ts=ts,
        text=text,
        tags=(),
        origin=origin,
        change=change,
    )


def said(text: str, reaction: str = "ok", *, ts: float = 0.0) -> IndexRow:
    record = Reaction("turn_1", reaction, text, 0.5, "user", ts).record()
    return row(orjson.dumps(record).decode(), ts=ts)


@pytest.mark.rule("store.reactions-are-saved")
def test_the_text_of_a_row_has_the_shape_of_the_seed() -> None:
    assert Reaction("turn_1", "not_ok", "too long", 0.9, "machine", 1_700_000_000.0).record() == {
        "turn_id": "turn_1",
        "text": "too long",
        "confidence": 0.9,
        "ts": "2023-11-14T22:13:20Z",
        "reaction": "not_ok",
        "origin": "machine",
    }


def test_a_row_is_listed_as_the_feedback_it_says() -> None:
    assert feedback_of(said("fine", ts=1_700_000_000.0)) == {
        "type": "feedback",
        "ts": "2023-11-14T22:13:20Z",
        "text": "fine",
        "confidence": 0.5,
        "from_turn_id": "turn_1",
        "origin": "user",
        "reaction": "ok",
    }


@pytest.mark.parametrize("text", ["", "no json", "[]", "7", '"text"'])
def test_a_row_that_says_nothing_readable_is_still_listed(text: str) -> None:
    feedback = feedback_of(row(text, ts=5.0))
    assert feedback["from_turn_id"] == "turn_1"
    assert feedback["ts"] == "1970-01-01T00:00:05Z"


@pytest.mark.rule("store.latest-reaction-per-turn")
def test_the_latest_is_the_one_of_the_latest_time_and_of_those_the_last_to_arrive() -> None:
    rows = [
        row(ts=2.0, change=1, message_id="b"),
        row(ts=1.0, change=9, message_id="a"),
        row(ts=2.0, change=3, message_id="d"),
        row(ts=2.0, change=2, message_id="c"),
    ]
    assert [one.message_id for one in in_order(rows)] == ["a", "b", "c", "d"]


@pytest.mark.rule("store.feedback-is-mirrored-into-the-turn-log")
def test_a_turn_log_lists_its_feedback_twice_and_keeps_what_else_it_says() -> None:
    payload: dict[str, Any] = {"turn_id": "turn_1", "turn_log": {"entries": [{"area": "tool", "msg": "ran"}]}}
    feedback = feedback_of(said("fine", ts=1_700_000_000.0))
    assert mirrored(payload, [feedback]) == {
        "turn_id": "turn_1",
        "turn_log": {
            "feedbacks": [feedback],
            "entries": [
                {"area": "tool", "msg": "ran"},
                {"t": "22:13:20", "area": "feedback", "msg": "fine [ok]", "level": "info", "data": feedback},
            ],
        },
    }


@given(st.lists(st.tuples(st.text(), st.floats(0, 1e9))), st.lists(st.tuples(st.text(), st.floats(0, 1e9))))
def test_mirroring_is_of_the_reactions_alone_and_not_of_what_was_mirrored_before(
    before: list[tuple[str, float]], after: list[tuple[str, float]]
) -> None:
    def feedbacks(pairs: list[tuple[str, float]]) -> list[dict[str, Any]]:
        return [feedback_of(said(text, ts=ts)) for text, ts in pairs]

    payload = {"turn_id": "turn_1"}
    again = mirrored(mirrored(payload, feedbacks(before)), feedbacks(after))
    assert again == mirrored(payload, feedbacks(after))
    text = summary_with(summary_with('{"blocks_count":3}', feedbacks(before)), feedbacks(after))
    assert text == summary_with('{"blocks_count":3}', feedbacks(after))


@pytest.mark.rule("store.feedback-is-mirrored-into-the-turn-log")
def test_the_summary_counts_and_shows_the_latest() -> None:
    feedbacks = [feedback_of(said("bad", "not_ok", ts=1.0)), feedback_of(said("x" * 900, ts=2.0))]
    assert feedback_summary(feedbacks) == {
        "count": 2,
        "last_ts": "1970-01-01T00:00:02Z",
        "last_reaction": "ok",
        "last_origin": "user",
        "last_text": "x" * 500,
    }
    assert orjson.loads(summary_with('{"blocks_count":3}', feedbacks))["feedback"]["count"] == 2
    assert summary_with('{"blocks_count":3,"feedback":{"count":1}}', []) == '{"blocks_count":3}'
