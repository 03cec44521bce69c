"""The table of failures is closed, and the core refuses with nothing else."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import ValidationError

from protocol.errors import BY_KIND, FAILURES, REFUSALS, RefusalKind, Refused, RefusedAsStale
from sidecar.core import errors as core

NUMBERS = {
    "parse_error": -32700,
    "invalid_request": -32600,
    "method_not_found": -32601,
    "invalid_params": -32602,
    "internal_error": -32603,
    "not_initialized": -32002,
    "cancelled": -32800,
    "stale": -32801,
}


def test_every_kind_stands_in_the_table_once() -> None:
    assert len(BY_KIND) == len(FAILURES)


def test_the_refusals_are_the_closed_list() -> None:
    assert tuple(REFUSALS) == get_args(RefusalKind.__value__)


def test_the_core_refuses_with_these_kinds_and_no_other() -> None:
    assert set(core.KINDS) == set(REFUSALS)


@pytest.mark.parametrize("kind", BY_KIND)
def test_each_kind_has_the_number_that_the_protocol_gives_it(kind: str) -> None:
    assert BY_KIND[kind].number == NUMBERS.get(kind, -32803)


@pytest.mark.parametrize("kind", BY_KIND)
def test_each_kind_is_told_in_a_sentence(kind: str) -> None:
    assert BY_KIND[kind].sentence.endswith(".")


@pytest.mark.parametrize("kind", REFUSALS)
def test_each_refusal_says_what_it_is_about(kind: str) -> None:
    shape = BY_KIND[kind].data
    assert shape is not None
    states = {"expected": "a", "actual": "b"} if shape is RefusedAsStale else {}
    shape.model_validate({"kind": kind, "about": "x", "hint": "", **states})


def test_a_kind_outside_the_list_is_no_refusal() -> None:
    with pytest.raises(ValidationError):
        Refused.model_validate({"kind": "oops", "about": "x", "hint": ""})


def test_only_a_stale_change_carries_both_states() -> None:
    assert [kind for kind, row in REFUSALS.items() if row.data is RefusedAsStale] == ["stale"]
