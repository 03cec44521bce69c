"""A long text of JSON in short pieces, so that nobody has to copy, escape or look through it at one go.

One interpreter serves everybody: whoever packs ten megabytes in a single step stops all others for as long, in
whichever thread. Between two pieces another thread gets its turn.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import orjson

from sidecar.core.spelled import Spelled

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

SPLICED_AT_ONCE = 256 * 1024  # bytes
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


class _Stream(io.RawIOBase):
    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(room):
            if not self._rest:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                self._rest = memoryview(piece)
            count = min(len(room) - filled, len(self._rest))
            room[filled : filled + count] = self._rest[:count]
            self._rest = self._rest[count:]
            filled += count
        return filled


def spelled(text: str) -> Pieces:
    """A text as JSON. Blocks when it is long: call it off the loop."""
    some = (text[at : at + SPELLED_AT_ONCE] for at in range(0, len(text), SPELLED_AT_ONCE))
    return Pieces([b'"', *(orjson.dumps(one)[1:-1] for one in some), b'"'])


def listed(items: Sequence[Any], said: Callable[[Any], Any] = lambda item: item) -> Iterator[bytes]:
    """A list as JSON, each item as it is `said`. Blocks when it is long: call it off the loop."""
    return spliced(orjson.dumps(said(item)) for item in items)


def spliced(items: Iterable[bytes]) -> Iterator[bytes]:
    """A list of what is JSON already: short items are put together, long ones go out as they are."""
    some: list[bytes] = []
    size, before = 0, b"["
    for item in items:
        is_long = len(item) >= SPLICED_AT_ONCE
        if not is_long:
            some.append(item)
            size += len(item) + 1
        if some and (is_long or size >= SPLICED_AT_ONCE):
            yield before + b",".join(some)
            some, size, before = [], 0, b","
        if is_long:
            yield before
            yield item
            before = b","
    if some:
        yield before + b",".join(some)
        before = b","
    yield b"]" if before == b"," else b"[]"


def members(payload: Mapping[str, Any]) -> Iterator[bytes]:
    """An object as JSON, item by item of its lists. Blocks when it is long: call it off the loop."""
    before = b"{"
    for name, value in payload.items():
        yield before + orjson.dumps(name) + b":"
        if isinstance(value, Spelled):
            yield from spliced(value)
        elif isinstance(value, list):
            yield from listed(value)
        else:
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
