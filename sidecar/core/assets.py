"""What a document needs to be shown: which files it refers to, and which sources it cites.

Decides only. The answer says what is asked for; what is there, and where it comes from, is asked of others. A document
comes from anybody, so everything is counted: how many references, and how much is given to the slower parsers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from sidecar.core import limits
from sidecar.core.asset_css import css_pieces, css_references, may_refer
from sidecar.core.asset_html import Prose, Style, html_parts
from sidecar.core.asset_markdown import TookTooLong, markdown_parts
from sidecar.core.asset_names import named_references
from sidecar.core.asset_reference import Place, Reference, Wanted, cited, wanted
from sidecar.core.citations import cited_numbers
from sidecar.core.notices import Notice, notice
from sidecar.core.numbers import NumberSet
from sidecar.core.paths import FilePath

HTML, CSS, MARKDOWN, SVG = "text/html", "text/css", "text/markdown", "image/svg+xml"
FOLLOWED = frozenset({HTML, CSS, SVG, "application/xhtml+xml"})

PROSE_AT_ONCE = 65_536

Part = Reference | Prose | Style


@dataclass(frozen=True, slots=True)
class Document:
    """A text and how to read it. `path` is the file it was read from; `turn_id` the open turn, for bare names.

    Without a `mime` it is HTML when it begins like a page, else Markdown, which holds HTML too.
    """

    text: str
    mime: str = ""
    path: FilePath | None = None
    turn_id: str = ""

    @property
    def place(self) -> Place:
        if self.path is None:
            return Place(loose=self.turn_id)
        return Place(self.path.physical.rpartition("/")[0])


@dataclass(slots=True)
class Room:
    """What one pull may still look at, over all its documents; `exceeded` names the limits it met, in that order."""

    references: int = limits.ASSET_REFERENCES
    bytes: int = limits.ASSET_BYTES
    markdown: int = limits.ASSET_MARKDOWN_BYTES
    css: int = limits.ASSET_CSS_BYTES
    exceeded: dict[str, None] = field(default_factory=dict[str, None])

    def meet(self, limit: str) -> None:
        self.exceeded[limit] = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a document asks for: its files in the order of their first mention, and the numbers it cites."""

    wanted: tuple[Wanted, ...]
    numbers: NumberSet


def plan(document: Document, room: Room, *, stop: Callable[[], bool] = lambda: False) -> Plan:
    """Find everything a document refers to. Never raises; what there is no room for is left out and told in `room`."""
    found: dict[tuple[str, str], Wanted] = {}
    numbers = {cited_numbers(document.text, _reading(document))}
    place = document.place
    try:
        for reference in _references(document, room, stop):
            known = (reference.text, reference.how)
            if known in found:
                continue
            if (number := cited(reference.text)) is not None:
                numbers.add(number)
            elif (one := wanted(reference, place)) is not None:
                if room.references <= 0:
                    room.meet("asset_references")
                    break
                found[known] = one
                room.references -= 1
    except TookTooLong:
        room.meet("asset_seconds")
    return Plan(tuple(found.values()), _joined(numbers))


def follows(mime: str) -> bool:
    """Whether a file of this type is read for what it refers to in turn."""
    return mime.partition(";")[0].strip().lower() in FOLLOWED


def notices_for(
    *,
    missing: Iterable[str],
    missing_sids: Iterable[int],
    missing_sid_assets: Iterable[tuple[int, str]],
    exceeded: Iterable[str],
    tool_id: str = "",
) -> list[Notice]:
    """What is to be said of holes (spec section 9), each code at most once but for the limits that were met."""
    tool = {"tool_id": tool_id} if tool_id else {}
    files, sids, pairs = list(missing), list(missing_sids), list(missing_sid_assets)
    told: list[Notice] = []
    if files:
        told.append(notice("tool_call_error.missing_assets", missing=files, **tool))
    if sids:
        told.append(notice("tool_call_warning.missing_sources", missing_sids=sids, **tool))
    if pairs:
        paths, cited_by = [path for _, path in pairs], [sid for sid, _ in pairs]
        told.append(notice("tool_call_warning.missing_sid_assets", missing=paths, missing_sids=cited_by, **tool))
    return told + [notice("assets_truncated", limit=limit, **tool) for limit in exceeded]


