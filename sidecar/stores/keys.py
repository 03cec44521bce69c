"""The one grammar of keys, enforced before any store sees one: what a folder takes, S3 takes, and the reverse."""

from __future__ import annotations

KEY_BYTES = 900  # S3 takes 1,024, and a prefix has to fit before the key
SEGMENT_BYTES = 200  # a file name takes 255
PREFIX_BYTES = 120


class KeyTaken(ValueError):  # noqa: N818 - an answer about a key, not a malfunction
    """Other bytes stand under this key, or it would have to be a file and a folder. Asking again does not help."""


def check_key(text: str) -> str:
    """The key itself: segments between slashes, 1 to 200 bytes each, 900 in all, as UTF-8.

    Raises ValueError, which says what is wrong: an empty, `.` or `..` segment, a control character, or too long.
    """
    return _checked(text, KEY_BYTES, "a key")


def check_prefix(text: str) -> str:
    """The prefix of a bucket, by the same grammar, 120 bytes at most; `""` is none. Raises ValueError."""
    return _checked(text, PREFIX_BYTES, "a prefix") if text else text


def is_key(text: str) -> bool:
    """Whether the text is a key."""
    try:
        check_key(text)
    except ValueError:
        return False
    return True


def _checked(text: str, most: int, what: str) -> str:
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{what} is UTF-8, and this holds half a character") from None
    if len(raw) > most:
        raise ValueError(f"{what} has at most {most} bytes, and this has {len(raw)}")
    if any(ord(character) in _CONTROLS for character in text):
        raise ValueError(f"{what} holds no control characters")
    for segment in raw.split(b"/"):
        if segment in (b"", b".", b".."):
            raise ValueError(f"{what} holds no empty segment, no `.` and no `..`")
        if len(segment) > SEGMENT_BYTES:
            raise ValueError(f"a segment of {what} has at most {SEGMENT_BYTES} bytes")
    return text


# C0, DEL and C1: what a terminal, a header or a log would act upon instead of showing it.
_CONTROLS = frozenset((*range(0x20), *range(0x7F, 0xA0)))
