"""A picture that would burst is refused by what it says of itself, before anything of it is unpacked."""

from __future__ import annotations

import struct
import zlib

import pytest
from artifact_render.limits import PICTURE_PIXELS
from artifact_render.pictures import drawable

from tests.clients.rendering.looking import RED, picture

SIDE = 8001  # of a square that has too many pixels
HUGE = 100_000


def png(side: int, *chunks: bytes) -> bytes:
    """The head of a square PNG, and of its pixels nothing."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 6, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def icon(content: bytes) -> bytes:
    """An icon of 16 x 16, as it says, with this picture in it."""
    return struct.pack("<HHHBBBBHHII", 0, 1, 1, 16, 16, 0, 0, 1, 32, len(content), 22) + content


def gif(side: int) -> bytes:
    return (
        b"GIF89a"
        + struct.pack("<HHBBB", side, side, 0, 0, 0)
        + b"\x2c"
        + struct.pack("<HHHHBB", 0, 0, side, side, 0, 2)
    )


def bitmap(side: int) -> bytes:
    head = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + head


@pytest.mark.parametrize(
    "content",
    [png(SIDE), png(HUGE), png(2**31 - 1), icon(png(SIDE)), icon(png(HUGE)), gif(65535), bitmap(SIDE), bitmap(HUGE)],
    ids=["png", "huge png", "largest png", "png in an icon", "huge png in an icon", "gif", "bitmap", "huge bitmap"],
)
def test_a_picture_of_too_many_pixels_is_refused_by_its_head(content: bytes) -> None:
    assert SIDE**2 > PICTURE_PIXELS
    why = drawable(content)
    assert isinstance(why, str)
    assert "pixels" in why


def test_a_text_in_a_picture_is_not_unpacked_without_end() -> None:
    bomb = chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(100 << 20)))
    why = drawable(png(8, bomb))
    assert isinstance(why, str)
    assert "too large" in why


def test_half_a_picture_is_damaged() -> None:
    why = drawable(png(8))
    assert isinstance(why, str)
    assert why.startswith("it is damaged")


@pytest.mark.parametrize("kind", ["PNG", "BMP", "ICO", "GIF"])
def test_a_whole_one_is_drawn(kind: str) -> None:
    made = drawable(picture(RED, size=(32, 32), kind=kind))
    assert not isinstance(made, str)
    assert (made.width, made.height) == (32, 32)
