"""Pieces say the same as the whole."""

from __future__ import annotations

import base64
import hashlib
import io
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.spelled import Spelled
from sidecar.pieces import (
    GATHERED_BYTES,
    PACKED_AT_ONCE,
    SPELLED_AT_ONCE,
    Pieces,
    gathered,
    listed,
    members,
    packed,
    spelled,
    spliced,
)


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


@pytest.mark.parametrize("sizes", [[], [1], [10] * 60_000, [10] * 1000 + [GATHERED_BYTES] * 9 + [10], [2**22] * 3])
def test_items_are_written_some_at_a_time_and_are_all_there(sizes: list[int]) -> None:
    rows = [{"sid": at, "title": "x" * size} for at, size in enumerate(sizes)]
    pieces = list(gathered(listed(rows, lambda row: {**row, "seen": True})))
    assert b"".join(pieces) == orjson.dumps([{**row, "seen": True} for row in rows])
    assert max(map(len, pieces)) <= GATHERED_BYTES + max(sizes, default=0) + 60
    assert len(pieces) <= 2 + 2 * (sum(sizes) + 40 * len(sizes)) // GATHERED_BYTES


@pytest.mark.parametrize("payload", [{}, {"a": 1}, {"é": [], "b": [1, {"c": None}], "d": {"e": ["x"], "f": {}}}])
def test_members_say_the_same_as_the_whole(payload: dict[str, Any]) -> None:
    assert b"".join(members(payload)) == orjson.dumps(payload)


def test_a_list_of_what_is_json_already_is_put_in_as_it_is() -> None:
    assert b"".join(members({"blocks": Spelled([b'{"a": 1}'] * 2)})) == b'{"blocks":[{"a": 1},{"a": 1}]}'


def test_a_long_item_is_not_copied() -> None:
    long = b'"%b"' % (b"x" * GATHERED_BYTES)
    pieces = [*gathered(spliced([b"1", long, long, b"2", b"3", long]))]
    assert pieces == [b"[1,", long, b",", long, b",2,3,", long, b"]"]
    assert all(piece is long for piece in pieces if len(piece) > 9)


@given(st.lists(st.binary(max_size=9), max_size=9), st.lists(st.integers(0, 7), min_size=99, max_size=99))
def test_pieces_are_read_as_one_stream(pieces: list[bytes], counts: list[int]) -> None:
    whole, joined = Pieces(pieces), b"".join(pieces)
    stream, plain = whole.opened(), io.BytesIO(joined)
    assert [stream.read(count) for count in counts] == [plain.read(count) for count in counts]
    assert (whole.opened().read(), len(whole)) == (joined, len(joined))
    assert whole.sha256() == hashlib.sha256(joined).hexdigest()
