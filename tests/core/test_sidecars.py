"""A JSON text cites by the tokens in its string values and the `sids` of its citing members."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.numbers import NumberSet
from sidecar.core.sidecars import JsonScanner


def found_in(text: str) -> list[tuple[str, NumberSet]]:
    """Each finding with the part of the text where it stands."""
    whole = f"\n{text}"
    return [(whole[each.start : each.end], each.numbers) for each in JsonScanner().read(whole, final=True)]


def check(rows: dict[str, list[tuple[str, NumberSet]]]) -> None:
    assert {text: found_in(text) for text in rows} == rows


@pytest.mark.rule("citations.json-sidecars-count")
def test_the_sids_of_a_citing_member_count() -> None:
    check(
        {
            '{"citations":[{"sids":[1,3]}]}': [("", NumberSet((1, 3)))],
            '{"_citations":{"sids":"1,3-5"}}': [("", NumberSet((1,), ((3, 5),)))],
            '[{"a":{"citations":{"p":[{"sids":2}]}}}]': [("", NumberSet((2,)))],
            '{"citations":{"sids":[true,-1,1.5,"x",null,"7"]}}': [("", NumberSet((7,)))],
            '{"citations":[1,2],"sids":[3]}': [],
            '{"citations":{"sids":null}}': [],
        }
    )


def test_tokens_count_in_string_values_and_not_in_names() -> None:
    check(
        {
            '{"a":"x [[S:1]]"}': [("[[S:1]]", NumberSet((1,)))],
            '["[[S:1]]", "[[S:2]]"]': [("[[S:1]]", NumberSet((1,))), ("[[S:2]]", NumberSet((2,)))],
            '{"[[S:1]]" : "`[[S:2]]`"}': [],
            '"[[S:1]]"': [("[[S:1]]", NumberSet((1,)))],
        }
    )


def test_a_token_written_with_escapes_is_found_where_it_stands() -> None:
    check(
        {
            r'"\"\\ \u00e9\ud83d\ude00 [[S:1]] \n"': [("[[S:1]]", NumberSet((1,)))],
            r'"\u005b[S\u003a1]\u005d"': [(r"\u005b[S\u003a1]\u005d", NumberSet((1,)))],
            r'"```\n[[S:1]]\n```\n[[S:2]]"': [("[[S:2]]", NumberSet((2,)))],
        }
    )


def test_a_text_that_is_no_json_cites_nothing() -> None:
    check({text: [] for text in ['{"a":"[[S:1]]"', "[[S:1]]", "", '"[[S:1]]" x', "[" * 100_000]})


@given(st.text(alphabet='[[SS::11,]]\\"\n\t é😀`x', max_size=20), st.booleans())
def test_a_finding_spans_the_same_text_that_was_encoded(text: str, ascii_only: bool) -> None:
    for part, _ in found_in(json.dumps({"a": text}, ensure_ascii=ascii_only)):
        assert json.loads(f'"{part}"') in text
