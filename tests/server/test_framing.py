"""Framing: the same bodies however the bytes are cut; garbage is understood or ends the stream."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.server.framing import FrameReader, FramingFault, frame

BODIES = st.lists(st.binary(max_size=60), max_size=6)


def small() -> FrameReader:
    return FrameReader(header_bytes=64, body_bytes=100, digits=5)


def read_whole(data: bytes) -> tuple[list[bytes], str | None]:
    """The bodies and the sentence of the fault, when all bytes come at once."""
    return read_in_pieces([data])


def read_in_pieces(pieces: list[bytes]) -> tuple[list[bytes], str | None]:
    reader, bodies = small(), []
    for piece in pieces:
        try:
            bodies += reader.feed(piece)
        except FramingFault as fault:
            return [*bodies, *fault.bodies], fault.sentence
    return bodies, None


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[low:high] for low, high in pairwise(edges)]


@pytest.mark.rule("wire.content-length-framing")
@given(BODIES, st.lists(st.integers(0, 500), max_size=20))
def test_bodies_come_out_as_they_went_in_however_the_stream_is_cut(bodies: list[bytes], places: list[int]) -> None:
    pieces = cut(b"".join(map(frame, bodies)), places)
    assert read_in_pieces(pieces) == (bodies, None)


HEADERS = st.sampled_from([
    b"Content-Length: 3\r\n\r\nabc", b"content-length:3\r\n\r\nabc", b"CONTENT-LENGTH: 3\n\nabc",
    b"Content-Type: x\r\nContent-Length: 3\r\n\r\nabc", b"Content-Length: 0\r\n\r\n", b"Content-Length: 101\r\n\r\n",
    b"Content-Length: 3\r\n\r\nabcd", b"\r\n", b"no colon\r\n", b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    b"Content-Length: x\r\n\r\n", b"A: " + b"a" * 70, b": 3\r\n\r\n", b"{", b'"method":"a"\n',
])  # fmt: skip


@given(st.lists(HEADERS | st.binary(max_size=8), max_size=5), st.lists(st.integers(0, 300), max_size=12))
def test_garbage_is_judged_the_same_however_it_is_cut(parts: list[bytes], places: list[int]) -> None:
    data = b"".join(parts)
    assert read_in_pieces(cut(data, places)) == read_whole(data)


@pytest.mark.parametrize(
    ("stream", "bodies"),
    [
        (b"Content-Length: 2\r\n\r\nhi", [b"hi"]),
        (b"content-length: 2\r\n\r\nhi", [b"hi"]),
        (b"Content-Length:2\r\n\r\nhi", [b"hi"]),
        (b"Content-Length: \t 2 \r\n\r\nhi", [b"hi"]),
        (b"Content-Length: 2\n\nhi", [b"hi"]),
        (b"Content-Length: 00002\r\n\r\nhi", [b"hi"]),
        (b"Content-Length: 2\r\nContent-Type: a; charset=utf-8\r\n\r\nhi", [b"hi"]),
        (b"X-Other: y\r\nContent-Length: 2\r\n\r\nhi", [b"hi"]),
        (b"Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\nx", [b"", b"x"]),
        (b"Content-Length: 100\r\n\r\n" + b"x" * 100, [b"x" * 100]),
    ],
)
def test_every_spelling_of_a_header_is_understood(stream: bytes, bodies: list[bytes]) -> None:
    assert read_whole(stream) == (bodies, None)


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (b"Content-Length: 101\r\n\r\n", "longer than 100"),
        (b"Content-Length: 100000\r\n\r\n", "at most 5 digits"),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", "longer than 64"),
        (b"Content-Length: 8000000000\n", "at most 5 digits"),
        (b"Content-Length: -1\r\n\r\n", "not a number"),
        (b"Content-Length: +1\r\n\r\n", "not a number"),
        (b"Content-Length: 1e1\r\n\r\n", "not a number"),
        (b"Content-Length: \xd9\xa3\r\n\r\n", "not a number"),
        (b"Content-Length:\r\n\r\n", "not a number"),
        (b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n", "twice"),
        (b"Content-Type: x\r\n\r\n", "no Content-Length"),
        (b"\r\n\r\n", "no Content-Length"),
        (b'{"jsonrpc":"2.0"}\r\n', "Name: value"),
        (b"GET / HTTP/1.1\r\n", "Name: value"),
        (b"Content Length: 2\r\n\r\n", "Name: value"),
        (b"x" * 64, "longer than 64"),
        (b"X: " + b"y" * 100 + b"\r\n", "longer than 64"),
    ],
)
def test_a_header_that_cannot_be_right_ends_the_stream(stream: bytes, words: str) -> None:
    bodies, sentence = read_whole(stream)
    assert bodies == []
    assert sentence is not None
    assert words in sentence


def test_bodies_before_the_fault_are_given_out() -> None:
    with pytest.raises(FramingFault) as caught:
        small().feed(frame(b"one") + frame(b"two") + b"\r\n")
    assert caught.value.bodies == (b"one", b"two")


def test_a_stream_that_was_at_fault_stays_so() -> None:
    reader = small()
    with pytest.raises(FramingFault):
        reader.feed(b"\r\n")
    with pytest.raises(FramingFault) as again:
        reader.feed(frame(b"fine"))
    assert again.value.bodies == ()


def test_a_length_that_is_too_small_is_noticed_at_the_next_header() -> None:
    bodies, sentence = read_whole(b"Content-Length: 2\r\n\r\n{}}" + frame(b"{}"))
    assert bodies == [b"{}"]
    assert sentence is not None


def test_midway_is_told_from_the_first_byte_of_a_frame_to_its_last() -> None:
    reader, told = small(), []
    for byte in frame(b"ab"):
        reader.feed(bytes([byte]))
        told.append(reader.midway)
    assert told == [True] * (len(told) - 1) + [False]


def test_a_large_body_in_many_pieces_is_not_copied_for_each_piece() -> None:
    reader, body = FrameReader(), b"x" * (32 * 1024 * 1024)
    stream, piece = frame(body), 4096
    began = time.thread_time()
    bodies = [whole for at in range(0, len(stream), piece) for whole in reader.feed(stream[at : at + piece])]
    assert bodies == [body]
    assert time.thread_time() - began < 2  # copying it 8,000 times would take a minute


def test_a_length_reserves_nothing_before_its_bytes_come() -> None:
    reader = FrameReader()
    reader.feed(b"Content-Length: %d\r\n\r\n" % (64 * 1024 * 1024))
    assert len(reader._held) == 0
