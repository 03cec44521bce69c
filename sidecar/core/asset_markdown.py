"""What a Markdown text refers to, read by markdown-it: links, pictures, definitions, and the HTML in between.

Blocks are read first. A paragraph is read on only where it may hold a link or a tag: a definition counts by itself,
whether or not it is used. What is left is prose, code included, since agents put the paths they speak of in backticks.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from sidecar.core.asset_html import Prose, Style, html_parts
from sidecar.core.asset_reference import Reference

PARAGRAPH = 65_536  # characters of a paragraph that are read at once; a longer one is cut at a blank


class TookTooLong(Exception):  # noqa: N818 - it says that reading ended early, no more
    """Reading was told to stop."""


def markdown_parts(text: str, *, stop: Callable[[], bool]) -> Iterator[Reference | Prose | Style]:
    """References, prose and styles. Raises TookTooLong as soon as `stop` says so, and nothing else."""
    parser = _parser(stop)
    env: dict[str, Any] = {}
    tokens = parser.parse(text, env)
    for definition in env.get("references", {}).values():
        yield Reference(definition["href"], "linked")
    for definition in env.get("duplicate_refs", ()):
        yield Reference(definition["href"], "linked")
    for token in tokens:
        match token.type:
            case "inline":
                for piece in _pieces(token.content):
                    yield from _inline(parser, piece, env)
            case "html_block":
                yield from html_parts(token.content)
            case "fence" | "code_block":
                yield Prose(token.content)
            case _:
                pass


def _inline(parser: MarkdownIt, text: str, env: dict[str, Any]) -> Iterator[Reference | Prose | Style]:
    if not _may_refer(text):
        yield Prose(text)
        return
    children: list[Token] = []
    parser.inline.parse(text, parser, env, children)
    if any(child.type == "html_inline" for child in children):
        yield from _mixed(children)
        return
    said: list[str] = []
    for child in _with_children(children):
        match child.type:
            case "link_open":
                yield Reference(str(child.attrGet("href") or ""), "linked")
            case "image":
                yield Reference(str(child.attrGet("src") or ""), "embedded")
            case _:
                said.append(_said(child))
    yield Prose("".join(said))


def _mixed(children: list[Token]) -> Iterator[Reference | Prose | Style]:
    """Tags within a paragraph, with what is between them as HTML would have it: a `<style>` needs all of it.

    Links and pictures stand there as tags without an address, so that what was apart is not read as one word.
    """
    page: list[str] = []
    for child in _with_children(children):
        match child.type:
            case "html_inline":
                page.append(child.content)
            case "link_open":
                yield Reference(str(child.attrGet("href") or ""), "linked")
                page.append("<a>")
            case "link_close":
                page.append("</a>")
            case "image":
                yield Reference(str(child.attrGet("src") or ""), "embedded")
                page.append("<img>")
            case _:
                page.append(html.escape(_said(child), quote=False))
    yield from html_parts("".join(page))


def _with_children(tokens: list[Token]) -> Iterator[Token]:
    """The tokens, and behind a picture what its description holds."""
    waiting = [iter(tokens)]
    while waiting:
        token = next(waiting[-1], None)
        if token is None:
            waiting.pop()
            continue
        yield token
        if token.children:
            waiting.append(iter(token.children))


def _said(token: Token) -> str:
    match token.type:
        case "text" | "text_special":
            return token.content
        case "code_inline":
            return f"`{token.content}`"
        case "softbreak" | "hardbreak":
            return "\n"
        case _:
            return ""


def _pieces(text: str) -> Iterator[str]:
    while len(text) > PARAGRAPH:
        cut = max(text.rfind("\n", 0, PARAGRAPH), text.rfind(" ", 0, PARAGRAPH), 0) or PARAGRAPH
        yield text[:cut]
        text = text[cut:]
    yield text


class _Reader(MarkdownIt):
    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the library's name
        return url  # as it is written: how it is to be read is decided elsewhere


def _parser(stop: Callable[[], bool]) -> MarkdownIt:
    """CommonMark with tables. Paragraphs are not read on by themselves, and everything asks whether to go on."""

    def patience(*_: Any) -> bool:
        if stop():
            raise TookTooLong
        return False

    parser = _Reader("commonmark", {"maxNesting": 20}).enable("table")
    parser.disable(["inline", "text_join"])
    parser.inline.ruler2.enableOnly([])
    parser.disable(["emphasis"])
    parser.block.ruler.before("code", "patience", patience)
    parser.inline.ruler.before("escape", "patience", patience)
    return parser


def _may_refer(text: str) -> bool:
    """Whether there may be a link, a picture or a tag: a link to a definition refers to nothing new, a picture does."""
    return "](" in text or "<" in text or 0 <= text.find("![") < text.rfind("]")
