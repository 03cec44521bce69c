"""An answer is given again only while nothing has changed, and not many are kept."""

from __future__ import annotations

from sidecar.unchanged import LARGEST, MOST, Unchanged


def test_an_answer_is_given_again_at_the_same_revision_only() -> None:
    kept = Unchanged()
    kept.keep(3, ("exec", "a"), b"one")
    assert kept.get(3, ("exec", "a")) == b"one"
    assert kept.get(3, ("runtime", "a")) is None
    assert kept.get(4, ("exec", "a")) is None


def test_the_first_answer_after_a_change_forgets_those_before_it() -> None:
    kept = Unchanged()
    kept.keep(3, "a", b"one")
    kept.keep(4, "b", b"two")
    assert kept.get(3, "a") is None
    assert kept.get(4, "b") == b"two"


def test_only_so_many_and_only_short_ones_are_kept() -> None:
    kept = Unchanged()
    for number in range(MOST + 1):
        kept.keep(1, number, b"x")
    assert kept.get(1, 0) is None
    assert kept.get(1, MOST) == b"x"
    kept.keep(1, "long", b"x" * (LARGEST + 1))
    assert kept.get(1, "long") is None
