"""What is wrapped around a diff comes off, and a document that shows a diff is none."""

from __future__ import annotations

import pytest

from sidecar.core.wrapping import PROSE_LINES, Unwrapped, foreign, split_lines, unwrap

DIFF = ["@@ -1 +1 @@", "-a", "+b"]
TEXT = "\n".join(DIFF) + "\n"


def unwrapped(text: str) -> Unwrapped:
    found = unwrap(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT, ()),
        (f"\n\n{TEXT}", ()),
        (f"\ufeff{TEXT}", ()),
        (f"```diff\n{TEXT}```\n", ("took off the code fence",)),
        (f"```\n{TEXT}```", ("took off the code fence",)),
        (f"~~~~ patch \n\n{TEXT}~~~~~  \n", ("took off the code fence",)),
        (f"So:\n```\n{TEXT}```\nDone.\n", ("took off the code fence", "left out the text around the fence")),
        (f"I changed a.\n\n{TEXT}", ("left out the text before the diff",)),
    ],
)
def test_fences_and_prose_come_off(text: str, words: tuple[str, ...]) -> None:
    assert unwrapped(text) == Unwrapped(DIFF, True, True, words)


def test_prose_behind_stays_for_the_reader_of_hunks() -> None:
    assert unwrapped(f"{TEXT}\nDone.").lines == [*DIFF, "", "Done."]


@pytest.mark.parametrize(
    ("text", "ended", "closed"),
    [(TEXT, True, True), (TEXT[:-1], False, True), (f"```\n{TEXT}", True, False), (f"```\n{TEXT}```", True, True)],
)
def test_what_may_be_cut_off_is_told(text: str, ended: bool, closed: bool) -> None:
    found = unwrapped(text)
    assert (found.ended, found.closed) == (ended, closed)


@pytest.mark.parametrize("behind", ["```\nmore\n```\n", "@@ -9 +9 @@\n", "--- a/y\n"])
def test_a_second_block_is_trouble(behind: str) -> None:
    assert unwrapped(f"```\n{TEXT}```\n{behind}").trouble


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: x\n---\n",
        "# What changed\n\n" + TEXT,
        "word\n" * (PROSE_LINES + 1) + TEXT,
        "```python\nx = 1\n```\n",
        "As:\n\n```text\nx\n```\n\n```diff\n" + TEXT + "```\n",
        "@@\nno signs at all\n",
        "",
    ],
)
def test_documents_are_no_diffs(text: str) -> None:
    assert unwrap(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "*** Begin Patch\n*** Update File: x\n",
        "```\n*** Begin Patch\n",
        "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
        "1,2c1\n< a\n---\n> b\n",
        "*** x\n--- x\n***************\n",
        "--- a/x\n",
        "--- a/x\n\n+++ b/x\n\n@@\n-a\n+b\n",
        "@@\nno signs at all\n",
        f"# What changed\n\n{TEXT}",
        "> --- a/x\n> +++ b/x\n> @@ -1 +1 @@\n> -a\n> +b\n",
        "    @@ -1 +1 @@\n    -a\n    +b\n",
        "I would do this:\n\n```diff\n-a\n+b\n```\n",
        "Here:\n@@\n-a\n+b\n",
    ],
)
def test_what_only_holds_a_patch_is_no_whole_file(text: str) -> None:
    assert unwrap(text) is None
    assert foreign(text, "a\n")
    assert foreign(text, text) is None or text.startswith(("```", "--- a/x\n\n"))


@pytest.mark.parametrize("text", ["--- a rule\ntext\n", "1c1 is a name\n", "*** stars\n", "", "a@@b\n", "x @@ -1 +1\n"])
def test_other_texts_are_whole_files(text: str) -> None:
    assert foreign(text, "") is None


@pytest.mark.parametrize(
    ("text", "lines", "ended"),
    [
        ("", [], True),
        ("\n", [""], True),
        ("a", ["a"], False),
        ("a\r\n\fb\u2028c\rd\n", ["a\r", "\fb\u2028c\rd"], True),
        ("a\n\n", ["a", ""], True),
    ],
)
def test_only_a_line_feed_ends_a_line(text: str, lines: list[str], ended: bool) -> None:
    assert split_lines(text) == (lines, ended)
