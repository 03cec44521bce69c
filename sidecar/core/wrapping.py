"""Takes off what models wrap around a diff, and tells a diff from a whole new text.

A diff begins with `--- `, `+++ `, `@@` or git's own headers, and what follows must have the shape of one: front matter
(`---` alone) does not. One code fence and a few lines of prose around it are taken off. A text that only holds a diff
somewhere is neither a diff nor, in all likelihood, a whole file, so patching refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

# More prose than this is a document that shows a diff.
PROSE_LINES = 20

NUMBERED_HEADER = re.compile(r"@@ -[0-9]+(?:,[0-9]+)? \+[0-9]+(?:,[0-9]+)? @@")
_FENCE = re.compile(r"(?P<marks>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)$")
_DIFF_LANGUAGES = frozenset({"diff", "patch", "udiff"})
_GIT_HEADERS = ("diff --git ", "diff -", "Index: ")
_SECTION = ("--- ", "+++ ", "@@")
_BEGINNINGS = ("--- ", "+++ ", "@@", "diff --git ")
# The first lines of other patch languages, which must not end up as the content of a file.
_FOREIGN = re.compile(
    r"\*\*\* (?:Begin Patch|(?:Update|Add|Delete) File:)|(?:<{5,9}|-{5,9}) ?SEARCH\b|[0-9]+(?:,[0-9]+)?[acd][0-9]+"
)


class Unwrapped(NamedTuple):
    """The lines of the diff itself, without line feeds. `trouble` is what makes the wrapping unclear, or ""."""

    lines: list[str]
    ended: bool  # the last line is whole: a line feed or the end of the fence stood behind it
    closed: bool  # no fence was opened and left open
    repairs: tuple[str, ...]
    trouble: str = ""


def unwrap(text: str) -> Unwrapped | None:
    """The diff in a text, or nothing when the text is not a diff (spec section 8)."""
    lines, ended = split_lines(text.removeprefix("\ufeff"))
    first = _first_said(lines, 0)
    if first == len(lines):
        return None
    if _fence(lines[first]):
        return _unfenced(lines, first, ended)
    if _shaped(lines, first):
        return Unwrapped(lines[first:], ended, True, ())
    start = _after_prose(lines, first)
    if start is None:
        return None
    if _fence(lines[start]):
        return _unfenced(lines, start, ended)
    return Unwrapped(lines[start:], ended, True, ("left out the text before the diff",))


def split_lines(text: str) -> tuple[list[str], bool]:
    """Lines without their line feeds, and whether the last one has one. Only a line feed ends a line."""
    lines = text.split("\n")
    ended = lines[-1] == ""
    if ended:
        del lines[-1]
    return lines, ended


def foreign(text: str, before: str) -> str | None:
    """Why a text that is no diff is no whole file either: it is, or holds, a patch of some kind."""
    lines, _ = split_lines(text)
    first = _first_said(lines, 0)
    if first < len(lines) and _fence(lines[first]):
        first = _first_said(lines, first + 1)
    if first == len(lines):
        return None
    opening = lines[first]
    if _other_language(lines, first) and not before.startswith(opening):
        return "the patch is not a unified diff; send one that starts with `--- ` or `@@ `, or the whole new text"
    if opening.startswith(_BEGINNINGS) and _is_fragment(lines, first) and not before.startswith(opening):
        return "the patch begins like a unified diff and is none"
    if _holds_diff(lines) and not _holds_diff(before.split("\n")):
        return "the patch holds a diff and other text; send the diff alone, or write the whole text with artifact/write"
    return None


def _is_fragment(lines: Sequence[str], first: int) -> bool:
    """Whether a text that begins like a diff has nothing more, or more of one; a rule of dashes has neither."""
    alone = _first_said(lines, first + 1) == len(lines)
    return alone or lines[first].startswith("@@") or any(line.startswith(("+++ ", "@@")) for line in lines[first + 1 :])


def _other_language(lines: Sequence[str], first: int) -> bool:
    following = lines[first + 1] if first + 1 < len(lines) else ""
    if lines[first].startswith("*** ") and following.startswith("--- "):  # a context diff
        return True
    match = _FOREIGN.match(lines[first])
    # What looks like an ed command is a diff only with a line of one below.
    return bool(match) and (not match[0][0].isdigit() or following.startswith(("< ", "> ")))


def _holds_diff(lines: Sequence[str]) -> bool:
    """Whether there is a header of a hunk anywhere, quoted and indented ones included, or a fence that says diff."""
    for line in lines:
        if "@@" in line:
            bare = line.strip(" \t\r>")
            if bare in ("@@", "@@ @@", "@@ ... @@") or NUMBERED_HEADER.match(bare):
                return True
        elif (fence := _fence(line)) and fence["language"].lower() in _DIFF_LANGUAGES:
            return True
    return False


def _fence(line: str) -> re.Match[str] | None:
    # Blanks at the end go first: a pattern that looked for them could be made to look for very long.
    return _FENCE.match(line.rstrip(" \t\r")) if line.startswith(("```", "~~~")) else None


def _first_said(lines: Sequence[str], start: int) -> int:
    return next((at for at in range(start, len(lines)) if lines[at].strip()), len(lines))


def _shaped(lines: Sequence[str], at: int) -> bool:
    """Whether a diff begins at this line."""
    line, following = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
    if line.startswith("--- "):
        return following.startswith(("+++ ", "@@"))
    if line.startswith("+++ "):
        return following.startswith("@@")
    if line.startswith("@@ -"):
        return True
    if line.startswith("@@"):
        return any(later.startswith(("+", "-")) for later in lines[at + 1 :])
    if line.startswith(_GIT_HEADERS):
        return any(later.startswith(_SECTION) for later in lines[at + 1 : at + 9])
    return False


def _after_prose(lines: Sequence[str], first: int) -> int | None:
    """Where the diff, or its fence, begins behind a few lines of prose; nowhere, if they look like a document."""
    fences = sum(bool(_fence(line)) for line in lines)
    for at in range(first, min(first + PROSE_LINES, len(lines))):
        line = lines[at]
        if line.startswith(("#", "---\r")) or line == "---":
            return None
        if _fence(line):
            inner = _first_said(lines, at + 1)
            begins = inner < len(lines) and _shaped(lines, inner)
            return at if begins and fences <= 2 else None
        if _begins_for_sure(lines, at):
            return at
    return None


def _begins_for_sure(lines: Sequence[str], at: int) -> bool:
    if NUMBERED_HEADER.match(lines[at]) or lines[at].startswith("diff --git "):
        return True
    return lines[at].startswith("--- ") and _shaped(lines, at) and any(line.startswith("@@") for line in lines[at:])


def _unfenced(lines: Sequence[str], opening: int, ended: bool) -> Unwrapped | None:
    fence = _fence(lines[opening])
    assert fence is not None
    inner = _first_said(lines, opening + 1)
    is_diff = inner < len(lines) and (_shaped(lines, inner) or fence["language"].lower() in _DIFF_LANGUAGES)
    if not is_diff:
        return None
    marks = fence["marks"]
    closing = re.compile(rf"{re.escape(marks)}{re.escape(marks[0])}*[ \t\r]*$")
    end = next((at for at in range(inner, len(lines)) if closing.match(lines[at])), None)
    if end is None:
        return Unwrapped(list(lines[inner:]), ended, False, ("took off the code fence",))
    behind = lines[end + 1 :]
    goes_on = any(line.startswith(_SECTION) or _fence(line) for line in behind)
    trouble = "there is more than one fenced block; send one diff" if goes_on else ""
    around = any(line.strip() for line in behind) or _first_said(lines, 0) < opening
    words = ("took off the code fence",) + (("left out the text around the fence",) if around else ())
    return Unwrapped(list(lines[inner:end]), True, True, words, trouble)
