"""Whoever decides sees what is staged, whoever reads sees what is durable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.layered import Layered


def test_what_is_staged_is_for_whoever_decides_next() -> None:
    layered: Layered[str, int] = Layered()
    layered.stage("a", 1, 10)
    assert layered.latest("a") == 1
    assert layered.durable == {}


def test_settling_an_older_change_does_not_uncover_a_newer_one() -> None:
    layered: Layered[str, int] = Layered()
    layered.stage("a", 1, 10)
    layered.stage("a", 2, 11)
    layered.settle("a", 1, 10)
    assert (layered.latest("a"), layered.durable["a"]) == (2, 1)
    layered.settle("a", 2, 11)
    assert (layered.latest("a"), layered.durable["a"]) == (2, 2)


def test_dropping_forgets_what_is_staged_and_nothing_else() -> None:
    layered: Layered[str, int] = Layered()
    layered.settle("a", 1, 10)
    layered.stage("a", 2, 11)
    layered.stage("b", 3, 12)
    layered.drop()
    assert (layered.latest("a"), layered.latest("b")) == (1, None)


def test_what_nobody_gave_is_none() -> None:
    assert Layered[str, int]().latest("a") is None


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers()), max_size=20), st.integers(0, 20), st.booleans())
def test_after_everything_is_settled_the_latest_is_the_durable(
    writes: list[tuple[str, int]], settled: int, refused: bool
) -> None:
    layered: Layered[str, int] = Layered()
    for mark, (key, value) in enumerate(writes):
        layered.stage(key, value, mark)
    for mark, (key, value) in enumerate(writes[:settled]):
        layered.settle(key, value, mark)
    if refused:
        layered.drop()
    expected = dict(writes[:settled] if refused else writes)
    assert {key: layered.latest(key) for key in expected} == expected
    assert layered.durable == dict(writes[:settled])
