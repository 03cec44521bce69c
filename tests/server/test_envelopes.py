"""What the door reads of a message is what the daemon reads of it, whatever stands inside and however it is cut."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core import limits
from sidecar.server import envelopes, framing, parsing
from sidecar.server.envelopes import NOTE, QUESTION, REFUSAL, RESULT, Frames, members, number_of, told
from tests.rpc_client import unframe


def cut(stream: bytes, pieces: list[int]) -> tuple[list[bytes], bytes, bool]:
    """The whole frames of a stream that comes in pieces of these lengths, the rest, and whether it was faulty."""
    frames, whole, at = Frames(), [], 0
    for length in [*pieces, len(stream)]:
        data, spans = frames.feed(stream[at : at + length])
        begin = 0
        for _, end in spans:
            whole.append(data[begin:end])
            begin = end
        at += length
        if frames.fault:
            break
    return whole, frames.take_rest() + stream[at:], frames.fault


# Cutting


@given(st.lists(st.binary(max_size=40), max_size=6), st.binary(max_size=12), st.lists(st.integers(1, 30), max_size=30))
def test_a_stream_is_cut_into_the_same_frames_however_it_comes(
    bodies: list[bytes], rest: bytes, pieces: list[int]
) -> None:
    stream = b"".join(map(framing.frame, bodies)) + b"Content-Le"
    whole, left, fault = cut(stream, pieces)
    assert (whole, left, fault) == ([*map(framing.frame, bodies)], b"Content-Le", False)


HEADERS = [
    b"Content-Length: 2\r\n\r\n",
    b"content-length:2\r\n\r\n",
    b"Content-Length: 2\n\n",
    b"Content-Type: a\r\nCONTENT-LENGTH:   2 \r\n\r\n",
    b"Content-Length: 000000000002\r\n\r\n",
    b"X: Content-Length: 9\r\nContent-Length: 2\r\nY:\r\n\r\n",
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_every_header_that_the_daemon_takes_is_taken(header: bytes, piece: int) -> None:
    stream = (header + b"{}") * 3
    assert cut(stream, [piece] * len(stream)) == ([header + b"{}"] * 3, b"", False)
    assert framing.FrameReader().feed(stream) == [b"{}"] * 3


FAULTS = [
    b"hello\n",
    b"\r\n\r\n{}",
    b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    b"Content-Length: two\r\n\r\n{}",
    b"Content-Length: -2\r\n\r\n{}",
    b"Content-Length: +2\r\n\r\n{}",
    b"Content-Length: 1_0\r\n\r\n{}",
    b"Content-Length: %d\r\n\r\n" % (envelopes.BODY_BYTES + 1),
    b"Content-Length: 0000000000002\r\n\r\n{}",
    b"X" * envelopes.HEADER_BYTES,
    b"Content-Type: a\r\n\r\n{}",
]


@pytest.mark.parametrize("faulty", FAULTS)
def test_what_the_daemon_cannot_cut_either_is_left_as_it_came(faulty: bytes) -> None:
    good = framing.frame(b"{}")
    assert cut(good + faulty, []) == ([good], faulty, True)
    with pytest.raises(framing.FramingFault):
        framing.FrameReader().feed(good + faulty)


def test_the_limits_are_the_daemons() -> None:
    assert (envelopes.HEADER_BYTES, envelopes.BODY_BYTES) == (framing.HEADER_BYTES, framing.BODY_BYTES)
    assert envelopes.LENGTH_DIGITS == framing.LENGTH_DIGITS
    assert (limits.MESSAGE_VALUES, parsing.LARGE_BYTES) == (envelopes.MOST_VALUES, envelopes.HUGE_BYTES)


def test_a_large_frame_in_small_pieces_is_put_together_once() -> None:
    """Looking at it again with every piece would take minutes."""
    stream = framing.frame(b"x" * 8_000_000)
    assert cut(stream, [4096] * 2000) == ([stream], b"", False)


# What the client says

BIG = "x" * (envelopes.LARGE_BYTES + 1)  # stands where a row has an @
NESTED = '{"id":9,"method":"nested","deep":[{"id":"nine","method":"x"}]}'
TALKS: list[tuple[str, object, object]] = [
    ('{"jsonrpc":"2.0","id":1,"method":"a"}', "a", 1),
    ('{"jsonrpc":"2.0","method":"a"}', "a", None),
    ('{"id":1,"result":{}}', None, 1),
    (' \r\n{"id" : 1 , "method" : "a"}\t ', "a", 1),
    (f'{{"params":{NESTED},"method":"a","id":1}}', "a", 1),
    (f'{{"params":{NESTED},"method":"a"}}', "a", None),
    (f'{{"id":1,"method":"a","params":{NESTED}}}', "a", 1),
    ('{"jsonrpc":"2.0","params":{"text":"@"},"id":1,"method":"a"}', "a", 1),
    ('{"jsonrpc":"2.0","id":1,"method":"a","params":{"text":"@"}}', "a", 1),
    ('{"jsonrpc":"2.0","id":1,"method":"a","params":{"text":"@"},"id":2}', "a", 2),
    ('{"jsonrpc":"2.0","id":1,"method":"a","params":{"text":"@"},"method":"b"}', "b", 1),
    ('{"jsonrpc":"2.0","id":1,"method":"a","params":{"text":"@"},"\\u0069d":2}', "a", 2),
    ('{"jsonrpc":"2.0","id":1,"method":"a","params":{"text":"@","id":3}}', "a", 1),
    ('{"x":{"id":3,"params":{}},"id":1,"text":"@","method":"a"}', "a", 1),
    ('{"x":"\\"params\\":{},","id":1,"text":"@","method":"a"}', "a", 1),
    ('{"id":1,"method":"params","text":"@"}', "params", 1),
    ('{"x":[1,"params"],"id":1,"method":"a","text":"@"}', "a", 1),
    ('{"method":"a","text":"@","params":{"id":3}}', "a", None),
    ('{"id":1,"id":2,"method":"a"}', "a", 2),
    ('{"id":"1","method":"a"}', "a", "1"),
    ('{"id":"a\\"b\\\\","method":"\\u0061"}', "a", 'a"b\\'),
    ('{"id":"\\u00e4\\ud83d\\ude00","method":"a"}', "a", "ä😀"),
    ('{"id":-5,"method":"a"}', "a", -5),
    ('{"id":18446744073709551615,"method":"a"}', "a", 2**64 - 1),
]


@pytest.mark.parametrize(("body", "method", "number"), TALKS)
def test_the_outermost_method_and_id_count(body: str, method: object, number: object) -> None:
    body = body.replace("@", BIG)
    message = members(body.encode())
    assert (message.get("method"), number_of(message)) == (method, number)
    theirs = orjson.loads(body)
    assert (theirs.get("method"), theirs.get("id")) == (method, number)


UNREADABLE = [
    b"", b" ", b"[]", b'[{"id":1,"method":"a"}]', b"null", b'"id"', b"{", b'{"id":1,"method":"a"', b'{"id":1}}',
    b'{"id":1}{"id":2}', b'{"id":1,"method":"a","params":NaN}', b'{"id":1,"method":"\xff"}', b'{"id":1,"method":"a\n"}',
    b'{"id":1,' + b'"a":' * 3, b"[" * 100_000, b'{"a":' * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("body", UNREADABLE, ids=lambda body: repr(body[:30]))
def test_what_is_no_object_has_no_members(body: bytes) -> None:
    assert members(body) == {}


@pytest.mark.parametrize(
    "number", ["null", "true", "1.0", "1e3", '""', "[1]", '"\\ud800"', "18446744073709551616", "9" * 5000]
)
def test_an_id_to_which_the_daemon_answers_nobody_is_none(number: str) -> None:
    assert number_of(members(b'{"method":"a","id":%b}' % number.encode())) is None


def test_a_body_that_the_daemon_refuses_for_its_many_values_is_not_made_into_objects() -> None:
    body = b'{"id":1,"x":[%b0],"method":"a"}' % (b"0," * envelopes.MOST_VALUES)
    assert members(body) == {}
    assert parsing.has_more_values(body, limits.MESSAGE_VALUES)


def test_many_commas_within_a_text_are_not_many_values() -> None:
    body = b'{"params":{"id":7,"text":"%b\\""},"id":1,"method":"a"}' % (b"0," * envelopes.MOST_VALUES)
    assert members(body)["id"] == 1
    assert not parsing.has_more_values(body, limits.MESSAGE_VALUES)


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.just("id"), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.tuples(st.sampled_from(["id", "method", "params", "jsonrpc", "x"]), _values), max_size=7),
    st.booleans(),
    st.booleans(),
)
def test_any_message_is_read_as_the_daemon_reads_it(
    pairs: list[tuple[str, Any]], large: bool, ascii_only: bool
) -> None:
    """Members in any order, some of them twice."""
    pairs = [*pairs, ("y", BIG)] if large else pairs
    told = (f"{json.dumps(name)}:{json.dumps(value, ensure_ascii=ascii_only)}" for name, value in pairs)
    body = f"{{{','.join(told)}}}"
    try:
        theirs = orjson.loads(body)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return
    ours = members(body.encode())
    assert (ours.get("method"), ours.get("id")) == (theirs.get("method"), theirs.get("id"))


# What the daemon says

TOLD: list[tuple[str, tuple[str, object]]] = [
    ('{"jsonrpc":"2.0","id":1,"result":{"id":2,"method":"x"}}', (RESULT, 1)),
    ('{"jsonrpc":"2.0","id":-1,"result":null}', (RESULT, -1)),
    ('{"jsonrpc":"2.0","id":"1","result":[]}', (RESULT, "1")),
    ('{"jsonrpc":"2.0","id":"a,b","result":[]}', (RESULT, "a,b")),
    ('{"jsonrpc":"2.0","id":"a\\"b","result":[]}', (RESULT, 'a"b')),
    ('{"jsonrpc":"2.0","id":"\\\\","error":{}}', (REFUSAL, "\\")),
    ('{"jsonrpc":"2.0","id":"ä","result":"id"}', (RESULT, "ä")),
    ('{"jsonrpc":"2.0","id":7,"error":{"code":-32803,"data":{"id":8}}}', (REFUSAL, 7)),
    ('{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}', (REFUSAL, None)),
    ('{"jsonrpc":"2.0","id":"s:1","method":"workspace/configuration","params":{}}', (QUESTION, "s:1")),
    ('{"jsonrpc":"2.0","method":"sources/added","params":{"id":1,"result":2}}', (NOTE, None)),
    ('{"result":{"method":"x"},"id":1,"jsonrpc":"2.0"}', (RESULT, 1)),
    ('{"jsonrpc": "2.0", "id": 1, "result": {}}', (RESULT, 1)),
    ("no JSON", (NOTE, None)),
]


@pytest.mark.parametrize(("body", "kind"), TOLD)
def test_what_the_daemon_says_is_known_by_its_kind_and_id(body: str, kind: tuple[str, object]) -> None:
    raw = body.encode()
    assert told(b"before" + raw + b"after", 6, 6 + len(raw)) == kind


# What the door says


@pytest.mark.parametrize("number", [1, -7, "1", 'a"b\\', "ä😀\n"])
def test_a_refusal_of_the_doors_own_is_one_of_the_daemons_shape(number: int | str) -> None:
    buffer = bytearray(envelopes.refusal(number, "shutting_down", "a message", about='an "ä"', hint="a\nhint"))
    assert unframe(buffer) == {
        "jsonrpc": "2.0", "id": number,
        "error": {
            "code": -32803, "message": "a message",
            "data": {"kind": "shutting_down", "about": 'an "ä"', "hint": "a\nhint"},
        },
    }  # fmt: skip
