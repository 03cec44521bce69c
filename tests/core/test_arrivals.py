"""A state of a file is on its way until it has arrived, however many of them there are."""

from __future__ import annotations

from sidecar.core.arrivals import Arrivals


def test_what_is_expected_twice_arrives_twice() -> None:
    arrivals = Arrivals()
    arrivals.expect("a")
    arrivals.expect("a")
    arrivals.arrived("a")
    assert arrivals.any_of(["b", "a"])
    arrivals.arrived("a")
    assert not arrivals.any_of(["b", "a"])


def test_what_nobody_expected_may_arrive() -> None:
    arrivals = Arrivals()
    arrivals.arrived("a")
    assert not arrivals.any_of(["a"])


def test_what_was_refused_never_arrives() -> None:
    arrivals = Arrivals()
    arrivals.expect("a")
    arrivals.clear()
    assert not arrivals.any_of(["a"])
