"""What is wrong with a value is said in our own words, at the path of its field, and without the value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from protocol.methods import REQUESTS
from sidecar.config import Settings
from sidecar.wording import _PATTERNS, NOTHING_KNOWN, problem, problems

SECRET = "hush-hush"
WRONG: tuple[object, ...] = (
    None, True, -1, 1.5, float("nan"), 2**70, "", SECRET * 30, SECRET + "\x00", [], [1], [SECRET], {}, {SECRET: 1},
    [{}], [{SECRET: SECRET}], [[1]], [SECRET] * 5000, {"path": 1}, {"text": 1},
)  # fmt: skip
LIBRARY = re.compile(r"Input |Value error|String should|List should|dictionary|instance of|validation")


def faults(model: type[BaseModel], given: object) -> list[Mapping[str, Any]]:
    try:
        model.model_validate(given)
    except ValidationError as error:
        return [dict(fault) for fault in error.errors(include_url=False)]
    return []


@pytest.mark.parametrize("method", REQUESTS)
def test_whatever_is_wrong_with_params_has_a_sentence_of_ours(method: str) -> None:
    model = REQUESTS[method].params
    for name in model.model_fields:
        for wrong in WRONG:
            for fault in faults(model, {name: wrong}):
                sentence = problem(fault["type"], fault.get("ctx", {}))
                assert sentence != NOTHING_KNOWN, fault["type"]
                assert not LIBRARY.search(sentence)
                assert SECRET not in sentence
                assert "^" not in sentence, "a pattern is put into words"


def test_a_field_that_may_be_of_several_types_has_one_path_and_one_sentence() -> None:
    params = REQUESTS["turn/begin"].params
    assert problems(faults(params, {"turn_id": "t", "ts": [], "rehost": 1})) == {
        "rehost": "must be a list, or must be 'all'",
        "ts": "must be a text, or must be a whole number, or must be a number",
    }


def test_the_path_goes_down_to_the_field() -> None:
    params = REQUESTS["turn/begin"].params
    given = {"turn_id": "a b", "attachments": [{"name": "x"}, {"text": "t", "str": 1}]}
    assert problems(faults(params, given)) == {
        "turn_id": "must be 1 to 128 of the characters A-Z a-z 0-9 _ and -",
        "attachments.0": "give exactly one of `path`, `base64` and `text`",
        "attachments.1.name": "is missing",
        "attachments.1.str": "is not known here",
    }


def test_a_setting_is_told_in_the_same_words() -> None:
    [(where, said)] = problems(
        fault for fault in faults(Settings, {"out_dir": "/tmp/w", "idle_exit": "-1"}) if fault["loc"] == ("idle_exit",)
    ).items()
    assert (where, said) == ("idle_exit", "must be at least 0")


def test_every_pattern_of_the_wire_is_put_into_words() -> None:
    declared = re.findall(r'"pattern": "((?:[^"\\]|\\.)*)"', _schemas())
    assert declared
    assert {one.replace("\\\\", "\\") for one in declared} <= _PATTERNS.keys()


def test_what_nobody_foresaw_is_said_without_the_library_s_words() -> None:
    assert problem("brand_new", {"input": SECRET}) == NOTHING_KNOWN
    assert problem("less_than", {}) == NOTHING_KNOWN


def _schemas() -> str:
    import json

    return json.dumps([request.params.model_json_schema() for request in REQUESTS.values()])
