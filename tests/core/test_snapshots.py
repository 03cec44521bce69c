"""What is saved of a conversation as a whole: compact beside the timeline, whole in the pool, bounded in rows."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from sidecar.core.limits import ROW_TEXT_BYTES
from sidecar.core.snapshots import (
    Conversation,
    Kept,
    compact_row,
    kept_numbers,
    pool_payload,
    pool_text,
    stream_text,
    timeline_payload,
    timeline_text,
    words,
)
from sidecar.core.timeline import Timeline
from sidecar.pieces import members

ROW = {"sid": 1, "source_type": "web", "title": "A", "url": "https://a.org", "text": "x" * 600, "favicon": "", "k": 1}
ABOUT = Conversation(
    turn_ids=("turn_1", "turn_2"),
    title="Guests",
    started_at="1970-01-01T00:00:01Z",
    last_activity_at="1970-01-01T00:00:09Z",
    max_sid=7,
    more={"cache_last_ttl_seconds": 300},
)
KEPT = Kept(bodies=[b'{"n":4}', b'{"n":5}'], numbers=[4, 5], next_block=6)


def timeline(*heads: tuple[str, dict[str, Any]]) -> Timeline:
    told = Timeline()
    for seq, (kind, part) in enumerate(heads, start=1):
        told.add(seq, (kind, "turn_1", 1.0, "text/markdown", "", "", 0, part))
    return told


def test_a_source_is_told_in_a_few_words() -> None:
    assert compact_row(ROW) == {"sid": 1, "title": "A", "url": "https://a.org", "text": "x" * 500}
    assert compact_row({"sid": 2, "content": "y"}) == {"sid": 2, "text": "y"}


def test_the_timeline_has_its_fixed_members() -> None:
    payload = timeline_payload("1970-01-01T00:00:10Z", KEPT, [ROW], ABOUT)
    assert orjson.loads(b"".join(members(payload))) == {
        "version": 1,
        "ts": "1970-01-01T00:00:10Z",
        "blocks": [{"n": 4}, {"n": 5}],
        "indexes": [4, 5],
        "sources_pool": [compact_row(ROW)],
        "turn_ids": ["turn_1", "turn_2"],
        "conversation_title": "Guests",
        "conversation_started_at": "1970-01-01T00:00:01Z",
        "last_activity_at": "1970-01-01T00:00:09Z",
        "cache_last_touch_at": None,
        "cache_last_ttl_seconds": 300,
        "last_known_feedback_ts": None,
        "next_block": 6,
        "max_sid": 7,
    }


def test_the_pool_has_every_row_in_full() -> None:
    assert pool_payload([ROW], ABOUT) == {
        "sources_pool": [ROW],
        "sources_pool_count": 1,
        "max_sid": 7,
        "turn_ids": ["turn_1", "turn_2"],
        "last_activity_at": "1970-01-01T00:00:09Z",
    }


def test_the_row_of_a_timeline_says_what_is_in_it() -> None:
    said = orjson.loads(timeline_text(timeline_payload("t", KEPT, [ROW], ABOUT)))
    assert said == {
        "conversation_title": "Guests",
        "conversation_started_at": "1970-01-01T00:00:01Z",
        "last_activity_at": "1970-01-01T00:00:09Z",
        "blocks_count": 2,
        "sources_pool_count": 1,
        "sources_pool": [compact_row(ROW)],
        "turn_ids": ["turn_1", "turn_2"],
    }


def test_a_row_holds_the_latest_turns_then_the_latest_sources_that_it_has_room_for() -> None:
    rows = [{"sid": sid, "title": "t" * 400} for sid in range(1, 501)]
    text = timeline_text(timeline_payload("t", KEPT, rows, ABOUT))
    said = orjson.loads(text)
    assert ROW_TEXT_BYTES - 500 < len(text.encode()) <= ROW_TEXT_BYTES
    assert said["truncated"] is True
    assert said["sources_pool_count"] == 500
    assert [row["sid"] for row in said["sources_pool"]] == list(range(501 - len(said["sources_pool"]), 501))
    assert said["turn_ids"] == ["turn_1", "turn_2"]
    many = Conversation(turn_ids=[f"turn_{number}" for number in range(20_000)])
    said = orjson.loads(pool_text(pool_payload(rows, many)))
    assert said["sources_pool"] == []
    assert said["turn_ids"][-1] == "turn_19999"
    assert len(orjson.dumps(said)) <= ROW_TEXT_BYTES


def test_a_title_of_any_length_fits_into_a_row() -> None:
    long = Conversation(turn_ids=(), title="t" * 1_000_000)
    assert len(timeline_text(timeline_payload("t", KEPT, [], long))) < 2000


def test_a_stream_names_what_it_shows() -> None:
    assert orjson.loads(stream_text([{"artifact_name": "a.md"}, {"artifact_name": "b.md"}])) == {
        "items_count": 2,
        "artifact_names": ["a.md", "b.md"],
    }
    many = stream_text([{"artifact_name": '"' * 200}] * 1000)
    assert len(many) <= ROW_TEXT_BYTES
    assert orjson.loads(many)["items_count"] == 1000


@pytest.mark.parametrize(("said", "kept"), [("a\0b", "a b"), ("ü" * 40_000, "ü" * (ROW_TEXT_BYTES // 2))])
def test_words_are_what_an_index_takes(said: str, kept: str) -> None:
    assert words(said) == kept


def test_without_a_summary_everything_is_kept() -> None:
    assert kept_numbers(timeline(("a", {}), ("b", {})), 2) == [0, 1]


def test_from_the_latest_cut_on_is_kept_with_the_summary_in_its_place() -> None:
    told = timeline(("a", {}), ("b", {}), ("c", {}), ("conv.range.summary", {"cut": 1}), ("d", {}))
    assert kept_numbers(told, 5) == [1, 2, 3, 4]


def test_a_summary_of_all_that_was_before_it_is_kept_before_the_rest() -> None:
    told = timeline(("a", {}), ("conv.range.summary", {}), ("d", {}))
    assert kept_numbers(told, 3) == [1, 2]
