"""References of Markdown: links, pictures, definitions, and the HTML in between."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.asset_html import Prose, Style
from sidecar.core.asset_markdown import PARAGRAPH, TookTooLong, markdown_parts
from sidecar.core.asset_reference import Reference


def go_on() -> bool:
    return False


def found(text: str) -> list[tuple[str, str]]:
    return [(part.text, part.how) for part in markdown_parts(text, stop=go_on) if isinstance(part, Reference)]


def prose(text: str) -> str:
    return "".join(part.text for part in markdown_parts(text, stop=go_on) if isinstance(part, Prose))


@pytest.mark.rule("assets.markdown-references-are-parsed")
@pytest.mark.parametrize(
    ("text", "references"),
    [
        ("![x](a.png)", [("a.png", "embedded")]),
        ("[x](a.pdf)", [("a.pdf", "linked")]),
        ('![x](a.png "a title")', [("a.png", "embedded")]),
        ("![x](<b c.png>)", [("b c.png", "embedded")]),
        ("![x](b%20c.png)", [("b%20c.png", "embedded")]),
        ("![x](a(1).png)", [("a(1).png", "embedded")]),
        ("![x](a\\_b.png)", [("a_b.png", "embedded")]),
        ("![x](a&amp;b.png)", [("a&b.png", "embedded")]),
        ("[![x](a.png)](b.html)", [("b.html", "linked"), ("a.png", "embedded")]),
        ("![an ![inner](b.png)](a.png)", [("a.png", "embedded"), ("b.png", "embedded")]),
        ("[r]: <d e.png> 'title'", [("d e.png", "linked")]),
        ("![x][r]\n\n[r]: a.png", [("a.png", "linked"), ("a.png", "embedded")]),
        ("> ![x](a.png)", [("a.png", "embedded")]),
        ("- one\n  - ![x](a.png)", [("a.png", "embedded")]),
        ("| a |\n|---|\n| ![x](a.png) |", [("a.png", "embedded")]),
        ("# ![x](a.png)", [("a.png", "embedded")]),
        ("x\n===\n![x](a.png)", [("a.png", "embedded")]),
        ("![x]([[S:3]])", [("[[S:3]]", "embedded")]),
        ("<https://e.com/x>", [("https://e.com/x", "linked")]),
        ("`![x](no.png)`", []),
        ("```\n![x](no.png)\n```", []),
        ("    ![x](no.png)", []),
        ("\\![x](a.png)", [("a.png", "linked")]),
        ("!\\[x](no.png)", []),
        ("an <img src='a.png'> in text", [("a.png", "embedded")]),
        ("<div>\n<img src='a.png'>\n</div>", [("a.png", "embedded")]),
        ("**bold ![x](a.png)**", [("a.png", "embedded")]),
    ],
)
def test_a_text_is_parsed(text: str, references: list[tuple[str, str]]) -> None:
    assert found(text) == references


@pytest.mark.parametrize("between", ["[z](e.md)", "![z](e.png)"])
def test_what_a_link_stands_between_is_not_read_as_one_word(between: str) -> None:
    parts = [*markdown_parts(f"x <style>a{{b:url(c{between}d)}}</style>", stop=go_on)]
    styles = [part.text for part in parts if isinstance(part, Style)]
    assert len(styles) == 1
    assert not any(word in styles[0] for word in ("cd", "cz"))


def test_a_style_between_words_is_a_style() -> None:
    parts = [*markdown_parts("x <style>a{b:url(c.png)}</style> y", stop=go_on)]
    assert [part.text for part in parts if isinstance(part, Style)] == ["a{b:url(c.png)}"]


def test_prose_keeps_its_words_and_its_code() -> None:
    assert prose("see turn_1/files/my_report_v2.pdf") == "see turn_1/files/my_report_v2.pdf"
    assert prose("![x](a.png) and `turn_1/files/b c.txt`") == "x and `turn_1/files/b c.txt`"
    assert prose("```sh\ncat turn_1/files/a\n```") == "cat turn_1/files/a\n"
    assert prose("<b>turn_1/files/a</b>") == "turn_1/files/a"
    assert prose("![x](turn_1/files/b c.png)") == "![x](turn_1/files/b c.png)"


def test_a_long_paragraph_is_read_in_parts() -> None:
    line = "words and ![x](a.png) more\n"
    assert len(found(line * (3 * PARAGRAPH // len(line)))) == 3 * PARAGRAPH // len(line)


def test_reading_ends_when_it_is_told_to() -> None:
    asked = iter([False] * 100)
    with pytest.raises(TookTooLong):
        for _ in markdown_parts("![x](a.png)\n\n" * 1000, stop=lambda: next(asked, True)):
            pass


@given(st.text(st.sampled_from("[]()!<>`~*_#-+=|\\ \n:/a1.'\"&")))
def test_no_text_is_an_error(text: str) -> None:
    for part in markdown_parts(text, stop=go_on):
        assert isinstance(part.text, str)


@pytest.mark.parametrize("unit", ["[[S:1-999999999]]", "![", "[](", "> ", "* a\n ", "<a ", "`a``b", "[a]: b\n\n", "]("])
def test_a_hostile_text_takes_the_time_of_its_length(unit: str) -> None:
    def spent(length: int) -> float:
        text = unit * (length // len(unit))
        began = time.thread_time()
        for _ in markdown_parts(text, stop=go_on):
            pass
        return time.thread_time() - began

    short, long = min(spent(4_000) for _ in range(3)), spent(40_000)
    assert long < max(30 * short, 2.0)  # the square of it would be a hundred times as long
