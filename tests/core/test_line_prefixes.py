"""A listing with line numbers is told from a table that begins with numbers."""

from __future__ import annotations

import pytest

from sidecar.core.line_prefixes import numbered_additions, numbered_lines, numbered_text

FILE = ("alpha", "beta", "")


@pytest.mark.parametrize(
    ("lines", "before", "numbered"),
    [
        (["     1\talpha", "     2\tbeta edited"], FILE, True),
        (["     7\talpha"], FILE, True),
        (["     9\tx", "", "    10\ty"], FILE, True),
        (["     1→x"], FILE, True),
        (["1\talpha", "2\tnew"], FILE, True),
        (["1: alpha", "2: new"], FILE, True),
        (["1 | alpha", "2 | new"], FILE, True),
        (["1\tfirst", "2\tsecond"], FILE, False),
        (["1\talpha", "3\tbeta"], FILE, False),
        (["1. alpha", "2. beta"], FILE, False),
        (["     1\talpha", "text"], FILE, False),
        (["     1\talpha"], ("     1\tbeta",), False),
        (["1\talpha", "2\tbeta"], ("1\talpha",), False),
        ([""], FILE, False),
        ([], FILE, False),
    ],
)
def test_a_numbered_text_counts_line_by_line(lines: list[str], before: tuple[str, ...], numbered: bool) -> None:
    assert numbered_text(lines, before) is numbered


@pytest.mark.parametrize(
    ("texts", "numbered"),
    [
        (["     1\talpha", "     2\tbeta"], True),
        (["   12\tx"], True),
        (["1: alpha"], True),
        (["1: unknown"], False),
        (["     1\talpha", "beta"], False),
        ([], False),
    ],
)
def test_expected_lines_may_be_numbered(texts: list[str], numbered: bool) -> None:
    assert numbered_lines(texts, FILE) is numbered


@pytest.mark.parametrize(
    ("texts", "before", "numbered"),
    [
        (["x", "     2\tbeta"], FILE, True),
        (["2\tbeta"], FILE, False),
        (["     2\tbeta"], ("     1\talpha",), False),
        (["  indented 1\t"], FILE, False),
    ],
)
def test_one_numbered_addition_is_enough(texts: list[str], before: tuple[str, ...], numbered: bool) -> None:
    assert numbered_additions(texts, before) is numbered
