"""Heads that are kept as columns read like the list of tuples they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.blocks import HIDDEN, SHOWN, Head
from sidecar.core.heads import Heads

names = st.sampled_from(["", "a", "b", "größe"])
heads = st.tuples(names, names, st.floats(0, 1e9), names, names, names, st.integers(0, 15))
lists = st.lists(heads, min_size=1)


def kept(told: list[Head]) -> Heads:
    made = Heads()
    made.extend(list(zip(*told, strict=True)))
    return made


@given(lists, st.integers(-5, 5), st.integers(-5, 5), st.sampled_from([None, 1, 2, -1]))
def test_they_read_like_a_list(told: list[Head], start: int, end: int, step: int | None) -> None:
    made = kept(told)
    assert (list(made), len(made), made[-1]) == (told, len(told), told[-1])
    assert made[start:end:step] == told[start:end:step]
    assert [made[number] for number in range(len(told))] == told


@given(lists, lists)
def test_later_ones_follow_and_their_turns_are_counted(told: list[Head], more: list[Head]) -> None:
    made = kept(told)
    runs = made.extend(list(zip(*more, strict=True)))
    assert list(made) == told + more
    assert [turn for turn, count in runs for _ in range(count)] == [head[1] for head in more]


def test_what_is_not_there_is_an_error() -> None:
    with pytest.raises(IndexError):
        Heads()[0]


def test_a_block_that_is_marked_has_other_flags_and_its_neighbours_have_not() -> None:
    made = kept([("k", "t", 1.0, "m", "p", "c", SHOWN)] * 3)
    made.mark(1, HIDDEN)
    assert [head[6] for head in made] == [SHOWN, HIDDEN, SHOWN]
    assert made[1][:6] == made[0][:6]


def test_texts_that_repeat_are_kept_once() -> None:
    told: list[Head] = [("".join(["ki", "nd"]), "".join(["tu", "rn"]), 0.0, "m", "p", "".join(["c", "1"]), 0)] * 2
    one, other = kept(told)
    assert all(one[at] is other[at] for at in (0, 1, 3, 5))
