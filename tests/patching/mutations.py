"""Right diffs over realistic texts, and what becomes of them in the hands of a model: each spoilt in one known way.

Everything is drawn from seeds, so that the corpus is the same in every run. What a mutation means is said where it is
made, and never by the code under test: `_places` counts how often a hunk fits, in the most naive way.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.patching.entries import Entry, texts

NO_NEWLINE = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Hunk:
    """A hunk as it is written: four numbers and lines with their signs."""

    old: int
    old_count: int
    new: int
    new_count: int
    body: tuple[str, ...]

    @property
    def header(self) -> str:
        return f"@@ -{self.old},{self.old_count} +{self.new},{self.new_count} @@"

    @property
    def expected(self) -> list[str]:
        return [line[1:] for line in self.body if line[0] in " -"]

    def moved(self, by: int) -> Hunk:
        return replace(self, old=self.old + by)


@dataclass(frozen=True, slots=True)
class Case:
    """A right diff: what it is for, what comes of it, its hunks."""

    name: str
    edits: int
    before: str
    after: str
    hunks: tuple[Hunk, ...]

    @property
    def about(self) -> str:
        return f"{self.name} with {self.edits} edits"

    def patch(self, hunks: Sequence[Hunk] | None = None, *, headers: Sequence[str] | None = None) -> str:
        """The diff as a text, with these hunks and these headers of hunks in place of its own."""
        written = self.hunks if hunks is None else hunks
        lines = [f"--- a/{self.name}", f"+++ b/{self.name}"]
        for number, hunk in enumerate(written):
            lines += [hunk.header if headers is None else headers[number], *hunk.body]
        return "\n".join(lines) + "\n"


def hunks_between(before: str, after: str, context: int = 3) -> tuple[Hunk, ...]:
    """The hunks of a right diff by difflib, with markers where a last line has no newline."""
    old, new = _lines(before), _lines(after)
    hunks: list[Hunk] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        body: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                body += _signed(" ", old[i1:i2])
            else:
                body += _signed("-", old[i1:i2]) + _signed("+", new[j1:j2])
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        hunks.append(Hunk(i1 + (i2 > i1), i2 - i1, j1 + (j2 > j1), j2 - j1, tuple(body)))
    return tuple(hunks)


def _lines(text: str) -> list[str]:
    """With their line feeds, which alone end a line."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _signed(sign: str, lines: Sequence[str]) -> list[str]:
    signed: list[str] = []
    for line in lines:
        signed += [sign + line.removesuffix("\n")] + ([] if line.endswith("\n") else [NO_NEWLINE])
    return signed


def _places(before: str, expected: Sequence[str]) -> int:
    """At how many places these lines stand in a row, blanks at their ends aside."""
    lines = [line.rstrip() for line in before.split("\n")]
    wanted = [line.rstrip() for line in expected]
    return sum(lines[at : at + len(wanted)] == wanted for at in range(len(lines)))


def edited(text: str, random: Random, *, edits: int) -> str:
    """The text after some edits that a person could make: a line is changed, removed, added or said twice."""
    lines = text.split("\n")
    for _ in range(edits):
        at = random.randrange(1, len(lines) - 1)
        line = lines[at]
        indent = line[: len(line) - len(line.lstrip())]
        end = "\r" if line.endswith("\r") else ""
        match random.randrange(5):
            case 0:
                lines[at] = line.rstrip() + random.choice([" # checked", ", as agreed", " (new)", ";"]) + end
            case 1:
                lines[at] = line.replace("e", "E", 1) if "e" in line else f"{indent}changed{end}"
            case 2:
                del lines[at]
            case 3:
                lines[at:at] = [f"{indent}added {random.choice(['above', 'here', 'by hand'])} {at}{end}"]
            case _:
                lines[at : at + 1] = [f"{indent}first of two {at}{end}", f"{indent}second of two {at}{end}"]
    return "\n".join(lines)


def cases() -> Iterator[Case]:
    """Right diffs: every text, edited a few times."""
    for name, before in texts().items():
        for edits in (1, 2, 4):
            after = edited(before, Random(f"{name} {edits}"), edits=edits)
            yield Case(name, edits, before, after, hunks_between(before, after))


@dataclass(frozen=True, slots=True)
class Spoilt:
    """A patch and what it means for the text of the case, or for another one; nothing means refused, with a code."""

    patch: str
    meant: str | None
    codes: tuple[str, ...] = ()
    before: str | None = None


Made = Iterator[Spoilt]
Mutation = Callable[[Case, Random], Made]


def _searched(case: Case, patch: str, hunks: Sequence[Hunk] | None = None) -> Made:
    """A patch whose numbers say nothing: it means what it meant if every hunk fits once."""
    once = all(_places(case.before, hunk.expected) == 1 for hunk in hunks or case.hunks)
    yield Spoilt(patch, case.after) if once else Spoilt(patch, None, ("hunk_ambiguous",))


