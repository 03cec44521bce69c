"""What an HTML page refers to, read by the tokenizer of turbohtml as a browser reads it.

Tokens are enough: what refers is an attribute, or the text of a `<style>`. No tree is built, since building one takes
the square of the length for pages that are made to, and a page comes from anybody. A page is read in pieces, so that
no step takes long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from turbohtml import Token, Tokenizer, TokenType

from sidecar.core.asset_reference import How, Reference

PIECE = 65_536  # characters fed at once

_EMBEDDED_ATTRIBUTES = frozenset({"src", "poster"})
_SETS = frozenset({"srcset", "imagesrcset"})
_LINKS = frozenset({"href", "xlink:href"})
_LEADING = frozenset({"a", "area"})  # where `href` is what a click leads to


class Prose(NamedTuple):
    """Text of a page outside its tags; in `<script>` too, but not in `<style>`."""

    text: str


class Style(NamedTuple):
    """What a `<style>` or a `style` attribute holds."""

    text: str


def html_parts(text: str) -> Iterator[Reference | Prose | Style]:
    """References, and what is to be read by other rules, in the order of the page. Never raises."""
    for part in _parts(text):
        if isinstance(part, _Unscripted):
            # Renderers that run no scripts show it. Where another one seems to be in it, the page is not closed.
            yield from (Prose(inner.text) if isinstance(inner, _Unscripted) else inner for inner in _parts(part.text))
        else:
            yield part


class _Unscripted(NamedTuple):
    text: str


def _parts(text: str) -> Iterator[Reference | Prose | Style | _Unscripted]:
    inside = ""
    styles: list[str] = []
    for token in _tokens(text):
        match token.type:
            case TokenType.START_TAG:
                inside = token.tag or ""
                yield from _attributes(token)
            case TokenType.END_TAG:
                if styles:
                    yield Style("".join(styles))
                    styles.clear()
                inside = ""
            case TokenType.TEXT if inside == "style":
                styles.append(token.data or "")
            case TokenType.TEXT if inside == "noscript":
                yield _Unscripted(token.data or "")
            case TokenType.TEXT:
                yield Prose(token.data or "")
            case _:
                pass
    if styles:
        yield Style("".join(styles))


def _tokens(text: str) -> Iterator[Token]:
    tokenizer = Tokenizer()
    for at in range(0, len(text), PIECE):
        yield from tokenizer.feed(text[at : at + PIECE])
    yield from tokenizer.close()


def _attributes(token: Token) -> Iterator[Reference | Style]:
    tag = token.tag or ""
    for name, value in token.attrs or ():
        if not value:
            continue
        if name in _EMBEDDED_ATTRIBUTES or (name == "data" and tag == "object"):
            yield Reference(value, "embedded")
        elif name in _LINKS and tag != "base":
            yield Reference(value, _how(tag, token))
        elif name in _SETS:
            yield from (Reference(one, "embedded") for one in srcset(value))
        elif name == "style":
            yield Style(value)


def _how(tag: str, token: Token) -> How:
    if tag in _LEADING:
        return "linked"
    if tag != "link":
        return "embedded"
    rel = next((value for name, value in token.attrs or () if name == "rel"), None) or ""
    return "embedded" if _PART_OF_PAGE.intersection(rel.lower().split()) else "linked"


_PART_OF_PAGE = frozenset({"stylesheet", "icon", "preload", "apple-touch-icon", "mask-icon", "prefetch"})


def srcset(text: str) -> Iterator[str]:
    """The addresses of a `srcset`: each up to a blank, its descriptors up to a comma outside of parentheses."""
    at = 0
    while (begin := _ADDRESS.match(text, at)) is not None:
        address = begin[1]
        at = begin.end()
        if address.endswith(","):
            address = address.rstrip(",")
        else:
            descriptors = _DESCRIPTORS.match(text, at)
            at = descriptors.end() if descriptors is not None else at
        if address:
            yield address


_ADDRESS = re.compile(r"[\s,]*+([^\s]++)")
_DESCRIPTORS = re.compile(r"(?:[^,()]++|\([^)]*+\)?)*+,?")
