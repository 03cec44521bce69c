"""Names are found by letters in order; the better they fit, the further up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.fuzzy import rank

pytestmark = pytest.mark.rule("editor.symbols-of-documents-and-workspace")


def test_better_fits_come_first() -> None:
    names = ["report.md", "a-report.md", "my_rpt.md", "xreport.md", "r-e-p-o-r-t.md", "report", "other.txt"]
    found = sorted((score, name) for name in names if (score := rank("report", name)) is not None)
    assert [name for _, name in found] == ["report", "report.md", "a-report.md", "xreport.md", "r-e-p-o-r-t.md"]


@pytest.mark.parametrize(("query", "name"), [("rpt", "report"), ("cht", "charts/x.png"), ("", "x")])
def test_letters_in_order_are_enough(query: str, name: str) -> None:
    assert rank(query, name) is not None


@pytest.mark.parametrize(("query", "name"), [("tpr", "report"), ("reportx", "report"), ("x", "")])
def test_letters_out_of_order_are_not(query: str, name: str) -> None:
    assert rank(query, name) is None


@given(st.text(max_size=20), st.data())
def test_any_letters_taken_out_of_a_name_find_it(name: str, data: st.DataObject) -> None:
    query = "".join(letter for letter in name if data.draw(st.booleans()))
    assert rank(query, name) is not None
