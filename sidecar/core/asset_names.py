"""The files that prose names: `turn_1/files/report.pdf` in a sentence, in quotes, in backticks, in brackets.

A path in prose is followed by a full stop as often as it ends in one, and names hold blanks and parentheses. What is
there decides: the likeliest reading comes first, the others are tried when it leads nowhere (spec section 9).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sidecar.core.asset_reference import Reference
from sidecar.core.stretches import first_match

PATH_CHARS = 1024  # a path in prose that is longer is not meant to be one
BEGIN_CHARS = 256  # how a path begins takes less, and what stands behind it
LINE_CHARS = 8192  # a line is looked at in pieces of so much, cut at blanks
_WORDS_MORE = 4
_MARKS = 4


def named_references(text: str) -> Iterator[Reference]:
    """Every file of a turn that a text names, in order. A path within a word, a URL or another path is none."""
    if first_match(_MAY_NAME, text, reach=BEGIN_CHARS) is None:
        return
    at = 0
    while (begin := first_match(_BEGIN, text, at, reach=BEGIN_CHARS)) is not None:
        found = _reference(text, begin)
        yield found
        at = begin.start() + max(len(found.text), len(begin[0]))


def _reference(text: str, begin: re.Match[str]) -> Reference:
    start = begin.start()
    token = _WORD.match(text, start)
    word = token[0] if token is not None else begin[0]
    plain = _trimmed(word)
    readings = [plain, *_shortened(word), *_longer(text, start + len(word), word)]
    quoted = _quoted(text, start)
    if quoted is not None:
        readings.append(quoted)
    # What stands in quotes and ends like a name is meant whole.
    usual = quoted if quoted is not None and _NAME_END.search(quoted) else plain
    return Reference(usual, "named", tuple(dict.fromkeys(one for one in readings if one != usual)))


def _quoted(text: str, start: int) -> str | None:
    """What stands between the marks around a path, on one line."""
    closing = _QUOTES.get(text[start - 1 : start]) if start else None
    if closing is None:
        return None
    if closing == ")":
        balanced = _BALANCED.match(text, start)
        end = balanced.end() if balanced is not None and text[balanced.end() : balanced.end() + 1] == ")" else -1
    else:
        end = text.find(closing, start, start + PATH_CHARS)
    inner = text[start:end] if end > start else ""
    return inner if inner and "\n" not in inner else None


def _trimmed(word: str) -> str:
    """A word without the marks of the sentence around it; a closing bracket stays if its opening one is in it."""
    while len(word) > 1:
        last = word[-1]
        if last in _SENTENCE_MARKS or (last in _PAIRS and word.count(last) > word.count(_PAIRS[last])):
            word = word[:-1]
        else:
            break
    return word


def _shortened(word: str) -> Iterator[str]:
    """The word as it stands, and without the last few marks one by one."""
    yield word
    for _ in range(_MARKS):
        if len(word) < 2 or (word[-1] not in _SENTENCE_MARKS and word[-1] not in _PAIRS):
            return
        word = word[:-1]
        yield word


def _longer(text: str, end: int, word: str) -> Iterator[str]:
    """The word with those behind it, as far as they end like a file's name."""
    more = _MORE_WORDS.match(text, end)
    if more is None:
        return
    for piece in more[0].split(" ")[1:]:
        word = f"{word} {piece}"
        trimmed = _trimmed(word)
        if _NAME_END.search(trimmed):
            yield trimmed


_BEGIN = re.compile(
    r"(?<![\w:./\\~%@=&?#-])(?:\./)?(?:[A-Za-z0-9_-]{1,128}/(?:files|attachments)/(?=[^\s/])"
    r"|fi:[A-Za-z0-9_-]{1,128}\.(?:files|(?:user\.)?attachments)/(?=[^\s/]))"
)
_MAY_NAME = re.compile(r"(?:files|attachments)/")  # looked for first, as nearly all prose names nothing
_WORD = re.compile(rf"[^\s<>\"`|\x00-\x1f]{{0,{PATH_CHARS}}}")
_MORE_WORDS = re.compile(rf"(?:[ ][^\s<>\"`|/\x00-\x1f]{{1,100}}){{1,{_WORDS_MORE}}}")
_NAME_END = re.compile(r"\.[A-Za-z0-9]{1,8}\Z")
_SENTENCE_MARKS = ".,;:!?*_'\"…”’»"
_PAIRS = {")": "(", "]": "[", "}": "{"}
_QUOTES = {"`": "`", '"': '"', "'": "'", "(": ")", "<": ">", "[": "]", "“": "”", "«": "»"}
_BALANCED = re.compile(rf"(?:[^()\n]|\([^()\n]{{0,{PATH_CHARS}}}\)){{0,{PATH_CHARS}}}+")
