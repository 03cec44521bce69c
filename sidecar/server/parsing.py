"""Parsing a large message without letting it stop the daemon.

JSON may hold a value in every third byte. A message of 64 MiB made of empty lists takes two gigabytes and, because the
collector looks at every one of them again and again, a quarter of a minute. So the values of a large message are
counted before it is parsed, and the collector rests meanwhile.
"""

from __future__ import annotations

import gc

import orjson

LARGE_BYTES = 1024 * 1024
_STRUCTURE = b",[{"
_ALL_BUT_STRUCTURE = bytes(sorted(set(range(256)) - set(_STRUCTURE + b'"')))


class TooManyValues(Exception):  # noqa: N818 - what is wrong with a message
    """The message would take the daemon too long. It cannot be answered, since its id stands somewhere in it."""


def parse(body: bytes, most: int) -> object:
    """A large message's JSON. Raises TooManyValues, or orjson's JSONDecodeError."""
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
    if sum(body.count(byte) for byte in (b",", b"[", b"{")) <= most:
        return False  # not even when those within texts are counted
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * most:  # a key and a value, in two quotes each
        return True
    skeleton = plain.translate(None, _ALL_BUT_STRUCTURE)
    return sum(map(len, skeleton.split(b'"')[::2])) > most
