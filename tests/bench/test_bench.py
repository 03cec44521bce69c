"""The harness in its smallest size, so that it cannot rot. No time is judged here."""

from __future__ import annotations

import os

import pytest

from tests.bench.__main__ import GROUPS, measured
from tests.bench.figures import TINY, AtLeast, AtMost, Figure, per_second, seconds, table
from tests.bench.page import FIGURES, MARK, section, with_sections
from tests.radosgw import PACKAGES


@pytest.mark.parametrize("name", GROUPS)
def test_every_group_measures_what_it_names(name: str) -> None:
    figures = measured([name], TINY)
    if name == "hosting" and not figures and os.environ.get("CI") != "true":
        pytest.skip(f"radosgw is not installed: {PACKAGES}")
    assert figures
    assert all(figure.pairs for figure in figures)
    assert len({(figure.name, figure.rival) for figure in figures}) == len(figures)


def test_a_ratio_is_the_median_of_its_rounds() -> None:
    assert Figure("x", "y", seconds, [(2.0, 1.0), (9.0, 3.0), (4.0, 1.0)]).ratio == 3.0


@pytest.mark.parametrize(
    ("aim", "verdict"), [(AtMost(2.0), "<= 2 MISSED"), (AtMost(3.0), "<= 3 met"), (AtLeast(3.5), ">= 3.5 MISSED")]
)
def test_an_aim_says_whether_it_was_met(aim: AtMost | AtLeast, verdict: str) -> None:
    assert Figure("x", "y", seconds, [(3.0, 1.0)], aim).cells()[-1] == verdict


def test_the_table_has_a_line_for_each_figure() -> None:
    figures = [Figure("one", "a", seconds, [(0.002, 0.001)]), Figure("two", "b", per_second, [(1500.0, 3000.0)])]
    lines = table(figures).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["one", "two"]
    assert "2.00 ms" in lines[2]
    assert "1,500/s" in lines[3]


def test_a_group_that_is_measured_anew_takes_its_own_place_on_the_page() -> None:
    page = f"# Figures\n\nWords.\n\n{MARK}\n## a\n\nold\n\n## c\n\nkept | ## no heading\n"
    said = with_sections(page, {"a": section("a", "this machine.\n", "new\n"), "b": "\nbetween\n"}, "abcd")
    assert said.startswith(
        f"# Figures\n\nWords.\n\n{MARK}\n## a\n\n`python -m tests.bench a` on this machine.\n\nnew\n"
    )
    assert said.endswith("## b\n\nbetween\n## c\n\nkept | ## no heading\n")
    assert "old" not in said
    assert with_sections(said, {}, "abcd") == said


def test_the_page_of_figures_has_a_place_for_all_of_them() -> None:
    assert FIGURES.read_text("utf-8").count(MARK) == 1
