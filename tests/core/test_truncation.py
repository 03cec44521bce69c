"""A last hunk that is shorter than its header counts is suspected of being cut off only where a cut explains it."""

from __future__ import annotations

import pytest

from sidecar.core.hunks import Diff, read
from sidecar.core.truncation import may_be_cut

HUNK = " a\n b\n c\n-d\n+D\n e\n f\n g"


@pytest.mark.parametrize(
    ("header", "body", "lines", "cut"),
    [
        ("-1,7 +1,7", HUNK, 50, False),
        ("-1,8 +1,8", HUNK, 50, False),  # one line of context at the most
        ("-1,10 +1,10", HUNK, 50, False),  # context alone
        ("-1,11 +1,11", HUNK, 50, True),  # context and a change
        ("-1,10 +1,11", HUNK, 50, True),
        ("-1,7 +1,20", HUNK, 50, False),  # a cut change would have lost its context as well
        ("-1,99 +1,99", HUNK, 50, False),  # the file has not so many lines
        ("-1,8 +1,8", HUNK, 8, True),  # the last line of the file need not have context behind it
        ("-1,7 +1,8", HUNK, 7, True),
        ("-1,3 +1,3", HUNK, 50, False),
        ("-1,7 +1,3", HUNK, 50, False),
        ("-1,5 +1,5", " a\n-b\n+B", 50, True),
        ("-1,4 +1,4", "-a\n+A", 50, True),
    ],
)
def test_a_cut_must_explain_what_is_missing(header: str, body: str, lines: int, cut: bool) -> None:
    assert suspected(f"@@ {header} @@\n{body}", lines) is cut


def test_only_the_last_hunk_can_be_cut() -> None:
    assert not suspected(f"@@ -1,20 +1,20 @@\n{HUNK}\n@@ -30,7 +30,7 @@\n{HUNK}", 50)
    assert suspected(f"@@ -1,7 +1,7 @@\n{HUNK}\n@@ -30,12 +30,12 @@\n a\n-b\n+B\n c\n d\n e", 50)


def test_a_last_line_without_its_end_may_be_half_of_one() -> None:
    patch = "@@ -1,7 +1,7 @@\n a\n b\n c\n-d\n+D"
    assert suspected(patch, 50, ended=False)
    assert not suspected(patch, 50)


def test_a_bare_header_counts_nothing() -> None:
    assert not suspected("@@\n-a", 50)


def suspected(patch: str, lines: int, *, ended: bool = True) -> bool:
    found = read(patch.split("\n"))
    assert isinstance(found, Diff), found
    return may_be_cut(found.hunks, len(found.hunks[-1].old), lines, ended=ended)
