"""Reads a unified diff the way models write it: the signs of its lines are believed, the numbers in its headers not.

Counts say where a hunk ends only where that is otherwise unclear: for a line that could be a file header, and for
blank lines at its end. A line that has lost its sign is context and must be found in the file as it stands. Whatever
can be read in two ways that change the file differently is refused here.

No parser we found could be built upon: those that trust the counts drop lines beyond them without a word, and all of
them drop a hunk whose `@@` has no numbers (sidecar/ARCHITECTURE.md has the table).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_SIDE = r"[ \t]*([0-9]{1,9})(?:[ \t]*,[ \t]*([0-9]{1,9}))?"
_NUMBERED = re.compile(rf"@@[ \t]*-{_SIDE}[ \t]+\+{_SIDE}[ \t\r]*(?:@@|$)")
_NO_TEXT = re.compile(
    r"(?:rename|copy) (?:from|to) |deleted file mode |GIT binary patch|Binary files .* differ|\+\+\+ /dev/null\b"
)
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")


class Numbers(NamedTuple):
    """What the header of a hunk says; a count that is left out is 1."""

    old: int
    old_count: int
    new: int
    new_count: int


class Malformed(NamedTuple):
    """Why a text is no diff to be applied. `hunk` counts from 1."""

    message: str
    hunk: int | None = None


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place and what changes there: a sign (blank, `-` or `+`) for each of the texts."""

    number: int
    numbers: Numbers | None
    signs: str
    texts: tuple[str, ...]
    old: tuple[str, ...]  # the texts that must be in the file
    unsigned: frozenset[int]  # which lines had lost their sign
    old_unended: bool  # the file's last line has no line feed, says the diff
    new_unended: bool

    @property
    def counts(self) -> tuple[int, int]:
        """Lines before and after."""
        return len(self.signs) - self.signs.count("+"), len(self.signs) - self.signs.count("-")

    @property
    def counted_right(self) -> bool:
        return self.numbers is not None and self.counts == (self.numbers.old_count, self.numbers.new_count)


class Diff(NamedTuple):
    """`names` are the pairs of the file headers, as they stand there without `--- ` and `+++ `."""

    hunks: tuple[Hunk, ...]
    names: tuple[tuple[str, str], ...]


def read(lines: Sequence[str]) -> Diff | Malformed:
    """The hunks of a diff, from its lines without line feeds."""
    hunks: list[Hunk] = []
    names: list[tuple[str, str]] = []
    if len({line for line in lines if line.startswith("diff --git ")}) > 1:
        return Malformed("the diff names several files; send one diff per file")
    at = 0
    while at < len(lines):
        line = lines[at]
        if _NO_TEXT.match(line):
            return Malformed(f"a patch changes the text of one file, and this one says: {line[:80].rstrip()}")
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            if hunks and not names:
                return Malformed(f"the names of the file stand behind hunk {len(hunks)}")
            names.append((line[4:], lines[at + 1][4:]))
            if _NO_TEXT.match(lines[at + 1]):
                return Malformed("a patch changes the text of one file, and this one deletes it")
            at += 2
            if not _signed(lines, at):
                continue
            header = None  # the changes follow at once, without an `@@`
        elif line.startswith("@@") or (not hunks and not names and _signed(lines, at) and not _has_header(lines)):
            header = line if line.startswith("@@") else None
            at += header is not None
        else:
            if line.startswith(("--- ", "+++ ")) and not hunks:
                names.append((line[4:], line[4:]))
            elif line.startswith(("+", "-")) and (hunks or names) and line.rstrip() != "--":
                return Malformed(f"a changed line stands outside of the hunks: {line[:80].rstrip()}")
            at += 1
            continue
        found = _hunk(len(hunks) + 1, header, lines, at)
        if isinstance(found, Malformed):
            return found
        hunk, at = found
        hunks.append(hunk)
    if not hunks:
        return Malformed("the diff has no hunk")
    return Diff(tuple(hunks), tuple(names))


def _signed(lines: Sequence[str], at: int) -> bool:
    return at < len(lines) and lines[at].startswith(("+", "-", " ")) and not lines[at].startswith(("--- ", "+++ "))


def _has_header(lines: Sequence[str]) -> bool:
    return any(line.startswith(("@@", "--- ", "+++ ")) for line in lines)


def _hunk(number: int, header: str | None, lines: Sequence[str], at: int) -> tuple[Hunk, int] | Malformed:
    numbers = None
    if header is not None:
        match = _NUMBERED.match(header)
        if match is None and not _bare(header):
            return Malformed(f"the header of hunk {number} cannot be read: {header[:80].rstrip()}", number)
        if match is not None:
            old, old_count, new, new_count = (1 if part is None else int(part) for part in match.groups())
            numbers = Numbers(old, old_count, new, new_count)
    end = _end(lines, at, numbers)
    body = _trimmed(lines[at:end], numbers)
    hunk = _made(number, numbers, body)
    return hunk if isinstance(hunk, Malformed) else (hunk, end)


