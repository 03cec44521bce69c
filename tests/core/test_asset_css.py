"""References of style sheets, wherever a `url()` may stand."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.asset_css import PIECE, css_pieces, css_references, may_refer
from sidecar.core.stretches import SEARCHED_AT_ONCE


def found(text: str) -> list[str]:
    return [reference.text for reference in css_references(text)]


@pytest.mark.rule("assets.html-references-are-parsed")
@pytest.mark.parametrize(
    ("text", "references"),
    [
        ("a{background:url(bg.png)}", ["bg.png"]),
        ("a{background:URL( 'b g.png' )}", ["b g.png"]),
        ('a{background:url("a(1).png")}', ["a(1).png"]),
        ("a{background:url(a\\(1\\).png)}", ["a(1).png"]),
        ("a{background:u\\72l(bg.png)}", ["bg.png"]),
        ("background:url(x.png);color:red", ["x.png"]),
        ('@import "a.css";', ["a.css"]),
        ("@import 'a b.css' screen;", ["a b.css"]),
        ("@import url(a.css) supports(display: grid);", ["a.css"]),
        ("@font-face{src:url(f.woff2) format('woff2'), local('No')}", ["f.woff2"]),
        ("a{background:image-set('a.png' 1x, url(b.png) 2x)}", ["a.png", "b.png"]),
        ("a{content:'url(no.png)'}", []),
        ("/* url(no.png) */ a{b:url(yes.png)}", ["yes.png"]),
        ("@namespace svg url(no);a{b:url(yes.png)}", ["yes.png"]),
        ("@media print{a{b:url(m.png)}}", ["m.png"]),
        ("a{--x:url(x.png)}", ["x.png"]),
        ("a{b:url(data:image/png;base64,AA==)}", ["data:image/png;base64,AA=="]),
        ("a{color:red}", []),
    ],
)
def test_a_style_sheet_is_parsed(text: str, references: list[str]) -> None:
    assert found(text) == references


@pytest.mark.parametrize(
    "rule",
    [
        "a{b:url(c)}",
        "@import 'a;}.css';",
        "/* } ; */a{}",
        'a{b:"};\\"}"}',
        "a{b:url(};)}",
        "@media x{a{b:c}}",
        "a\\}{b:c}",
    ],
)
def test_a_long_style_sheet_is_cut_between_its_rules(rule: str) -> None:
    sheet = rule * (3 * PIECE // len(rule))
    pieces = [*css_pieces(sheet)]
    assert "".join(pieces) == sheet
    assert len(pieces) in (3, 4)
    assert all(len(piece) % len(rule) == 0 for piece in pieces)
    assert [one for piece in pieces for one in found(piece)] == found(sheet)


def test_a_rule_that_never_ends_is_not_cut() -> None:
    assert [*css_pieces("a{" + "b:c;" * PIECE)] == ["a{" + "b:c;" * PIECE]
    assert [*css_pieces("")] == []


@given(st.text(st.sampled_from("url()'\"\\{}[];@import /*a-\n")))
def test_no_style_sheet_is_an_error(text: str) -> None:
    assert all(isinstance(one, str) for one in found(text))


@pytest.mark.parametrize("unit", ["{", "(", "url(", "@import ", "'", "/*", "}", "\\"])
def test_a_hostile_style_sheet_takes_the_time_of_its_length(unit: str) -> None:
    def spent(length: int) -> float:
        text = "url(a)" + unit * (length // len(unit))
        began = time.thread_time()
        found(text)
        return time.thread_time() - began

    short, long = min(spent(10_000) for _ in range(3)), min(spent(100_000) for _ in range(2))
    assert long < max(30 * short, 2.0)  # the square of it would be a hundred times as long


WORDS = ["url", "(", "@imp", "ort", "IMA", "ge", "x", "src(", "ima", "\\"]


@given(st.lists(st.sampled_from(WORDS), max_size=6), st.integers(1, 9))
def test_a_sheet_that_is_searched_in_pieces_may_refer_to_what_the_whole_may(parts: list[str], piece: int) -> None:
    text = "".join(parts)
    whole = may_refer(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sidecar.core.stretches.SEARCHED_AT_ONCE", piece)
        assert may_refer(text) == whole


def test_a_long_sheet_is_never_searched_at_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []

    class Counted:
        def search(self, text: str, start: int = 0, end: int | None = None) -> None:
            searched.append((len(text) if end is None else end) - start)

    monkeypatch.setattr("sidecar.core.asset_css._MAY_REFER", Counted())
    assert not may_refer("a{}" * 100_000)
    assert max(searched) <= SEARCHED_AT_ONCE + len("@import")
