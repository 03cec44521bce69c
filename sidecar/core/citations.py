"""Citations in what an agent wrote: which sources it names, and links in place of `[[S:1,3-5]]`.

A text is Markdown unless its mime says HTML or JSON. Nothing outside a token is ever altered. A stream that is cut
anywhere says in the end what the whole text would have said (spec section 6).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sidecar.core.errors import TooLarge
from sidecar.core.limits import MESSAGE_BYTES
from sidecar.core.markdown import MarkdownScanner
from sidecar.core.markup import HtmlScanner
from sidecar.core.numbers import NumberSet
from sidecar.core.sidecars import JsonScanner
from sidecar.core.tokens import Found, Scanner

PIECE_CHARS = 256 * 1024


@dataclass(frozen=True, slots=True)
class Link:
    """How a source is shown. Without a `url`, or with one that would run a script, the title stands alone."""

    title: str
    url: str | None


class Resolver(Protocol):
    """The pool as citations see it."""

    @property
    def sids(self) -> Sequence[int]:
        """Every number of the pool, ascending."""
        ...

    def link(self, sid: int) -> Link | None:
        """How a source is shown, or None when there is none that may be shown."""
        ...


@dataclass(frozen=True, slots=True)
class Replaced:
    """A text with its tokens replaced. Both lists ascend; what is cited is in one of them."""

    text: str
    sources_used: list[int]
    unresolved: list[int]


def extract(text: str, mime: str, sids: Sequence[int]) -> list[int]:
    """The numbers a text cites, ascending: single ones as written, known or not, and of ranges those in `sids`."""
    numbers = cited_numbers(text, mime)
    return sorted({*numbers.singles, *NumberSet((), numbers.ranges).among(sids)})


def cited_numbers(text: str, mime: str) -> NumberSet:
    """The numbers a text cites as they are written, ranges as ranges."""
    singles: set[int] = set()
    ranges: set[tuple[int, int]] = set()
    for found in scan(text, mime):
        singles.update(found.numbers.singles)
        ranges.update(found.numbers.ranges)
    return NumberSet(tuple(singles), tuple(ranges))


def scan(text: str, mime: str) -> Iterator[Found]:
    """What a whole text cites, in order, at offsets in code points. What stands at no place of its own is empty there.

    A long text is read in pieces, between which other threads get their turn.
    """
    kind = _kind(mime)
    if kind.read_in_parts and not _may_cite(text):
        return
    scanner = kind.scanner()
    piece = PIECE_CHARS if kind.read_in_parts else len(text) + 1
    undecided, before = "\n", -1  # and where its first character stands
    for at in range(0, len(text) + 1, piece):
        undecided += text[at : at + piece]
        for found in scanner.read(undecided, final=at + piece > len(text)):
            yield found._replace(start=before + found.start, end=before + found.end)
        decided = min(scanner.kept, len(undecided)) - 1
        undecided, before = undecided[decided:], before + decided


def _may_cite(text: str) -> bool:
    """Whether a token or a citing tag may begin in this text. A no is certain, and most files that are read have one.

    In ASCII nothing may stand between the two brackets of a token.
    """
    return "[[" in text or "<s" in text or "<S" in text or not text.isascii()


def replace(text: str, mime: str, resolver: Resolver) -> Replaced:
    """Put links in place of tokens. A token of which nothing resolves stays as it is.

    A long text is read in pieces, as `scan` does it. Raises TooLarge when the links would come to more than one message
    can carry.
    """
    stream = StreamReplacer(mime, resolver)
    replaced = [stream.feed(text[at : at + PIECE_CHARS]) for at in range(0, len(text), PIECE_CHARS)]
    return Replaced("".join([*replaced, stream.flush()]), stream.sources_used, stream.unresolved)


class StreamReplacer:
    """`replace` for a text that arrives in chunks: what `feed` and at last `flush` answer, joined, is the same text.

    Held back is only what may still become a token, and tokens while they may turn out to stand in code; some
    kilobytes at most. JSON is answered at the flush. Raises TooLarge as `replace` does, and is of no use afterwards.
    """

    def __init__(self, mime: str, resolver: Resolver) -> None:
        self._kind = _kind(mime)
        self._ledger = _Ledger(resolver, self._kind)
        self._scanner = self._kind.scanner()
        self._text = "\n"  # what is not decided, behind the character before it
        self._answered = 1  # how far into that text the answers went
        self._chunks: list[str] = []
        self._waiting = 0

    @property
    def sources_used(self) -> list[int]:
        """The sources cited so far that resolve, ascending."""
        return sorted(self._ledger.used)

    @property
    def unresolved(self) -> list[int]:
        """The numbers cited so far that do not resolve, ascending."""
        return sorted(self._ledger.unresolved)

    def feed(self, chunk: str) -> str:
        """Take the next part of the text and answer what is certain by now."""
        if self._kind.read_in_parts:
            return self._advance(chunk, final=False)
        self._chunks.append(chunk)
        self._waiting += len(chunk)
        if self._waiting > MESSAGE_BYTES:
            raise TooLarge("the stream", f"a document that is answered at its end holds at most {MESSAGE_BYTES} bytes")
        return ""

    def flush(self) -> str:
        """The text ends here: answer all that was held back. What is fed afterwards is a new text."""
        rest = self._advance("".join(self._chunks), final=True)
        self._scanner = self._kind.scanner()
        self._text, self._answered = "\n", 1
        self._chunks, self._waiting = [], 0
        return rest

    def _advance(self, chunk: str, *, final: bool) -> str:
        text = self._text + chunk
        at = self._answered
        answer: list[str] = []
        for found in self._scanner.read(text, final=final):
            links = self._ledger.links(found)
            if links is not None:
                answer += (text[at : found.start], links)
                at = found.end
        until = len(text) if final else self._scanner.safe(text)
        answer.append(text[at:until])
        before = min(self._scanner.kept, len(text)) - 1
        self._text, self._answered = text[before:], until - before
        return "".join(answer)


class _Ledger:
    """Resolves what was found, once for each spelling, and remembers what was used and what was not known."""

    def __init__(self, resolver: Resolver, kind: _Kind) -> None:
        self.used: set[int] = set()
        self.unresolved: set[int] = set()
        self._resolver = resolver
        self._sids = resolver.sids
        self._kind = kind
        self._links: dict[int, str | None] = {}
        self._known: dict[NumberSet, str] = {}
        self._work = 0

    def links(self, found: Found) -> str | None:
        """What stands in place of a token; None when it stays."""
        links = self._known.get(found.numbers)
        if links is None:
            links = self._resolve(found.numbers)
            if len(self._known) == _SPELLINGS_REMEMBERED:
                self._known.clear()
            self._known[found.numbers] = links
        if found.settled or not links:
            return None
        self._spend(len(links))
        return links

    def _resolve(self, numbers: NumberSet) -> str:
        known = numbers.among(self._sids)
        # A range over a large pool costs time even where no row of it may be shown.
        self._spend(len(known))
        linked = {sid: link for sid in known if (link := self._link(sid)) is not None}
        self.used.update(linked)
        self.unresolved.update({*numbers.singles, *known}.difference(linked))
        return self._kind.joined(linked) if linked else ""

    def _link(self, sid: int) -> str | None:
        if sid not in self._links:
            link = self._resolver.link(sid)
            self._links[sid] = None if link is None else self._kind.shown(sid, link)
        return self._links[sid]

    def _spend(self, work: int) -> None:
        # Ten megabytes of `[[S:1-999]]` would come to terabytes of links.
        self._work += work
        if self._work > MESSAGE_BYTES:
            raise TooLarge("the links", f"tokens may be replaced by at most {MESSAGE_BYTES} bytes of links")


_SPELLINGS_REMEMBERED = 1024


class _Kind(NamedTuple):
    """How texts of one kind are read, how a link is shown in them, and how the links of one token are joined."""

    scanner: Callable[[], Scanner]
    shown: Callable[[int, Link], str]
    joined: Callable[[Mapping[int, str]], str]
    read_in_parts: bool


def _in_markdown(sid: int, link: Link) -> str:
    title = _CONTROLS.sub(" ", link.title)
    title = _MARKDOWN_SPECIAL.sub(r"\\\g<0>", title if title.strip() else link.url or f"source {sid}")
    url = _target(link)
    return title if url is None else f"[{title}]({_URL_SPECIAL.sub(_percent, url)})"


def _in_json(sid: int, link: Link) -> str:
    return json.dumps(_in_markdown(sid, link), ensure_ascii=False)[1:-1]


def _spaced(links: Mapping[int, str]) -> str:
    return " ".join(links.values())


def _in_html(sid: int, link: Link) -> str:
    url = _target(link)
    return f"[S:{sid}]" if url is None else f'<a href="{html.escape(url)}">[S:{sid}]</a>'


def _raised(links: Mapping[int, str]) -> str:
    return f'<sup class="cite" data-sids="{",".join(map(str, links))}">{_spaced(links)}</sup>'


def _target(link: Link) -> str | None:
    url = (link.url or "").strip()
    # Browsers skip control characters and blanks inside the scheme, so they are skipped here too.
    return None if not url or _SCRIPT.match(_BLANK_OR_CONTROL.sub("", url)) else url


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace"))


_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MARKDOWN_SPECIAL = re.compile(r"[\\\[\]|]")
_URL_SPECIAL = re.compile(r"[\s\x00-\x1f\x7f-\x9f()<>\\|`]")
_BLANK_OR_CONTROL = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_SCRIPT = re.compile(r"(?:javascript|vbscript|data):", re.IGNORECASE)

_MARKDOWN = _Kind(MarkdownScanner, _in_markdown, _spaced, read_in_parts=True)
_HTML = _Kind(HtmlScanner, _in_html, _raised, read_in_parts=True)
_JSON = _Kind(JsonScanner, _in_json, _spaced, read_in_parts=False)
_KINDS = {"text/html": _HTML, "application/xhtml+xml": _HTML, "application/json": _JSON}


def _kind(mime: str) -> _Kind:
    name = mime.partition(";")[0].strip().lower()
    return _KINDS.get(name, _JSON if name.endswith("+json") else _MARKDOWN)
