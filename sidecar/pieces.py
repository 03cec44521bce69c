"""A long text of JSON in short pieces, so that nobody has to copy, escape or look through it at one go.

One interpreter serves everybody: whoever packs ten megabytes in a single step stops all others for as long, in
whichever thread. Between two pieces another thread gets its turn.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, BinaryIO, cast

import orjson

from sidecar.core.spelled import Spelled

GATHERED_BYTES = 256 * 1024
SPELLED_AT_ONCE = 64 * 1024  # characters
PACKED_AT_ONCE = 192 * 1024  # bytes; a multiple of three, so that the pieces of base64 follow each other


class Pieces:
    """JSON that goes out as it is, with nothing in it that must be kept from its reader."""

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.size = sum(map(len, pieces))

    def __len__(self) -> int:
        return self.size

    def text(self) -> str:
        """What the JSON says, which is one text."""
        return orjson.loads(b"".join(self.pieces))

    def sha256(self) -> str:
        """The hash of the whole. Blocks when it is long: call it off the loop."""
        hashing = hashlib.sha256()
        for piece in self.pieces:
            hashing.update(piece)
        return hashing.hexdigest()

    def opened(self) -> BinaryIO:
        """The whole as a stream that nobody has to put together."""
        return cast(BinaryIO, _Stream(self.pieces))


class _Stream:
    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = filter(None, pieces)
        self._rest = memoryview(b"")

    def read(self, size: int = -1) -> bytes:
        size = sys.maxsize if size < 0 else size
        some: list[memoryview] = []
        while size:
            self._rest = self._rest or memoryview(next(self._pieces, b""))
            if not self._rest:
                break
            some.append(self._rest[:size])
            self._rest = self._rest[size:]
            size -= len(some[-1])
        return b"".join(some)


def spelled(text: str) -> Pieces:
    """A text as JSON. Blocks when it is long: call it off the loop."""
    some = (text[at : at + SPELLED_AT_ONCE] for at in range(0, len(text), SPELLED_AT_ONCE))
    return Pieces([b'"', *(orjson.dumps(one)[1:-1] for one in some), b'"'])


def gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same text in pieces of some size: short ones are put together, long ones go out as they are."""
    some: list[bytes] = []
    size = 0
    for piece in pieces:
        is_long = len(piece) >= GATHERED_BYTES
        if not is_long:
            some.append(piece)
            size += len(piece)
        if some and (is_long or size >= GATHERED_BYTES):
            yield b"".join(some)
            some, size = [], 0
        if is_long:
            yield piece
    if some:
        yield b"".join(some)


def listed(items: Sequence[Any], said: Callable[[Any], Any] = lambda item: item) -> Iterator[bytes]:
    """A list as JSON, each item as it is `said`. Blocks when it is long: call it off the loop."""
    return spliced(orjson.dumps(said(item)) for item in items)


def spliced(items: Iterable[bytes]) -> Iterator[bytes]:
    """A list of what is JSON already."""
    before = b"["
    for item in items:
        yield before
        yield item
        before = b","
    yield b"]" if before == b"," else b"[]"


def members(payload: Mapping[str, Any]) -> Iterator[bytes]:
    """An object as JSON, as far as it is made of objects and lists. Blocks when it is long: call it off the loop."""
    before = b"{"
    for name, value in payload.items():
        yield before + orjson.dumps(name) + b":"
        match value:
            case Spelled():
                yield from spliced(value)
            case list():
                yield from listed(value)
            case dict():
                yield from members(value)
            case _:
                yield orjson.dumps(value)
        before = b","
    yield b"}" if payload else b"{}"


def packed(stream: IO[bytes]) -> Pieces:
    """The rest of a stream as base64. Blocks: call it off the loop."""
    pieces = [b'"']
    while chunk := stream.read(PACKED_AT_ONCE):
        pieces.append(base64.b64encode(chunk))
    pieces.append(b'"')
    return Pieces(pieces)
