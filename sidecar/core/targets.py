"""Where in a page its links and pictures say what they refer to.

The readers of asset pulls say what a page needs and not where it stands. An editor needs the place, and many times a
minute: this looks for the few shapes in which an address is written, and passes over code and comments. What it
overlooks is not decorated, and nothing else.
"""

from __future__ import annotations

import html as entities
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from sidecar.core.asset_reference import SHOWN_CHARS, How
from sidecar.core.limits import REFERENCES_IN_TEXT

MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
HTML = frozenset({"text/html", "application/xhtml+xml"})
CSS = frozenset({"text/css"})

TARGETS = 4 * REFERENCES_IN_TEXT  # of one page: most are addresses of other hosts
SPAN_CHARS = 1000  # what a code span may hold, and a description before its address
TICKS = 64


class Target(NamedTuple):
    """An address at `start:end`, in code points; `meant` is what it says once its escapes are resolved."""

    start: int
    end: int
    meant: str
    how: How


def targets(text: str, *, html: bool) -> Iterator[Target]:
    """The addresses of a page in order, those of Markdown with the tags in it, at most `TARGETS`."""
    return islice(_read(text, _HTML if html else _MARKDOWN), TARGETS)


def style_targets(text: str) -> Iterator[Target]:
    """The addresses of a style sheet in order, in `url()` and behind `@import`, at most `TARGETS`.

    One with an escape in it is overlooked.
    """
    found = (one for one in _STYLE.finditer(text) if one.lastgroup == "address")
    for one in islice(found, TARGETS):
        start, end = one.span("address")
        if text[start] in "\"'":
            start, end = start + 1, end - 1
        if start < end and "\\" not in text[start:end]:
            yield Target(start, end, text[start:end], "embedded")


def _read(text: str, lexeme: re.Pattern[str]) -> Iterator[Target]:
    at = 0
    while (found := lexeme.search(text, at)) is not None:
        at = found.end()
        group = found.lastgroup or ""
        match group:
            case "comment":
                ending = text.find("-->", at)
                at = len(text) if ending < 0 else ending
            case "fence":
                ending = _fence_end(found["fence"]).search(text, at)
                at = len(text) if ending is None else ending.end()
            case "ticks":
                span = _up_to_run(len(found[0])).match(text, at, at + SPAN_CHARS) if len(found[0]) <= TICKS else None
                at = at if span is None or "\n\n" in span[0] else span.end()
            case "tag":
                yield from _of_tag(text, found)
                ending = _ELEMENT_ENDS.get(found["tag"].lower())
                if ending is not None and lexeme is _HTML:
                    closing = ending.search(text, at)
                    at = len(text) if closing is None else closing.start()
            case "angled" | "plain" | "angled_definition" | "plain_definition":
                start, end = found.span(group)
                is_picture = group in ("angled", "plain") and _is_picture(text, found.start())
                meant = entities.unescape(_BACKSLASH.sub(r"\1", found[group]))
                yield Target(start, end, meant, "embedded" if is_picture else "linked")
            case _:
                pass  # an escaped mark


