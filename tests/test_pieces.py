"""Pieces say the same as the whole."""

from __future__ import annotations

import base64
import io

import orjson
import pytest

from sidecar.pieces import LISTED_AT_ONCE, PACKED_AT_ONCE, SPELLED_AT_ONCE, listed, packed, spelled


@pytest.mark.parametrize("size", [0, 1, 2, 3, PACKED_AT_ONCE - 1, PACKED_AT_ONCE, 2 * PACKED_AT_ONCE + 2])
def test_a_file_is_packed_as_if_at_once(size: int) -> None:
    content = bytes(at % 251 for at in range(size))
    made = packed(io.BytesIO(content))
    assert orjson.loads(b"".join(made.pieces)) == made.text() == base64.b64encode(content).decode()
    assert len(made) == len(made.text()) + 2


def test_no_piece_is_long() -> None:
    made = packed(io.BytesIO(bytes(5 * PACKED_AT_ONCE)))
    assert max(map(len, made.pieces)) == PACKED_AT_ONCE * 4 // 3


@pytest.mark.parametrize("text", ["", "a", 'x"\\\n\0é€😀' * 20_000])
def test_a_text_is_spelled_as_if_at_once(text: str) -> None:
    made = spelled(text)
    assert b"".join(made.pieces) == orjson.dumps(text)
    assert made.text() == text


def test_no_piece_of_a_text_is_long() -> None:
    made = spelled("\0" * 10 * SPELLED_AT_ONCE)
    assert max(map(len, made.pieces)) == 6 * SPELLED_AT_ONCE


@pytest.mark.parametrize("count", [0, 1, LISTED_AT_ONCE, 2 * LISTED_AT_ONCE + 1])
def test_items_are_written_some_at_a_time_and_are_all_there(count: int) -> None:
    rows = [{"sid": at, "title": "é"} for at in range(count)]
    pieces = list(listed(rows, lambda row: {**row, "seen": True}))
    assert orjson.loads(b"".join(pieces)) == [{**row, "seen": True} for row in rows]
    assert len(pieces) == 2 + -(-count // LISTED_AT_ONCE)
