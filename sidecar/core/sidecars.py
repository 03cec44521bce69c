"""What a JSON text cites: tokens in its string values, and the `sids` of its `citations` members.

A string value is read as Markdown. The text is searched, never written anew, so that a replacement changes the token
and nothing beside it. A text that is no JSON cites nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sidecar.core.markdown import MarkdownScanner
from sidecar.core.numbers import NumberSet
from sidecar.core.tokens import Found, listed_numbers

MEMBERS = frozenset({"citations", "_citations"})


class JsonScanner:
    """Finds what a JSON text cites, once it is whole (see `tokens.Scanner`)."""

    kept: int

    def __init__(self) -> None:
        self.kept = 1

    def read(self, text: str, *, final: bool) -> Iterator[Found]:
        if not final:
            return
        try:
            value = json.loads(text[1:])
        except (ValueError, RecursionError):
            return
        for numbers in _member_numbers(value):
            yield Found(1, 1, numbers, settled=True)
        for literal in _LITERAL.finditer(text, 1):
            if literal["colon"] is None and _MAY_CITE.search(literal["text"]):
                yield from _in_literal(literal["text"], literal.start("text"))

    def safe(self, text: str) -> int:
        return min(self.kept, len(text))


def _member_numbers(value: Any) -> Iterator[NumberSet]:
    """The `sids` below each citing member, however deep. A list of numbers, a text such as `1,3-5`, or one number."""
    waiting = [(value, False)]
    while waiting:
        value, citing = waiting.pop()
        if isinstance(value, list):
            waiting.extend((item, citing) for item in value)
        elif isinstance(value, dict):
            waiting.extend((item, citing or name in MEMBERS) for name, item in value.items())
            numbers = listed_numbers(_as_list(value.get("sids"))) if citing else None
            if numbers is not None:
                yield numbers


def _as_list(sids: Any) -> str:
    given = sids if isinstance(sids, list) else [sids]
    return ",".join(str(sid) for sid in given if isinstance(sid, int | str) and not isinstance(sid, bool))


def _in_literal(literal: str, start: int) -> Iterator[Found]:
    """What the string between these quotes cites, at its place in the document."""
    places = [match.start() for match in _CHARACTER.finditer(literal)] if "\\" in literal else range(len(literal))
    places = [*places, len(literal)]
    # The scanner counts from the character before the text.
    for found in MarkdownScanner().read("\n" + json.loads(f'"{literal}"'), final=True):
        yield found._replace(start=start + places[found.start - 1], end=start + places[found.end - 1])


_LITERAL = re.compile(r'"(?P<text>(?:[^"\\]++|\\.)*+)"(?P<colon>\s*+:)?+', re.DOTALL)
_MAY_CITE = re.compile(r"[\[［<]|\\u")
_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]",
    re.DOTALL,
)
