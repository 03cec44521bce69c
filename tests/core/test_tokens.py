"""What is a citation token, and what may still become one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.limits import TOKEN_BYTES
from sidecar.core.numbers import NumberSet
from sidecar.core.tokens import Grammar, listed_numbers, token_numbers

GRAMMAR = Grammar("`")
TOKEN = re.compile(GRAMMAR.token)


def numbers_in(text: str) -> list[NumberSet]:
    return [numbers for match in TOKEN.finditer(text) if (numbers := token_numbers(match[0])) is not None]


def check(rows: dict[str, NumberSet]) -> None:
    assert {text: numbers_in(text) for text in rows} == {text: [numbers] for text, numbers in rows.items()}


@pytest.mark.rule("citations.token-grammar", "citations.bad-pieces-are-ignored")
def test_a_token_holds_numbers_and_ranges() -> None:
    check(
        {
            "[[S:1]]": NumberSet((1,)),
            "[[S:1,2]]": NumberSet((1, 2)),
            "[[S:1-3]]": NumberSet((), ((1, 3),)),
            "[[S:3-1]]": NumberSet((), ((1, 3),)),
            "[[ s : 1 , 2 ]]": NumberSet((1, 2)),
            "[[S:1, 3-5,9]]": NumberSet((1, 9), ((3, 5),)),
            "[[S:1,x,2]]": NumberSet((1, 2)),
            "[[S:01]]": NumberSet((1,)),
            "[[S:0]]": NumberSet((0,)),
            "[[S:1\n]]": NumberSet((1,)),
            "[[S: see page four, 1]]": NumberSet((1,)),
            "[[[S:1]]]": NumberSet((1,)),
            "[[S:1 [[S:2]]": NumberSet((2,)),
            "[[S:1] [[S:2]]": NumberSet((2,)),
        }
    )


@pytest.mark.rule("citations.dashes-and-wide-brackets-are-tolerated")
def test_what_keyboards_and_models_make_of_a_token_is_understood() -> None:
    check(
        {
            "［［S：1］］": NumberSet((1,)),
            "［[S:1]］": NumberSet((1,)),
            "[[S\u200b:1]]": NumberSet((1,)),
            "[\u200b[S:1]\u200d]": NumberSet((1,)),
            "[[S:1\ufeff2]]": NumberSet((12,)),
            "[[S:1–3]]": NumberSet((), ((1, 3),)),
            "[[S:1—3]]": NumberSet((), ((1, 3),)),
        }
    )


@pytest.mark.rule("citations.what-is-no-token")
def test_what_names_no_number_is_no_token() -> None:
    texts = [
        *["[[S:a]]", "[[S:]]", "[S:1]", "[[S:1]", "[[S:-1]]", "[[S:1;2]]", "[[S:1 2]]", "[[S:²]]", "[[S:١]]"],
        *["[[S1]]", "[[T:1]]", "[[SS:1]]", "[ [S:1]]", "[[S:1] ]", "[[S:1`]]", "[[S:9007199254740993]]", "［S：1］"],
    ]
    assert {text: numbers_in(text) for text in texts} == {text: [] for text in texts}


@pytest.mark.rule("citations.a-long-token-is-no-token")
def test_a_token_has_at_most_4_kib() -> None:
    longest = f"[[S: {'1,' * ((TOKEN_BYTES - 8) // 2)}1]]"
    assert len(longest) == TOKEN_BYTES
    assert [len(numbers.singles) for numbers in numbers_in(longest)] == [2045]
    assert numbers_in(longest.replace("S", "S ")) == []


def test_the_bytes_of_a_token_are_counted_not_its_characters() -> None:
    assert numbers_in(f"[[S:1,{'–' * 1300}]]")
    assert not numbers_in(f"[[S:1,{'–' * 1400}]]")


@pytest.mark.rule("citations.only-a-possible-token-is-held-back")
def test_what_may_become_a_token_is_known_by_its_beginning() -> None:
    begun = ["[", "[[", "[[S", "[[ S", "[[S:", "[[ S :", "[[S:1, 2-", "[[S:1, 2-3]", "［", "[\u200b[s：1］"]
    assert [text for text in begun if GRAMMAR.first_possible(f"ab{text}", 0) == 2] == begun


@pytest.mark.rule("citations.only-a-possible-token-is-held-back")
def test_what_can_become_no_token_is_not_waited_for() -> None:
    texts = ["", "a", "[S", "[[T", "[[S1", "[[S:1`", "[[S:1]x", "[[S:a]]", "a]]", f"[[S:{'1,' * TOKEN_BYTES}"]
    assert {text: GRAMMAR.first_possible(text, 0) for text in texts} == {text: len(text) for text in texts}


@given(st.text(alphabet="[[SS::11,-]]］［： \u200b`x", max_size=24), st.integers(0, 24))
def test_every_beginning_of_a_token_is_possible(text: str, cut: int) -> None:
    for match in TOKEN.finditer(text):
        if token_numbers(match[0]) is not None and match.start() < cut:
            assert GRAMMAR.first_possible(text[:cut], 0) <= match.start()


def test_a_list_without_numbers_is_none() -> None:
    assert listed_numbers("1, 3–5, x") == NumberSet((1,), ((3, 5),))
    assert [listed_numbers(text) for text in ["", "x", "-1", ","]] == [None] * 4
