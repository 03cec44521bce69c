"""In HTML a token counts where a reader sees prose."""

from __future__ import annotations

import pytest

from sidecar.core.markup import NOT_PROSE, SUP_CHARS, HtmlScanner, sup_numbers
from sidecar.core.numbers import NumberSet


def cited(text: str) -> list[int]:
    found = HtmlScanner().read(f"\n{text}", final=True)
    return [sid for each in found for sid in each.numbers.singles]


def check(rows: dict[str, list[int]]) -> None:
    assert {text: cited(text) for text in rows} == rows


def test_tokens_are_found_in_prose() -> None:
    check(
        {
            "<p>a [[S:1]]</p>\n\n<b>[[S:2]]</b>`[[S:3]]`": [1, 2, 3],
            "a < b [[S:1]] <3 [[S:2]] < [[S:3]]": [1, 2, 3],
            "[[S:1,<br>2]] [[S:3": [],
            "plain [[S:1]]": [1],
        }
    )


def test_nothing_inside_a_tag_is_touched() -> None:
    check(
        {
            '<a title="[[S:1]] >" href=x>[[S:2]]</a>': [2],
            "<a title='[[S:1]] > \"'>[[S:2]]</a>": [2],
            "<a title = \n '[[S:1]]>'>[[S:2]]</a>": [2],
            "<a title=[[S:1]]>[[S:2]]</a>": [2],
            '<a x=y"z>[[S:1]]</a>': [1],
            '<a "x>[[S:1]]</a>': [1],
            "<a href=>[[S:1]]</a>": [1],
            "<a [[S:1]]>[[S:2]]</a [[S:3]]>[[S:4]]": [2, 4],
            "<a href='[[S:1]]": [],
        }
    )


def test_comments_and_declarations_are_passed_over() -> None:
    check(
        {
            "<!-- [[S:1]] > --> [[S:2]]": [2],
            "<!--> [[S:1]]": [1],
            "<!doctype [[S:1]]>[[S:2]]": [2],
            "<?xml [[S:1]]?>[[S:2]]": [2],
            "<!-- [[S:1]]": [],
        }
    )


@pytest.mark.rule("citations.code-is-left-alone")
@pytest.mark.parametrize("name", sorted(NOT_PROSE))
def test_an_element_that_is_not_prose_is_left_alone(name: str) -> None:
    check(
        {
            f"<{name}>[[S:1]]</{name}>[[S:2]]": [2],
            f'<{name.upper()} a="b">[[S:1]] <b>[[S:3]]</b> </{name}x></{name} >[[S:2]]': [2],
        }
    )


@pytest.mark.rule("citations.html-sup-counts")
def test_a_citing_sup_counts_and_its_text_is_left_alone() -> None:
    check(
        {
            '<sup class="cite" data-sids="1,3">[S:1,3]</sup>': [1, 3],
            "<sup class='cite' data-sids='5'>[[S:5]]</sup> [[S:6]]": [5, 6],
            "<SUP data-sids=2 class='x cite'><a href=y>[S:2]</a></SUP>": [2],
            '<sup class="cited" data-sids="1">[[S:2]]</sup>': [2],
            '<sup class="cite">[[S:2]]</sup>': [2],
            "<p>[S:4]</p>": [],
            f'<sup class="cite" data-sids="1" title="{"x" * SUP_CHARS}">[[S:2]]</sup>': [2],
        }
    )


def test_the_numbers_of_a_sup_stand_in_its_attributes() -> None:
    rows = {
        '<sup class="cite" data-sids="1, 3-5">': NumberSet((1,), ((3, 5),)),
        '<sup class="cite" data-sids="1&#44;2">': NumberSet((1, 2)),
        '<sup class="cite" data-sids="x">': None,
        '<sup data-sids="1">': None,
        '<sup class="cite" data-sids="1" data-sids="2">': NumberSet((1,)),
    }
    assert {tag: sup_numbers(tag) for tag in rows} == rows


@pytest.mark.rule("citations.only-a-possible-token-is-held-back")
def test_the_undecided_rest_of_a_text_stays_small() -> None:
    for endless in ["<a x='", "<a ", "<a x=", "<!--", "<script>", "<" + "b" * 99, "[[S:" + "1," * 9000, "<sup x='"]:
        scanner = HtmlScanner()
        text = f"\n{endless}{'word ' * 9000}"
        list(scanner.read(text, final=False))
        assert len(text) - scanner.kept < 100
