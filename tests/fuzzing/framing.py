"""Streams of bytes and the frames in them, as the daemon and as the door cut them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sidecar.server import envelopes
from sidecar.server.framing import BODY_BYTES, HEADER_BYTES, LENGTH_DIGITS, FrameReader, FramingFault, frame
from tests.fuzzing.draw import PARTS, Draw, cuts, pieces
from tests.fuzzing.target import Target, worded

Limits = tuple[int, int, int]  # of a header, of a body, of the digits of a length
ROOMY: Limits = (HEADER_BYTES, BODY_BYTES, LENGTH_DIGITS)
NARROW: Limits = (48, 40, 3)


def check(data: bytes) -> None:
    draw = Draw(data)
    limits = draw.pick((ROOMY, NARROW))
    places = cuts(draw, len(data))
    stream = draw.rest()
    cut_the_same(stream, places, limits)
    door_agrees(stream, places)
    bodies = [body[: limits[1]] for body in stream.split(PARTS)]
    whole = b"".join(map(frame, bodies))
    assert read(whole, places, limits) == (bodies, "", False)


def cut_the_same(stream: bytes, places: Sequence[int], limits: Limits) -> None:
    """However it is cut, and as the rules of frames say it in the plainest words."""
    bodies, fault, midway = read(stream, places, limits)
    assert (bodies, fault, midway) == read(stream, range(1, len(stream)), limits)
    expected, broken, unfinished = plain(stream, limits)
    assert bodies == expected
    assert bool(fault) == broken
    assert fault or midway == unfinished
    assert all(len(body) <= limits[1] for body in bodies)


def read(stream: bytes, places: Sequence[int], limits: Limits) -> tuple[list[bytes], str, bool]:
    """The bodies, what was wrong in the end, and whether something had begun by then."""
    header, body, digits = limits
    reader = FrameReader(header_bytes=header, body_bytes=body, digits=digits)
    bodies: list[bytes] = []
    faults: list[str] = []
    for piece in pieces(stream, places):
        try:
            bodies += reader.feed(piece)
        except FramingFault as told:
            faults.append(told.sentence)
            bodies += told.bodies
        else:
            assert not faults, "a stream that was out of step went on"
    assert len(set(faults)) <= 1
    return bodies, "".join(faults[:1]), bool(faults) or reader.midway


def plain(stream: bytes, limits: Limits) -> tuple[list[bytes], bool, bool]:
    """The same, said slowly: bodies, whether the stream is out of step, whether a frame has begun."""
    most_header, most_body, digits = limits
    bodies: list[bytes] = []
    while stream:
        lengths: list[bytes] = []
        size = 0
        for line in header_lines(stream):
            size += len(line)
            if not line.endswith(b"\n") or size > most_header:
                return bodies, len(stream) >= most_header, True
            bare = line[:-1].removesuffix(b"\r")
            if not bare:
                break
            name, colon, value = bare.partition(b":")
            if not colon or not name or not all(one in _NAME for one in name):
                return bodies, True, True
            if name.lower() == b"content-length":
                value = value.strip(b" \t")
                if lengths or not value or value.strip(b"0123456789") or len(value) > digits or int(value) > most_body:
                    return bodies, True, True
                lengths.append(value)
        if not lengths:
            return bodies, True, True
        length = int(lengths[0])
        if len(stream) < size + length:
            return bodies, False, True
        bodies.append(stream[size : size + length])
        stream = stream[size + length :]
    return bodies, False, False


def header_lines(stream: bytes) -> Iterator[bytes]:
    """Lines with their ends; the last one perhaps without."""
    while True:
        line, feed, stream = stream.partition(b"\n")
        yield line + feed
        if not feed:
            return


def door_agrees(stream: bytes, places: Sequence[int]) -> None:
    """The door takes for frames what the daemon takes for frames; it may go on where the daemon stops."""
    frames = envelopes.Frames()
    theirs: list[bytes] = []
    passed = b""
    for piece in pieces(stream, places):
        if frames.fault:
            passed += piece
            continue
        whole, spans = frames.feed(piece)
        theirs += [whole[begin:end] for begin, end in spans]
        end = spans[-1][1] if spans else 0
        passed += whole[:end]
        if frames.fault:
            passed += frames.take_rest()
    rest = frames.take_rest()
    ours, fault, midway = read(stream, places, ROOMY)
    assert theirs[: len(ours)] == ours
    assert passed + rest == stream, "the door loses bytes"
    assert fault or (theirs == ours and not frames.fault and midway == bool(rest))


_NAME = b"!#$%&'*+.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-"


def seeds() -> Iterator[bytes]:
    yield frame(b'{"jsonrpc":"2.0","id":1,"method":"a"}') + frame(b"{}") + b"\0"
    yield b"content-length:2\nX-Y: z\n\n{}Content-Length: 0\r\n\r\n\0"
    yield b"Content-Length: 5\r\nContent-Type: application/json\r\n\r\nabcde\1\2\3\4\0"
    yield b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc\0"
    yield b"one\xfftwo\xff\xff\1\1"
    yield b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\0"


TARGET = Target(
    "framing",
    "a stream gives the same bodies however it is cut, those that the plain rules give, and none over a limit; the"
    " door sees the same frames and loses no byte",
    check,
    (*worded(
        "Content-Length: content-length: CONTENT-LENGTH : 0 1 12 40 41 000 999999999999 1000000000000 X-Y:",
        "\r\n\r\n", "\n\n", "\r\n", "\r", "\t", " ", "Content-Length: 2\r\n\r\n", "Content-Type: a\r\n", "\u00b2",
    ), PARTS),
    seeds,
)  # fmt: skip
