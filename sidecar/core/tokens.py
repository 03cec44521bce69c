"""The citation token `[[S:1,3-5]]`: what is one, and what may still become one.

A token is two opening brackets, `S`, a colon, a list of numbers, two closing brackets. Full-width brackets, a
full-width colon and zero-width characters are taken inside it, since models and keyboards produce them (spec section 6,
"Token grammar").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, Protocol

from sidecar.core.limits import TOKEN_BYTES
from sidecar.core.numbers import NumberSet, parse_numbers, print_numbers

DASHES = "-–—"
ZERO_WIDTH = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"


class Found(NamedTuple):
    """Numbers cited at `start:end`. A token may be replaced; what is `settled` cites already and stays as it is."""

    start: int
    end: int
    numbers: NumberSet
    settled: bool


class Scanner(Protocol):
    """Finds what a text of one kind cites, while the text arrives in pieces of any size.

    `text` holds what is not decided yet. Its first character is the one before that, `"\\n"` where the whole begins.
    """

    kept: int
    """Where the text of the next reading begins, known once `read` is exhausted: what is before is decided."""

    def read(self, text: str, *, final: bool) -> Iterator[Found]:
        """What certainly is cited, in order. With `final` the text ends here, and everything is certain."""
        ...

    def safe(self, text: str) -> int:
        """Up to where the same text, just read, will stay as it is whatever comes; at least `kept`."""
        ...


class Grammar:
    """How a token is written in one kind of text: as everywhere, without the characters of `never`."""

    def __init__(self, never: str) -> None:
        body = rf"[^\[\]［］{never}]*+"
        # Both openings are spelled out, as a search is quick only where every branch begins with a literal.
        whole = rf"{_ZERO}[\[［]{_GAP}[Ss]{_GAP}[:：]{body}[\]］]{_ZERO}[\]］]"
        begun = rf"{_ZERO}(?:[\[［]{_GAP}(?:[Ss]{_GAP}(?:[:：]{body}(?:[\]］]{_ZERO})?+)?+)?+)?+\Z"
        self.token = rf"\[{whole}|［{whole}"
        self.begun = rf"\[{begun}|［{begun}"
        self._token = re.compile(self.token)
        self._begun = re.compile(self.begun)

    def first_possible(self, text: str, start: int) -> int:
        """Where the first token begins, or what becomes one if the text goes on so; the end when there is none."""
        begun = first_begun(self._begun, text, start, len(text))
        while (match := self._token.search(text, start, begun)) is not None:
            if token_numbers(match[0]) is not None:
                return match.start()
            start = match.start() + 1
        return begun


def first_begun(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    """Where the first match begins that could still grow into a token of legal length; `end` if there is none.

    `pattern` matches up to `end` only, so that what begins more than 4 KiB before it need not be looked at.
    """
    start = max(start, end - TOKEN_BYTES)
    while (match := pattern.search(text, start, end)) is not None and _is_too_long(match[0]):
        start = match.start() + 1
    return end if match is None else match.start()


def print_token(sids: Iterable[int]) -> str:
    """How a text cites these numbers: `[[S:1,3-5]]`."""
    return f"[[S:{print_numbers(sids).replace(', ', ',')}]]"


def token_numbers(token: str) -> NumberSet | None:
    """The numbers of a text written like a token, or None when it names none, or is over 4 KiB, and so is no token."""
    return None if _is_too_long(token) else _token_numbers(token)


def listed_numbers(text: str) -> NumberSet | None:
    """The numbers of a list such as `1,3-5`, or None when there are none in it. Bad pieces are ignored."""
    numbers = parse_numbers(_INVISIBLE.sub("", text), dashes=DASHES)
    return NumberSet(numbers.singles, numbers.ranges) if numbers.singles or numbers.ranges else None


_ZERO = f"[{ZERO_WIDTH}]*+"
_GAP = rf"[\s{ZERO_WIDTH}]*+"
_INVISIBLE = re.compile(f"[{ZERO_WIDTH}]")
_COLON = re.compile("[:：]")
_CLOSING = re.compile(r"[\]］]")


def _is_too_long(token: str) -> bool:
    return len(token) * 4 > TOKEN_BYTES and len(token.encode("utf-8", "surrogatepass")) > TOKEN_BYTES


@lru_cache(maxsize=1024)
def _token_numbers(token: str) -> NumberSet | None:
    _, body = _COLON.split(token, maxsplit=1)
    return listed_numbers(_CLOSING.sub("", body))
