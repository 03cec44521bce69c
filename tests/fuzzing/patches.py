"""Diffs that are right, spoilt, or anything at all, and the texts that come of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sidecar.core.patching import Patched, PatchFault, apply, is_diff
from tests.fuzzing.draw import Draw
from tests.fuzzing.target import Target, worded
from tests.patching.mutations import NO_NEWLINE, Case, hunks_between

CODES = {"hunk_mismatch", "hunk_ambiguous", "patch_malformed", "line_numbers_in_patch"}


def check(data: bytes) -> None:
    draw = Draw(data)
    deed = draw.pick((anything, right, spoilt))
    deed(draw)


def anything(draw: Draw) -> None:
    before, patch = draw.texts(2)
    applied(before, patch)


def plainly(data: bytes) -> object:
    before, patch = Draw(data).texts(2)
    return apply(before * (len(data) // (len(before) + 1)), patch)


def right(draw: Draw) -> None:
    """The diff from one text to another gives the other, with as much context as one likes."""
    context = 1 + draw.number(3)
    before, after = draw.texts(2)
    case = diff_of(before, after, context)
    if case is None:
        return
    result = applied(before, case.patch())
    if isinstance(result, PatchFault):
        assert result.code == "line_numbers_in_patch", result
    else:
        assert result.text == after
        assert result.hunks == len(case.hunks)


def spoilt(draw: Draw) -> None:
    """A right diff of which some lines were lost, doubled, exchanged or replaced."""
    context = 1 + draw.number(3)
    deeds = [(draw.number(5), draw.number(255), draw.number(255)) for _ in range(1 + draw.number(3))]
    before, after, other = draw.texts(3)
    case = diff_of(before, after, context)
    if case is None:
        return
    lines = case.patch().split("\n")
    for deed, first, second in deeds:
        at, there = first % len(lines), second % len(lines)
        match deed:
            case 0:
                lines[at:at] = [lines[there]]
            case 1:
                lines[at], lines[there] = lines[there], lines[at]
            case 2:
                lines[at] = lines[at][1:]
            case 3:
                lines[at] = other
            case 4:
                lines[at] = "@@" if lines[at].startswith("@@") else lines[at] + " "
            case _ if len(lines) > 1:
                del lines[at]
            case _:
                pass
    applied(before, "\n".join(lines))


def diff_of(before: str, after: str, context: int) -> Case | None:
    """The right diff, unless there is none, or one that adds lines without context."""
    hunks = hunks_between(before, after, context)
    usable = bool(hunks) and all(hunk.expected or not before for hunk in hunks)
    return Case("x.txt", 1, before, after, hunks) if usable else None


def applied(before: str, patch: str) -> Patched | PatchFault:
    """Apply it. What comes is the patch itself, a refusal, or made of nothing but lines of the text and additions."""
    result = apply(before, patch, path="turn_1/files/x.txt")
    if isinstance(result, PatchFault):
        assert result.code in CODES
        assert result.message
        assert all(len(line) <= 400 for line in (*result.expected, *result.actual))
        assert result.line is None or 0 <= result.line <= before.count("\n") + 2
    elif result.hunks == 0:
        assert result.text == patch
        assert not is_diff(patch)
    else:
        assert is_diff(patch)
        made_of(before, patch, result.text)
    return result


def made_of(before: str, patch: str, after: str) -> None:
    """Nothing is new that the patch does not add, nothing is gone that it does not take away."""
    was, now = Counter(bare_lines(before)), Counter(bare_lines(after))
    lines = patch.split("\n")
    added = Counter(bare(line[1:]) for line in lines if line.startswith("+"))
    removed = Counter(bare(line[1:]) for line in lines if line.startswith("-"))
    assert now - was <= added, now - was - added
    assert was - now <= removed, was - now - removed
    assert not set(now) & {NO_NEWLINE} or NO_NEWLINE in before or NO_NEWLINE in added


def bare_lines(text: str) -> list[str]:
    lines = text.removeprefix("\ufeff").split("\n")  # a text of nothing but a mark has no line
    return [bare(line) for line in (lines if lines[-1] else lines[:-1])]


def bare(line: str) -> str:
    return line.lstrip("\ufeff").rstrip()


TEXTS = (
    b"one\ntwo\nthree\nfour\nfive\n",
    b"one\ntwo\n3\nfour\nfive\nsix\n",
    b"a\r\nb\r\nc\r\n",
    b"a\r\nB\r\nc",
    b"def area(self):\n    return 1\n\n\ndef other(self):\n    return 2\n",
    b"def area(self):\n    return 3\n\n\ndef other(self):\n    return 2\n\n",
    b"- a\n+ b\n-- c\n--- d\n+++ e\n@@ -1 +1 @@\n",
    b"\xef\xbb\xbfx\ny",
)


OF_A_WRONG_SENTENCE = (  # once the sentence was, not the patching
    b"\xef\xbb\xbf\xff++,---2\x02",
    b"\xef\xbb\xbf\xff@@ -1 +1 @@\n+\x00\x00\x00\t",
    b"a\nb\n\xff```diff\n\x00<\n-\n\\ No newline at end of file\n~~~~~~~~~~~~~~~~~~~~~@@\n-a\n+c\nff\n@@\n- #\xff\n+- ",
)


def seeds() -> Iterator[bytes]:
    yield from OF_A_WRONG_SENTENCE
    pairs: Sequence[tuple[bytes, bytes]] = [(one, other) for one in TEXTS for other in TEXTS[:4] if one != other]
    for number, (before, after) in enumerate(pairs):
        yield before + b"\xff" + after + bytes([number % 4, 1])
        yield before + b"\xff" + after + b"\xff+x" + bytes([number % 251, number % 7, 2, 0, number % 4, 2])
        case = diff_of(before.decode(), after.decode(), 1 + number % 3)
        if case is not None:
            yield before + b"\xff" + case.patch().encode() + b"\0"
    yield b"a\nb\n\xff```diff\n@@\n-a\n+c\n```\n\0"
    yield b"a\nb\n\xffHere it is.\n\n--- a/x.txt\n+++ b/x.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline\n\0"
    yield b"a\nb\n\xff*** Begin Patch\n*** Update File: x\n\0"


TARGET = Target(
    "patches",
    "the diff between two texts gives the second; whatever else is patched is refused, or has no line but those of the"
    " text and of the additions, and lacks none but what is taken away",
    check,
    (*worded(
        "@@ @@ -1,2 +1,2 @@ --- +++ ``` ```diff ~~~ + - --- a/x.txt +++ b/x.txt /dev/null \\ a b c",
        "@@ -1 +1 @@\n", "--- a/x.txt\n+++ b/x.txt\n", "\n+", "\n-", "\n ", "\n", "\r\n", "\r", "\n\\ No newline at end"
        " of file\n", "diff --git a/x b/x\n", "Index: x\n", "-- \n2.40.1\n", "     1\t", "\ufeff", "\u2028",
        "*** Begin Patch", "rename from x\n", "@@ ... @@", "\t", "  ",
    ), b"\xff"),
    seeds,
    longest=900,
    plainly=plainly,
)  # fmt: skip
