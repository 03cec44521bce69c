"""A turn that is over is the same turn, and says when and how it ended."""

from __future__ import annotations

from sidecar.core.happened import Turn


def test_a_turn_that_is_over_says_when_and_how_it_ended() -> None:
    begun = Turn("turn_1", "p", 1.0)
    assert begun.over(2.5, "failed") == Turn("turn_1", "p", 1.0, True, 2.5, "failed")
    assert not begun.ended
