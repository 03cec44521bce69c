"""In Markdown a token counts everywhere but in code."""

from __future__ import annotations

import pytest

from sidecar.core.markdown import LINE_CHARS, SPAN_CHARS, SUP_CHARS, TICKS, MarkdownScanner


def cited(text: str) -> list[int]:
    found = MarkdownScanner().read(f"\n{text}", final=True)
    return [sid for each in found for sid in each.numbers.singles]


def check(rows: dict[str, list[int]]) -> None:
    assert {text: cited(text) for text in rows} == rows


def test_tokens_are_found_in_prose() -> None:
    check(
        {
            "a [[S:1]] b [[S:2]][[S:3]]": [1, 2, 3],
            "# h [[S:1]]\n\n- [[S:2]]\n  > [[S:3]]\n\n| [[S:4]] |\n": [1, 2, 3, 4],
            "[a](b) ![c](d) [[S:1]]: [e]": [1],
            "**[[S:1]]** <b>[[S:2]]</b>": [1, 2],
            "    [[S:1]]": [1],
            "": [],
        }
    )


@pytest.mark.rule("citations.code-is-left-alone")
def test_a_code_span_is_left_alone() -> None:
    check(
        {
            "`[[S:1]]` [[S:2]]": [2],
            "``a ` [[S:1]] `` [[S:2]]": [2],
            "`a\n[[S:1]]\nb` [[S:2]]": [2],
            "`a\\` [[S:1]] `b`": [1],
            "x `a` [[S:1]] `b` y": [1],
        }
    )


@pytest.mark.rule("citations.code-is-left-alone")
def test_backticks_without_a_twin_are_no_code_span() -> None:
    check(
        {
            "` [[S:1]]": [1],
            "`` [[S:1]] `": [1],
            "` [[S:1]] ``` [[S:2]] ``": [1, 2],
            "\\` [[S:1]] `": [1],
            "\\`` [[S:1]] ` [[S:2]]": [2],
            "\\\\` [[S:1]] `": [],
        }
    )


@pytest.mark.rule("citations.code-is-left-alone")
def test_a_code_span_ends_with_its_paragraph() -> None:
    check(
        {
            "` [[S:1]]\n\n[[S:2]] `": [1, 2],
            "` [[S:1]]\n \t\n[[S:2]] `": [1, 2],
            "- ` [[S:1]]\n- [[S:2]] `": [1, 2],
            "1. ` [[S:1]]\n2. [[S:2]] `": [1, 2],
            "` [[S:1]]\n# [[S:2]] `": [1, 2],
            "| ` [[S:1]] |\n| [[S:2]] ` |": [1, 2],
            "` [[S:1]]\n```\n[[S:2]]\n```\n[[S:3]] `": [1, 3],
        }
    )


def test_a_token_ends_with_its_paragraph() -> None:
    check({"[[S:1,\n2]]": [1, 2], "[[S:1,\n\n2]]": [], "[[S:1,\n- 2]]": [], "[[S:1,\n~~~\n2]]": []})


@pytest.mark.rule("citations.code-is-left-alone")
def test_a_fence_is_left_alone_up_to_its_end() -> None:
    check(
        {
            "```\n[[S:1]]\n```\n[[S:2]]": [2],
            "~~~py [[S:1]]\n[[S:2]]\n~~~\n[[S:3]]": [3],
            "```py [[S:1]]\n[[S:2]]\n```  \n[[S:3]]": [3],
            "a\n   ````\n```\n[[S:1]]\n   `````\n[[S:2]]": [2],
            "```\n\n[[S:1]]\n~~~\n[[S:2]]\n```x\n[[S:3]]\n": [],
            "~~~\r\n[[S:1]]\r\n~~~\r\n[[S:2]]": [2],
            "```\n[[S:1]]": [],
            "```": [],
        }
    )


@pytest.mark.rule("citations.code-is-left-alone")
def test_a_fence_in_a_list_item_ends_with_the_item() -> None:
    check(
        {
            "- ```\n  [[S:1]]\n\n  [[S:2]]\n  ```\n  [[S:3]]": [3],
            "10. ~~~\n    [[S:1]]\n\n    ~~~\n[[S:2]]": [2],
            "- ```\n  [[S:1]]\n\n[[S:2]]": [2],
            "- a\n  ```\n  [[S:1]]\n\n  ```\n[[S:2]]": [2],
        }
    )


def test_a_line_that_only_looks_like_a_fence_is_prose() -> None:
    check(
        {
            "```a``` [[S:1]]": [1],
            "``\n[[S:1]]": [1],
            "~~ [[S:1]]\n[[S:2]]": [1, 2],
            "a ``` b\n\n[[S:1]]": [1],
            "    ```\n\n[[S:1]]": [1],
        }
    )


@pytest.mark.rule("citations.html-sup-counts")
def test_a_citing_sup_counts_outside_code() -> None:
    sup = '<sup class="cite" data-sids="7,8">x</sup>'
    check({f"a {sup} [[S:1]]": [7, 8, 1], f"`{sup}`": [], "<sup>[[S:1]]</sup>": [1]})


def test_what_may_last_for_ever_is_given_up_at_its_limit() -> None:
    check(
        {
            f"`{'x' * (SPAN_CHARS - 7)}[[S:1]]` [[S:2]]": [2],
            f"`{'x' * (SPAN_CHARS - 6)}[[S:1]]` [[S:2]]": [1, 2],
            f"{'`' * TICKS}[[S:1]]{'`' * TICKS}": [],
            f"{'`' * (TICKS + 1)}[[S:1]]{'`' * (TICKS + 1)}": [1],
            f"```{'x' * LINE_CHARS}\n[[S:1]]": [],
            f"```{'x' * (LINE_CHARS + 1)}\n[[S:1]]": [1],
            f"` [[S:1]]\n{' ' * LINE_CHARS}\n`": [1],
            f"` [[S:1]]\n{' ' * (LINE_CHARS + 1)}\n`": [],
            f'<sup class="cite" data-sids="1" {"x" * SUP_CHARS}>': [],
        }
    )


@pytest.mark.rule("citations.only-a-possible-token-is-held-back")
def test_the_undecided_rest_of_a_text_stays_small() -> None:
    for endless in [
        "`" * 9000,
        "` [[S:1]] ",
        "[[S:" + "1," * 5000,
        "```" + "x" * 9000,
        "\n" * 9000,
        "<sup " * 2000,
    ]:
        scanner = MarkdownScanner()
        text = f"\n{endless}{'word ' * 4000}"
        list(scanner.read(text, final=False))
        assert len(text) - scanner.kept <= SPAN_CHARS + TICKS + 1
