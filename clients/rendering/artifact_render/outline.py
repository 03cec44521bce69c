"""Reads an HTML page as slides: a heading begins one, and what follows it goes on it.

A slide begins at `h1`, `h2`, `hr` and at a `section`; `h3` and below are bold lines. `<aside class="notes">` and a
paragraph that begins with `Note:` are the speaker's notes. What is no text, list, picture or table is read as the text
in it. No element is drawn that a reader would not see: styles, scripts and comments are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import lxml.html
from lxml import etree

Kind = Literal["plain", "bullet", "number", "quote", "code", "heading"]


@dataclass(frozen=True, slots=True)
class Run:
    """Text in one style. `url` is the link as written; `raised` is a citation."""

    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False
    raised: bool = False
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """One paragraph; `level` counts the lists around it, from 0."""

    runs: tuple[Run, ...]
    kind: Kind = "plain"
    level: int = 0
    number: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as the page refers to it."""

    reference: str
    alt: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells."""

    rows: tuple[tuple[tuple[Run, ...], ...], ...]


Item = Text | Picture | Table


@dataclass(slots=True)
class Slide:
    """One slide. `cited` are the numbers of the sources that it cites."""

    title: tuple[Run, ...] = ()
    items: list[Item] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cited: set[int] = field(default_factory=set)


def slides_of(html: str) -> list[Slide]:
    """The slides of a page, at least one. Slides with nothing on them are left out."""
    reader = _Reader()
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    document = etree.fromstring(html.encode("utf-8", "replace") or b"<html/>", parser)
    for body in document.iter("body") if document is not None else ():
        reader.block(body)
        break
    return [one for one in reader.slides if one.title or one.items] or [Slide()]


def plain(runs: Iterable[Run]) -> str:
    """The text of runs, without their style."""
    return "".join(run.text for run in runs)


class _Reader:
    def __init__(self) -> None:
        self.slides: list[Slide] = [Slide()]

    @property
    def _slide(self) -> Slide:
        return self.slides[-1]

    def block(self, element: etree._Element, *, kind: Kind = "plain", level: int = 0) -> None:
        """Read what is in a block: runs of text between its blocks are paragraphs."""
        pending = list(_text_run(element.text, Run("")))
        for child in element:
            if _is_block(child):
                self._paragraph(pending, kind, level)
                pending = []
                self._child(child, kind, level)
            else:
                pending += self._inline(child, Run(""))
            pending += _text_run(child.tail, Run(""))
        self._paragraph(pending, kind, level)

    def _child(self, element: etree._Element, kind: Kind, level: int) -> None:
        match element.tag:
            case "h1" | "h2":
                self._begin()
                self._slide.title = _trimmed(self._inline(element, Run("")))
            case "h3" | "h4" | "h5" | "h6":
                self._paragraph(self._inline(element, Run("")), "heading", level)
            case "hr" | "section":
                self._begin()
                self.block(element)
            case "ul" | "ol":
                self._list(element, level)
            case "pre":
                lines = "".join(map(str, element.itertext())).rstrip("\n").expandtabs(4)
                self._add(Text((Run(lines, code=True),), "code", level))
            case "table":
                self._table(element)
            case "blockquote":
                self.block(element, kind="quote", level=level)
            case "aside" if "notes" in (element.get("class") or "").split():
                self._slide.notes.append(_collapse("".join(map(str, element.itertext()))).strip())
            case _:
                self.block(element, kind=kind, level=level)

    def _list(self, element: etree._Element, level: int) -> None:
        kind: Kind = "number" if element.tag == "ol" else "bullet"
        for number, entry in enumerate((child for child in element if child.tag == "li"), start=1):
            start = len(self._slide.items)
            self.block(entry, kind=kind, level=level + 1)
            self._mark(start, number, level + 1)

    def _mark(self, start: int, number: int, level: int) -> None:
        """The first paragraph of an entry has its mark, those behind it stand below it without one."""
        items = self._slide.items
        own = [at for at, item in enumerate(items) if at >= start and isinstance(item, Text) and item.level == level]
        for place, at in enumerate(own):
            item = items[at]
            if isinstance(item, Text):
                items[at] = replace(item, number=number) if place == 0 else replace(item, kind="plain")

    def _table(self, element: etree._Element) -> None:
        rows = [
            tuple(_trimmed(self._inline(cell, Run(""))) for cell in row if cell.tag in ("td", "th"))
            for row in element.iter("tr")
        ]
        rows = [row for row in rows if row]
        if rows:
            self._add(Table(tuple(rows)))

    def _inline(self, element: etree._Element, style: Run) -> list[Run]:
        """The runs of an element that stands in a line; pictures in it are put on the slide."""
        tag = element.tag
        if tag in _UNSEEN:
            return []
        if tag == "img":
            self._add(Picture(element.get("src") or "", element.get("alt") or ""))
            return []
        if tag == "br":
            return [replace(style, text="\v")]
        style = self._styled(element, style)
        runs = list(_text_run(element.text, style))
        for child in element:
            runs += self._inline(child, style)
            runs += _text_run(child.tail, style)
        return runs

    def _styled(self, element: etree._Element, style: Run) -> Run:
        match element.tag:
            case "b" | "strong" | "th":
                return replace(style, bold=True)
            case "i" | "em" | "cite":
                return replace(style, italic=True)
            case "code" | "kbd" | "samp" | "tt":
                return replace(style, code=True)
            case "a":
                return replace(style, url=element.get("href") or style.url)
            case "sup":
                self._slide.cited.update(int(sid) for sid in _SIDS.findall(element.get("data-sids") or ""))
                return replace(style, raised=True)
            case _:
                return style

    def _paragraph(self, runs: list[Run], kind: Kind, level: int) -> None:
        text = _trimmed(runs)
        if not text:
            return
        note = _NOTE.match(plain(text))
        if note and kind == "plain":
            self._slide.notes.append(plain(text)[note.end() :])
        else:
            self._add(Text(text, kind, level))

    def _add(self, item: Item) -> None:
        self._slide.items.append(item)

    def _begin(self) -> None:
        if self._slide.title or self._slide.items:
            self.slides.append(Slide())


def _text_run(text: str | None, style: Run) -> Iterator[Run]:
    if text:
        yield replace(style, text=_collapse(text))


def _collapse(text: str) -> str:
    return _BLANKS.sub(" ", text)


def _trimmed(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The runs without blanks at both ends and without two blanks in a row."""
    kept: list[Run] = []
    blank = True
    for run in runs:
        text = run.text.lstrip(" ") if blank else run.text
        if text:
            kept.append(replace(run, text=text))
            blank = text[-1] in " \v"
    while kept and not (text := kept[-1].text.rstrip(" \v")):
        kept.pop()
    if kept:
        kept[-1] = replace(kept[-1], text=kept[-1].text.rstrip(" \v"))
    return tuple(kept)


def _is_block(element: etree._Element) -> bool:
    return element.tag in _BLOCKS or (element.tag not in _UNSEEN and any(child.tag in _BLOCKS for child in element))


_BLANKS = re.compile(r"[ \t\r\n\f]+")
_NOTE = re.compile(r"notes?:\s*", re.IGNORECASE)
_SIDS = re.compile(r"[0-9]{1,12}")
_UNSEEN = frozenset({"script", "style", "template", "head", "title", "meta", "link", "noscript", "iframe", "object"})
_BLOCKS = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dl", "dt"),
        *("fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr"),
        *("li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "ul"),
    }
)
