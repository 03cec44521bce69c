"""A change counts as missed only when no ring told it within a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from sidecar.stores import hearing as module
from sidecar.stores.hearing import GRACE, Hearing


class Loop:
    """A loop whose time passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0
        self._timers: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[..., None], *args: Any) -> None:
        self._timers.append((self.now + delay, call, args))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self._timers if timer[0] <= self.now]
        self._timers = [timer for timer in self._timers if timer not in due]
        for _, call, args in due:
            call(*args)


@pytest.mark.parametrize(
    ("rung", "before", "after", "missed"),
    [
        ([], 0.0, 0.0, 2),
        (["a"], 0.2, 0.0, 1),
        (["a"], 0.0, 0.3, 1),
        (["a", "b"], 0.0, 0.3, 0),
        ([""], 0.0, 0.3, 0),
        (["a", "b"], GRACE + 0.5, 0.0, 2),
        (["c"], 0.1, 0.1, 2),
    ],
)
def test_a_doubted_folder_is_missed_when_no_ring_was_near(
    rung: list[str], before: float, after: float, missed: int
) -> None:
    loop, hearing = Loop(), Hearing()
    if before:
        hearing.rang(rung, loop.now)
    loop.wait(before)
    hearing.doubt(cast("asyncio.AbstractEventLoop", loop), ["a", "b"])
    loop.wait(after)
    if after:
        hearing.rang(rung, loop.now)
    loop.wait(GRACE)
    assert hearing.missed == missed


def misses(hearing: Hearing, loop: Loop, count: int) -> None:
    hearing.doubt(cast("asyncio.AbstractEventLoop", loop), [f"missed{number}" for number in range(count)])
    loop.wait(GRACE)


@pytest.mark.parametrize(("rings", "missed", "hard"), [(0, 2, False), (0, 3, True), (200, 3, True), (400, 3, False)])
def test_hard_of_hearing_is_more_than_one_in_a_hundred(rings: int, missed: int, hard: bool) -> None:
    loop, hearing = Loop(), Hearing()
    for number in range(rings):
        hearing.rang([f"rung{number}"], loop.now)
    misses(hearing, loop, missed)
    assert hearing.is_hard is hard


def test_what_is_long_past_counts_less_and_less() -> None:
    loop, hearing = Loop(), Hearing()
    misses(hearing, loop, 20)
    assert hearing.is_hard
    for _ in range(10_000):
        hearing.rang(["a"], loop.now)
    assert (hearing.is_hard, hearing.missed) == (False, 20)


def test_only_recent_rings_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REMEMBERED", 100)
    loop, hearing = Loop(), Hearing()
    for number in range(1000):
        hearing.rang([str(number)], loop.now)
        loop.wait(0.1)
    assert len(hearing._rung) < 150