def nothing(case: Case, random: Random) -> Made:
    yield Spoilt(case.patch(), case.after)


def counts_too_small(case: Case, random: Random) -> Made:
    hunks = [
        replace(hunk, old_count=random.randrange(hunk.old_count), new_count=random.randrange(max(1, hunk.new_count)))
        for hunk in case.hunks
    ]
    if all(hunk.old_count and hunk.new_count for hunk in hunks):
        yield Spoilt(case.patch(hunks), case.after)


def counts_too_large(case: Case, random: Random) -> Made:
    """By no more than context could be missing, or by more than the file has."""
    *others, last = case.hunks
    more = [replace(hunk, old_count=hunk.old_count + random.randrange(1, 9)) for hunk in others]
    left = len(case.before.split("\n")) - (last.old + last.old_count)
    by = random.choice([1, 2]) if left > 3 else left + 9
    yield Spoilt(
        case.patch([*more, replace(last, old_count=last.old_count + by, new_count=last.new_count + by)]), case.after
    )


def old_numbers(case: Case, random: Random) -> Made:
    by = random.choice([-9, -2, -1, 1, 2, 7, 100])
    by = by if case.hunks[0].old + by > 0 else 3
    yield from _searched(case, case.patch([hunk.moved(by) for hunk in case.hunks]))


def all_numbers(case: Case, random: Random) -> Made:
    hunks = [replace(hunk, old=random.randrange(1, 99), new=random.randrange(1, 99)) for hunk in case.hunks]
    yield from _searched(case, case.patch(hunks))


def bare(case: Case, random: Random) -> Made:
    header = random.choice(["@@", "@@ @@", "@@ ... @@", "@@ here @@"])
    yield from _searched(case, case.patch(headers=[header] * len(case.hunks)))


def without_names(case: Case, random: Random) -> Made:
    yield Spoilt(case.patch().partition("\n+++ ")[2].partition("\n")[2], case.after)


def trailing_blanks(case: Case, random: Random) -> Made:
    """Context and removed lines have gained or lost blanks at their ends."""

    def drifted(line: str) -> str:
        if line[0] == "+" or line == NO_NEWLINE or line.endswith("\r"):
            return line
        return line.rstrip() + random.choice(["", " ", "   ", "\t"]) if line[1:].strip() else line

    hunks = [replace(hunk, body=tuple(map(drifted, hunk.body))) for hunk in case.hunks]
    spoilt = [hunk for hunk in hunks if hunk not in case.hunks]
    if spoilt and not any(map(_says_the_same_twice, hunks)):
        yield from _searched(case, case.patch(hunks), spoilt)


def _says_the_same_twice(hunk: Hunk) -> bool:
    """Whether a line is removed and added again but for its blanks, so that blanks are what the diff is about."""
    removed = {line[1:].rstrip() for line in hunk.body if line[0] == "-"}
    return any(line[1:].rstrip() in removed for line in hunk.body if line[0] == "+")


def fenced(case: Case, random: Random) -> Made:
    mark = random.choice(["````", "~~~~"])
    language = random.choice(["diff", "patch", ""])
    yield Spoilt(f"{mark}{language}\n{case.patch()}{mark}\n", case.after)


def talked_about(case: Case, random: Random) -> Made:
    above = random.choice(["Here is the patch.\n\n", "I changed these lines:\n", "Sure!\n\nThis does it.\n"])
    yield Spoilt(f"{above}````diff\n{case.patch()}````\n\nTell me if you need more.\n", case.after)
    yield Spoilt(f"{above}{case.patch()}", case.after)


def lost_blanks(case: Case, random: Random) -> Made:
    """Empty lines of context have lost the blank that is their sign."""
    hunks = [replace(hunk, body=tuple("" if line == " " else line for line in hunk.body)) for hunk in case.hunks]
    if hunks == list(case.hunks):
        return
    yield Spoilt(case.patch(hunks), case.after)


def lost_signs(case: Case, random: Random) -> Made:
    """One line of context between others has lost its sign."""
    for number, hunk in enumerate(case.hunks):
        inner = [
            at
            for at, line in enumerate(hunk.body[1:-1], 1)
            if line[0] == " "
            and line[1:2] not in ("", " ", "+", "-", "@", "\\", "\r")
            and any(later[0] == " " for later in hunk.body[at + 1 :])
        ]
        if inner:
            at = random.choice(inner)
            body = (*hunk.body[:at], hunk.body[at][1:], *hunk.body[at + 1 :])
            yield Spoilt(
                case.patch([*case.hunks[:number], replace(hunk, body=body), *case.hunks[number + 1 :]]), case.after
            )
            return


