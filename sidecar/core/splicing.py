"""Puts the hunks of a diff into the file once their places are known, and leaves every other byte as it is.

Lines of context keep what the file has, line ends and trailing blanks included. An added line ends as the diff says
where the diff has the file's own line ends, and as its neighbours do where it has others: models do not see carriage
returns. A last line without a line feed keeps lacking it unless the diff says something about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from sidecar.core.fitting import loose, same
from sidecar.core.hunks import Hunk

CRLF, LF, MIXED, UNKNOWN = "\r", "", "mixed", "unknown"


class Placed(NamedTuple):
    """A hunk and the line, counted from 0, at which it begins."""

    hunk: Hunk
    place: int

    @property
    def stop(self) -> int:
        return self.place + len(self.hunk.old)


class Conflict(NamedTuple):
    """Why hunks that fit still cannot be put in. `place` is a line counted from 0."""

    kind: Literal["mismatch", "ambiguous", "malformed"]
    message: str
    hunk: Hunk
    place: int


class Spliced(NamedTuple):
    lines: list[str]
    ended: bool
    repairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Edit:
    """Lines `start` to `stop` of the file become these."""

    start: int
    stop: int
    added: tuple[str, ...]
    of: Placed


def splice(lines: Sequence[str], placed: Sequence[Placed], *, ended: bool) -> Spliced | Conflict:
    """The lines of the file after all hunks, and whether its last one has a line feed."""
    repairs: list[str] = []
    if (conflict := _contradiction(placed)) is not None:
        return conflict
    edits: list[_Edit] = []
    for one in placed:
        found = _edits(lines, one, ended, repairs)
        if isinstance(found, Conflict):
            return found
        edits += found
    edits.sort(key=lambda edit: (edit.start, edit.stop))
    for before, after in pairwise(edits):
        if before.start == before.stop == after.start == after.stop:
            numbers = f"{before.of.hunk.number} and {after.of.hunk.number}"
            return Conflict("ambiguous", f"hunks {numbers} add lines at the same place", after.of.hunk, after.start)
    still_ended = _end(lines, placed, edits, ended)
    if isinstance(still_ended, Conflict):
        return still_ended
    spliced: list[str] = []
    at = 0
    for edit in edits:
        spliced += lines[at : edit.start]
        spliced += edit.added
        at = edit.stop
    spliced += lines[at:]
    return _joined_at_end(lines, placed, edits, Spliced(spliced, still_ended, tuple(dict.fromkeys(repairs))), ended)


def _contradiction(placed: Sequence[Placed]) -> Conflict | None:
    """Two hunks may share context, but what one removes no other may remove or keep."""
    claims: dict[int, tuple[str, int]] = {}
    for one in placed:
        at = one.place
        for sign in one.hunk.signs:
            if sign == "+":
                continue
            other = claims.setdefault(at, (sign, one.hunk.number))
            if other[1] != one.hunk.number and "-" in (sign, other[0]):
                words = f"hunks {other[1]} and {one.hunk.number} disagree about line {at + 1}"
                return Conflict("malformed", words, one.hunk, at)
            at += 1
    return None


def _edits(lines: Sequence[str], one: Placed, ended: bool, repairs: list[str]) -> list[_Edit] | Conflict:
    style = _style(lines, one, ended)
    edits: list[_Edit] = []
    for start, stop, removed, added in _blocks(one):
        for offset, text in enumerate(removed):
            drifted = not same(text, lines[start + offset])
            if drifted and loose(text) in map(loose, added):
                words = f"hunk {one.hunk.number} removes and adds a line that differs from the file in trailing blanks"
                return Conflict("mismatch", words, one.hunk, start + offset)
        if _unsigned(lines, one, start, stop, added):
            words = f"hunk {one.hunk.number} adds a line that may be context without its sign"
            return Conflict("ambiguous", words, one.hunk, start)
        if style is not None and added:
            local = _uniform(lines[start : stop if ended else min(stop, len(lines) - 1)])
            ending = style if local is UNKNOWN else local
            if ending is MIXED:
                words = f"the lines around hunk {one.hunk.number} end in CRLF and in LF, and the diff in neither way"
                return Conflict("ambiguous", words, one.hunk, start)
            fitted = tuple(text.removesuffix("\r") + ending for text in added)
            if fitted != added:
                repairs.append("gave the added lines the line ends of the file")
            added = fitted
        edits.append(_Edit(start, stop, added, one))
    if any(not same(text, there) for text, there in zip(one.hunk.old, lines[one.place : one.stop], strict=True)):
        repairs.append("overlooked blanks at the ends of lines")
    return edits


def _unsigned(lines: Sequence[str], one: Placed, start: int, stop: int, added: Iterable[str]) -> bool:
    """Whether an addition at the edge of a hunk is, plus and all, the line of the file next to it."""
    above = lines[start - 1 : start] if 0 < start == one.place else ()
    below = lines[stop : stop + 1] if stop == one.stop else ()
    next_to = {loose(line) for line in (*above, *below)}
    return any(loose(f"+{text}") in next_to for text in added)


def _blocks(one: Placed) -> Iterator[tuple[int, int, tuple[str, ...], tuple[str, ...]]]:
    """Runs of changed lines: first and last line in the file, texts removed, texts added."""
    at = start = one.place
    removed: list[str] = []
    added: list[str] = []
    for sign, text in zip(one.hunk.signs, one.hunk.texts, strict=True):
        if sign == " ":
            if removed or added:
                yield start, at, tuple(removed), tuple(added)
            removed, added = [], []
            at += 1
            start = at
        elif sign == "-":
            removed.append(text)
            at += 1
        else:
            added.append(text)
    if removed or added:
        yield start, at, tuple(removed), tuple(added)


def _style(lines: Sequence[str], one: Placed, ended: bool) -> str | None:
    """How added lines end when the diff does not say it itself, or nothing when it does."""
    there = lines[one.place : one.stop if ended else min(one.stop, len(lines) - 1)]
    if there:
        literal = all(
            text.endswith("\r") == line.endswith("\r") for text, line in zip(one.hunk.old, there, strict=False)
        )
        return None if literal else _uniform(there)
    # All there is to compare is a last line without an end, or nothing; so the whole file decides.
    if not lines or one.hunk.old_unended or one.hunk.new_unended:
        return None
    whole = _uniform(lines[:-1])
    if not any(text.endswith("\r") for text in one.hunk.texts):
        return None if whole in (LF, UNKNOWN) else whole
    gained = one.hunk.old[-1].endswith("\r") and not lines[-1].endswith("\r")
    return (LF if whole is UNKNOWN else whole) if gained else None


def _uniform(lines: Sequence[str]) -> str:
    ends = {CRLF if line.endswith("\r") else LF for line in lines}
    if len(ends) == 1:
        return ends.pop()
    return MIXED if ends else UNKNOWN


def _end(lines: Sequence[str], placed: Sequence[Placed], edits: Sequence[_Edit], ended: bool) -> bool | Conflict:
    """Whether the last line has a line feed afterwards."""
    told: set[bool] = set()
    for one in placed:
        hunk = one.hunk
        if hunk.old_unended or hunk.new_unended:
            if one.stop != len(lines) or (hunk.old_unended and ended):
                words = f"hunk {hunk.number} says that the file ends here without a newline, and it does not"
                return Conflict("mismatch", words, hunk, one.place)
            told.add(not hunk.new_unended)
    if len(told) == 1:
        return told.pop()
    last = edits[-1]
    if told:
        return Conflict(
            "malformed", "hunks disagree about the newline at the end of the file", last.of.hunk, last.start
        )
    if not ended and last.start < last.stop == len(lines) and not last.added and len(lines) > last.stop - last.start:
        words = "the file has no newline at its end, and the diff does not say whether the line before gets one"
        return Conflict("ambiguous", words, last.of.hunk, last.start)
    return ended


def _joined_at_end(
    lines: Sequence[str], placed: Sequence[Placed], edits: Sequence[_Edit], spliced: Spliced, ended: bool
) -> Spliced:
    """Line ends where a last line without one is replaced or followed, and the diff does not speak of it."""
    last = edits[-1]
    if ended or last.stop != len(lines) or not last.added:
        return spliced
    if any(one.hunk.old_unended or one.hunk.new_unended for one in placed):
        return spliced
    after = spliced.lines
    if _uniform(lines[:-1]) is CRLF or (len(lines) == 1 and not lines[0].endswith("\r")):
        after[-1] = after[-1].removesuffix("\r")
    if last.start == last.stop and _uniform(lines[:-1]) is CRLF:
        kept = len(after) - len(last.added) - 1
        after[kept] += "\r"
    return Spliced(after, False, (*spliced.repairs, "left the file without a newline at its end, as it was"))