def _references(document: Document, room: Room, stop: Callable[[], bool]) -> Iterator[Reference]:
    for part in _parts(document, room, stop):
        if stop():
            raise TookTooLong
        match part:
            case Prose(text):
                for piece in _pieces(text):
                    yield from named_references(piece)
            case Style(text):
                yield from _styled(text, room, stop)
            case Reference():
                yield part


def _parts(document: Document, room: Room, stop: Callable[[], bool]) -> Iterator[Part]:
    text = document.text
    match _reading(document):
        case "text/html":
            yield from html_parts(text)
        case "text/css":
            yield Style(text)
        case "text/markdown":
            if not document.mime and _TAG.match(text):
                # A fragment, or Markdown that opens with a tag: nobody said which, so it is read as both.
                yield from html_parts(text)
            yield from _marked_down(_slim(text), room, stop)
        case _:
            yield Prose(text)


def _marked_down(text: str, room: Room, stop: Callable[[], bool]) -> Iterator[Part]:
    taken = _cut(text, room.markdown)
    room.markdown -= len(taken)
    yield from markdown_parts(taken, stop=stop)
    if len(taken) < len(text):
        room.meet("asset_markdown_bytes")
        yield Prose(text[len(taken) :])


def _styled(text: str, room: Room, stop: Callable[[], bool]) -> Iterator[Reference]:
    if not may_refer(text):
        return
    for piece in css_pieces(_slim(text)):
        if stop():
            raise TookTooLong
        if len(piece) > min(room.css, limits.ASSET_CSS_RULE_BYTES):
            room.meet("asset_css_bytes" if len(piece) > room.css else "asset_css_rule_bytes")
            continue
        room.css -= len(piece)
        yield from css_references(piece)


def _reading(document: Document) -> str:
    """As what a document is read: HTML, CSS, Markdown, or by its own type for what is none of these."""
    mime = document.mime.partition(";")[0].strip().lower()
    if mime in (CSS, MARKDOWN):
        return mime
    if mime in FOLLOWED or (not mime and _PAGE.match(document.text)):
        return HTML
    return mime or MARKDOWN


def _slim(text: str) -> str:
    """The text with the bytes of data URLs left out, all but the last character, which may belong to what follows."""
    slim: list[str] = []
    at = 0
    while (mark := text.find(_PACKED_MARK, at)) >= 0:
        begin = mark + len(_PACKED_MARK)
        packed = _PACKED.match(text, begin)
        slim.append(text[at:begin])
        at = begin if packed is None else packed.end() - 1
    return "".join([*slim, text[at:]]) if slim else text


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return text[: text.rfind("\n", 0, most) + 1] or text[:most]


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces that are quickly searched, cut at blanks."""
    at = 0
    while len(text) - at > PROSE_AT_ONCE:
        end = at + PROSE_AT_ONCE
        cut = max(text.rfind("\n", at, end), text.rfind(" ", at, end)) + 1 or end
        yield text[at:cut]
        at = cut
    yield text[at:]


def _joined(numbers: Iterable[NumberSet]) -> NumberSet:
    singles: dict[int, None] = {}
    ranges: dict[tuple[int, int], None] = {}
    for some in numbers:
        singles.update(dict.fromkeys(some.singles))
        ranges.update(dict.fromkeys(some.ranges))
    return NumberSet(tuple(singles), tuple(ranges)).normal()


_PAGE = re.compile(
    r"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,1000}?-->\s*)?<(?:!doctype\s|html|head|body|svg)", re.I | re.S
)
_TAG = re.compile(r"\s*<[A-Za-z!]")
_PACKED_MARK = ";base64,"
_PACKED = re.compile(r"[A-Za-z0-9+/=]{63,}+")
