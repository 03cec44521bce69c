"""A patch gives exactly the text that its author meant, or a refusal that says why, and never anything between."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.core import limits
from sidecar.core.patching import SHOWN_CHARS, SHOWN_LINES, Patched, PatchFault, apply, is_diff
from tests.patching.mutations import Case, Hunk, hunks_between

BEFORE = "one\ntwo\nthree\nfour\nfive\n"


def patched(before: str, patch: str) -> Patched:
    result = apply(before, patch)
    assert isinstance(result, Patched), result
    return result


def refused(before: str, patch: str, *, path: str | None = None) -> PatchFault:
    result = apply(before, patch, path=path)
    assert isinstance(result, PatchFault), result
    return result


@pytest.mark.rule("patch.diff-or-whole-replacement")
@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", True),
        ("+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", True),
        ("@@ -1 +1 @@\n-a\n+b\n", True),
        ("@@\n-a\n+b\n", True),
        ("\n\n@@ -1 +1 @@\n-a\n+b\n", True),
        ("```diff\n@@ -1 +1 @@\n-a\n+b\n```\n", True),
        ("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", True),
        ("---\ntitle: x\n---\n# Hi\n", False),
        ("--- \ntitle: x\n---\n", False),
        ("--- a rule\ntext\n", False),
        ("+++ more\ntext\n", False),
        ("- a\n+ b\n", False),
        ("```python\nprint()\n```\n", False),
        ("text\n", False),
        ("", False),
    ],
)
def test_a_diff_has_the_shape_of_one(patch: str, expected: bool) -> None:
    assert is_diff(patch) is expected


@pytest.mark.rule("patch.diff-or-whole-replacement")
def test_a_whole_text_replaces_the_file_byte_for_byte() -> None:
    assert patched(BEFORE, "---\r\ntitle: x\n---\n\ufeff# Hi") == Patched("---\r\ntitle: x\n---\n\ufeff# Hi", 0, ())


@pytest.mark.parametrize("patch", ["", " \n"])
def test_an_empty_patch_does_not_empty_a_file(patch: str) -> None:
    assert refused(BEFORE, patch).code == "patch_malformed"
    assert patched("", patch).text == patch


@pytest.mark.rule("patch.model-made-diffs-are-repaired")
@pytest.mark.parametrize(
    ("patch", "repair"),
    [
        ("@@ -2,1 +2,1 @@\n-two\n+2\n three\n", "corrected line counts"),
        ("@@ -4,2 +4,2 @@\n-two\n+2\n three\n", "corrected line numbers"),
        ("@@\n-two\n+2\n three\n", "found the places of hunks without line numbers"),
        ("@@ -2,2 +2,2 @@\n-two \n+2\n three\n", "overlooked blanks at the ends of lines"),
        ("```\n@@ -2,2 +2,2 @@\n-two\n+2\n three\n```\n", "took off the code fence"),
        ("So:\n@@ -2,2 +2,2 @@\n-two\n+2\n three\n", "left out the text before the diff"),
        ("@@ -1,3 +1,3 @@\n one\n-two\n+2\nthree\n", "gave lines of context their sign back"),
        ("@@ -2 +2 @@\r\n-two\r\n+2\r\n", "gave the added lines the line ends of the file"),
    ],
)
def test_a_repair_is_told_in_words(patch: str, repair: str) -> None:
    assert patched(BEFORE, patch) == Patched("one\n2\nthree\nfour\nfive\n", 1, (repair,))


def test_a_right_diff_needs_no_repair() -> None:
    assert patched(BEFORE, "@@ -2,2 +2,2 @@\n-two\n+2\n three\n").repairs == ()


@pytest.mark.rule("patch.mismatches-say-what-was-expected")
def test_a_mismatch_shows_what_the_diff_expects_and_what_is_there() -> None:
    fault = refused(BEFORE, "@@ -2,3 +2,3 @@\n two\n-drei\n+3\n four\n")
    assert (fault.code, fault.hunk, fault.line) == ("hunk_mismatch", 1, 2)
    assert fault.expected == ("two", "drei", "four")
    assert fault.actual == ("two", "three", "four")
    assert "line 3" in fault.message


@pytest.mark.rule("patch.mismatches-say-what-was-expected")
def test_a_mismatch_far_from_its_number_is_shown_where_it_probably_belongs() -> None:
    before = "".join(f"line {number}\n" for number in range(1, 200))
    fault = refused(before, "@@ -10,4 +10,4 @@\n line 150\n line 151\n-line 15 2\n+LINE\n line 153\n")
    assert (fault.line, fault.actual[2]) == (150, "line 152")


@pytest.mark.rule("patch.mismatches-say-what-was-expected")
def test_an_ambiguous_hunk_says_where_it_fits() -> None:
    fault = refused("a\nb\na\nb\n", "@@\n a\n-b\n+B\n")
    assert (fault.code, fault.hunk, fault.line) == ("hunk_ambiguous", 1, 1)
    assert "line 1" in fault.message
    assert "line 3" in fault.message


def test_a_refusal_is_short_however_long_the_lines_are() -> None:
    line = "x" * 10_000
    patch = "@@\n" + f" {line}\n" * 100 + f"-{line}y\n+z\n"
    fault = refused(f"{line}\n" * 200, patch)
    shown = [*fault.expected, *fault.actual]
    assert 0 < len(shown) <= 2 * SHOWN_LINES
    assert max(map(len, shown)) == SHOWN_CHARS
    assert len(fault.message) < 500


@pytest.mark.rule("patch.all-hunks-or-none")
def test_one_hunk_that_does_not_fit_refuses_all() -> None:
    right, wrong = "@@ -1,2 +1,2 @@\n-one\n+1\n two\n", "@@ -4,2 +4,2 @@\n-vier\n+4\n five\n"
    assert patched(BEFORE, right).hunks == 1
    assert refused(BEFORE, right + wrong).hunk == 2
    assert refused(BEFORE, wrong + right).hunk == 1


@pytest.mark.rule("patch.line-number-prefixes-are-refused")
@pytest.mark.parametrize(
    "patch",
    [
        "     1\talpha\n     2\tbeta edited\n",
        "@@ -1,2 +1,2 @@\n      1\talpha\n-     2\tbeta\n+     2\tbeta edited\n",
        "@@ -1,2 +1,2 @@\n alpha\n-beta\n+     2\tbeta edited\n",
    ],
)
def test_line_numbers_are_refused_with_a_code_of_their_own(patch: str) -> None:
    assert refused("alpha\nbeta\n", patch).code == "line_numbers_in_patch"


@pytest.mark.parametrize(
    ("names", "path", "fits"),
    [
        (("a/x.md", "b/x.md"), "turn_1/files/x.md", True),
        (("a/turn_0/files/x.md", "b/turn_0/files/x.md"), "turn_1/files/x.md", True),
        (("x.md.orig", "x.md"), "turn_1/files/x.md", True),
        (("original", "modified"), "turn_1/files/x.md", True),
        (("a/y.md", "b/y.md"), "turn_1/files/x.md", False),
        (("a/y.md", "b/y.md"), None, True),
    ],
)
def test_a_diff_for_a_file_of_another_name_is_refused(names: tuple[str, str], path: str | None, fits: bool) -> None:
    patch = f"--- {names[0]}\n+++ {names[1]}\n@@ -2 +2 @@\n-two\n+2\n"
    result = apply(BEFORE, patch, path=path)
    assert isinstance(result, Patched) is fits
    assert fits or (isinstance(result, PatchFault) and result.code == "patch_malformed")


@pytest.mark.parametrize("patch", ["@@ -1,2 +1,2 @@\n \ufeffone\n-two\n+2\n", "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"])
def test_the_mark_at_the_beginning_of_a_file_stays(patch: str) -> None:
    assert patched("\ufeffone\ntwo\n", patch).text == "\ufeffone\n2\n"


def test_a_diff_longer_than_the_limit_is_refused() -> None:
    patch = "@@ -2 +2 @@\n-two\n" + "+x\n" * limits.PATCH_LINES
    assert refused(BEFORE, patch).code == "patch_malformed"


MIB = 1 << 20
EQUAL = "a\n" * (MIB // 2)
WORDS = "".join(f"{number * number % 7}\n" for number in range(MIB // 2))
A = " a\n"
HOSTILE = {
    "hunks that fit everywhere": (10 * EQUAL, "@@\n a\n-a\n+b\n a\n" * 10_000),
    "hunks that nearly fit everywhere": (EQUAL + "b\n", "".join(f"@@\n{A * n}-b\n+c\n" for n in range(50, 500))),
    "one hunk that is long and equal": (EQUAL + "b\n", f"@@\n{A * 150_000}-c\n+d\n"),
    "few words in every order": (WORDS, "".join(f"@@\n {n % 7}\n {n % 5}\n-{n % 3}\n+x\n" for n in range(30_000))),
    "blanks behind a fence": (EQUAL, f"```{' ' * MIB}x y\n@@ -1 +1 @@\n-c\n+b\n"),
    "blanks in a header": (EQUAL, f"@@ -1{' ' * MIB}+1 x\n-c\n+b\n"),
    "headers alone": (EQUAL, "@@ -1 +1 @@\n" * 190_000),
    "names alone": (EQUAL, "--- a/x\n+++ b/x\n" * 90_000),
    "signatures": (EQUAL, "@@ -1 +1 @@\n-a\n+b\n" + "-- \n1.2\n" * 90_000),
}


def seconds_of(before: str, patch: str) -> tuple[float, Patched | PatchFault]:
    begun = time.monotonic()
    result = apply(before, patch)
    return time.monotonic() - begun, result


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_patch_ends_soon(name: str) -> None:
    """In a second or so; the ceiling is for slow machines, and what is quadratic takes hours."""
    seconds, result = seconds_of(*HOSTILE[name])
    assert seconds < 15
    assert isinstance(result, PatchFault)


def test_ten_thousand_right_hunks_in_ten_mebibytes_of_equal_lines_end_soon() -> None:
    hunks = (f"@@ -{at},3 +{at},3 @@\n a\n-a\n+b\n a\n" for at in range(1, 70_000, 7))
    seconds, result = seconds_of(10 * EQUAL, "".join(hunks))
    assert seconds < 15
    assert isinstance(result, Patched)
    assert result.text.count("b") == result.hunks == 10_000


# Lines that are often the same, look like parts of a diff, or hold what other programs take for line ends.
line = st.one_of(
    st.sampled_from(
        ["", " ", "a", "b", "a ", "\tb", "}", "- a", "+ a", "-- a", "--- a", "+++ b", "@@ -1 +1 @@", "```"]
    ),
    st.sampled_from(["x\r", "\r", "\ry", "\f", "\x0b", "\x85", "\u2028", "\ufeff", "\x00", "é", "     1\tz", "\\ no"]),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=6),
)
text = st.builds(lambda lines, end: "\n".join(lines) + end, st.lists(line, max_size=14), st.sampled_from(["", "\n"]))


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, str]:
    """A text, and what it becomes by a few edits."""
    before = draw(text)
    lines = before.split("\n")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines)))
        lines[at : at + draw(st.integers(0, 2))] = draw(st.lists(line, max_size=2))
    return before, "\n".join(lines)


def diff_of(before: str, after: str, context: int) -> Case | None:
    """The right diff, unless it has none, or one that adds lines without context."""
    hunks = hunks_between(before, after, context)
    usable = bool(hunks) and all(hunk.expected or not before for hunk in hunks)
    return Case("x.txt", 1, before, after, hunks) if usable else None


@given(st.one_of(edits(), st.tuples(text, text)), st.integers(1, 4))
@example(("a\r\nb", "a\r\nb\r\n"), 1)
@example(("\ufeffa\nb\n", "\ufeffa\nc\n"), 3)
@example(("", "x"), 3)
def test_a_right_diff_between_any_two_texts_gives_the_second(pair: tuple[str, str], context: int) -> None:
    before, after = pair
    case = diff_of(before, after, context)
    if case is None or _copies_numbers(before, after):
        return
    assert patched(before, case.patch()).text == after


def _copies_numbers(before: str, after: str) -> bool:
    """Whether lines as of a numbered listing are new, which is refused on purpose."""
    return "     1\tz" in after and "     1\tz" not in before


@given(edits(), st.integers(1, 3), st.data())
def test_wrong_numbers_never_lead_to_a_wrong_text(pair: tuple[str, str], context: int, data: st.DataObject) -> None:
    """A hunk may say that it is elsewhere. Only numbers that agree with one another and with the file are believed."""
    before, after = pair
    case = diff_of(before, after, context)
    if case is None:
        return
    number = st.integers(0, 20)
    hunks = [
        Hunk(hunk.old + data.draw(number), data.draw(number), hunk.new, data.draw(number), hunk.body)
        for hunk in case.hunks
    ]
    moved = any(ours.old != theirs.old for ours, theirs in zip(hunks, case.hunks, strict=True))
    counted = [(hunk.old_count == 0) == (right.old_count == 0) for hunk, right in zip(hunks, case.hunks, strict=True)]
    result = apply(before, case.patch(hunks))
    if isinstance(result, Patched) and (moved or all(counted)):
        assert result.text == after


@given(edits(), st.integers(1, 3), st.sampled_from(["@@", "@@ @@", "@@ ... @@", "@@ here"]))
def test_bare_headers_never_lead_to_a_wrong_text(pair: tuple[str, str], context: int, header: str) -> None:
    before, after = pair
    case = diff_of(before, after, context)
    if case is not None:
        result = apply(before, case.patch(headers=[header] * len(case.hunks)))
        assert isinstance(result, PatchFault) or result.text == after


@given(edits(), st.integers(1, 3), st.integers(1, 20))
def test_a_diff_that_lacks_a_change_at_its_end_is_never_applied(
    pair: tuple[str, str], context: int, missing: int
) -> None:
    before, after = pair
    case = diff_of(before, after, context)
    if case is None:
        return
    *others, last = case.hunks
    body = last.body[: -missing or None]
    if len(body) > 0 and any(line[0] in "+-" for line in last.body[len(body) :]):
        cut = Hunk(last.old, last.old_count, last.new, last.new_count, body)
        result = apply(before, case.patch([*others, cut]))
        assert isinstance(result, PatchFault)


piece = st.one_of(
    st.sampled_from(
        ["--- a/x\n", "+++ b/x\n", "@@\n", "@@ -1,2 +1,2 @@\n", "@@ -", "```diff\n", "```\n", "\\ No newline\n"]
    ),
    st.sampled_from(
        [" a\n", "-a\n", "+b\n", " b\n", "\n", "a\n", "-- \n", "diff --git a/x b/x\n", "     1\ta\n", "+", "\r\n"]
    ),
    st.text(max_size=4),
)


@given(text, st.lists(piece, max_size=12).map("".join))
def test_nothing_makes_it_raise_and_a_refusal_changes_nothing(before: str, patch: str) -> None:
    match apply(before, patch):
        case Patched(text=after, hunks=hunks):
            assert isinstance(after, str)
            assert (hunks > 0) is is_diff(patch)
            assert hunks or after == patch
        case PatchFault(code=code, message=message):
            assert code in {"hunk_mismatch", "hunk_ambiguous", "patch_malformed", "line_numbers_in_patch"}
            assert message
