"""What a document refers to is found where it is written; what resolves decides where a path ends."""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core import limits
from sidecar.core.paths import FilePath, Path, parse, parse_physical
from sidecar.core.references import Reference, chosen, is_older_spelling, references, respelled


def told(text: str, mime: str = "text/markdown", folder: str | None = None) -> list[tuple[str, str]]:
    return [(one.kind, one.written) for one in references(text, mime, folder=folder)]


def only(text: str, mime: str = "text/markdown", folder: str | None = None) -> Reference:
    [one] = references(text, mime, folder=folder)
    return one


def known(*paths: str) -> set[Path]:
    return {parse(path) for path in paths}


@pytest.mark.rule("editor.what-refers-is-found")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see fi:turn_1.files/a.md.", [("path", "fi:turn_1.files/a.md")]),
        ("(turn_1/files/a.md),", [("path", "turn_1/files/a.md")]),
        ("`turn_1/attachments/b c.pdf`", [("path", "turn_1/attachments/b c.pdf")]),
        ("fi:logs/out.log ar:turn_1.user.prompt", [("path", "fi:logs/out.log"), ("path", "ar:turn_1.user.prompt")]),
        ("sources_pool[1,3] so:sources_pool[2]", [("path", "sources_pool[1,3]"), ("path", "so:sources_pool[2]")]),
        ("[[S:1,3-5]] ［［S：2］］", [("citation", "[[S:1,3-5]]"), ("citation", "［［S：2］］")]),
        ('x<sup class="cite" data-sids="4">y</sup>', [("citation", '<sup class="cite" data-sids="4">')]),
        ("turn_1/files/../../x", [("unsafe", "turn_1/files/../../x")]),
        ("`[[S:1]]` `turn_1/files/a.md`", [("path", "turn_1/files/a.md")]),
        ("```\n[[S:1]]\nturn_1/files/a.md\n```", [("path", "turn_1/files/a.md")]),
        ("https://e.org/turn_1/files/a.md and x/turn_1/files/a.md", []),
        ("the folder turn_1/files/sub/ is empty", []),
        ("nothing at all: files/ attachments/ S:1", []),
    ],
)  # fmt: skip
def test_references_of_a_text(text: str, expected: list[tuple[str, str]]) -> None:
    assert told(text) == expected


@pytest.mark.parametrize(
    ("text", "mime", "expected"),
    [
        ("![a](b.png) [c](../x/d.md) <img src='e.png'>", "text/markdown", ["b.png", "../x/d.md", "e.png"]),
        ('<img src="b.png"><a href="c.md">', "text/html", ["b.png", "c.md"]),
        ("![a](https://e.org/b.png) [c](#d) [e](mailto:f@g)", "text/markdown", []),
        ("![a]([[S:1]])", "text/markdown", ["[[S:1]]"]),
        ("![a](b.png)", "text/plain", []),
    ],
)
def test_links_and_pictures_are_read_from_the_pages_folder(text: str, mime: str, expected: list[str]) -> None:
    assert [written for _, written in told(text, mime, "turn_2/files/sub")] == expected


def test_a_page_elsewhere_has_no_folder_of_ours() -> None:
    assert told("![a](b.png) ![c](turn_1/files/d%20e.png)") == [("path", "turn_1/files/d%20e.png")]


def test_a_relative_link_names_a_file_beside_its_page() -> None:
    one = only("![a](x%20y.png)", folder="turn_2/files/sub")
    assert (one.form, one.embedded, one.usual) == ("relative", True, FilePath("turn_2", "files", "sub/x y.png"))
    assert only("[a](../b.md)", folder="turn_2/files/sub").usual == FilePath("turn_2", "files", "b.md")


def test_a_picture_from_outside_is_unsafe() -> None:
    assert told("![a](../../../etc/passwd)", folder="turn_1/files") == [("unsafe", "../../../etc/passwd")]


def test_citations_have_their_numbers_in_every_kind_of_text() -> None:
    html = '<p>[[S:1,3-4]]<sup title="<" class=cite data-sids=5>x</sup>'
    first, second = references(html, "text/html; charset=utf-8")
    assert (str(first.numbers), str(second.numbers)) == ("1, 3-4", "5")
    assert (first.settled, second.settled) == (False, True)
    assert html[second.start : second.end].startswith("<sup ")
    turkish = f"{'İ' * 300}{html}"
    assert turkish[references(turkish, "text/html")[1].start :].startswith("<sup ")
    text = '{"a": "see \\u0061 [[S:3]]", "citations": [{"sids": [1]}]}'
    assert told(text, "application/json") == [("citation", "[[S:3]]")]


def test_what_leads_somewhere_decides_where_a_path_ends() -> None:
    one = only("read fi:turn_1.files/my plan (final).md today")
    assert one.written == "fi:turn_1.files/my"
    longer, path = chosen(one, known("fi:turn_1.files/my plan (final).md").__contains__)
    assert (longer.written, path) == (
        "fi:turn_1.files/my plan (final).md",
        FilePath("turn_1", "files", "my plan (final).md"),
    )
    assert one.furthest == longer.end
    same, path = chosen(one, known("fi:turn_1.files/other.md").__contains__)
    assert (same, path) == (one, FilePath("turn_1", "files", "my"))


