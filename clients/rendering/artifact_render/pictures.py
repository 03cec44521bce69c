"""A picture as PowerPoint takes it. PNG, JPEG and GIF go in as they are; the rest is drawn anew as PNG."""

from __future__ import annotations

import base64
import binascii
import io
import warnings
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from PIL import Image, UnidentifiedImageError

from artifact_render.limits import PICTURE_PIXELS

AS_THEY_ARE = ("PNG", "JPEG", "GIF")
_FORMATS = (*AS_THEY_ARE, "WEBP", "BMP", "TIFF", "ICO")
# Pillow refuses twice as many before it unpacks anything, also of a picture that stands within another.
Image.MAX_IMAGE_PIXELS = PICTURE_PIXELS // 2


@dataclass(frozen=True, slots=True)
class Drawable:
    """Bytes that PowerPoint takes, and the picture's size in pixels."""

    content: bytes
    width: int
    height: int


def drawable(content: bytes) -> Drawable | str:
    """The picture, or why it cannot be drawn."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # half of what is too much
            with Image.open(io.BytesIO(content), formats=_FORMATS) as picture:
                width, height = picture.size
                if width * height > PICTURE_PIXELS:
                    return f"it has {width} x {height} pixels"
                picture.load()  # all of it, since PowerPoint refuses a file with half a picture
                if picture.format not in AS_THEY_ARE:
                    content = _as_png(picture)
    except UnidentifiedImageError:
        return "it is no picture that slides can hold"
    except Image.DecompressionBombError:
        return f"it has more than {PICTURE_PIXELS} pixels"
    except (OSError, ValueError, SyntaxError) as error:
        return f"it is damaged ({error})"
    return Drawable(content, width, height)


def inlined(reference: str) -> bytes | None:
    """The bytes in a `data:` URL, or None for a reference that is none or does not decode."""
    head, comma, body = reference.partition(",")
    if not comma or not head.lower().startswith("data:"):
        return None
    content = unquote_to_bytes(body)
    if not head.lower().endswith(";base64"):
        return content
    try:
        return base64.b64decode(b"".join(content.split()))
    except binascii.Error:
        return None


def _as_png(picture: Image.Image) -> bytes:
    drawn = io.BytesIO()
    picture.convert("RGBA").save(drawn, "PNG")
    return drawn.getvalue()
