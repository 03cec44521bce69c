"""The table of notices is closed, and each code names its fields."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from protocol.notices import NOTICES, NoticeCode
from protocol.records import Notice
from sidecar.core import notices as core

PLAIN: dict[str, Any] = {
    "path": "turn_1/files/a.txt",
    "name": "a%FF",
    "paths": ["turn_1/files/a.txt"],
    "missing": ["turn_1/files/a.txt"],
    "missing_sids": [4],
    "pieces": ["x"],
    "fields": ["rn"],
    "original": "turn_1/files/a.txt",
    "normalized": "turn_2/files/a.txt",
    "tool_id": "web_tools.web_search",
    "tool_call_id": "call_1",
    "tool_call_ids": ["call_1", "call_2"],
    "sha256": "ab",
    "size_bytes": 1,
    "count": 2,
    "limit": "files",
    "reason": "why",
    "turn_id": "turn_1",
    "reaction": "ok",
}


def test_the_table_is_the_closed_list() -> None:
    assert tuple(NOTICES) == get_args(NoticeCode.__value__)


def test_the_core_says_these_codes_and_no_other() -> None:
    assert set(core.CODES) == set(NOTICES)


@pytest.mark.parametrize("code", NOTICES)
def test_each_notice_fits_the_wire_with_all_its_fields(code: str) -> None:
    row = NOTICES[code]
    wanted = {field: PLAIN[field] for field in (*row.fields, *row.may_have)}
    Notice.model_validate({"code": code, "message": row.sentence, **wanted})


@pytest.mark.parametrize("code", NOTICES)
def test_each_notice_is_told_in_a_sentence(code: str) -> None:
    assert NOTICES[code].sentence.endswith((".", "`."))


def test_no_field_of_a_notice_is_without_a_code_that_names_it() -> None:
    named = {field for row in NOTICES.values() for field in (*row.fields, *row.may_have)}
    assert set(Notice.model_fields) - {"code", "message"} == named


def test_an_unknown_code_is_no_notice() -> None:
    with pytest.raises(ValidationError):
        Notice.model_validate({"code": "path_lost", "message": "x"})


def test_a_field_that_no_code_names_is_no_part_of_a_notice() -> None:
    with pytest.raises(ValidationError):
        Notice.model_validate({"code": "watch_lost", "message": "x", "colour": "red"})
