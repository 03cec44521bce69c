"""What a document asks for, as a whole: its files, its numbers, and where looking ended."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.notices import NOTICES
from sidecar.core import assets, limits
from sidecar.core.assets import Document, Room, follows, notices_for, plan
from sidecar.core.paths import FilePath

SAMPLE = """<img src='turn_1/files/a.png'> ![x](turn_1/attachments/b%20c.png) <div
 style="background:url(turn_1/files/bg.png)"> see turn_1/files/report.pdf and [[S:5]] [[S:77]] [h](https://e.com/turn_1/files/no.png)
"""
MIB = limits.MIB


def usual(text: str, mime: str = "", room: Room | None = None) -> set[str]:
    return {one.usual.physical for one in plan(Document(text, mime), room or Room()).wanted if one.usual is not None}


@pytest.mark.rule("assets.absolute-urls-are-left-out", "assets.plain-mentions-are-found")
@pytest.mark.parametrize("mime", ["", "text/html", "text/markdown", "text/markdown; charset=utf-8"])
def test_the_sample_page_asks_for_four_files_and_two_sources(mime: str) -> None:
    found = plan(Document(SAMPLE, mime), Room())
    assert {one.usual.physical for one in found.wanted if one.usual is not None} == {
        "turn_1/files/a.png", "turn_1/attachments/b c.png", "turn_1/files/bg.png", "turn_1/files/report.pdf",
    }  # fmt: skip
    assert found.numbers.singles == (5, 77)


@pytest.mark.parametrize(
    ("text", "mime", "files"),
    [
        ("<!doctype html><p><img src=turn_1/files/a.png>", "", {"turn_1/files/a.png"}),
        ("\n<html>\n\n    <img src=turn_1/files/a.png>", "", {"turn_1/files/a.png"}),
        ("<div>\n\n    <img src=turn_1/files/a.png>\n\n</div>", "", {"turn_1/files/a.png"}),
        ("<div align=center></div>\n\n![x](turn_1/files/a.png)", "", {"turn_1/files/a.png"}),
        ("@import 'turn_1/files/a.css';", "text/css", {"turn_1/files/a.css"}),
        ("<svg><image href='turn_1/files/a.png'/></svg>", "image/svg+xml", {"turn_1/files/a.png"}),
        ("<img data-src='turn_1/files/no.png'>", "", set()),
        ("<img data-src='turn_1/files/no.png'>", "text/html", set()),
        ('{"picture": "turn_1/files/a.png"}', "application/json", {"turn_1/files/a.png"}),
        ("cat turn_1/files/a.txt", "text/plain", {"turn_1/files/a.txt"}),
        ("", "", set()),
    ],
)
def test_a_document_is_read_as_what_it_is(text: str, mime: str, files: set[str]) -> None:
    assert usual(text, mime) == files


def test_a_citation_in_the_place_of_a_picture_counts() -> None:
    for text in ("<img src='[[S:3]]'>", "![x]([[S:3]])", "<p style=\"background:url('[[S:3]]')\">", "[[S:3]]"):
        found = plan(Document(text), Room())
        assert (found.numbers.singles, found.wanted) == ((3,), ())


def test_a_nested_document_is_read_from_its_own_folder() -> None:
    page = Document("<img src=img/a.png>", "text/html", FilePath("turn_1", "files", "site/index.html"))
    (one,) = plan(page, Room()).wanted
    assert [path.physical for path in one.paths] == ["turn_1/files/site/img/a.png", "img/a.png"]


@pytest.mark.parametrize(
    ("mime", "is_followed"),
    [("text/html", True), ("text/html; charset=utf-8", True), ("TEXT/CSS", True), ("image/svg+xml", True),
     ("application/xhtml+xml", True), ("text/markdown", False), ("text/plain", False), ("image/png", False)],
)  # fmt: skip
def test_html_and_css_are_followed(mime: str, is_followed: bool) -> None:
    assert follows(mime) is is_followed


@pytest.mark.parametrize(
    ("text", "mime", "exceeded"),
    [
        ("[[S:1-999999999]] " * (10 * MIB // 18), "text/html", []),
        ("[[S:1-999999999]] " * (10 * MIB // 18), "text/markdown", ["asset_markdown_bytes"]),
        ("".join(f"<a href=turn_1/files/{n}>x</a>" for n in range(100_000)), "text/html", ["asset_references"]),
        ("".join(f"[a](turn_1/files/{n})\n" for n in range(100_000)), "text/markdown", ["asset_references"]),
        ("<img src='../x'>" * 100_000, "text/html", []),
        (f"<img src='data:image/png;base64,{'A' * 5 * MIB}'>", "text/html", []),
        (f"![x](data:image/png;base64,{'A' * 5 * MIB})", "text/markdown", []),
        (f"a{{b:url(data:image/png;base64,{'A' * 5 * MIB})}}", "text/css", []),
        ("url(a)" + "{" * (2 * MIB), "text/css", ["asset_css_bytes"]),
        ("url(a)" + "{" * (MIB // 2), "text/css", ["asset_css_rule_bytes"]),
        ("a{b:url(c)}" * (MIB // 5), "text/css", ["asset_css_bytes"]),
    ],
    ids=[
        "ranges-html", "ranges-md", "links-html", "links-md", "dots", "data-html", "data-md", "data-css", "deep",
        "rule", "long",
    ],
)  # fmt: skip
def test_a_hostile_document_is_done_within_its_limits(text: str, mime: str, exceeded: list[str]) -> None:
    room = Room()
    began = time.thread_time()
    plan(Document(text, mime), room)
    assert list(room.exceeded) == exceeded
    assert time.thread_time() - began < limits.ASSET_SECONDS


def test_looking_ends_when_it_is_told_to_and_keeps_what_was_found() -> None:
    room = Room()
    asked = iter([False] * 50)
    text = "<p>turn_1/files/a.png</p>" * 1000 + "[[S:3]]"
    found = plan(Document(text, "text/html"), room, stop=lambda: next(asked, True))
    assert list(room.exceeded) == ["asset_seconds"]
    assert (len(found.wanted), found.numbers.singles) == (1, (3,))


def test_what_is_left_of_a_long_text_is_still_looked_through_for_paths() -> None:
    room = Room(markdown=100)
    text = "![x](turn_1/files/a.png)\n" * 4 + "see turn_1/files/b.png\n"
    assert usual(text, "text/markdown", room) == {"turn_1/files/a.png", "turn_1/files/b.png"}
    assert list(room.exceeded) == ["asset_markdown_bytes"]


def test_each_hole_is_told_in_its_own_way() -> None:
    told = notices_for(
        missing=["a.png"], missing_sids=[7], missing_sid_assets=[(3, "b.png")], exceeded=["asset_depth"], tool_id="x.y"
    )
    assert [(one["code"], one.get("missing"), one.get("missing_sids"), one.get("limit")) for one in told] == [
        ("tool_call_error.missing_assets", ["a.png"], None, None),
        ("tool_call_warning.missing_sources", None, [7], None),
        ("tool_call_warning.missing_sid_assets", ["b.png"], [3], None),
        ("assets_truncated", None, None, "asset_depth"),
    ]
    assert {one["tool_id"] for one in told} == {"x.y"}
    assert all(set(NOTICES[one["code"]].fields) <= one.keys() for one in told)


def test_a_whole_page_has_nothing_to_note() -> None:
    assert notices_for(missing=[], missing_sids=[], missing_sid_assets=[], exceeded=[]) == []


@given(
    st.text(st.sampled_from("<>/='\"![]()`#*_-:S13;,{}url@import turn_1/files a.pngstylecsrdta%\\\n")),
    st.sampled_from(["", "text/html", "text/markdown", "text/css", "text/plain", "application/json"]),
)
def test_no_document_is_an_error(text: str, mime: str) -> None:
    found = plan(Document(text, mime, turn_id="turn_9"), Room())
    assert all(one.paths or one.refused for one in found.wanted)


SPELLED = [";base64,", "A", "A" * 60, "A" * 62, "A" * 63, "/+" * 50, ";", "b", "=", "\u00e9"]
PACKED = re.compile(r"(?<=;base64,)[A-Za-z0-9+/=]{63,}+(?<=([A-Za-z0-9+/=]))")


@given(st.lists(st.sampled_from(SPELLED), max_size=8).map("".join))
def test_of_packed_data_the_last_character_is_left(text: str) -> None:
    assert assets._slim(text) == PACKED.sub(r"\1", text)


def test_a_text_without_packed_data_is_not_searched_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "_PACKED", None)
    assert assets._slim("> " * 1000) == "> " * 1000
