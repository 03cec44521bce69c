"""A hunk belongs where it fits, if that is one place or the numbers of the whole diff are right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.fitting import Fits, Misfit, Twice, find_once, fit, guess
from sidecar.core.hunks import Diff, read


def fitted(lines: str, diff: str) -> Fits | Misfit:
    found = read(diff.split("\n"))
    assert isinstance(found, Diff), found
    return fit(lines.split(), found.hunks)


@pytest.mark.parametrize(
    ("lines", "diff", "places", "right"),
    [
        ("a b c", "@@ -2 +2 @@\n-b\n+B", (1,), True),
        ("a b c", "@@ -9 +9 @@\n-b", (1,), False),
        ("a b c", "@@\n-b", (1,), False),
        ("a b a b", "@@ -3,2 +3 @@\n a\n-b", (2,), True),
        ("a b a b", "@@ -3,9 +3,9 @@\n a\n-b", (2,), True),
        ("a b c d", "@@ -1 +0,0 @@\n-a\n@@ -3 +2 @@\n-c\n+C", (0, 2), True),
        ("a b c d", "@@ -3 +3 @@\n-c\n+C\n@@ -1 +1 @@\n-a\n+A", (2, 0), True),
        ("a b c d", "@@\n-c\n@@\n-a", (2, 0), False),
        ("", "@@ -0,0 +1 @@\n+a", (0,), True),
        ("", "@@ -7,0 +8 @@\n+a", (0,), False),
    ],
)
def test_hunks_find_their_places(lines: str, diff: str, places: tuple[int, ...], right: bool) -> None:
    found = fitted(lines, diff)
    assert isinstance(found, Fits), found
    assert (found.places, found.numbers_right) == (places, right)


@pytest.mark.parametrize(
    ("lines", "diff", "kind", "place"),
    [
        ("a b a b", "@@\n a\n-b", "ambiguous", 0),
        ("a b a b", "@@ -2,2 +2 @@\n a\n-b", "ambiguous", 0),
        ("a b a b", "@@ -3,2 +1 @@\n a\n-b", "ambiguous", 0),
        ("a b a b c", "@@ -3,2 +3 @@\n a\n-b\n@@ -4 +3 @@\n-c", "ambiguous", 0),
        ("a b c", "@@ -2 +2 @@\n-x", "mismatch", 1),
        ("a b c", "@@\n-x", "mismatch", None),
        ("a b c d e", "@@\n c\n d\n-x", "mismatch", 2),
        ("a b c", "@@\n c\n-b", "mismatch", 0),
        ("", "@@\n-x", "mismatch", None),
        ("a", "@@ -1,0 +2 @@\n+x", "no context", None),
    ],
)
def test_what_is_not_certain_is_a_misfit(lines: str, diff: str, kind: str, place: int | None) -> None:
    found = fitted(lines, diff)
    assert isinstance(found, Misfit), found
    assert (found.kind, found.place) == (kind, place)


def test_blanks_at_the_ends_of_lines_make_two_places_of_one() -> None:
    found = read(["@@ -1 +1 @@", "-a ", "+A"])
    assert isinstance(found, Diff)
    assert fit(["a", "b"], found.hunks) == Fits((0,), True)
    assert isinstance(fit(["a", "b", "a\t"], found.hunks), Misfit)


letters = st.lists(st.sampled_from("ab"), max_size=30)


@given(letters, st.lists(letters.filter(bool), max_size=6))
def test_one_pass_finds_what_looking_everywhere_finds(keys: list[str], runs: list[list[str]]) -> None:
    sought = dict(enumerate(runs))
    everywhere = {
        number: [at for at in range(len(keys)) if keys[at : at + len(run)] == run] for number, run in sought.items()
    }
    match find_once(keys, sought):
        case Twice(number=number, place=place, other=other):
            assert everywhere[number][:2] == [place, other]
        case places:
            assert places == {number: found[0] for number, found in everywhere.items() if found}
            assert all(len(found) < 2 for found in everywhere.values())


def test_a_guess_follows_the_rare_lines() -> None:
    found = read(["@@ -1,4 +1,4 @@", " }", " rare", "-x", " }"])
    assert isinstance(found, Diff)
    keys = ["}"] * 50 + ["rare", "y"] + ["}"] * 50
    assert guess(keys, found.hunks[0]) == 49
