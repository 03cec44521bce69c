"""What is known is looked through by the collector once, and what became garbage nevertheless is found."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from math import inf

import pytest

from sidecar.collecting import Collecting


@pytest.fixture
def collecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collecting]:
    """Every look is a long one, and none is too long."""
    monkeypatch.setattr("sidecar.collecting.LONG_SECONDS", 0.0)
    monkeypatch.setattr("sidecar.collecting.LONGEST_WHOLE", inf)
    gc.collect()
    one = Collecting()
    one.begin()
    yield one
    one.end()
    gc.collect()


class Circle:
    """Garbage that only a collector finds."""

    def __init__(self) -> None:
        self.itself = self


def test_what_was_looked_through_is_not_looked_through_again(collecting: Collecting) -> None:
    before = gc.get_freeze_count()
    known = [[at] for at in range(10_000)]
    gc.collect()
    assert gc.get_freeze_count() >= before + len(known)
    assert len(gc.get_objects(generation=2)) < len(known)


def test_garbage_is_found_as_ever(collecting: Collecting) -> None:
    circle = weakref.ref(Circle())
    gc.collect()
    assert circle() is None


def test_garbage_that_was_set_aside_is_found_once_there_is_much_more(
    collecting: Collecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.collecting.GROWTH", 1.1)
    circle = Circle()
    gc.collect()
    found = weakref.ref(circle)
    del circle
    gc.collect()
    assert found() is not None
    grown = [[at] for at in range(gc.get_freeze_count() // 8)]
    gc.collect()
    gc.collect()
    assert found() is None
    assert gc.get_freeze_count() >= len(grown)


def test_garbage_that_was_set_aside_is_found_after_a_while(
    collecting: Collecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    circle = Circle()
    gc.collect()
    found = weakref.ref(circle)
    del circle
    monkeypatch.setattr("sidecar.collecting.WHOLE_SECONDS", 0.0)
    gc.collect()
    gc.collect()
    assert found() is None
    assert gc.get_freeze_count() > 0


def test_what_would_take_too_long_is_not_looked_through_again(
    collecting: Collecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [[at] for at in range(10_000)]
    gc.collect()
    before = gc.get_freeze_count()
    monkeypatch.setattr("sidecar.collecting.WHOLE_SECONDS", 0.0)
    monkeypatch.setattr("sidecar.collecting.LONGEST_WHOLE", 0.0)
    gc.collect()
    assert gc.get_freeze_count() >= before >= len(known)


def test_what_was_freed_is_not_counted_for_ever(collecting: Collecting, monkeypatch: pytest.MonkeyPatch) -> None:
    passing = [[at] for at in range(100_000)]
    gc.collect()
    circle = Circle()
    gc.collect()
    found = weakref.ref(circle)
    del circle, passing
    monkeypatch.setattr("sidecar.collecting.WHOLE_SECONDS", 0.0)
    monkeypatch.setattr(collecting, "_pace", 1e-6)
    monkeypatch.setattr("sidecar.collecting.LONGEST_WHOLE", (gc.get_freeze_count() + 50_000) * 1e-6)
    gc.collect()
    gc.collect()
    assert found() is None


def test_what_is_quickly_looked_through_is_left_to_python(
    collecting: Collecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.collecting.LONG_SECONDS", 60.0)
    before = gc.get_freeze_count()
    known = [[at] for at in range(1000)]
    gc.collect()
    assert gc.get_freeze_count() <= before
    assert len(gc.get_objects(generation=2)) >= len(known)


def test_at_the_end_it_is_left_to_python_again() -> None:
    known = list(gc.callbacks)
    one = Collecting()
    one.begin()
    one.end()
    assert gc.callbacks == known
    assert gc.get_freeze_count() == 0
