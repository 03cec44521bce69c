"""A long text of JSON in short pieces, so that nobody has to copy, escape or look through it at one go.

One interpreter serves everybody: whoever packs ten megabytes in a single step stops all others for as long, in
whichever thread. Between two pieces another thread gets its turn.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import orjson

LISTED_AT_ONCE = 1000  # items
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


def spelled(text: str) -> Pieces:
    """A text as JSON. Blocks when it is long: call it off the loop."""
    some = (text[at : at + SPELLED_AT_ONCE] for at in range(0, len(text), SPELLED_AT_ONCE))
    return Pieces([b'"', *(orjson.dumps(one)[1:-1] for one in some), b'"'])


def listed(items: Sequence[Any], said: Callable[[Any], Any] = lambda item: item) -> Iterator[bytes]:
    """A list as JSON, each item as it is `said`. Blocks when it is long: call it off the loop."""
    yield b"["
    for at in range(0, len(items), LISTED_AT_ONCE):
        some = [said(item) for item in items[at : at + LISTED_AT_ONCE]]
        yield (b"," if at else b"") + orjson.dumps(some)[1:-1]
    yield b"]"


def packed(stream: IO[bytes]) -> Pieces:
    """The rest of a stream as base64. Blocks: call it off the loop."""
    pieces = [b'"']
    while chunk := stream.read(PACKED_AT_ONCE):
        pieces.append(base64.b64encode(chunk))
    pieces.append(b'"')
    return Pieces(pieces)
