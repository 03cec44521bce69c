"""Where in a file the hunks of a diff belong, or why that is not certain.

A hunk fits where all of its context and removed lines stand in a row, blanks at the ends of lines aside. The numbers of
a diff are believed only when they agree with one another and every hunk fits where they say. Otherwise each hunk must
fit at exactly one place in the whole file; neither the order of the hunks nor the nearest place decides, because a
model that is wrong about one is wrong about the other.

All hunks are searched for in one pass over the file (Aho and Corasick's automaton, a line being a letter), which ends
at the first hunk found twice. So the work follows the size of file and diff, however they are made.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from sidecar.core.hunks import Hunk

# A guess at the place of a hunk that fits nowhere looks at so many of its lines, none of them more frequent than this.
_GUESSING_LINES = 200
_GUESSING_PLACES = 16


class Fits(NamedTuple):
    """The line, counted from 0, at which each hunk begins. `numbers_right` says whether the headers said so."""

    places: tuple[int, ...]
    numbers_right: bool


class Misfit(NamedTuple):
    """`place` is where the hunk probably belongs, or one of the places where it fits; `other` a further one."""

    hunk: Hunk
    kind: Literal["mismatch", "ambiguous", "no context"]
    place: int | None = None
    other: int | None = None


def loose(line: str) -> str:
    """A line as it is compared: without blanks at its end, and without a carriage return."""
    return line.rstrip(" \t\r")


def same(one: str, other: str) -> bool:
    """Whether two lines are equal, their line ends aside."""
    return one == other or one.removesuffix("\r") == other.removesuffix("\r")


def fit(lines: Sequence[str], hunks: Sequence[Hunk]) -> Fits | Misfit:
    """The places of all hunks in the lines of a file."""
    for hunk in hunks:
        if not hunk.old and lines:
            return Misfit(hunk, "no context")
    stated = _stated(hunks)
    exact = stated is not None and all(_stands(lines, hunk, at) for hunk, at in zip(hunks, stated, strict=True))
    if stated is not None and exact:
        return Fits(tuple(stated), True)
    return _searched(lines, hunks, stated)


def _stated(hunks: Sequence[Hunk]) -> list[int] | None:
    """Where the headers say that the hunks begin, if what they say of the old and the new file agrees."""
    places: dict[int, int] = {}
    grown = 0
    for hunk in sorted(hunks, key=lambda hunk: hunk.numbers.old if hunk.numbers else 0):
        if hunk.numbers is None:
            return None
        old, new = hunk.counts
        # A side without lines is numbered by the line before it.
        place = hunk.numbers.old - 1 if old else hunk.numbers.old
        after = hunk.numbers.new - 1 if new else hunk.numbers.new
        if place < 0 or after != place + grown or (old == 0) != (hunk.numbers.old_count == 0):
            return None
        places[hunk.number] = place
        grown += new - old
    return [places[hunk.number] for hunk in hunks]


def _stands(lines: Sequence[str], hunk: Hunk, at: int) -> bool:
    found = lines[at : at + len(hunk.old)]
    if len(found) != len(hunk.old) or at > len(lines):
        return False
    return found == list(hunk.old) or all(map(same, found, hunk.old))


def _searched(lines: Sequence[str], hunks: Sequence[Hunk], stated: Sequence[int] | None) -> Fits | Misfit:
    keys = [loose(line) for line in lines]
    sought = {hunk.number: tuple(map(loose, hunk.old)) for hunk in hunks if hunk.old}
    known = set(keys)
    for hunk in hunks:
        if not known.issuperset(sought.get(hunk.number, ())):
            return Misfit(hunk, "mismatch", guess(keys, hunk))
    believed: dict[int, int] = {}
    if stated is not None:
        begun = {hunk.number: at for hunk, at in zip(hunks, stated, strict=True)}
        if all(tuple(keys[begun[number] : begun[number] + len(old)]) == old for number, old in sought.items()):
            # Where blanks differ a hunk must still be the only one of its kind.
            believed = {hunk.number: begun[hunk.number] for hunk in hunks if _stands(lines, hunk, begun[hunk.number])}
    found = find_once(keys, {number: old for number, old in sought.items() if number not in believed})
    if isinstance(found, Twice):
        return Misfit(_numbered(hunks, found.number), "ambiguous", found.place, found.other)
    places: list[int] = []
    for hunk in hunks:
        place = believed.get(hunk.number, found.get(hunk.number, None if hunk.old else 0))
        if place is None:
            return Misfit(hunk, "mismatch", guess(keys, hunk))
        places.append(place)
    return Fits(tuple(places), stated is not None and list(stated) == places)


def _numbered(hunks: Iterable[Hunk], number: int) -> Hunk:
    return next(hunk for hunk in hunks if hunk.number == number)


class Twice(NamedTuple):
    """What was sought under this number stands at two places, or more."""

    number: int
    place: int
    other: int


def find_once(keys: Sequence[str], sought: Mapping[int, Sequence[str]]) -> dict[int, int] | Twice:
    """Where each run of lines begins, for those that occur; the first that is found to occur twice ends the search.

    Takes time and memory in proportion to the lines of both.
    """
    letters: dict[str, int] = {}
    for run in sought.values():
        for key in run:
            letters.setdefault(key, len(letters) + 1)
    step, endings = _trie(sought, letters)
    fallback, shorter = _fallbacks(step, endings)
    places: dict[int, int] = {}
    node = 0
    for at, key in enumerate(keys):
        letter = letters.get(key)
        if letter is None:
            node = 0
            continue
        while node and letter not in step[node]:
            node = fallback[node]
        node = step[node].get(letter, 0)
        ending = node if node in endings else shorter[node]
        while ending:
            for number in endings[ending]:
                place = at + 1 - len(sought[number])
                if number in places:
                    return Twice(number, places[number], place)
                places[number] = place
            ending = shorter[ending]
    return places


def _trie(
    sought: Mapping[int, Sequence[str]], letters: Mapping[str, int]
) -> tuple[list[dict[int, int]], dict[int, list[int]]]:
    """Nodes with their steps, and which runs end at a node."""
    step: list[dict[int, int]] = [{}]
    endings: dict[int, list[int]] = {}
    for number, run in sought.items():
        node = 0
        for key in run:
            letter = letters[key]
            if letter not in step[node]:
                step[node][letter] = len(step)
                step.append({})
            node = step[node][letter]
        endings.setdefault(node, []).append(number)
    return step, endings


def _fallbacks(step: Sequence[Mapping[int, int]], endings: Mapping[int, object]) -> tuple[list[int], list[int]]:
    """Per node: where to go on when the next letter does not follow, and the next shorter run that ends here too."""
    fallback, shorter = [0] * len(step), [0] * len(step)
    waiting = deque(step[0].values())
    while waiting:
        node = waiting.popleft()
        shorter[node] = fallback[node] if fallback[node] in endings else shorter[fallback[node]]
        for letter, child in step[node].items():
            waiting.append(child)
            back = fallback[node]
            while back and letter not in step[back]:
                back = fallback[back]
            fallback[child] = step[back].get(letter, 0)
    return fallback, shorter


def guess(keys: Sequence[str], hunk: Hunk) -> int | None:
    """Where a hunk that fits nowhere probably belongs: where most of its rarer lines say, or else its header."""
    wanted = [loose(line) for line in hunk.old[:_GUESSING_LINES]]
    places: dict[str, list[int]] = {key: [] for key in wanted if key}
    for at, key in enumerate(keys):
        if key in places and len(places[key]) <= _GUESSING_PLACES:
            places[key].append(at)
    votes = Counter(
        at - offset
        for offset, key in enumerate(wanted)
        if key and len(places[key]) <= _GUESSING_PLACES
        for at in places[key]
    )
    stated = hunk.numbers.old - 1 if hunk.numbers else None
    if not votes:
        return None if stated is None or not keys else min(max(stated, 0), len(keys) - 1)
    near = stated or 0
    return max(votes, key=lambda place: (votes[place], -abs(place - near), -place))