def test_an_older_spelling_is_known_for_one() -> None:
    older, newer = references("fi:t1.attachments/a.md fi:t1.user.attachments/a.md", "text/plain")
    assert is_older_spelling(older, older.usual)
    assert not is_older_spelling(newer, newer.usual)


@pytest.mark.parametrize(
    ("text", "folder", "expected"),
    [
        ("fi:turn_1.files/a.md", None, "fi:turn_2.files/x y.md"),
        ("turn_1/files/a.md", None, "turn_2/files/x y.md"),
        ("[a](turn_1/files/a.md)", None, "turn_2/files/x%20y.md"),
        ("[a](<turn_1/files/a.md>)", "turn_3/files", "turn_2/files/x%20y.md"),
        ("![a](../b.png)", "turn_2/files/sub", "../x%20y.md"),
        ("![a](b.png)", "turn_3/files", "../../turn_2/files/x%20y.md"),
    ],
)
def test_another_path_is_written_in_the_same_form(text: str, folder: str | None, expected: str) -> None:
    assert respelled(only(text, folder=folder), FilePath("turn_2", "files", "x y.md"), folder) == expected


@pytest.mark.parametrize(
    ("text", "read", "expected"),
    [
        ("[a](old.md#sec)", "turn_1/files/old.md", "x%20y.md#sec"),
        ("![a](old.png?v=2#b)", "turn_1/files/old.png", "x%20y.md?v=2#b"),
        ("[a](../../turn_1/files/c%23.md#sec)", "turn_1/files/c#.md", "x%20y.md#sec"),
        ("[a](old.md#sec)", "turn_1/files/old.md#sec", "x%20y.md"),
        ("[a](c%23.md)", "turn_1/files/c#.md", "x%20y.md"),
    ],
)
def test_what_follows_a_path_in_a_link_stays_there(text: str, read: str, expected: str) -> None:
    one, path = chosen(only(text, folder="turn_1/files"), {parse_physical(read)}.__contains__)
    assert path == parse_physical(read)
    target = FilePath("turn_1", "files", "x y.md")
    assert respelled(one, target, "turn_1/files", instead_of=path) == expected


def test_many_tags_in_a_long_page_are_found_in_time() -> None:
    page = '<sup class="cite" data-sids="1">x</sup>' + " " * 300
    began = perf_counter()
    assert len(references(page * 4000, "text/html")) == 4000
    assert perf_counter() - began < 3


WORDS = st.sampled_from([
    "[[S:1]]", "fi:turn_1.files/a.md", "turn_1/files/b c.md", "turn_1/files/../x", "😀", " ", "\n", "`", "```\n",
    "![a](b.png)", "[r]: c.md\n", ".", "\u2028",
    '<sup class="cite" data-sids="2">', "<img src='d.png'>", "so:sources_pool[1]", "é",
])  # fmt: skip


@given(
    st.lists(WORDS, max_size=15).map("".join),
    st.sampled_from(["text/markdown", "text/html", "text/plain", "application/json"]),
)
def test_what_is_written_is_what_stands_there(text: str, mime: str) -> None:
    last = 0
    for one in references(text, mime, folder="turn_1/files"):
        assert text[one.start : one.end] == one.written
        assert last <= one.start < one.end
        assert all(text.startswith(reading.written, one.start) for reading in one.readings)
        assert (one.kind == "citation") == (one.numbers is not None)
        last = one.end


@pytest.mark.rule("editor.work-is-bounded")
def test_long_texts_have_none_and_many_references_are_cut() -> None:
    assert told("[[S:1]]" + " " * limits.REFERENCED_CHARS) == []
    assert len(told("[[S:1]] turn_1/files/a.md\n" * limits.REFERENCES_IN_TEXT)) == limits.REFERENCES_IN_TEXT


SHEET = """
@import "base.css";
/* url(no.png) */
.a { background: url( 'b c.png' ) , url(turn_1/files/d.svg#x); content: "url(no.png)" }
@font-face { src: url("data:font/woff2;base64,AA") }
.b { background: url(https://example.com/e.png) url(f\\67.png) }
"""


def test_a_style_sheet_refers_to_files_by_url_and_import() -> None:
    found = references(SHEET, "text/css", folder="turn_2/files")
    assert [(one.written, one.usual.physical if isinstance(one.usual, FilePath) else None) for one in found] == [
        ("base.css", "turn_2/files/base.css"),
        ("b c.png", "turn_2/files/b c.png"),
        ("turn_1/files/d.svg#x", "turn_1/files/d.svg"),
    ]
    assert all(SHEET[one.start : one.end] == one.written for one in found)
    assert {one.embedded for one in found} == {True}
