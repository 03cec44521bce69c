"""Markdown is CommonMark, except that a citation stays one."""

from __future__ import annotations

import pytest
from artifact_render.markdown import doubtful, html_of


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a [[S:1]](2024) b", "<p>a [[S:1]](2024) b</p>\n"),
        ("a [[1]](https://e.org) b", '<p>a <a href="https://e.org">[1]</a> b</p>\n'),
        ("[[S:1]][[S:1]]", "<p>[[S:1]][[S:1]]</p>\n"),
        ("![x]([[S:1]])", '<p><img src="%5B%5BS:1%5D%5D" alt="x" /></p>\n'),
        ("`[[S:1]](a)`", "<p><code>[[S:1]](a)</code></p>\n"),
        ("<b>raw</b> ~~x~~", "<p><b>raw</b> <s>x</s></p>\n"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>\n"),
    ],
)
def test_what_is_cited_is_never_a_link(text: str, html: str) -> None:
    assert html_of(text, {"[[S:1]]"}) == html


def test_only_what_both_might_claim_is_asked_about() -> None:
    assert doubtful("[[S:1]] [[S:2]](x) [[S:2]](y) [[3]][z] [[]](x) [[a\n[[S:4]](x)") == ["[[S:2]]", "[[3]]", "[[S:4]]"]
