"""Where in an HTML text a token counts: in what a reader sees as prose, never inside a tag, a comment, or code.

A tag is followed through its attributes as a browser does it, so that `<a title="[[S:1]] >">` is one tag. Elements
whose content is not prose (`script`, `title`, `code`, …) are passed over up to their end tag. `<sup class="cite"
data-sids="1,3">` cites already: it counts, and the text right behind it is left as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Generator, Iterator
from functools import lru_cache
from typing import Literal

from sidecar.core.numbers import NumberSet
from sidecar.core.tokens import Found, Grammar, first_begun, listed_numbers, token_numbers

# A tag name is looked at this far; a citing tag is at most that long.
NAME_CHARS = 32
SUP_CHARS = 4096

# Markup put into these would be shown as text, run as a program, or spoil an example.
NOT_PROSE = frozenset(
    {"code", "iframe", "noembed", "noframes", "pre", "script", "style", "textarea", "title", "xmp"},
)

State = Literal["prose", "tag", "value", "unquoted", "double", "single", "comment", "declaration", "cited", "element"]


def sup_numbers(tag: str) -> NumberSet | None:
    """The numbers of `<sup class="cite" data-sids="1,3">`, attributes in any order; None when the tag cites nothing."""
    attributes: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(tag):
        attributes.setdefault(name.lower(), html.unescape(double or single or bare))
    if "cite" not in attributes.get("class", "").split():
        return None
    return listed_numbers(attributes.get("data-sids", ""))


class HtmlScanner:
    """Finds what an HTML text cites, in pieces of any size (see `tokens.Scanner`)."""

    kept: int

    def __init__(self) -> None:
        self.kept = 1
        self._state: State = "prose"
        self._name = ""
        self._tag = ""

    def read(self, text: str, *, final: bool) -> Iterator[Found]:
        self.kept = 1
        going = True
        while going and self.kept < len(text):
            match self._state:
                case "prose":
                    going = yield from self._prose(text, final=final)
                case "cited":
                    going = self._pass_text(text)
                case "comment":
                    going = self._pass_until(text, "-->")
                case "declaration":
                    going = self._pass_until(text, ">")
                case "element":
                    going = self._pass_element(text)
                case _:
                    going = yield from self._inside_tag(text)

    def safe(self, text: str) -> int:
        return GRAMMAR.first_possible(text, self.kept) if self._state == "prose" else len(text)

    def _prose(self, text: str, *, final: bool) -> Generator[Found, None, bool]:
        at = self.kept
        while (match := _LEXEME.search(text, at)) is not None:
            at = match.end()
            if match.lastgroup is None:
                numbers = token_numbers(match[0])
                if numbers is None:
                    at = match.start() + 1
                else:
                    yield Found(match.start(), at, numbers, settled=False)
            elif not final and _UNFINISHED.match(text, match.start()):
                self.kept = match.start()
                return False
            else:
                self._open(match)
                return True
        self.kept = len(text) if final else first_begun(_TAIL, text, at, len(text))
        return False

    def _open(self, match: re.Match[str]) -> None:
        self.kept = match.end()
        if match.lastgroup == "name":
            self._state, self._name, self._tag = "tag", match["name"].lower(), ""
        else:
            self._state = "comment" if match.lastgroup == "comment" else "declaration"

    def _inside_tag(self, text: str) -> Generator[Found, None, bool]:
        stop = _STOPS[self._state].search(text, self.kept)
        following = "unquoted" if stop is None else _AFTER.get((self._state, stop[0]), _OTHERWISE[self._state])
        start, self.kept = self.kept, len(text) if stop is None else stop.end()
        if stop is not None and self._state == "value" and following == "unquoted":
            self.kept = stop.start()
        if self._name == "sup" and len(self._tag) <= SUP_CHARS:
            self._tag += text[start : self.kept]
        if stop is None:
            return False
        self._state = following
        if following == "prose":
            numbers = sup_numbers(self._tag) if self._name == "sup" and len(self._tag) <= SUP_CHARS else None
            if numbers is not None:
                self._state = "cited"
                yield Found(self.kept, self.kept, numbers, settled=True)
            elif self._name in NOT_PROSE:
                self._state = "element"
        return True

    def _pass_text(self, text: str) -> bool:
        tag = text.find("<", self.kept)
        self.kept = len(text) if tag < 0 else tag
        self._state = "cited" if tag < 0 else "prose"
        return tag >= 0

    def _pass_until(self, text: str, ending: str) -> bool:
        at = text.find(ending, self.kept)
        if at < 0:
            self.kept = max(self.kept, len(text) - len(ending) + 1)
            return False
        self._state, self.kept = "prose", at + len(ending)
        return True

    def _pass_element(self, text: str) -> bool:
        ending = _end_tag(self._name).search(text, self.kept)
        if ending is None:
            self.kept = max(self.kept, len(text) - len(self._name) - len("</"))
            return False
        self._state, self._name, self.kept = "tag", f"/{self._name}", ending.end()
        return True


GRAMMAR = Grammar("<")

_LEXEME = re.compile(
    rf"{GRAMMAR.token}|<(?:!(?P<comment>(?=--))|(?P<declaration>[!?])|(?P<name>/?[A-Za-z][^\s/>]{{0,{NAME_CHARS}}}))"
)
_UNFINISHED = re.compile(rf"<(?:!-?|/?[A-Za-z][^\s/>]{{0,{NAME_CHARS}}})\Z")
_TAIL = re.compile(rf"{GRAMMAR.begun}|<(?:!-?|/)?\Z")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+))""")

# What ends each part of a tag, and which part comes then.
_STOPS: dict[State, re.Pattern[str]] = {
    "tag": re.compile("[>=]"),
    "value": re.compile(r"\S"),
    "unquoted": re.compile(r"[\s>]"),
    "double": re.compile('"'),
    "single": re.compile("'"),
}
_AFTER: dict[tuple[State, str], State] = {
    ("tag", ">"): "prose",
    ("tag", "="): "value",
    ("value", '"'): "double",
    ("value", "'"): "single",
    ("unquoted", ">"): "prose",
}
_OTHERWISE: dict[State, State] = {
    "tag": "tag",
    "value": "unquoted",
    "unquoted": "tag",
    "double": "tag",
    "single": "tag",
}


@lru_cache(maxsize=len(NOT_PROSE))
def _end_tag(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
