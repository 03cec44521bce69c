"""The numbered SQL of both engines."""

from __future__ import annotations

import pytest

from sidecar.core.errors import StoreUnavailable
from sidecar.stores.index_migrations import Kind, missing, states, steps

KINDS: tuple[Kind, ...] = ("sqlite", "postgresql")


@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_numbered_without_a_gap(kind: Kind) -> None:
    assert [step.number for step in steps(kind)] == list(range(1, len(steps(kind)) + 1))
    assert all(step.name.startswith(f"{step.number:04}_") for step in steps(kind))


def test_both_engines_have_the_same_steps() -> None:
    assert [step.name for step in steps("sqlite")] == [step.name for step in steps("postgresql")]


def test_what_is_applied_is_not_missing() -> None:
    assert missing("sqlite", {}) == steps("sqlite")
    assert missing("sqlite", {step.number for step in steps("sqlite")}) == ()


def test_a_step_that_we_do_not_know_is_refused() -> None:
    with pytest.raises(StoreUnavailable, match="has schema 99, and this version knows up to") as refusal:
        missing("postgresql", {1: "", 99: ""})
    assert refusal.value.about == "index"


def test_each_step_is_told_with_its_moment() -> None:
    first, *_ = states("sqlite", {1: "then"})
    assert (first.name, first.applied) == ("0001_rows", "then")
