"""The index over the blocks of the older context."""

from __future__ import annotations

import pytest

from sidecar.core.blocks import Head
from sidecar.core.operational import Operational


def head(kind: str, path: str, *, flags: int = 0) -> Head:
    return (kind, "t", 0.0, "text/markdown", path, "", flags)


HEADS = [
    head("user.prompt", "ar:t.user.prompt"),
    head("context.artifact", "ar:t.context.artifact.a"),
    head("context.slot", "ar:t.context.slot.s"),
    head("context.event", "ar:t.context.event.decision"),
    head("context.event", "ar:t.context.event.decision"),
    head("context.budget", "ar:t.context.budget"),
    head("context.artifact", "ar:t.context.artifact.a"),
    head("context.artifact", "ar:u.context.artifact.a", flags=4),
    head("context.artifact", "fi:t.files/context"),
]


@pytest.mark.rule("context.events-and-budget-are-told")
@pytest.mark.parametrize("cut", range(len(HEADS) + 1))
def test_it_knows_the_latest_of_each_however_it_is_told(cut: int) -> None:
    index = Operational()
    index.catch_up(HEADS[:cut])
    index.catch_up(HEADS)
    assert index.artifact("t", "a") == 6
    assert index.slot("t", "s") == 2
    assert index.events["t"] == [3, 4]
    assert index.budgets["t"] == 5
    assert index.of_turn("t") == [2, 3, 4, 5, 6]


def test_a_copy_that_a_read_showed_and_a_stray_block_count_for_nothing() -> None:
    index = Operational()
    index.catch_up(HEADS)
    assert index.artifact("u", "a") is None
    assert index.of_turn("nobody") == []
    assert index.seen == len(HEADS)
