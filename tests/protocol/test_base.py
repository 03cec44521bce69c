"""Params are strict: unknown, mistyped, null and boundless values are refused, by the model and by the schema alike."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from protocol.base import LARGEST, PATH_CHARS, PATHS, NoParams
from protocol.methods import REQUESTS
from protocol.requests.contents import RehostResult
from tests.protocol.fit import refused, refused_by_the_model, taken

UNFIT = [
    ("workspace/status", {"verbose": True}, "verbose"),
    ("workspace/changes", {}, "since"),
    ("workspace/changes", {"since": "5"}, "since"),
    ("workspace/changes", {"since": True}, "since"),
    ("workspace/changes", {"since": 1.5}, "since"),
    ("workspace/changes", {"since": None}, "since"),
    ("workspace/changes", {"since": -1}, "since"),
    ("workspace/changes", {"since": LARGEST + 1}, "since"),
    ("workspace/changes", {"since": 0, "limit": 0}, "limit"),
    ("workspace/changes", {"since": 0, "limit": 1001}, "limit"),
    ("artifact/list", {"limit": 1001}, "limit"),
    ("timeline/blocks", {"limit": 1001}, "limit"),
    ("workspace/sync", {"since": None}, "since"),
    ("artifact/resolve", {"path": "a"}, "paths"),
    ("artifact/resolve", {"paths": []}, "paths"),
    ("artifact/resolve", {"paths": "a"}, "paths"),
    ("artifact/resolve", {"paths": ["a", 1]}, "paths.1"),
    ("artifact/resolve", {"paths": ["a", None]}, "paths.1"),
    ("artifact/resolve", {"paths": ["a"] * (PATHS + 1)}, "paths"),
    ("artifact/resolve", {"paths": ["a" * (PATH_CHARS + 1)]}, "paths.0"),
    ("artifact/read", {"paths": ["a"], "stats_only": 1}, "stats_only"),
    ("turn/begin", {"turn_id": "a.b"}, "turn_id"),
    ("turn/begin", {"turn_id": ""}, "turn_id"),
    ("turn/begin", {"turn_id": "a" * 129}, "turn_id"),
    ("turn/begin", {"turn_id": "t\u00fcr"}, "turn_id"),
    ("turn/begin", {"turn_id": "t", "request_id": ""}, "request_id"),
    ("turn/begin", {"turn_id": "t", "request_id": "a" * 129}, "request_id"),
    ("turn/begin", {"turn_id": "t", "request_id": 7}, "request_id"),
]


@pytest.mark.parametrize(("method", "params", "at"), UNFIT)
def test_what_does_not_fit_is_refused_at_its_place(method: str, params: dict[str, object], at: str) -> None:
    refused(method, params, at)


@pytest.mark.parametrize("text", ["turn_1\n", "turn_1\r", "\nturn_1"])
@pytest.mark.parametrize(("method", "field"), [("turn/begin", "turn_id"), ("call/end", "tool_call_id")])
def test_an_id_with_a_line_break_is_refused(method: str, field: str, text: str) -> None:
    refused_by_the_model(method, {field: text}, field)


@pytest.mark.parametrize("text", ["", "/etc/passwd", "../x", "a\\b", "a\x00b", "x" * PATH_CHARS])
def test_a_path_that_the_grammar_refuses_is_not_refused_by_the_wire(text: str) -> None:
    taken("artifact/resolve", {"paths": [text]})


@pytest.mark.parametrize("method", REQUESTS)
def test_an_unknown_param_is_refused_by_every_method(method: str) -> None:
    with pytest.raises(ValidationError) as caught:
        REQUESTS[method].params.model_validate({"no_such_param": 1})
    assert ("no_such_param",) in {fault["loc"] for fault in caught.value.errors()}


@pytest.mark.parametrize("method", REQUESTS)
def test_null_is_refused_for_every_param_but_the_result_of_a_call(method: str) -> None:
    params = REQUESTS[method].params
    nulls = dict.fromkeys(params.model_fields)
    faults: set[str] = set()
    if nulls:
        with pytest.raises(ValidationError) as caught:
            params.model_validate(nulls)
        faults = {str(fault["loc"][0]) for fault in caught.value.errors()}
    assert nulls.keys() - faults == ({"result"} if method == "call/end" else set())


def test_an_absent_param_is_none_or_its_default() -> None:
    params = taken("artifact/list", {}).model_dump()
    assert params["turn_id"] is None
    assert params["limit"] == 1000


def test_params_cannot_be_changed_after_the_check() -> None:
    params = NoParams()
    with pytest.raises(ValidationError):
        params.anything = 1  # pyright: ignore[reportAttributeAccessIssue]


def test_a_result_with_a_field_that_is_not_declared_is_no_result() -> None:
    answer = {"rehosted": [], "missing": [], "notices": []}
    RehostResult.model_validate(answer)
    with pytest.raises(ValidationError):
        RehostResult.model_validate({**answer, "done": True})