def other_line_ends(case: Case, random: Random) -> Made:
    """The file is one of carriage returns, and the diff was shown without them, or the other way round."""
    before, after = case.before.replace("\r", ""), case.after.replace("\r", "")
    patch = replace(case, hunks=hunks_between(before, after)).patch()
    yield Spoilt(patch, after.replace("\n", "\r\n"), before=before.replace("\n", "\r\n"))
    yield Spoilt(patch.replace("\n", "\r\n"), after, before=before)


def no_last_newline(case: Case, random: Random) -> Made:
    yield Spoilt(case.patch().removesuffix("\n"), case.after)


def lost_markers(case: Case, random: Random) -> Made:
    """The file has no newline at its end, its last line is changed, and the diff says nothing of it."""
    before = case.before.rstrip("\r\n")
    after = f"{before}, and more"
    patch = replace(case, hunks=hunks_between(before, after)).patch()
    yield Spoilt(patch.replace(f"{NO_NEWLINE}\n", ""), after, before=before)


def blank_lines_between(case: Case, random: Random) -> Made:
    hunks = [replace(hunk, body=(*hunk.body, "")) for hunk in case.hunks]
    yield Spoilt(case.patch(hunks), case.after)


def shuffled_hunks(case: Case, random: Random) -> Made:
    if len(case.hunks) > 1:
        yield Spoilt(case.patch(case.hunks[::-1]), case.after)
        yield from _searched(case, case.patch(case.hunks[::-1], headers=["@@"] * len(case.hunks)))


def little_context(case: Case, random: Random) -> Made:
    hunks = hunks_between(case.before, case.after, 1)
    if all(hunk.expected for hunk in hunks):
        yield Spoilt(case.patch(hunks), case.after)
        yield from _searched(case, case.patch(hunks, headers=["@@"] * len(hunks)), hunks)


def much_context(case: Case, random: Random) -> Made:
    yield Spoilt(case.patch(hunks_between(case.before, case.after, 9)), case.after)


def names_repeated(case: Case, random: Random) -> Made:
    patch = "".join(case.patch([hunk]) for hunk in case.hunks)
    yield Spoilt(patch, case.after)


def several_faults(case: Case, random: Random) -> Made:
    """Fenced, talked about, numbers and counts wrong."""
    hunks = [replace(hunk.moved(random.randrange(1, 30)), old_count=1, new_count=1) for hunk in case.hunks]
    yield from _searched(case, f"Done:\n\n````diff\n{case.patch(hunks)}````\n")


def changed_line(case: Case, random: Random) -> Made:
    """One line that must be in the file reads otherwise."""
    number = random.randrange(len(case.hunks))
    hunk = case.hunks[number]
    at = random.choice([at for at, line in enumerate(hunk.body) if line[0] in " -"])
    body = (*hunk.body[:at], f"{hunk.body[at].rstrip()} indeed", *hunk.body[at + 1 :])
    hunks = [*case.hunks[:number], replace(hunk, body=body), *case.hunks[number + 1 :]]
    yield Spoilt(case.patch(hunks), None, ("hunk_mismatch",))


def swapped_lines(case: Case, random: Random) -> Made:
    hunk = case.hunks[0]
    pairs = [
        at
        for at in range(len(hunk.body) - 1)
        if hunk.body[at][0] == hunk.body[at + 1][0] == " " and hunk.body[at].rstrip() != hunk.body[at + 1].rstrip()
    ]
    if pairs:
        at = random.choice(pairs)
        body = (*hunk.body[:at], hunk.body[at + 1], hunk.body[at], *hunk.body[at + 2 :])
        spoilt = replace(hunk, body=body)
        if not _places(case.before, spoilt.expected):
            yield Spoilt(case.patch([spoilt, *case.hunks[1:]]), None, ("hunk_mismatch",))


def dropped_line(case: Case, random: Random) -> Made:
    """A line of context is missing: in the middle that is another text, at the edge it is less context."""
    hunk = case.hunks[0]
    context = [at for at, line in enumerate(hunk.body) if line[0] == " "]
    for at in {random.choice(context), context[0]} if context else ():
        spoilt = replace(hunk, body=(*hunk.body[:at], *hunk.body[at + 1 :]))
        fits = _places(case.before, spoilt.expected)
        if not spoilt.expected or fits > 1:
            continue
        hunks = [spoilt, *case.hunks[1:]]
        if fits == 0:
            yield Spoilt(case.patch(hunks), None, ("hunk_mismatch",))
        elif at == 0 and len(hunks) == 1 and spoilt.old + spoilt.old_count < len(case.before.split("\n")):
            yield Spoilt(case.patch(hunks), case.after)