def _bare(header: str) -> bool:
    """`@@`, `@@ ... @@`, `@@ def area(self):`. What begins like numbers and is none may be cut off."""
    rest = header.removeprefix("@@").strip()
    return rest == "@@" or not rest.startswith(("-", "+", "@"))


def _sign(line: str) -> str:
    """Blank, `-`, `+`; a backslash for the marker of a missing line feed; nothing for a line without a sign."""
    if line[:1] in (" ", "+", "-"):
        return line[0]
    return "\\" if line.startswith("\\ ") else ""


def _running(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Lines before and after, counted up to each line and without it."""
    old = new = 0
    for line in lines:
        yield old, new
        sign = _sign(line)
        old += sign in ("", " ", "-")
        new += sign in ("", " ", "+")


def _end(lines: Sequence[str], start: int, numbers: Numbers | None) -> int:
    """Where the next hunk or file begins, or git's signature."""
    body = (lines[at] for at in range(start, len(lines)))
    for at, (old, _) in enumerate(_running(body), start):
        line = lines[at]
        if line.startswith(("@@", "diff --git ", "Index: ")):
            return at
        if line.startswith("--") and not (numbers and old < numbers.old_count):
            if line.startswith("--- ") and _headed(lines, at):
                return at
            if line.rstrip() == "--" and numbers is not None and _signature(lines, at + 1):
                return at
    return len(lines)


def _signature(lines: Sequence[str], at: int) -> bool:
    """Whether nothing but the version of git follows."""
    versioned = at < len(lines) and _VERSION.match(lines[at])
    return bool(versioned) and not any(lines[later].strip() for later in range(at + 1, len(lines)))


def _headed(lines: Sequence[str], at: int) -> bool:
    return at + 2 < len(lines) and lines[at + 1].startswith("+++ ") and lines[at + 2].startswith("@@")


def _trimmed(body: Sequence[str], numbers: Numbers | None) -> Sequence[str]:
    """Without blank lines at the end, but for those that the header counts, and without prose behind all it counts.

    Other lines without a sign may have been context or additions, so they stay, to be found in the file or not.
    """
    signed = next((at for at in range(len(body), 0, -1) if _sign(body[at - 1])), 0)
    said = next((at for at in range(len(body), signed, -1) if body[at - 1].strip()), signed)
    if numbers is None or signed == len(body):
        return body[:said]
    counted = signed
    for at, (old, new) in enumerate(_running(body)):
        if at == signed and (old, new) == (numbers.old_count, numbers.new_count):
            return body[:signed]
        if at >= signed and old < numbers.old_count and new < numbers.new_count:
            counted = at + 1
    return body[: max(said, counted)]


def _made(number: int, numbers: Numbers | None, body: Sequence[str]) -> Hunk | Malformed:
    signs: list[str] = []
    texts: list[str] = []
    unsigned: set[int] = set()
    unended: list[int] = []
    counted: int | None = None  # how many lines the header counts, if some number of them fits it exactly
    for line, seen in zip(body, _running(body), strict=True):
        if counted is None and numbers is not None and seen == (numbers.old_count, numbers.new_count):
            counted = len(signs)
        match _sign(line):
            case "\\":
                unended.append(len(signs) - 1)
            case "":
                unsigned.add(len(signs))
                signs.append(" ")
                texts.append(line)
            case sign:
                signs.append(sign)
                texts.append(line[1:])
    joined = "".join(signs)
    if "+" not in joined and "-" not in joined:
        return Malformed(f"hunk {number} changes nothing", number)
    if counted is not None and counted in unsigned and set(joined[counted:]) & {"+", "-"}:
        return Malformed(f"hunk {number} goes on with changes behind the lines that its header counts", number)
    hunk = Hunk(
        number,
        numbers,
        signs=joined,
        texts=tuple(texts),
        old=tuple(text for sign, text in zip(signs, texts, strict=True) if sign != "+"),
        unsigned=frozenset(unsigned),
        old_unended=any(signs[at] != "+" for at in unended),
        new_unended=any(signs[at] != "-" for at in unended),
    )
    return Malformed(trouble, number) if (trouble := _unclear(hunk, unended)) else hunk


def _unclear(hunk: Hunk, unended: Sequence[int]) -> str:
    """What in a hunk can be read in more than one way, or ""."""
    signs = hunk.signs
    last_old = max(signs.rfind(" "), signs.rfind("-"))
    last_new = max(signs.rfind(" "), signs.rfind("+"))
    for at in unended:
        if at < 0 or (signs[at] != "+" and at != last_old) or (signs[at] != "-" and at != last_new):
            return f"hunk {hunk.number} says in its middle that the file has no newline at its end"
    first_old = len(signs) - len(signs.lstrip("+"))
    begins_bare = first_old > 0 and first_old in hunk.unsigned
    ends_bare = last_old in hunk.unsigned and last_old + 1 < len(signs)
    if (begins_bare or ends_bare) and not hunk.counted_right:
        return f"a line of hunk {hunk.number} has lost its sign and may be context or an addition"
    return ""
