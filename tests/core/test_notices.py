"""A notice has a code of the table, words, and the fields that its code names."""

from __future__ import annotations

import pytest

from protocol.notices import NOTICES
from sidecar.core.notices import CODES, Notice, for_oddity, for_selector, notice


def test_every_code_stands_in_the_table_of_the_wire() -> None:
    assert set(NOTICES) == CODES


def test_a_notice_is_its_code_words_and_what_it_is_about() -> None:
    said = notice("oversize", path="turn_1/files/a")
    assert said.keys() == {"code", "message", "path"}
    assert said["code"] == "oversize"
    assert said["message"]


def test_a_code_of_nobody_cannot_be_said() -> None:
    with pytest.raises(KeyError):
        notice("made.up")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("not_utf8", "name_not_utf8"),
        ("link", "link_skipped"),
        ("special", "special_skipped"),
        ("unsafe_name", "name_unsafe"),
    ],
)
def test_every_oddity_has_its_code(kind: str, code: str) -> None:
    said = for_oddity(kind, "a%FFb")
    assert (said["code"], said["name"]) == (code, "a%FFb")


@pytest.mark.parametrize(
    ("malformed", "missing", "told"),
    [
        ([], [], []),
        (["x"], [], [("selector_malformed", {"pieces": ["x"]})]),
        ([], [4], [("source_unknown", {"missing_sids": [4]})]),
        (["x"], [4], [("selector_malformed", {"pieces": ["x"]}), ("source_unknown", {"missing_sids": [4]})]),
    ],
)
def test_a_selector_is_told_what_it_asked_in_vain(
    malformed: list[str], missing: list[int], told: list[tuple[str, Notice]]
) -> None:
    said = for_selector(malformed, missing)
    assert [(one.pop("code"), one) for one in said if one.pop("message")] == told
