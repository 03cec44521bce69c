"""Draws slides as a .pptx: text beside its pictures, tables with their head repeated, links, notes, and the sources."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pptx import Presentation
from pptx.dml.color import RGBColor
from pptx.enum.shapes import MSO_SHAPE
from pptx.oxml.ns import qn
from pptx.slide import Slide as Drawn
from pptx.text.text import TextFrame, _Paragraph
from pptx.util import Emu, Inches, Pt

from artifact_render.documents import SourceLine, goes_somewhere
from artifact_render.limits import SLIDES
from artifact_render.outline import Item, Picture, Run, Slide, Table, Text, plain
from artifact_render.pictures import drawable, inlined
from artifact_render.shelf import Shelf

# Inches, on a slide of 16:9.
_WIDTH, _HEIGHT, _EDGE, _TOP = 13.333, 7.5, 0.6, 1.45
_BODY = _HEIGHT - _TOP - 0.4
_GAP = 0.3
_LINE, _SIZE = 0.36, 18  # the height of a line in inches, and its letters in points
_LINES, _ROWS, _PICTURES, _COLUMNS = int(_BODY / _LINE), 12, 2, 12
_SHOWN = 120  # letters of a name
_LETTERS = 600  # of one paragraph; that fills a slide beside a picture


@dataclass(slots=True)
class _Board:
    """What goes on one slide, in the end."""

    title: tuple[Run, ...]
    texts: list[Text] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    table: Table | None = None
    lines: float = 0.0

    def takes(self, item: Item) -> bool:
        match item:
            case Text():
                return self.table is None and (not self.texts or self.lines + _lines(item, self._width()) <= _LINES)
            case Picture():
                fits = sum(_lines(text, _WIDTH / 2) for text in self.texts) <= _LINES
                return self.table is None and len(self.pictures) < _PICTURES and fits
            case Table():
                return self.table is None and not self.texts and not self.pictures

    def take(self, item: Item) -> None:
        match item:
            case Text():
                self.lines += _lines(item, self._width())
                self.texts.append(item)
            case Picture():
                self.pictures.append(item)
                self.lines = sum(_lines(text, self._width()) for text in self.texts)
            case Table():
                self.table = item

    def _width(self) -> float:
        return (_WIDTH - 2 * _EDGE - _GAP) / 2 if self.pictures else _WIDTH - 2 * _EDGE


def draw(
    slides: Sequence[Slide], shelf: Shelf, sources: Sequence[SourceLine], target: Path, *, title: str
) -> list[str]:
    """Write the file; the answer says, in sentences, what could not be drawn."""
    artist = _Artist(shelf, {line.sid: line for line in sources})
    for slide in slides[:SLIDES]:
        artist.slide(slide)
    if len(slides) > SLIDES:
        artist.remarks.append(f"only the first {SLIDES} of {len(slides)} slides were drawn")
    artist.slide(_sources_slide(sources))
    artist.deck.core_properties.title = _drawable_text(title)[:255]
    artist.deck.save(str(target))
    return artist.remarks


class _Artist:
    def __init__(self, shelf: Shelf, lines: dict[int, SourceLine]) -> None:
        self._shelf, self._lines = shelf, lines
        self.remarks: list[str] = []
        self.deck = Presentation()
        self.deck.slide_width, self.deck.slide_height = Inches(_WIDTH), Inches(_HEIGHT)

    def slide(self, slide: Slide) -> None:
        """Draw one, on as many as it needs; the notes go with the first."""
        if not slide.title and not slide.items:
            return
        first: Drawn | None = None
        for board in _boards(slide):
            drawn = self._board(board)
            first = first or drawn
        notes = [*slide.notes, *self._cited(slide.cited)]
        if first is not None and notes:
            first.notes_slide.notes_text_frame.text = _drawable_text("\n".join(notes))

    def _cited(self, sids: Iterable[int]) -> Iterator[str]:
        for line in (self._lines[sid] for sid in sorted(sids) if sid in self._lines):
            yield f"[S:{line.sid}] {line.title} {line.where if line.where != line.title else ''}".rstrip()

    def _board(self, board: _Board) -> Drawn:
        drawn = self.deck.slides.add_slide(self.deck.slide_layouts[5])
        heading = drawn.shapes.title
        alone = not (board.texts or board.pictures or board.table)
        heading.left, heading.width = Inches(_EDGE), Inches(_WIDTH - 2 * _EDGE)
        heading.top, heading.height = (Inches(2.5), Inches(2)) if alone else (Inches(0.35), Inches(1))
        self._runs(heading.text_frame.paragraphs[0], board.title, size=40 if alone else 30)
        half = (_WIDTH - 2 * _EDGE - _GAP) / 2
        beside = bool(board.texts and board.pictures)
        if board.texts:
            self._texts(drawn, board.texts, half if beside else _WIDTH - 2 * _EDGE)
        for number, picture in enumerate(board.pictures):
            self._picture(drawn, picture, _frame(number, len(board.pictures), beside=beside))
        if board.table:
            self._table(drawn, board.table)
        return drawn

    def _texts(self, drawn: Drawn, texts: Sequence[Text], width: float) -> None:
        box = drawn.shapes.add_textbox(Inches(_EDGE), Inches(_TOP), Inches(width), Inches(_BODY))
        frame: TextFrame = box.text_frame
        frame.word_wrap = True
        for number, text in enumerate(texts):
            paragraph = frame.paragraphs[0] if number == 0 else frame.add_paragraph()
            paragraph.space_after = Pt(4)
            _indent(paragraph, text)
            runs = tuple(replace(run, bold=True) for run in text.runs) if text.kind == "heading" else text.runs
            runs = tuple(replace(run, italic=True) for run in runs) if text.kind == "quote" else runs
            self._runs(paragraph, runs, size=14 if text.kind == "code" else _SIZE)

    def _table(self, drawn: Drawn, table: Table) -> None:
        columns = min(_COLUMNS, max(map(len, table.rows)))
        if columns < max(map(len, table.rows)):
            self.remarks.append(f"of a table only the first {_COLUMNS} columns were drawn")
        width, height = Inches(_WIDTH - 2 * _EDGE), Inches(0.4 * len(table.rows))
        frame = drawn.shapes.add_table(len(table.rows), columns, Inches(_EDGE), Inches(_TOP), width, height)
        for row, cells in enumerate(table.rows):
            for column, runs in enumerate(cells[:columns]):
                self._runs(frame.table.cell(row, column).text_frame.paragraphs[0], runs, size=14)

    def _picture(self, drawn: Drawn, picture: Picture, frame: tuple[float, float, float, float]) -> None:
        left, top, width, height = frame
        content = self._content(picture.reference)
        found = "it is not there" if content is None else drawable(content)
        if isinstance(found, str):
            # The hole keeps its place; what is missing in OUT_DIR is told by the daemon, in its own words.
            if content is not None:
                self.remarks.append(f"{picture.reference[:_SHOWN]} was not drawn: {found}")
            hole = drawn.shapes.add_shape(MSO_SHAPE.RECTANGLE, *map(Inches, (left, top, width, min(height, 1.2))))
            hole.fill.background()
            hole.line.color.rgb = RGBColor(0x99, 0x99, 0x99)
            hole.text_frame.word_wrap = True
            self._runs(
                hole.text_frame.paragraphs[0], (Run(f"[{(picture.alt or picture.reference)[:_SHOWN]}]"),), size=14
            )
            hole.text_frame.paragraphs[0].runs[0].font.color.rgb = RGBColor(0x55, 0x55, 0x55)
            return
        scale = min(width / found.width, height / found.height, 2 / 96)
        shown = found.width * scale, found.height * scale
        place = left + (width - shown[0]) / 2, top + (height - shown[1]) / 2
        drawn_picture = drawn.shapes.add_picture(io.BytesIO(found.content), *map(Inches, (*place, *shown)))
        drawn_picture._element.nvPicPr.cNvPr.set("descr", _drawable_text(picture.alt))

    def _content(self, reference: str) -> bytes | None:
        file = self._shelf.find(reference)
        return inlined(reference) if file is None else self._shelf.content(file)

    def _runs(self, paragraph: _Paragraph, runs: Sequence[Run], *, size: int) -> None:
        for run in _by_line(runs):
            if run is None:
                paragraph.add_line_break()
                continue
            made = paragraph.add_run()
            made.text = _drawable_text(run.text)
            made.font.size = Pt(size)
            made.font.bold, made.font.italic = run.bold or None, run.italic or None
            if run.code:
                made.font.name = "DejaVu Sans Mono"
            if run.raised:
                made.font._element.set("baseline", "30000")
            if run.url and goes_somewhere(run.url):
                made.hyperlink.address = _drawable_text(run.url.strip())


def _boards(slide: Slide) -> list[_Board]:
    """Spread what is on a slide over as many as it needs; those after the first say so."""
    boards = [_Board(slide.title)]
    for item in _pieces(slide.items):
        if not boards[-1].takes(item):
            boards.append(_Board((*slide.title, Run(" (continued)")) if slide.title else ()))
        boards[-1].take(item)
    return boards


def _pieces(items: Iterable[Item]) -> Iterator[Item]:
    """The items, those that are too long for a slide in pieces."""
    for item in items:
        match item:
            case Table(rows) if len(rows) > _ROWS:
                head, body = rows[0], rows[1:]
                for start in range(0, len(body), _ROWS - 1):
                    yield Table((head, *body[start : start + _ROWS - 1]))
            case Text(runs, kind="code") if plain(runs).count("\n") >= _LINES - 1:
                lines = plain(runs).split("\n")
                for start in range(0, len(lines), _LINES - 1):
                    yield replace(item, runs=(replace(runs[0], text="\n".join(lines[start : start + _LINES - 1])),))
            case Text(runs) if len(plain(runs)) > _LETTERS:
                yield from (replace(item, runs=part) for part in _parts(runs))
            case _:
                yield item


def _parts(runs: Iterable[Run]) -> Iterator[tuple[Run, ...]]:
    """A paragraph in parts of at most `_LETTERS`, cut between words where there are any."""
    part: list[Run] = []
    room = _LETTERS
    for run in runs:
        text = run.text
        while len(text) > room:
            cut = text.rfind(" ", 0, room) + 1 or room
            yield (*part, replace(run, text=text[:cut]))
            part, room, text = [], _LETTERS, text[cut:]
        if text:
            part.append(replace(run, text=text))
            room -= len(text)
    if part:
        yield tuple(part)


def _by_line(runs: Iterable[Run]) -> Iterator[Run | None]:
    """The runs, with None where a new line begins."""
    for run in runs:
        for number, line in enumerate(re.split(r"[\n\v]", run.text)):
            if number:
                yield None
            if line:
                yield replace(run, text=line)


def _sources_slide(sources: Sequence[SourceLine]) -> Slide:
    slide = Slide()
    for line in sources:
        tail = (Run(f"  {line.where}", url=line.url),) if line.where != line.title else ()
        slide.items.append(Text((Run(f"[S:{line.sid}] "), Run(line.title, url=line.url), *tail)))
    if slide.items:
        slide.title = (Run("Sources"),)
    return slide


def _lines(text: Text, width: float) -> float:
    """About how many lines a paragraph takes, in a column of so many inches."""
    letters = max(10.0, (width - 0.4 * text.level) * 72 / (_SIZE * 0.52))
    return sum(max(1, math.ceil(len(line) / letters)) for line in re.split(r"[\n\v]", plain(text.runs))) + 0.2


def _frame(number: int, count: int, *, beside: bool) -> tuple[float, float, float, float]:
    """Where a picture may be drawn, as left, top, width, height: in the right half beside text, else side by side."""
    half = (_WIDTH - 2 * _EDGE - _GAP) / 2
    if beside:
        height = (_BODY - _GAP * (count - 1)) / count
        return _EDGE + half + _GAP, _TOP + number * (height + _GAP), half, height
    width = (_WIDTH - 2 * _EDGE - _GAP * (count - 1)) / count
    return _EDGE + number * (width + _GAP), _TOP, width, _BODY


def _indent(paragraph: _Paragraph, text: Text) -> None:
    """A mark before the line, hanging, as PowerPoint itself writes it."""
    properties = paragraph._p.get_or_add_pPr()
    depth = max(text.level, 1 if text.kind in ("bullet", "number", "quote") else 0)
    properties.set("marL", str(Emu(Inches(0.4 * depth))))
    if text.kind == "bullet":
        properties.set("indent", str(-Inches(0.3)))
        properties.append(properties.makeelement(qn("a:buChar"), {"char": "•"}))
    elif text.kind == "number" and text.number:
        properties.set("indent", str(-Inches(0.4)))
        start = {"type": "arabicPeriod", "startAt": str(text.number)}
        properties.append(properties.makeelement(qn("a:buAutoNum"), start))


def _drawable_text(text: str) -> str:
    """XML has no word for control characters."""
    return _CONTROLS.sub("", text)


_CONTROLS = re.compile(r"[\x00-\x08\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
