"""Hunks go in at their places; every other byte, line end and missing newline stays."""

from __future__ import annotations

import pytest

from sidecar.core.fitting import Fits, fit
from sidecar.core.hunks import Diff, read
from sidecar.core.splicing import Conflict, Placed, Spliced, splice
from sidecar.core.wrapping import split_lines


def spliced(before: str, diff: str) -> Spliced | Conflict:
    lines, ended = split_lines(before)
    found = read(diff.split("\n"))
    assert isinstance(found, Diff), found
    fits = fit(lines, found.hunks)
    assert isinstance(fits, Fits), fits
    return splice(lines, list(map(Placed, found.hunks, fits.places)), ended=ended)


def after(before: str, diff: str) -> str:
    result = spliced(before, diff)
    assert isinstance(result, Spliced), result
    return "\n".join(result.lines) + ("\n" if result.ended and result.lines else "")


NONE = "\\ No newline at end of file"


@pytest.mark.parametrize(
    ("before", "diff", "expected"),
    [
        ("a\nb\nc\n", "@@\n a\n-b\n+B\n+BB\n c", "a\nB\nBB\nc\n"),
        ("a  \nb\n", "@@\n a\n-b\n+B", "a  \nB\n"),
        ("a\nb\nc\n", "@@\n-c\n+C\n@@\n-a\n+A", "A\nb\nC\n"),
        ("a\nb\nc\n", "@@\n-a\n+A\n b\n@@\n b\n-c\n+C", "A\nb\nC\n"),
        ("a\nb\n", "@@\n a\n+x\n@@\n-b\n+B", "a\nx\nB\n"),
        ("a\n", "@@\n-a", ""),
        ("a\r\nb\r\n", "@@\n a\n+x", "a\r\nx\r\nb\r\n"),
        ("a\r\nb\r\n", "@@\n a\r\n+x", "a\r\nx\nb\r\n"),
        ("a\nb\n", "@@\n a\r\n+x\r", "a\nx\nb\n"),
        ("a\r\nb\nc\r\n", "@@\n b\n-c\n+C", "a\r\nb\nC\r\n"),
        ("a\nb", "@@\n a\n-b\n+B", "a\nB"),
        ("a\nb", "@@\n b\n+c", "a\nb\nc"),
        ("a\r\nb", "@@\n b\n+c", "a\r\nb\r\nc"),
        ("a\r\nb", "@@\n-b\n+B\n+C", "a\r\nB\r\nC"),
        ("a", "@@\n-a\r\n+A\r", "A"),
        ("a\nb", f"@@\n-b\n{NONE}\n+B", "a\nB\n"),
        ("a\nb\n", f"@@\n-b\n+B\n{NONE}", "a\nB"),
        ("a\nb", f"@@\n a\n-b\n{NONE}", "a\n"),
        ("a\r\nb", f"@@\n-b\n{NONE}\n+B\n{NONE}", "a\r\nB"),
        ("a", "@@\n-a", ""),
    ],
)
def test_changes_go_in_and_the_rest_keeps_its_bytes(before: str, diff: str, expected: str) -> None:
    assert after(before, diff) == expected


@pytest.mark.parametrize(
    ("before", "diff", "kind"),
    [
        ("a\nb\nc\n", "@@\n a\n-b\n@@\n b\n-c", "malformed"),
        ("a\nb\n", "@@\n-a\n@@\n-a", "malformed"),
        ("a\nb\n", "@@\n a\n+x\n@@\n+y\n b", "ambiguous"),
        ("a\r\nb\n", "@@\n a\n+x\n b", "ambiguous"),
        ("a\nb", "@@\n a\n-b", "ambiguous"),
        ("a\r\nb\nc", "@@\n c\n+d", "ambiguous"),
        ("+ a\nb\n", "@@\n+ a\n+x\n b", "ambiguous"),
        ("a  \nb\n", "@@\n-a\n+a", "mismatch"),
        ("a\nb\n", f"@@\n-b\n{NONE}\n+B", "mismatch"),
        ("a\nb\n", f"@@\n-a\n+A\n{NONE}", "mismatch"),
    ],
)
def test_what_contradicts_itself_or_could_be_two_texts_is_a_conflict(before: str, diff: str, kind: str) -> None:
    result = spliced(before, diff)
    assert isinstance(result, Conflict), result
    assert result.kind == kind
