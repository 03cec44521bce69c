"""Applies what a caller sent as a patch: a unified diff, repaired where its meaning is certain, or a whole new text.

A refusal is a value, not an exception: it says what was expected, what is there, and where to read. Whatever could mean
two things is refused, because a wrong file costs more than a second try.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sidecar.core import limits
from sidecar.core.fitting import Fits, Misfit, fit, loose
from sidecar.core.hunks import Diff, Hunk, Malformed, read
from sidecar.core.line_prefixes import numbered_additions, numbered_lines, numbered_text
from sidecar.core.splicing import Conflict, Placed, splice
from sidecar.core.truncation import may_be_cut
from sidecar.core.wrapping import Unwrapped, foreign, split_lines, unwrap

PatchCode = Literal["hunk_mismatch", "hunk_ambiguous", "patch_malformed", "line_numbers_in_patch"]

# How much of a hunk and of the file a refusal shows.
SHOWN_LINES = 12
SHOWN_CHARS = 400


@dataclass(frozen=True, slots=True)
class Patched:
    """The text after the patch. `hunks` is 0 for a whole replacement; `repairs` says in words what was repaired."""

    text: str
    hunks: int
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PatchFault:
    """Why nothing was changed.

    `hunk` counts from 1. `expected` are lines of the diff, `actual` the lines of the file in their place, both without
    line ends and cut to a bounded length; `line` is the number of the first of them in the file, counted from 1.
    """

    code: PatchCode
    message: str
    hunk: int | None = None
    expected: tuple[str, ...] = ()
    actual: tuple[str, ...] = ()
    line: int | None = None


def is_diff(text: str) -> bool:
    """Whether a patch is read as a unified diff (spec section 8); everything else is a whole replacement."""
    return unwrap(text) is not None


def apply(before: str, patch: str, *, path: str | None = None) -> Patched | PatchFault:
    """The text after the patch, or why not; never raises. All hunks apply or none (spec section 8).

    With `path`, a diff whose headers name a file of another name is `patch_malformed`. Only a line feed ends a line;
    what is not changed keeps its bytes. Takes time in proportion to the length of both texts.
    """
    unwrapped = unwrap(patch)
    if unwrapped is None:
        return _replaced(before, patch)
    if len(unwrapped.lines) > limits.PATCH_LINES:
        return _malformed(f"a diff has at most {limits.PATCH_LINES:,} lines; write the whole text instead")
    if unwrapped.trouble:
        return _malformed(unwrapped.trouble)
    diff = read(unwrapped.lines)
    if isinstance(diff, Malformed):
        return _malformed(diff.message, diff.hunk)
    if trouble := _misnamed(diff, before, path):
        return _malformed(trouble)
    if not unwrapped.closed and not (unwrapped.ended and all(hunk.counted_right for hunk in diff.hunks)):
        return _malformed("the code fence around the diff is not closed, so it may have been cut off")
    return _applied(before, diff, unwrapped)


def _replaced(before: str, patch: str) -> Patched | PatchFault:
    if before.strip() and not patch.strip():
        return _malformed("the patch is empty; to empty a file, write it with artifact/write")
    lines, _ = split_lines(patch)
    if numbered_text(lines, before.split("\n")):
        words = "every line of the new text has a line number before it; send the text without line numbers"
        return PatchFault("line_numbers_in_patch", words, expected=_shown(lines))
    if trouble := foreign(patch, before):
        return _malformed(trouble)
    return Patched(patch, 0)


def _applied(before: str, diff: Diff, unwrapped: Unwrapped) -> Patched | PatchFault:
    # The mark at the beginning of a file belongs to its first line only for a diff that shows it; models do not see it.
    shown = any(text.startswith("\ufeff") for hunk in diff.hunks for text in hunk.texts)
    mark = "\ufeff" if before.startswith("\ufeff") and not shown else ""
    lines, ended = split_lines(before.removeprefix(mark))
    ended = ended or not lines
    fits = fit(lines, diff.hunks)
    if isinstance(fits, Misfit):
        return _misfit(lines, fits)
    placed = [Placed(hunk, place) for hunk, place in zip(diff.hunks, fits.places, strict=True)]
    if may_be_cut(diff.hunks, placed[-1].stop, len(lines), ended=unwrapped.ended):
        words = "the last hunk has fewer lines than its header counts, so it may have been cut off; send it whole"
        return _malformed(f"{words}, or with a bare `@@`", diff.hunks[-1].number)
    added = [text for hunk in diff.hunks for sign, text in zip(hunk.signs, hunk.texts, strict=True) if sign == "+"]
    if numbered_additions(added, lines):
        return PatchFault("line_numbers_in_patch", "added lines begin with line numbers; send them without")
    spliced = splice(lines, placed, ended=ended)
    if isinstance(spliced, Conflict):
        return _conflict(lines, spliced)
    repairs = (*unwrapped.repairs, *_repairs(diff.hunks, fits), *spliced.repairs)
    text = "\n".join(spliced.lines) + ("\n" if spliced.ended and spliced.lines else "")
    return Patched(mark + text, len(diff.hunks), repairs)


def _repairs(hunks: Sequence[Hunk], fits: Fits) -> list[str]:
    """What the headers and signs of the hunks were mended by."""
    said: list[str] = []
    if any(hunk.numbers is None for hunk in hunks):
        said.append("found the places of hunks without line numbers")
    elif not fits.numbers_right:
        said.append("corrected line numbers")
    if any(hunk.numbers is not None and not hunk.counted_right for hunk in hunks):
        said.append("corrected line counts")
    if any(hunk.unsigned for hunk in hunks):
        said.append("gave lines of context their sign back")
    if list(fits.places) != sorted(fits.places):
        said.append("put the hunks in order")
    return said


def _misnamed(diff: Diff, before: str, path: str | None) -> str:
    """Why the headers do not belong to one file that exists, or ""."""
    pairs = {(_name(old), _name(new)) for old, new in diff.names}
    if len(pairs) > 1:
        return "the diff names several files; send one diff per file"
    for old, new in pairs:
        if old == "/dev/null" and before:
            return "the diff creates a file, and there is one already"
        named = [name for name in (old, new) if _says_a_file(name)]
        wanted = None if path is None else _last_part(path)
        if wanted and named and all(_last_part(name) not in (wanted, f"{wanted}.orig") for name in named):
            return f"the diff is for {named[-1][:200]}, not for this file"
    return ""


def _name(header: str) -> str:
    """The name in a file header, without the time behind it and git's `a/` or `b/`."""
    name = header.rstrip("\r").partition("\t")[0].strip().strip('"')
    return name[2:] if name.startswith(("a/", "b/")) else name


