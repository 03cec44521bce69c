"""What both engines can hold."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.index_rows import Filters, IndexRow
from sidecar.stores.index_texts import NAMES, askable, checked, holdable, micros, storable, storable_row
from tests.stores.index_contract import row

any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=30)


@given(text=any_text)
def test_what_is_storable_is_utf8_without_nul(text: str) -> None:
    kept = storable(text)
    assert "\0" not in kept.encode().decode()
    assert (kept == text) == holdable(text)
    assert storable(kept) == kept


@given(name=any_text)
def test_a_name_is_kept_as_it_is_or_refused(name: str) -> None:
    if holdable(name):
        assert checked(name) == name
    else:
        with pytest.raises(ValueError, match="a name"):
            checked(name)


def test_every_text_of_a_row_but_its_text_is_a_name() -> None:
    texts = {one.name for one in fields(IndexRow) if isinstance(getattr(row("m"), one.name), str)}
    assert texts == {*NAMES, "text"}


@pytest.mark.parametrize("bad", [{"message_id": ""}, {"ttl_days": -1}, {"ttl_days": 10**9}, {"tags": ("a\0",)}])
def test_a_row_that_cannot_be_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"row|name"):
        storable_row(replace(row(), **bad))  # type: ignore[arg-type]


@given(whole=st.integers(-62_135_596_800, 253_402_300_798), part=st.integers(0, 999_999))
def test_a_moment_that_was_stored_is_stored_again_as_the_same(whole: int, part: int) -> None:
    stored = micros(whole + part / 1_000_000)
    assert abs(stored - (whole * 1_000_000 + part)) <= 40  # floats are that coarse in the year 9999
    assert abs(micros(stored / 1_000_000) - stored) <= 40


@given(filters=st.builds(Filters, since=st.floats(allow_nan=False), until=st.floats(allow_nan=False)))
def test_a_range_of_time_ends_within_our_years(filters: Filters) -> None:
    asked = askable(filters)
    assert asked is not None
    assert math.isfinite(micros(asked.since or 0) + micros(asked.until or 0))


@pytest.mark.parametrize("bad", [Filters(kinds=("\0",)), Filters(turn_ids=("\ud800",)), Filters(tags=("a", "\0"))])
def test_what_no_row_can_have_is_not_asked_for(bad: Filters) -> None:
    assert askable(bad) is None


def test_of_several_names_the_possible_ones_are_asked_for() -> None:
    asked = askable(Filters(kinds=("a", "\0", "a"), turn_ids=("b", "\0"), tags=("t", "t"), but_kinds=("\0",)))
    assert asked == Filters(kinds=("a",), turn_ids=("b",), tags=("t",))
