"""Which files a reference may mean: read as a URL is, unless a file is really called so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.asset_reference import PATHS, SHOWN_CHARS, How, Place, Reference, cited, wanted

SENT = Place(loose="turn_9")
NESTED = Place("turn_1/files/site")


def meant(text: str, how: How = "embedded", place: Place = SENT) -> list[str] | None:
    one = wanted(Reference(text, how), place)
    return None if one is None else [path.physical for path in one.paths]


@pytest.mark.rule("assets.names-are-decoded-and-cleaned")
@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("turn_1/files/a.png", "turn_1/files/a.png"),
        ("./turn_1/files/a.png", "turn_1/files/a.png"),
        ("turn_1/files/a%20b.png", "turn_1/files/a b.png"),
        ("turn_1/files/a b.png", "turn_1/files/a b.png"),
        ("turn_1/files/a(1).png", "turn_1/files/a(1).png"),
        ("turn_1/files/a.pdf#page=2", "turn_1/files/a.pdf"),
        ("turn_1/files/a.css?v=1#x", "turn_1/files/a.css"),
        ("turn_1/files/a%23b.png", "turn_1/files/a#b.png"),
        ("turn_1/files/%C3%A9.png", "turn_1/files/é.png"),
        ("turn_1/files/100%.png", "turn_1/files/100%.png"),
        ("  turn_1/files/a.png\n", "turn_1/files/a.png"),
        ("turn_1/fi\nles/a.png", "turn_1/files/a.png"),
        ("fi:turn_1.files/a%20b.png?x", "turn_1/files/a b.png"),
        ("fi:turn_1.user.attachments/a.png", "turn_1/attachments/a.png"),
    ],
)
def test_a_reference_is_cleaned_as_a_url_is(text: str, usual: str) -> None:
    one = wanted(Reference(text, "embedded"), Place())
    assert one is not None
    assert one.usual is not None
    assert one.usual.physical == usual


def test_a_name_that_really_holds_such_characters_is_tried_first() -> None:
    assert meant("turn_1/files/a%20b.png?v#1") == [
        "turn_1/files/a%20b.png?v#1",
        "turn_1/files/a b.png?v#1",
        "turn_1/files/a%20b.png",
        "turn_1/files/a b.png",
    ]


@pytest.mark.rule("assets.absolute-urls-are-left-out")
@pytest.mark.parametrize(
    "text",
    [
        "https://e.com/turn_1/files/no.png", "HTTP://e.com/x", "//e.com/turn_1/files/no.png", "data:image/png,AA",
        "mailto:a@b.c", "javascript:x()", "file:///turn_1/files/a.png", "ar:turn_1.user.prompt", "C:/turn_1/files/a",
        "", "  ", "#top", "?page=2", "#turn_1/files/a.png", "data:" + "A" * 1_000_000,
    ],
)  # fmt: skip
def test_what_is_none_of_ours_asks_for_nothing(text: str) -> None:
    assert meant(text) is None
    assert meant(text, "linked") is None


@pytest.mark.parametrize(
    "text", ["../x", "turn_2/files/../../x", "turn_1/files/a\\b", "turn_1/files/%2e%2e/x", "/etc/passwd", "x/%00"]
)
def test_what_would_leave_the_folder_is_no_path(text: str) -> None:
    one = wanted(Reference(text, "embedded"), Place())
    assert one is not None
    assert (one.usual, one.refused) == (None, "unsafe_path")
    assert all(".." not in path.physical for path in one.paths)  # a file may really be called `%2e%2e`


@pytest.mark.parametrize("text", ["/about", "../other", "x\\y"])
def test_a_link_elsewhere_is_somebody_elses(text: str) -> None:
    assert meant(text, "linked") is None


def test_a_bare_name_of_a_sent_page_is_looked_for_in_the_open_turn_too() -> None:
    assert meant("a.png") == ["a.png", "turn_9/files/a.png"]
    assert meant("./files/a.png") == ["files/a.png", "turn_9/files/a.png"]
    assert meant("attachments/a.png") == ["attachments/a.png", "turn_9/attachments/a.png"]
    assert meant("a.png", place=Place()) == ["a.png"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("img/a.png", ["turn_1/files/site/img/a.png", "img/a.png"]),
        ("./a.png", ["turn_1/files/site/a.png", "a.png"]),
        ("../a.png", ["turn_1/files/a.png"]),
        ("../../../turn_2/files/a.png", ["turn_2/files/a.png"]),
        ("../../../../a.png", []),
        ("turn_2/files/a.png", ["turn_2/files/a.png", "turn_1/files/site/turn_2/files/a.png"]),
        ("turn_2/files/../../x", []),
    ],
)
def test_a_nested_document_is_read_from_its_folder_and_from_out_dir(text: str, paths: list[str]) -> None:
    assert meant(text, place=NESTED) == paths


def test_a_file_at_the_root_of_out_dir_has_a_folder_too() -> None:
    assert meant("img/a.png", place=Place("")) == ["img/a.png"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("[[S:3]]", "3"),
        (" [[S:1,3-5]] ", "1, 3-5"),
        ("%5B%5BS:3%5D%5D", "3"),
        ("so:sources_pool[2,4]", "2, 4"),
        ("[[S:3]].png", None),
        ("[S:3]", None),
        ("turn_1/files/a.png", None),
        ("so:nothing", None),
    ],
)
def test_a_citation_may_stand_in_the_place_of_a_file(text: str, numbers: str | None) -> None:
    found = cited(text)
    assert (None if found is None else str(found.normal())) == numbers


@given(st.text(), st.sampled_from(["embedded", "linked", "named"]), st.sampled_from([SENT, NESTED, Place(), Place("")]))
def test_no_reference_is_an_error(text: str, how: How, place: Place) -> None:
    cited(text)
    one = wanted(Reference(text, how), place)
    if one is not None:
        assert len(one.paths) <= PATHS
        assert len(one.spelled) <= SHOWN_CHARS
        assert one.usual is None or one.refused is None