def _says_a_file(name: str) -> bool:
    """Whether a name is one of a file, and not `original`, `before` or `/dev/null`."""
    return "." in _last_part(name)


def _last_part(name: str) -> str:
    return name.rpartition("/")[2]


def _malformed(message: str, hunk: int | None = None) -> PatchFault:
    return PatchFault("patch_malformed", message, hunk)


def _misfit(lines: Sequence[str], misfit: Misfit) -> PatchFault:
    hunk, place, other = misfit.hunk, misfit.place, misfit.other
    match misfit.kind:
        case "no context":
            words = f"hunk {hunk.number} adds lines without context; repeat a line next to its place"
            return PatchFault("hunk_ambiguous", words, hunk.number, line=_stated_line(hunk, lines))
        case "ambiguous":
            at = place or 0
            words = f"hunk {hunk.number} fits at line {at + 1} and again at line {(other or 0) + 1}"
            return PatchFault(
                "hunk_ambiguous",
                f"{words}, and its line numbers do not decide; give it more context",
                hunk.number,
                _shown(hunk.old),
                _shown(lines[at : at + len(hunk.old)]),
                at + 1,
            )
        case "mismatch":
            if numbered_lines(hunk.old, lines):
                words = f"the lines of hunk {hunk.number} have line numbers before them; send them without"
                return PatchFault("line_numbers_in_patch", words, hunk.number, _shown(hunk.old))
            return _mismatch(lines, hunk, place)


def _mismatch(lines: Sequence[str], hunk: Hunk, place: int | None) -> PatchFault:
    """What the hunk expects and what is there, from a little before the first difference."""
    if place is None:
        words = f"hunk {hunk.number} expects lines of which the file has none"
        return PatchFault("hunk_mismatch", words, hunk.number, _shown(hunk.old))
    first = next((offset for offset, text in enumerate(hunk.old) if not _is_at(lines, place + offset, text)), 0)
    start = max(0, first - SHOWN_LINES // 4, -place)
    at = min(place + first, len(lines)) + 1
    return PatchFault(
        "hunk_mismatch",
        f"hunk {hunk.number} does not fit: line {at} of the file is not what the diff expects; read from there",
        hunk.number,
        _shown(hunk.old[start:]),
        _shown(lines[place + start : place + start + min(SHOWN_LINES, len(hunk.old) - start)]),
        place + start + 1,
    )


def _is_at(lines: Sequence[str], at: int, text: str) -> bool:
    return 0 <= at < len(lines) and loose(lines[at]) == loose(text)


def _stated_line(hunk: Hunk, lines: Sequence[str]) -> int | None:
    return None if hunk.numbers is None else min(max(hunk.numbers.old, 1), len(lines))


def _conflict(lines: Sequence[str], conflict: Conflict) -> PatchFault:
    codes: dict[str, PatchCode] = {
        "mismatch": "hunk_mismatch",
        "ambiguous": "hunk_ambiguous",
        "malformed": "patch_malformed",
    }
    hunk, at = conflict.hunk, conflict.place
    actual = _shown(lines[at : at + max(1, min(SHOWN_LINES, len(hunk.old)))])
    return PatchFault(codes[conflict.kind], conflict.message, hunk.number, _shown(hunk.old), actual, at + 1)


def _shown(lines: Iterable[str]) -> tuple[str, ...]:
    """So many lines, cut to so many characters, that a refusal stays short."""
    return tuple(line.rstrip("\r")[:SHOWN_CHARS] for line, _ in zip(lines, range(SHOWN_LINES), strict=False))
