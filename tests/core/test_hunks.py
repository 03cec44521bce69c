"""The signs of the lines are believed, the numbers of the headers are not, and two meanings are refused."""

from __future__ import annotations

import pytest

from sidecar.core.hunks import Diff, Hunk, Malformed, Numbers, read


def hunks(text: str) -> tuple[Hunk, ...]:
    found = read(text.removesuffix("\n").split("\n"))
    assert isinstance(found, Diff), found
    return found.hunks


def refused(text: str) -> Malformed:
    found = read(text.removesuffix("\n").split("\n"))
    assert isinstance(found, Malformed), found
    return found


@pytest.mark.parametrize(
    ("header", "numbers"),
    [
        ("@@ -3,4 +5,6 @@", Numbers(3, 4, 5, 6)),
        ("@@ -3 +5 @@ def f():", Numbers(3, 1, 5, 1)),
        ("@@ -3,4 +5,6 @@\r", Numbers(3, 4, 5, 6)),
        ("@@-3,4 +5,6@@", Numbers(3, 4, 5, 6)),
        ("@@ -3,4 +5,6", Numbers(3, 4, 5, 6)),
        ("@@", None),
        ("@@\r", None),
        ("@@ @@", None),
        ("@@ ... @@", None),
        ("@@ class A:", None),
    ],
)
def test_headers_are_read_with_numbers_and_without(header: str, numbers: Numbers | None) -> None:
    (hunk,) = hunks(f"{header}\n-a\n+b\n")
    assert hunk.numbers == numbers


@pytest.mark.parametrize(
    "header", ["@@ -3,", "@@ -", "@@ +1", "@@@ -1 -1 +1 @@@", f"@@ -{'9' * 5000} +1 @@", "@@ -a +b @@"]
)
def test_a_header_that_is_neither_is_refused(header: str) -> None:
    assert refused(f"{header}\n-a\n+b\n").hunk == 1


@pytest.mark.parametrize(
    ("body", "signs", "texts"),
    [
        (" a\n-b\n+c\n", " -+", ("a", "b", "c")),
        (" a\n\n-b\n", "  -", ("a", "", "b")),
        (" a\nmargin\n-b\n", "  -", ("a", "margin", "b")),
        ("-a\n\n\n", "-", ("a",)),
        ("-a\n \n", "- ", ("a", "")),
        ("-\ta\r\n", "-", ("\ta\r",)),
        ("--- a\n+++ b\n", "-+", ("-- a", "++ b")),
    ],
)
def test_lines_are_read_by_their_signs(body: str, signs: str, texts: tuple[str, ...]) -> None:
    (hunk,) = hunks(f"@@\n{body}")
    assert (hunk.signs, hunk.texts) == (signs, texts)
    assert hunk.old == tuple(text for sign, text in zip(signs, texts, strict=True) if sign != "+")


@pytest.mark.parametrize(
    ("numbers", "tail", "lines"),
    [
        ("-1,2 +1,2", "", 2),
        ("-1,2 +1,2", "\n\n", 3),
        ("-1,3 +1,3", "\n\n", 4),
        ("-1,1 +1,1", "\nDone.\n", 2),
        ("-1,1 +1,1", "-- \n2.39.5\n", 2),
        ("-1,2 +1,2", "Done.\n", 3),
    ],
)
def test_counts_decide_about_lines_without_signs_at_the_end(numbers: str, tail: str, lines: int) -> None:
    (hunk,) = hunks(f"@@ {numbers} @@\n-a\n+b\n{tail}")
    assert len(hunk.signs) == lines


def test_counts_tell_a_file_header_from_changed_lines() -> None:
    body = "-x\n--- a\n+++ b\n@@ -9 +9 @@\n-y\n+z\n"
    assert [hunk.signs for hunk in hunks(f"--- f\n+++ f\n@@ -1,2 +1 @@\n{body}")] == ["--+", "-+"]
    found = read(f"--- f\n+++ f\n@@ -1 +0,0 @@\n{body}".split("\n"))
    assert isinstance(found, Diff)
    assert found.names == (("f", "f"), ("a", "b"))


def test_the_markers_of_a_missing_newline_belong_to_a_side() -> None:
    marker = "\\ No newline at end of file\n"
    ends = [
        (hunk.old_unended, hunk.new_unended)
        for body in (f"-a\n{marker}+b\n", f"-a\n+b\n{marker}", f"-x\n a\n{marker}", f"-a\n{marker}+b\n{marker}", "-a\n")
        for hunk in hunks(f"@@\n{body}")
    ]
    assert ends == [(True, False), (False, True), (True, True), (True, True), (False, False)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no hunk"),
        ("--- a\n+++ b\n", "no hunk"),
        ("@@\n", "changes nothing"),
        ("@@\n a\n b\n", "changes nothing"),
        ("@@\n-a\n\\ No newline\n-b\n", "in its middle"),
        ("@@\n a\n+b\n\n+c\n", "lost its sign"),
        ("@@\n+a\n\n+b\n c\n", "lost its sign"),
        ("@@ -1 +1 @@\n-a\n+b\n\n+ a remark\n", "goes on"),
        ("--- a\n+++ b\n\n+lost\n@@\n-a\n+b\n", "outside of the hunks"),
        ("@@\n-a\n+b\ndiff --git a/x b/x\n-c\n", "outside of the hunks"),
        ("@@\n-a\n+b\n--- a/x\n+++ b/x\n@@\n-c\n", "behind hunk 1"),
        ("diff --git a/x b/x\n@@\n-a\n+b\ndiff --git a/y b/y\n@@\n-c\n", "several files"),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "deletes it"),
        ("rename from x\nrename to y\n@@\n-a\n+b\n", "rename from x"),
        ("GIT binary patch\n", "GIT binary patch"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(text: str, words: str) -> None:
    assert words in refused(text).message
