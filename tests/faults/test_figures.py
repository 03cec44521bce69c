"""The table of reliability in small: that its parts are there and can fail. The tests that it names do the rest."""

from __future__ import annotations

from pathlib import Path

from tests.daemon_process import PROJECT
from tests.faults.__main__ import FIGURES, MARK, is_wanted
from tests.faults.figures import NotMeasured, Outcome, Row, Run, found_by, line, measured, table
from tests.faults.table import ROWS


def test_every_figure_is_there() -> None:
    assert [row.number for row in ROWS] == list(range(1, 25))


def test_the_tests_that_find_a_figure_every_day_exist() -> None:
    files = {test.partition("::")[0] for row in ROWS for test in row.daily}
    assert [file for file in files if not (PROJECT / file).is_file()] == []


def test_a_figure_that_tests_find_counts_cases_and_failures(tmp_path: Path) -> None:
    file = tmp_path / "test_two.py"
    file.write_text("def test_right():\n    pass\n\n\ndef test_wrong():\n    assert False\n")
    found = measured(Row(1, "two", "0", found_by(str(file)), ()), 1)
    assert isinstance(found, Outcome)
    assert (found.tried, found.wrong) == (2, 1)
    assert found.faults[0].startswith("FAULTS_SEED=1 ")
    assert "test_wrong" in found.faults[0]


def test_a_figure_that_breaks_is_wrong_and_ends_no_run() -> None:
    def breaks(_: Run) -> Outcome:
        raise TimeoutError("nobody answered")

    found = measured(Row(1, "broken", "0", breaks, ()), 1)
    assert isinstance(found, Outcome)
    assert found.wrong == 1
    assert "nobody answered" in found.faults[0]


def test_a_line_says_what_was_missed_and_what_was_not_measured() -> None:
    row = Row(3, "thing", "0", lambda *_: Outcome(0, 0), ())
    assert "MISSED" in line(row, 7, Outcome(10, 1), 1.0)
    assert "| 7 | met |" in line(row, 7, Outcome(10, 0), 1.0)
    assert "not measured: no compiler" in line(row, 7, NotMeasured("no\ncompiler"), 1.0)
    assert table(["| 1 |"]).count("\n") == 3


def test_a_figure_is_chosen_by_its_number_or_a_part_of_its_name() -> None:
    chosen = [[row.number for row in ROWS if is_wanted(row, [name])] for name in ("10", "power", "1")]
    assert chosen == [[10], [10], [1]]


def test_the_page_of_figures_has_its_place() -> None:
    assert FIGURES.read_text("utf-8").count(MARK) == 1
