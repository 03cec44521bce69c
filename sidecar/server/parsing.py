"""Parsing a large message without letting it stop the daemon.

JSON may hold a value in every third byte. A message of 64 MiB made of empty lists takes two gigabytes and, because the
collector looks at every one of them again and again, a quarter of a minute. So the values of a large message are
counted before it is parsed, in pieces between which others get their turn, and the collector rests while it is parsed.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import orjson

LARGE_BYTES = 1024 * 1024
COUNTED_AT_ONCE = 256 * 1024
_STRUCTURE = b",[{"
_ALL_BUT_STRUCTURE = bytes(sorted(set(range(256)) - set(_STRUCTURE + b'"')))


class TooManyValues(Exception):  # noqa: N818 - what is wrong with a message
    """The message would take the daemon too long. It cannot be answered, since its id stands somewhere in it."""


def parse(body: bytes, most: int) -> object:
    """A large message's JSON. Blocks: call it off the loop. Raises TooManyValues, or orjson's JSONDecodeError."""
    if has_more_values(body, most):
        raise TooManyValues(f"a message holds at most {most} values")
    collecting = gc.isenabled()
    gc.disable()
    try:
        return orjson.loads(body)
    finally:
        if collecting:
            gc.enable()


def has_more_values(body: bytes, most: int) -> bool:
    """Whether there may be more values than that: each follows a comma or an opening bracket outside of the texts."""
    starts = range(0, len(body), COUNTED_AT_ONCE)
    if sum(body.count(byte, at, at + COUNTED_AT_ONCE) for at in starts for byte in (b",", b"[", b"{")) <= most:
        return False  # not even when those within texts are counted
    values = quotes = 0
    for piece in _whole_escapes(body):
        plain = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = plain.translate(None, _ALL_BUT_STRUCTURE).split(b'"')
        values += sum(map(len, parts[quotes % 2 :: 2]))
        quotes += len(parts) - 1
        if values > most or quotes > 4 * most:  # a key and a value, in two quotes each
            return True
    return False


def _whole_escapes(body: bytes) -> Iterator[bytes]:
    """The body in pieces, none of which ends between a backslash and what it escapes."""
    at = 0
    while at < len(body):
        piece = body[at : at + COUNTED_AT_ONCE]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = body[at : at + COUNTED_AT_ONCE + 1]
        yield piece
        at += len(piece)