def stale_file(case: Case, random: Random) -> Made:
    """The file has changed since, in a line that the diff shows."""
    hunk = case.hunks[-1]
    line = random.choice([line for line in hunk.expected if line.strip()])
    before = "\n".join(f"{text.rstrip()} (revised)" if text == line else text for text in case.before.split("\n"))
    if not _places(before, hunk.expected):
        yield Spoilt(case.patch(), None, ("hunk_mismatch",), before)


def said_twice(case: Case, random: Random) -> Made:
    """The file has the lines of the hunks twice, and no number says which are meant."""
    before = f"{case.before}\n{case.before}" if case.before.endswith("\n") else f"{case.before}\n{case.before}\n"
    if all(_places(before, hunk.expected) > 1 for hunk in case.hunks) and NO_NEWLINE not in case.patch():
        yield Spoilt(case.patch(headers=["@@"] * len(case.hunks)), None, ("hunk_ambiguous",), before)
        far = [replace(hunk, old=hunk.old + 1, new=hunk.new + 1) for hunk in case.hunks]
        if all(_places(before, hunk.expected) == 2 for hunk in far):
            yield Spoilt(case.patch(far), None, ("hunk_ambiguous",), before)


def cut_off(case: Case, random: Random) -> Made:
    """The end is missing, and with it a change, or only context."""
    *others, last = case.hunks
    changes = [at for at, line in enumerate(last.body) if line[0] in "+-"]
    if changes[0] == changes[-1]:
        return
    at = random.randrange(changes[0] + 1, changes[-1] + 1)
    yield Spoilt(case.patch([*others, replace(last, body=last.body[:at])]), None, ("patch_malformed", "hunk_ambiguous"))
    line = last.body[changes[-1]]
    if line[0] == "+" and len(line) > 4 and changes[-1] + 1 < len(last.body):
        body = (*last.body[: changes[-1]], line[: len(line) // 2])
        yield Spoilt(case.patch([*others, replace(last, body=body)]).removesuffix("\n"), None, ("patch_malformed",))


def only_context_cut(case: Case, random: Random) -> Made:
    *others, last = case.hunks
    left = len(case.before.split("\n")) - (last.old + last.old_count)
    if left > 1 and [line[0] for line in last.body[:3]] == [" "] * 3 and last.body[-1][0] == last.body[-2][0] == " ":
        shorter = replace(last, body=last.body[:-1])
        if _places(case.before, shorter.expected) == 1:
            yield Spoilt(case.patch([*others, shorter]), case.after)


def numbered(case: Case, random: Random) -> Made:
    """Copied from a listing with line numbers, sign first."""
    hunks = []
    for hunk in case.hunks:
        at = hunk.old
        body: list[str] = []
        for line in hunk.body:
            body.append(line if line == NO_NEWLINE else f"{line[0]}{at:6}\t{line[1:]}")
            at += line[0] != "+"
        hunks.append(replace(hunk, body=tuple(body)))
    yield Spoilt(case.patch(hunks), None, ("line_numbers_in_patch",))


def two_files(case: Case, random: Random) -> Made:
    other = case.patch().replace(case.name, f"other/{case.name}.bak")
    yield Spoilt(case.patch() + other, None, ("patch_malformed",))


MUTATIONS: Mapping[str, Mutation] = {
    "untouched": nothing,
    "counts too small": counts_too_small,
    "counts too large": counts_too_large,
    "old numbers wrong": old_numbers,
    "all numbers wrong": all_numbers,
    "bare headers": bare,
    "no file headers": without_names,
    "trailing blanks": trailing_blanks,
    "fence": fenced,
    "prose": talked_about,
    "lost blanks": lost_blanks,
    "lost signs": lost_signs,
    "other line ends": other_line_ends,
    "no newline at the end": no_last_newline,
    "lost markers": lost_markers,
    "blank lines between": blank_lines_between,
    "hunks out of order": shuffled_hunks,
    "little context": little_context,
    "much context": much_context,
    "names repeated": names_repeated,
    "several faults": several_faults,
    "context cut": only_context_cut,
    "changed line": changed_line,
    "swapped lines": swapped_lines,
    "dropped line": dropped_line,
    "stale file": stale_file,
    "said twice": said_twice,
    "cut off": cut_off,
    "line numbers copied": numbered,
    "two files": two_files,
}


def by_mutation() -> Iterator[Entry]:
    """Every right diff, spoilt in every way that applies to it."""
    for case in cases():
        for family, mutation in MUTATIONS.items():
            for number, spoilt in enumerate(mutation(case, Random(f"{case.about} {family}")), 1):
                before = case.before if spoilt.before is None else spoilt.before
                yield Entry(family, f"{case.about}, {number}", before, spoilt.patch, spoilt.meant, spoilt.codes)
