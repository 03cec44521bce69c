"""Failures on the wire and back."""

from __future__ import annotations

import json
import logging
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.errors import FAILURES, Refused, RefusedAsStale
from sidecar.core.errors import KINDS, BadPath, Refusal, Stale
from sidecar.server.failures import FAULTS_TOLD, Failure, refusal_of, refused, unexpected, wrong_fields


def refusal(kind: str) -> Refusal:
    if kind == "stale":
        return Stale("about", expected="e", actual="a")
    return next(cls for cls in Refusal.__subclasses__() if cls.kind == kind)("about", "hint")


@pytest.mark.parametrize("kind", KINDS)
def test_every_refusal_survives_the_wire(kind: str) -> None:
    sent = refusal(kind)
    error = json.loads(json.dumps(refused(sent).error()))
    back = refusal_of(error)
    assert back is not None
    assert (type(back), back.about, back.hint) == (type(sent), sent.about, sent.hint)
    assert vars(back) == vars(sent)


@pytest.mark.rule("errors.refusals-are-32803", "errors.stale-is-32801-with-both-hashes")
@pytest.mark.parametrize("kind", KINDS)
def test_every_refusal_has_the_number_and_the_data_that_the_protocol_declares(kind: str) -> None:
    failure = refused(refusal(kind))
    [row] = [row for row in FAILURES if row.kind == kind]
    assert (failure.code, failure.message) == (row.number, row.sentence)
    assert row.data in (Refused, RefusedAsStale)
    row.data.model_validate(failure.data)


@pytest.mark.parametrize(
    "error",
    [{"code": -32602, "data": {"faults": []}}, {"code": -32603}, {"code": 1, "data": 5}, {"data": {"kind": []}}],
)
def test_what_is_no_refusal_comes_back_as_none(error: dict[str, object]) -> None:
    assert refusal_of(error) is None


def test_a_name_that_is_no_utf_8_can_be_told() -> None:
    error = refused(BadPath("a\udcff")).error()
    assert json.dumps(error, ensure_ascii=False).encode()
    assert error["data"]["about"] == "a\\udcff"  # type: ignore[index]


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    numbers: list[int] = []
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None


def wrong(given: dict[str, object], *, below: str = "") -> Failure:
    with pytest.raises(ValidationError) as caught:
        Form.model_validate(given)
    return wrong_fields(caught.value, below=below)


def test_faults_are_named_by_their_place() -> None:
    data = wrong({"numbers": [1, "secret"], "numbres": 1}, below="options").data
    assert data is not None
    assert [fault["where"] for fault in data["faults"]] == ["options.numbers.1", "options.numbres"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "given", [{"numbers": ["secret"]}, {"pet": {"kind": "secret"}}, {"pet": "secret"}, {"numbers": "secret"}]
)
def test_faults_never_repeat_what_was_sent(given: dict[str, object]) -> None:
    assert "secret" not in json.dumps(wrong(given).error())


@pytest.mark.parametrize("count", [11, 5000])
def test_many_faults_are_told_in_few_words(count: int) -> None:
    failure = wrong({"numbers": ["x"] * count})
    assert failure.data is not None
    assert 1 <= len(failure.data["faults"]) <= FAULTS_TOLD  # type: ignore[arg-type]


def test_a_key_that_is_long_is_cut() -> None:
    assert len(json.dumps(wrong({"k" * 100_000: 1}).error())) < 1000


def test_an_incident_is_told_by_number_and_logged_in_full(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    failure = unexpected(RuntimeError("secret"), client=3, method="a/b")
    assert failure.data is not None
    assert "secret" not in json.dumps(failure.error())
    [record] = caplog.records
    assert str(failure.data["incident"]) in record.getMessage()
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "secret"
