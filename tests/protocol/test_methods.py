"""The table is complete: each method has its words, its roles, its failures, and fields that explain themselves."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from pydantic import BaseModel

from protocol.base import ChangingParams, Role
from protocol.errors import REFUSALS
from protocol.methods import EVENTS, REQUESTS

# Spec section 7: who may ask. R runtime, W renderer, X exec, E editor.
ASKED_BY = {
    "workspace/status": "RWXE",
    "workspace/sync": "RWXE",
    "workspace/changes": "RWXE",
    "workspace/outline": "RWXE",
    "turn/begin": "R",
    "turn/end": "R",
    "turn/feedback": "R",
    "call/begin": "R",
    "call/end": "R",
    "artifact/resolve": "RWXE",
    "artifact/list": "RWXE",
    "artifact/versions": "RWXE",
    "artifact/read": "RWXE",
    "artifact/fetch": "RWXE",
    "artifact/rehost": "RWX",
    "artifact/write": "RW",
    "artifact/patch": "RW",
    "artifact/hide": "R",
    "artifact/link": "RE",
    "artifact/lineage": "RWXE",
    "artifact/search": "RWXE",
    "sources/merge": "RW",
    "sources/list": "RWXE",
    "sources/render": "RWXE",
    "citations/extract": "RWXE",
    "citations/replace": "RWXE",
    "citations/stream": "RWXE",
    "assets/pull": "RWX",
    "timeline/append": "R",
    "timeline/blocks": "RE",
    "timeline/announce": "R",
    "timeline/render": "RE",
    "timeline/plan_compaction": "R",
    "timeline/compact": "R",
    "timeline/flush": "R",
    "conversation/save": "R",
    "conversation/fetch": "RE",
    "conversation/recent": "RE",
    "conversation/search": "RE",
    "conversation/reactions": "RE",
    "context/fetch": "RX",
    "context/bind": "R",
    "context/map_slots": "R",
    "context/show_artifacts": "RX",
}
LETTERS = {"R": "runtime", "W": "renderer", "X": "exec", "E": "editor"}
CHANGING = {
    "turn/begin",
    "turn/end",
    "turn/feedback",
    "call/begin",
    "call/end",
    "artifact/read",
    "artifact/write",
    "artifact/patch",
    "artifact/hide",
    "sources/merge",
    "assets/pull",
    "timeline/append",
    "timeline/compact",
    "conversation/save",
    "context/bind",
    "context/map_slots",
}
LONG = {
    "turn/begin",
    "turn/end",
    "workspace/sync",
    "artifact/rehost",
    "artifact/search",
    "assets/pull",
    "timeline/flush",
}


def test_these_methods_are_declared_and_no_others() -> None:
    assert REQUESTS.keys() == ASKED_BY.keys()


@pytest.mark.parametrize("method", REQUESTS)
def test_the_right_roles_may_ask(method: str) -> None:
    assert REQUESTS[method].asked_by == {LETTERS[letter] for letter in ASKED_BY[method]}


@pytest.mark.parametrize("method", REQUESTS)
def test_no_role_is_unknown(method: str) -> None:
    assert REQUESTS[method].asked_by <= set(get_args(Role.__value__))


@pytest.mark.parametrize("row", [*REQUESTS.values(), *EVENTS.values()], ids=lambda row: row.method)
def test_it_is_told_in_one_sentence(row: object) -> None:
    summary = getattr(row, "summary", "")
    assert summary[0].isupper()
    assert re.findall(r"\.(?:\s|$)", summary) == ["."]


@pytest.mark.parametrize("method", [*REQUESTS, *EVENTS])
def test_its_name_is_noun_and_verb(method: str) -> None:
    assert re.fullmatch(r"[a-z]+/[a-z]+(_[a-z]+)*", method)


@pytest.mark.parametrize("method", REQUESTS)
def test_it_fails_only_in_ways_that_have_a_name(method: str) -> None:
    kinds = REQUESTS[method].fails_with
    assert len(set(kinds)) == len(kinds)
    assert {"not_permitted", "shutting_down", "too_large"} <= set(kinds) <= set(REFUSALS)


def test_what_changes_something_can_be_repeated_safely() -> None:
    assert {row.method for row in REQUESTS.values() if issubclass(row.params, ChangingParams)} == CHANGING


@pytest.mark.parametrize("method", CHANGING)
def test_what_changes_something_says_that_the_journal_may_refuse(method: str) -> None:
    assert {"journal_unavailable", "stale"} <= set(REQUESTS[method].fails_with)


def test_long_work_reports_progress() -> None:
    assert {row.method for row in REQUESTS.values() if row.progress} == LONG


def _models() -> list[type[BaseModel]]:
    models = [side for row in REQUESTS.values() for side in (row.params, row.result)]
    return list(dict.fromkeys([*models, *(row.payload for row in EVENTS.values())]))


@pytest.mark.parametrize("model", _models(), ids=lambda model: model.__name__)
def test_a_message_is_strict_and_frozen(model: type[BaseModel]) -> None:
    assert model.model_config.get("extra") == "forbid"
    assert model.model_config.get("frozen") is True
    assert model.model_config.get("strict") is True


@pytest.mark.parametrize("model", _models(), ids=lambda model: model.__name__)
def test_every_field_of_a_message_explains_itself(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        assert (field.description or "").endswith("."), f"{model.__name__}.{name} has no sentence"
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), f"{name} is not snake_case"