def _is_picture(text: str, closing: int) -> bool:
    """Whether the description that ends here began as that of a picture."""
    depth = 0
    for at in range(closing, max(-1, closing - SPAN_CHARS // 4), -1):
        depth += (text[at] == "]") - (text[at] == "[")
        if depth == 0:
            return at > 0 and text[at - 1] == "!"
    return False


def _of_tag(text: str, tag: re.Match[str]) -> Iterator[Target]:
    name = tag["tag"].lower()
    for found in _ATTRIBUTE.finditer(text, tag.end("tag"), tag.end()):
        group = found.lastgroup or ""
        value, start = found[group], found.start(group)
        match found["name"].lower():
            case "srcset" | "imagesrcset":
                for address in _ADDRESS.finditer(value):
                    yield _target(start + address.start(1), address[1], "embedded")
            case "src" | "poster":
                yield _target(start, value, "embedded")
            case "data" if name == "object":
                yield _target(start, value, "embedded")
            case "href" | "xlink:href" if name != "base":
                yield _target(start, value, "linked" if name in ("a", "area") else "embedded")
            case _:
                pass


def _target(start: int, written: str, how: How) -> Target:
    return Target(start, start + len(written), entities.unescape(written), how)


# The number of marks is no part of the second pattern, as a text could make many.
@lru_cache(maxsize=TICKS)
def _up_to_run(ticks: int) -> re.Pattern[str]:
    return re.compile(rf"(?:[^`]++|(?!`{{{ticks}}}(?!`))`++)*+`{{{ticks}}}")


@lru_cache(maxsize=2 * TICKS)
def _fence_end(marks: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t>]{{0,16}}{marks[0]}{{{len(marks)},}}[ \t]{{0,{SPAN_CHARS}}}$", re.MULTILINE)


_MARK = r"(?:[ ]{0,3}(?:[-*+]|[0-9]{1,9}[.)]|>)[ \t]{1,4}){0,4}[ ]{0,3}"
_QUOTED = rf"\"[^\"]{{0,{SHOWN_CHARS}}}\"|'[^']{{0,{SHOWN_CHARS}}}'"
_TAG = rf"<(?P<tag>[A-Za-z][A-Za-z0-9-]{{0,31}})(?=[\s/>])(?:[^<>\"']|{_QUOTED}){{0,{SHOWN_CHARS}}}+>"
_COMMENT = r"(?P<comment><!--)"
_ANGLED = rf"[^<>\n]{{1,{SHOWN_CHARS}}}"
_PLAIN = rf"(?:[^\s<>()\\]|\\.|\((?:[^\s()\\]|\\.){{0,{SHOWN_CHARS}}}\)){{1,{SHOWN_CHARS}}}+"
_GAP = r"[ \t]{0,99}\n?[ \t]{0,99}"

_HTML = re.compile(rf"{_COMMENT}|{_TAG}", re.DOTALL)
_MARKDOWN = re.compile(
    rf"\\[\\`\[\]<!]|^{_MARK}(?P<fence>`{{3,{TICKS}}}(?=[^`\n]{{0,{SPAN_CHARS}}}$)|~{{3,{TICKS}}})|(?P<ticks>`+)|{_COMMENT}"
    rf"|\]\({_GAP}(?:<(?P<angled>{_ANGLED})>|(?P<plain>{_PLAIN}))"
    rf"|^[ ]{{0,3}}\[[^\[\]\n]{{1,999}}\]:{_GAP}"
    rf"(?:<(?P<angled_definition>{_ANGLED})>|(?P<plain_definition>[^\s<]\S{{0,{SHOWN_CHARS}}}))"
    rf"|{_TAG}",
    re.MULTILINE,
)
_BACKSLASH = re.compile(r"\\([!-/:-@\[-`{-~])")
_ATTRIBUTE = re.compile(
    r"(?P<name>[^\s\"'<>/=]{1,64})\s{0,99}=\s{0,99}"
    rf"(?:\"(?P<double>[^\"]{{0,{SHOWN_CHARS}}})\"|'(?P<single>[^']{{0,{SHOWN_CHARS}}})'|(?P<bare>[^\s\"'<>=`]{{1,{SHOWN_CHARS}}}))"
)
_ADDRESS = re.compile(r"(?:\A|,)\s*([^\s,]+)")
# What is in these is no markup.
_ELEMENT_ENDS = {name: re.compile(rf"</{name}", re.IGNORECASE) for name in ("script", "style", "textarea", "title")}

# Comments and texts first, so that nothing in them counts.
_STYLE = re.compile(
    r"""/\*(?:[^*]|\*(?!/))*+(?:\*/)?"""
    r"""|(?:url\(\s*+|@import\s++)(?P<address>"[^"\n]*+"|'[^'\n]*+'|(?<=[(\s])[^"'()\s;]++)"""
    r"""|"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?""",
    re.IGNORECASE | re.DOTALL,
)
