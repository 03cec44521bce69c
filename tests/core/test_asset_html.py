"""References of HTML pages, read as a browser reads them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.asset_html import PIECE, Prose, Style, html_parts, srcset
from sidecar.core.asset_reference import Reference


def found(text: str) -> list[tuple[str, str]]:
    return [(part.text, part.how) for part in html_parts(text) if isinstance(part, Reference)]


@pytest.mark.rule("assets.html-references-are-parsed")
@pytest.mark.parametrize(
    ("text", "references"),
    [
        ('<img src="a.png">', [("a.png", "embedded")]),
        ("<img src='a.png'>", [("a.png", "embedded")]),
        ("<img src=a.png>", [("a.png", "embedded")]),
        ("<IMG SRC = a.png />", [("a.png", "embedded")]),
        ("<img\nalt='>'\nsrc='a.png'>", [("a.png", "embedded")]),
        ('<img src="a&amp;b.png">', [("a&b.png", "embedded")]),
        ('<img src="a.png" src="b.png">', [("a.png", "embedded")]),
        ('<img data-src="no.png" data-srcset="no.png 1x">', []),
        ('<img title="src=no.png">', []),
        ('<a href="b c.pdf">x</a>', [("b c.pdf", "linked")]),
        ('<area href="m.html">', [("m.html", "linked")]),
        ('<link rel="stylesheet" href="s.css">', [("s.css", "embedded")]),
        ('<link rel="alternate" href="feed.xml">', [("feed.xml", "linked")]),
        ('<base href="no/">', []),
        ('<svg><image xlink:href="x.png"/><use href="#a"/></svg>', [("x.png", "embedded"), ("#a", "embedded")]),
        ('<video poster="p.jpg" src="v.mp4">', [("p.jpg", "embedded"), ("v.mp4", "embedded")]),
        ('<track src="t.vtt">', [("t.vtt", "embedded")]),
        ('<object data="o.svg"></object><div data="no"></div>', [("o.svg", "embedded")]),
        ('<iframe src="i.html"></iframe><embed src="e.pdf">', [("i.html", "embedded"), ("e.pdf", "embedded")]),
        ('<script src="s.js"></script>', [("s.js", "embedded")]),
        ('<img srcset="a.png, b c.png 2x">', [("a.png", "embedded"), ("b", "embedded")]),
        ('<!-- <img src="no.png"> -->', []),
        ('<script>"<img src=no.png>"</script>', []),
        ('<title><img src="no.png"></title><textarea><img src="no.png"></textarea>', []),
        ('<template><img src="t.png"></template>', [("t.png", "embedded")]),
        ('<noscript><img src="n.png"></noscript>', [("n.png", "embedded")]),
        ("<img src='a.png", []),
        ("<img src=", []),
        ("<img src>", []),
    ],
)  # fmt: skip
def test_a_page_is_parsed(text: str, references: list[tuple[str, str]]) -> None:
    assert found(text) == references


@pytest.mark.rule("assets.html-references-are-parsed")
def test_styles_and_prose_are_told_apart() -> None:
    parts = [*html_parts("<p style='a:url(x)'>see <b>turn_1</b></p><style>b{c:url(y)}</style><script>z</script>")]
    assert [part.text for part in parts if isinstance(part, Style)] == ["a:url(x)", "b{c:url(y)}"]
    assert [part.text for part in parts if isinstance(part, Prose)] == ["see ", "turn_1", "z"]


def test_a_style_that_is_not_closed_is_read() -> None:
    assert [*html_parts("<style>a{b:url(x)}")] == [Style("a{b:url(x)}")]


def test_a_page_is_read_the_same_wherever_it_is_cut() -> None:
    picture = "<img src='a.png'>"
    for length in range(PIECE - len(picture), PIECE + 1):
        assert found(" " * length + picture) == [("a.png", "embedded")]


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a.png", ["a.png"]),
        ("a.png 1x, b.png 2x", ["a.png", "b.png"]),
        ("a.png 100w,b.png 200w", ["a.png", "b.png"]),
        ("a,b.png 1x", ["a,b.png"]),
        ("a.png, b.png", ["a.png", "b.png"]),
        ("data:image/png;base64,AA== 1x, b.png 2x", ["data:image/png;base64,AA==", "b.png"]),
        ("a.png calc(1x, 2x), b.png", ["a.png", "b.png"]),
        (" , ,a.png", ["a.png"]),
        ("", []),
        (",,,", []),
    ],
)
def test_a_srcset_is_split_at_its_commas(text: str, addresses: list[str]) -> None:
    assert [*srcset(text)] == addresses


@given(st.text(st.sampled_from("<>/='\" \n!-&;abimgsrcstylenoscript\0\ud800")))
def test_no_page_is_an_error(text: str) -> None:
    for part in html_parts(text):
        assert isinstance(part.text, str)


@pytest.mark.parametrize(
    "unit",
    ["<div>", "<b>", "<table>x", "<", "<!--", "<p a=1 ", '<a href="', "<noscript>", "<select><option>", "</p>"],
)  # fmt: skip
def test_a_hostile_page_takes_the_time_of_its_length(unit: str) -> None:
    def spent(length: int) -> float:
        text = unit * (length // len(unit))
        began = time.thread_time()
        for _ in html_parts(text):
            pass
        return time.thread_time() - began

    short, long = min(spent(100_000) for _ in range(3)), spent(1_000_000)
    assert long < max(30 * short, 2.0)  # the square of it would be a hundred times as long
