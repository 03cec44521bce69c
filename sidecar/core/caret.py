"""What is being typed at a caret: a path of the workspace in either spelling, or a citation.

Only the line is looked at, and of a long line the part next to the caret. Whether there is such a path, others know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sidecar.core.tokens import ZERO_WIDTH

LINE_CHARS = 600  # of a line that are looked at, before the caret and behind it


@dataclass(frozen=True, slots=True)
class Typed:
    """What stands from `start` to the caret. `end` is behind what is to be replaced with it.

    Of a citation that `is_begun` it is the number, or the words of a title, that come next; of any other one it is the
    brackets. A `loose` path has a blank or a mark in it, at which it may as well have ended before. `is_target`: it
    stands as the target of a Markdown link.
    """

    kind: Literal["logical", "physical", "citation"]
    start: int
    end: int
    text: str
    is_begun: bool = False
    loose: bool = False
    is_target: bool = False


def typed(text: str, caret: int) -> Typed | None:
    """What is being typed where the caret stands, in code points, or None for anything else."""
    before = _BREAK.split(text[max(0, caret - LINE_CHARS) : caret])[-1]
    first = caret - len(before)
    return _citation(before, first, text) or _logical(before, first) or _physical(before, first)


def _citation(before: str, first: int, text: str) -> Typed | None:
    opening = max(before.rfind("[["), before.rfind("［［"))
    found = _CITATION.fullmatch(before, opening) if opening >= 0 else None
    if found is None:
        return None
    caret = first + len(before)
    closing = _CLOSING.match(text, caret, caret + LINE_CHARS)
    is_begun = found["fragment"] is not None
    start = found.start("fragment") if is_begun else opening
    end = closing.end() if closing is not None else caret
    return Typed("citation", first + start, end, before[start:], is_begun=is_begun)


def _logical(before: str, first: int) -> Typed | None:
    start = before.rfind("fi:")
    if start < 0 or (start and (before[start - 1].isalnum() or before[start - 1] in "_-:")):
        return None
    path = before[start:]
    return _path("logical", path, before[:start], first + start, loose=_LOOSE.search(path) is not None)


def _physical(before: str, first: int) -> Typed | None:
    found = _PHYSICAL.search(before)
    if found is None:
        return None
    return _path("physical", found["path"], before[: found.start("path")], first + found.start("path"))


def _path(kind: Literal["logical", "physical"], path: str, lead: str, start: int, *, loose: bool = False) -> Typed:
    is_target = lead.removesuffix("./").endswith("](")
    return Typed(kind, start, start + len(path), path, loose=loose, is_target=is_target)


_BREAK = re.compile(r"[\r\n]")
_BLANKS = rf"[ \t{ZERO_WIDTH}]*+"
_NUMBER = r"[0-9]++"
_CITATION = re.compile(
    rf"[\[［]{{2}}{_BLANKS}(?:[Ss]{_BLANKS}(?:[:：]"
    rf"(?:(?:{_BLANKS}{_NUMBER}{_BLANKS}(?:[-–—]{_BLANKS}{_NUMBER}{_BLANKS})?,)*(?:{_BLANKS}{_NUMBER}{_BLANKS}[-–—])?)"
    rf"{_BLANKS}(?P<fragment>[^\[\]［］]*))?)?"
)
_CLOSING = re.compile(r"[\]］]{1,2}")
_MARKS = r"\s\"'`()<>\[\]{}|,;"
_LOOSE = re.compile(f"[{_MARKS}]")
# A folder of a turn, or the beginning of one: a bare word is a word.
_PHYSICAL = re.compile(
    rf"(?:\A|[{_MARKS}=:])(?:\./)?(?P<path>(?:turn_[A-Za-z0-9_-]*|[A-Za-z0-9_-]{{1,128}}/)[^{_MARKS}]*)\Z"
)
