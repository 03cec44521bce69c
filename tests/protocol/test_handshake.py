"""What `initialize` takes beyond LSP, and what may stand beside the params of any request."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from protocol.handshake import ENVELOPE_KEYS, META_BYTES, Envelope, InitializationOptions, unwrap


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"protocol_version": "1.0"},
        {"protocol_version": "2.7"},
        {"turn_id": "turn_1", "tool_call_id": "call-1"},
        {"events": ["sources", "artifacts", "timeline", "notices"]},
    ],
)
def test_these_options_are_taken(options: dict[str, Any]) -> None:
    InitializationOptions.model_validate(options)


@pytest.mark.parametrize(
    "options",
    [
        {"protocol_version": 1},
        {"protocol_version": "1"},
        {"protocol_version": "1.0\n"},
        {"protocol_version": None},
        {"role": "runtime"},
        {"turn_id": "a.b"},
        {"tool_call_id": "a b"},
        {"events": ["everything"]},
        {"events": "sources"},
        {"events": None},
    ],
)
def test_these_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        InitializationOptions.model_validate(options)


def test_no_event_is_told_unless_asked_for() -> None:
    assert InitializationOptions().events == []


def test_the_envelope_is_taken_off_the_params() -> None:
    params = {"paths": ["a"], "workDoneToken": 7, "partialResultToken": "p", "_meta": {"trace": 1}}
    envelope, rest = unwrap(params)
    assert rest == {"paths": ["a"]}
    assert (envelope.workDoneToken, envelope.partialResultToken, envelope.meta) == (7, "p", {"trace": 1})


def test_params_without_an_envelope_are_left_as_they_are() -> None:
    params = {"paths": ["a"]}
    envelope, rest = unwrap(params)
    assert rest is params
    assert envelope.workDoneToken is None


def test_unwrapping_changes_nothing_in_the_params_it_was_given() -> None:
    params = {"workDoneToken": 7}
    unwrap(params)
    assert params == {"workDoneToken": 7}


@pytest.mark.parametrize(
    "params",
    [
        {"workDoneToken": None},
        {"workDoneToken": True},
        {"workDoneToken": 1.5},
        {"workDoneToken": "t" * 129},
        {"partialResultToken": []},
        {"_meta": "text"},
        {"_meta": {"much": "x" * META_BYTES}},
    ],
)
def test_a_malformed_envelope_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        unwrap(params)


def test_meta_is_counted_in_bytes_of_json() -> None:
    fits = {"_meta": {"k": "x" * (META_BYTES - len('{"k":""}'))}}
    unwrap(fits)
    with pytest.raises(ValidationError):
        unwrap({"_meta": {"k": "\u00e9" * (META_BYTES // 2)}})


def test_the_envelope_keys_are_those_of_the_model() -> None:
    assert {field.alias or name for name, field in Envelope.model_fields.items()} == ENVELOPE_KEYS
