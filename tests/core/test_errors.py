"""Failures on purpose are a closed list, and each knows what it is about."""

from __future__ import annotations

import pytest

from protocol.errors import REFUSALS
from sidecar.core.errors import KINDS, Refusal, Stale

SPEC = [
    "bad_path", "unsafe_path", "not_found", "not_permitted", "too_large", "bad_selector", "unknown_turn", "stale",
    "store_unavailable", "journal_unavailable", "shutting_down",
]  # fmt: skip


def test_the_kinds_are_those_of_the_specification() -> None:
    assert sorted(KINDS) == sorted(SPEC)
    assert sorted(REFUSALS) == sorted(SPEC)


@pytest.mark.parametrize("refusal", [one for one in Refusal.__subclasses__() if one is not Stale])
def test_a_refusal_says_what_it_is_about_and_how_to_mend_it(refusal: type[Refusal]) -> None:
    refused = refusal("turn_1/files/a", "do this")
    assert (refused.about, refused.hint) == ("turn_1/files/a", "do this")
    assert str(refused) == f"{refusal.kind}: turn_1/files/a (do this)"
    assert str(refusal("x")) == f"{refusal.kind}: x"


def test_a_stale_refusal_carries_both_hashes() -> None:
    refused = Stale("a", expected="1", actual="2")
    assert (refused.expected, refused.actual, refused.about) == ("1", "2", "a")
    assert refused.hint
