"""Addresses of links and pictures are found where they stand, and never in code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.asset_html import html_parts
from sidecar.core.asset_markdown import markdown_parts
from sidecar.core.asset_reference import Reference
from sidecar.core.targets import TARGETS, targets


def found(text: str, *, html: bool = False) -> list[tuple[str, str, str]]:
    return [(text[one.start : one.end], one.meant, one.how) for one in targets(text, html=html)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("![a](b.png)", [("b.png", "b.png", "embedded")]),
        ("[a](b.md)", [("b.md", "b.md", "linked")]),
        ('![a]( <b c.png> "t")', [("b c.png", "b c.png", "embedded")]),
        ("![a [b] c](d(1).png)", [("d(1).png", "d(1).png", "embedded")]),
        (r"[a](b\_c.md)", [(r"b\_c.md", "b_c.md", "linked")]),
        ("[a](b&amp;c.md)", [("b&amp;c.md", "b&c.md", "linked")]),
        ("text\n[ref]: b.md 'title'", [("b.md", "b.md", "linked")]),
        ("a <img src='b.png' alt=x> c", [("b.png", "b.png", "embedded")]),
        ("[![a](b.png)](c.md)", [("b.png", "b.png", "embedded"), ("c.md", "c.md", "linked")]),
        ("`![a](b.png)` ``[x](`y`)``", []),
        ("```\n![a](b.png)\n```\n![c](d.png)", [("d.png", "d.png", "embedded")]),
        ("- ~~~~ md\n  ![a](b.png)\n  ~~~\n  ~~~~\n", []),
        ("````\n```\n![a](b.png)", []),
        ("<!-- ![a](b.png) --> ![c](d.png)", [("d.png", "d.png", "embedded")]),
        (r"\`![a](b.png)", [("b.png", "b.png", "embedded")]),
        ("a ` b\n\n![a](b.png) `", [("b.png", "b.png", "embedded")]),
        ("[a]() [b] (c) ![d]", []),
    ],
)
def test_markdown(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<a href="b.md">', [("b.md", "b.md", "linked")]),
        ("<link rel=stylesheet href=b.css>", [("b.css", "b.css", "embedded")]),
        ('<base href="x/"><object data="b.pdf">', [("b.pdf", "b.pdf", "embedded")]),
        ('<img alt=">" src="a&amp;b.png">', [("a&amp;b.png", "a&b.png", "embedded")]),
        ("<img srcset='a.png 1x, b.png 2x'>", [("a.png", "a.png", "embedded"), ("b.png", "b.png", "embedded")]),
        (
            "<script src=a.js>'<img src=b.png>'</script><video poster=c.png>",
            [("a.js", "a.js", "embedded"), ("c.png", "c.png", "embedded")],
        ),
        ("<!-- <img src=b.png> --><style>a{}<b src=x></style>", []),
        ("<!-- <img src=b.png>", []),
        ("a < b src=c > d", []),
    ],
)
def test_html(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(text, html=True) == expected


PAGES = st.lists(
    st.sampled_from(
        ["![a](b.png)", "[a](c.md)", " text ", "`", "```\n", "\n", "\n\n", "<img src=d.png>", "](", "<!--"]
    ),
    max_size=12,
).map("".join)


@given(PAGES)
def test_places_are_in_order_and_inside_the_text(text: str) -> None:
    last = 0
    for one in targets(text, html=False):
        assert last <= one.start < one.end <= len(text)
        last = one.end


def test_the_readers_of_asset_pulls_agree() -> None:
    page = "# T\n\nSee ![a](b.png), [c](d.md) and <img src='e.png'>.\n\n- `![x](no.png)`\n\n[r]: f.md\n"
    theirs = {one.text for one in markdown_parts(page, stop=lambda: False) if isinstance(one, Reference)}
    assert {meant for _, meant, _ in found(page)} == theirs
    page = "<p><a href=a.md>x</a><img src='b.png'><link rel=icon href=c.ico>"
    theirs = {one.text for one in html_parts(page) if isinstance(one, Reference)}
    assert {meant for _, meant, _ in found(page, html=True)} == theirs


def test_a_page_of_links_comes_to_an_end() -> None:
    assert len(found("[a](b.md) " * (TARGETS + 5))) == TARGETS


@pytest.mark.parametrize("piece", ["`", "` ``", "](", "<a ", "<!--", "[a](((", "~~~", "<a '", "\\`", "![[[["])
def test_what_is_made_to_be_slow_is_not(piece: str) -> None:
    # A square of this length would take hours; the test's own limit of time is the proof.
    found(piece * (300_000 // len(piece)))
    found(piece * (300_000 // len(piece)), html=True)
