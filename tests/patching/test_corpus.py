"""Every diff of the corpus comes to exactly what it means, or is refused for the reason that is written beside it."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache

import pytest

from sidecar.core.patching import Patched, PatchFault, apply, is_diff
from tests.patching.__main__ import table
from tests.patching.entries import Entry, by_hand, texts
from tests.patching.mutations import MUTATIONS, by_mutation, cases
from tests.patching.rivals import APPLIERS


@cache
def everything() -> tuple[Entry, ...]:
    return (*by_hand(), *by_mutation())


def outcome(entry: Entry) -> str:
    """What became of an entry, or "as meant"."""
    match apply(entry.before, entry.patch):
        case Patched(text=text):
            return "as meant" if text == entry.meant else f"applied wrongly: {text!r}"
        case PatchFault(code=code):
            return "as meant" if code in entry.codes else f"refused: {code}"


def check(entries: list[Entry]) -> None:
    found = {entry.about: outcome(entry) for entry in entries}
    assert {about: became for about, became in found.items() if became != "as meant"} == {}


REPAIRED = (
    "counts", "line numbers", "bare headers", "blanks", "wrapping", "line ends", "counts too small", "counts too large",
    "old numbers wrong", "all numbers wrong", "no file headers", "trailing blanks", "fence", "prose", "lost blanks",
    "lost signs", "other line ends", "no newline at the end", "lost markers", "blank lines between", "little context",
    "much context", "names repeated", "several faults", "context cut", "hunks out of order",
)  # fmt: skip
REFUSED = (
    "mismatch", "ambiguous", "malformed", "cut off", "changed line", "swapped lines", "dropped line", "stale file",
    "said twice", "two files",
)  # fmt: skip
FAMILIES = {entry.family for entry in by_hand()} | set(MUTATIONS)


@pytest.mark.rule("patch.model-made-diffs-are-repaired")
@pytest.mark.parametrize("family", REPAIRED)
def test_what_models_get_wrong_is_repaired_where_it_has_one_meaning(family: str) -> None:
    check([entry for entry in everything() if entry.family == family])


@pytest.mark.rule("patch.mismatches-say-what-was-expected")
@pytest.mark.parametrize("family", REFUSED)
def test_what_does_not_fit_for_certain_is_refused(family: str) -> None:
    check([entry for entry in everything() if entry.family == family])


@pytest.mark.rule("patch.line-number-prefixes-are-refused")
@pytest.mark.parametrize("family", ["copied line numbers", "line numbers copied"])
def test_line_numbers_before_the_lines_are_refused(family: str) -> None:
    check([entry for entry in everything() if entry.family == family])


@pytest.mark.rule("patch.diff-or-whole-replacement")
@pytest.mark.parametrize("family", ["well formed", "untouched", "whole texts"])
def test_a_right_diff_is_applied_and_any_other_text_replaces_the_file(family: str) -> None:
    check([entry for entry in everything() if entry.family == family])


def test_every_family_is_tested_above() -> None:
    rest = {"copied line numbers", "line numbers copied", "well formed", "untouched", "whole texts"}
    assert {*REPAIRED, *REFUSED, *rest} == FAMILIES


def test_the_corpus_is_large_and_nothing_in_it_is_said_twice() -> None:
    assert len(by_hand()) >= 60
    assert len(everything()) >= 200
    assert [about for about, times in Counter(entry.about for entry in everything()).items() if times > 1] == []
    assert {entry.family for entry in everything()} == FAMILIES


def test_nothing_is_applied_wrongly_and_nearly_everything_that_means_something_is_applied() -> None:
    found = Counter((entry.meant is not None, outcome(entry).partition(":")[0]) for entry in everything())
    assert not any(became == "applied wrongly" for _, became in found)
    meaning = sum(times for (means, _), times in found.items() if means)
    assert found[True, "as meant"] >= 0.95 * meaning


def test_what_is_a_diff_and_what_a_whole_text_is_told_apart() -> None:
    assert [entry.about for entry in everything() if is_diff(entry.patch) == entry.whole] == []


def test_the_right_diffs_are_right() -> None:
    """They are the ground under all mutations, so they are put in here by their numbers alone."""
    for case in cases():
        lines = case.before.split("\n")
        for hunk in reversed(case.hunks):
            body = [line for line in hunk.body if line[0] != "\\"]
            assert lines[hunk.old - 1 : hunk.old - 1 + hunk.old_count] == [line[1:] for line in body if line[0] != "+"]
            lines[hunk.old - 1 : hunk.old - 1 + hunk.old_count] = [line[1:] for line in body if line[0] != "-"]
        assert "\n".join(lines) == case.after


@pytest.mark.parametrize("name", APPLIERS)
def test_everybody_applies_a_right_diff(name: str) -> None:
    """Else the comparison would say nothing: whoever fails here was called in a wrong way."""
    if name.startswith(("git", "patch")) and shutil.which(name.split()[0]) is None:
        pytest.skip(f"{name} is not installed here")
    case = next(case for case in cases() if case.name == "app.py")
    assert APPLIERS[name](case.before, case.patch()) == case.after
    assert APPLIERS[name](case.before.replace("text", "word"), case.patch().replace("@@ -", "@@ -9")) != case.after


def test_the_table_has_a_row_for_every_family() -> None:
    rows = list(table(everything(), Counter(), Counter()))
    assert {row.split(" | ")[0].removeprefix("| ") for row in rows[2 : len(FAMILIES) + 2]} == FAMILIES
    assert len(texts()) == 9
