"""Number sets are read as people write them, never unrolled, and printed in one way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.errors import BadSelector
from sidecar.core.numbers import LARGEST, MISSING_TOLD, NumberSet, parse_numbers, parse_selector, print_numbers

POOL = range(1, 7)

numbers = st.integers(min_value=0, max_value=40)
number_sets = st.builds(
    NumberSet,
    st.lists(numbers, max_size=6).map(tuple),
    st.lists(st.tuples(numbers, numbers).map(lambda ends: (min(ends), max(ends))), max_size=4).map(tuple),
)


def check(rows: list[tuple[str, list[int], list[int], list[str]]]) -> None:
    """Each row: a selector, then what of it is found in a pool of 1 to 6, what is missing, what is malformed."""
    for text, found, missing, malformed in rows:
        selected = parse_numbers(text)
        selection = selected.select(POOL)
        assert (text, selection.found, selection.missing, list(selected.malformed)) == (text, found, missing, malformed)


@pytest.mark.rule("selector.comma-list-of-numbers-and-ranges", "selector.ranges-go-either-way")
@pytest.mark.rule("selector.answers-ascending-without-doubles")
def test_a_selector_is_a_comma_list_of_numbers_and_ranges() -> None:
    check(
        [
            ("1", [1], [], []),
            ("5,1", [1, 5], [], []),
            ("3-1", [1, 2, 3], [], []),
            (" 1 , 3-4 ", [1, 3, 4], [], []),
            ("1 - 3", [1, 2, 3], [], []),
            ("2,2", [2], [], []),
            ("2,1-3,3-5", [1, 2, 3, 4, 5], [], []),
            ("01,002", [1, 2], [], []),
            ("", [], [], []),
            ("  ", [], [], []),
        ]
    )


@pytest.mark.rule("selector.unknown-sids-are-missing")
def test_numbers_nobody_has_are_missing() -> None:
    check(
        [
            ("1,99", [1], [99], []),
            ("0", [], [0], []),
            ("9-7", [], [7, 8, 9], []),
            ("5-8", [5, 6], [7, 8], []),
        ]
    )


@pytest.mark.rule("selector.malformed-tokens-are-told")
def test_a_malformed_piece_is_told_and_harms_no_other() -> None:
    check(
        [
            ("1,x,2", [1, 2], [], ["x"]),
            ("*", [], [], ["*"]),
            ("1-", [], [], ["1-"]),
            ("-1", [], [], ["-1"]),
            ("2:6", [], [], ["2:6"]),
            ("1–3", [], [], ["1–3"]),
            ("1 2", [], [], ["1 2"]),
            ("1,,2", [1, 2], [], [""]),
            ("²,٣", [], [], ["²", "٣"]),
            ("1-2-3", [], [], ["1-2-3"]),
            (f"{LARGEST}", [], [LARGEST], []),
            (f"{LARGEST + 1},1-{LARGEST + 1}", [], [], [f"{LARGEST + 1}", f"1-{LARGEST + 1}"]),
            ("9" * 5000, [], [], ["9" * 5000]),
        ]
    )


def test_a_range_may_be_written_with_the_dashes_allowed() -> None:
    assert parse_numbers("1–2,4—5,7-8", dashes="-–—").ranges == ((1, 2), (4, 5), (7, 8))


class CountedPool(Sequence[int]):
    """A pool of 1 to `size` that counts how often it is asked for a number."""

    def __init__(self, size: int) -> None:
        self.sids = range(1, size + 1)
        self.asked = 0

    def __len__(self) -> int:
        return len(self.sids)

    def __getitem__(self, index):
        self.asked += len(self.sids[index]) if isinstance(index, slice) else 1
        return self.sids[index]

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("a pool is not walked")


@pytest.mark.rule("selector.work-is-bounded-by-the-pool")
def test_a_huge_range_costs_what_the_pool_costs() -> None:
    pool = CountedPool(50)
    assert parse_numbers("1-999999999").among(pool) == list(range(1, 51))
    assert pool.asked < 100


def test_missing_numbers_are_told_up_to_a_thousand() -> None:
    selection = parse_numbers("2-999999999, 5000000000").select([1, 3])
    assert selection.found == [3]
    assert selection.missing == [2, *range(4, MISSING_TOLD + 3)]


@given(number_sets, st.sets(numbers).map(sorted))
def test_found_and_missing_are_the_numbers_inside_and_outside_the_pool(selected: NumberSet, pool: list[int]) -> None:
    named = {*selected.singles, *(number for low, high in selected.ranges for number in range(low, high + 1))}
    selection = selected.select(pool)
    assert selection.found == sorted(named & set(pool)) == selected.among(pool)
    assert selection.missing == sorted(named - set(pool))


@pytest.mark.rule("selector.prints-with-ranges")
def test_numbers_print_with_ranges_and_a_space_after_each_comma() -> None:
    rows = {
        "3, 5-6": [3, 5, 6],
        "10-13": [10, 11, 12, 13],
        "1-2": [2, 1],
        "4": [4, 4],
        "": [],
    }
    assert {print_numbers(sids): sids for sids in rows.values()} == rows


@given(number_sets)
def test_what_is_printed_is_read_as_the_same_set(selected: NumberSet) -> None:
    assert parse_numbers(str(selected)).normal() == selected.normal()


@given(st.text(alphabet="0123456789-, x\n", max_size=30))
def test_any_text_is_a_set_of_numbers(text: str) -> None:
    selected = parse_numbers(text)
    pieces = len(selected.singles) + len(selected.ranges) + len(selected.malformed)
    assert pieces == (len(text.split(",")) if text.strip() else 0)


@pytest.mark.rule("selector.short-or-whole")
def test_a_selector_may_be_the_whole_path() -> None:
    for text in ["1,3-5", " 1,3-5 ", "so:sources_pool[1,3-5]", "sources_pool[1,3-5]"]:
        assert parse_selector(text) == NumberSet((1,), ((3, 5),))


@pytest.mark.rule("selector.short-or-whole")
def test_a_path_that_is_not_whole_is_no_selector() -> None:
    for text in ["so:sources_pool[1", "sources_pool[1", "so:1", "so:pool[1]", "[1]", "1]", "sources_pool[1]]", "so:"]:
        with pytest.raises(BadSelector):
            parse_selector(text)


def test_a_refusal_of_a_selector_can_be_written_down_whatever_was_asked() -> None:
    """Found by fuzzing: half a surrogate pair is no UTF-8, and came back in the refusal."""
    with pytest.raises(BadSelector) as refused:
        parse_selector("so:\udced")
    assert refused.value.about == "so:\\udced"
