"""The paths that a text names: in prose, in lists, in backticks, with blanks in a file's name, in either spelling.

What resolves decides. A path is followed by a full stop as often as it ends in one, so the longest reading that leads
somewhere is the one that was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from sidecar.core.errors import Refusal
from sidecar.core.paths import Path, parse

MENTIONS = 10_000  # of one text; what comes after is not looked at
_WORDS_MORE, _MARKS = 8, 8

# A family with its colon, a pool with its numbers, or a file as programs open it; not within a word, a URL or a path.
_BEGIN = re.compile(
    r"(?<![\w:./-])(?:"
    r"(?:ar|fi|su|tc):(?=[\w.])"
    r"|(?:so:)?sources_pool\[[^\[\]\n]{0,4096}\]"
    r"|[A-Za-z0-9_-]{1,128}/(?:files|attachments)/(?=[^\s/]))"
)
_TOKEN = re.compile(r"[^\s<>\"`|]{0,4096}")
_MORE_WORDS = re.compile(rf"(?:[ ][^\s<>\"`|]{{1,255}}){{1,{_WORDS_MORE}}}")
_NAME_END = re.compile(r"\.[A-Za-z0-9]{1,8}\Z")
_AFTER = ".,;:!?)]}*_>'\"…”’"
_QUOTES = {"`": "`", '"': '"', "'": "'", "(": ")", "<": ">", "[": "]", "“": "”"}


class Mention(NamedTuple):
    """A path as a text names it; `path` is None when it leads nowhere."""

    text: str
    path: Path | None


class Spot(NamedTuple):
    """Where a text names a path: every reading of it, the likeliest first, and what was meant when none resolves."""

    start: int
    readings: tuple[str, ...]
    usual: str


def spots(text: str) -> Iterator[Spot]:
    """The same as `mentions` for who cannot know yet what resolves. Words that follow count where a name may end."""
    at = count = 0
    while count < MENTIONS and (begin := _BEGIN.search(text, at)) is not None:
        start, bare = begin.start(), _bare(_plain(text, begin))
        short = len(_plain(text, begin))
        readings = dict.fromkeys(one for one in _readings(text, begin) if len(one) <= short or _NAME_END.search(one))
        quoted = next(iter(readings)) if _QUOTES.get(text[start - 1 : start]) else bare
        yield Spot(start, tuple(readings), quoted if _NAME_END.search(quoted) else bare)
        at = start + max(len(bare), 1)
        count += 1


def mentions(text: str, resolves: Callable[[Path], bool]) -> Iterator[Mention]:
    """Every path named in a text, in order, at most `MENTIONS` of them."""
    at = count = 0
    while count < MENTIONS and (begin := _BEGIN.search(text, at)) is not None:
        found = _longest(text, begin, resolves)
        at = begin.start() + max(len(found.text), 1)
        count += 1
        yield found


def _longest(text: str, begin: re.Match[str], resolves: Callable[[Path], bool]) -> Mention:
    for reading in _readings(text, begin):
        path = _path(reading)
        if path is not None and resolves(path):
            return Mention(reading, path)
    return Mention(_bare(_plain(text, begin)), None)


def _plain(text: str, begin: re.Match[str]) -> str:
    if begin[0].endswith("]"):
        return begin[0]
    token = _TOKEN.match(text, begin.start())
    return token[0] if token is not None else begin[0]


def _readings(text: str, begin: re.Match[str]) -> Iterator[str]:
    """What may have been meant, the likeliest first: what is quoted, the word, the word with those that follow it."""
    start = begin.start()
    closing = _QUOTES.get(text[start - 1 : start])
    if closing is not None and (end := text.find(closing, start, start + 4096)) > 0 and "\n" not in text[start:end]:
        yield text[start:end]
    plain = _plain(text, begin)
    yield from _stripped(plain)
    more = _MORE_WORDS.match(text, start + len(plain))
    words = more[0].split(" ")[1:] if more is not None else []
    for count in range(len(words), 0, -1):
        yield from _stripped(" ".join([plain, *words[:count]]))


def _stripped(reading: str) -> Iterator[str]:
    """A reading, and what is left of it when marks at its end are not part of it."""
    yield reading
    for _ in range(_MARKS):
        if not reading or reading[-1] not in _AFTER:
            return
        reading = reading[:-1]
        yield reading


def _bare(reading: str) -> str:
    return reading.rstrip(_AFTER) if not reading.endswith("]") or "sources_pool[" not in reading else reading


def _path(reading: str) -> Path | None:
    try:
        return parse(reading)
    except Refusal:
        return None
