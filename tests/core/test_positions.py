"""Lines end where LSP says, characters are the units that were agreed upon, and an edit is as good as a new reading."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core import positions
from sidecar.core.positions import Change, Encoding, Lines, changed

ENCODINGS: list[Encoding] = ["utf-8", "utf-16", "utf-32"]
TEXTS = st.text(st.sampled_from("a\n\r\x0c\u2028éß😀𝒳 "), max_size=30)


def units(text: str, encoding: Encoding) -> int:
    return {"utf-8": len(text.encode()), "utf-16": len(text.encode("utf-16-le")) // 2, "utf-32": len(text)}[encoding]


@pytest.mark.rule("editor.positions-in-the-agreed-encoding")
@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 8), ("utf-16", 5), ("utf-32", 4)])
def test_an_emoji_takes_as_many_units_as_the_encoding_says(encoding: Encoding, character: int) -> None:
    lines = Lines("one\né 😀[[S:1]]", encoding)
    assert lines.position(4 + 3) == (1, units("é 😀", encoding))
    assert units("é 😀", encoding) == {"utf-8": 7, "utf-16": 4, "utf-32": 3}[encoding]
    assert lines.offset(1, character) == 4 + 4


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_lines_end_as_lsp_says_and_nowhere_else(encoding: Encoding) -> None:
    lines = Lines("a\x0cb\u2028c\rd\r\ne\nf", encoding)
    assert [lines.position(lines.text.index(one))[0] for one in "abcdef"] == [0, 0, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("line", "character", "offset"), [(0, 99, 2), (0, 3, 2), (0, 4, 2), (1, 99, 6), (7, 0, 6), (0, 0, 0), (2, 0, 6)]
)
def test_a_position_behind_a_line_is_its_end(line: int, character: int, offset: int) -> None:
    assert Lines("ab\r\ncd", "utf-16").offset(line, character) == offset


def test_half_a_character_is_none() -> None:
    assert Lines("a😀b", "utf-16").offset(0, 2) == 1
    assert Lines("a😀b", "utf-8").offset(0, 4) == 1
    assert Lines("é😀😀b", "utf-16").offset(0, 5) == 3


@given(TEXTS, st.sampled_from(ENCODINGS))
def test_positions_and_offsets_are_inverse(text: str, encoding: Encoding) -> None:
    lines = Lines(text, encoding)
    for offset in range(len(text) + 1):
        line, character = lines.position(offset)
        if text[max(0, offset - 1) : offset + 1] == "\r\n":
            continue  # between the two there is no position
        assert lines.offset(line, character) == offset
        before = text[:offset]
        start = max(before.rfind("\n"), before.rfind("\r")) + 1
        assert character == units(text[start:offset], encoding)


@given(TEXTS, TEXTS, st.integers(0, 30), st.integers(0, 30), st.sampled_from(ENCODINGS))
def test_an_edit_is_as_good_as_a_new_reading(text: str, new: str, start: int, length: int, encoding: Encoding) -> None:
    start, end = min(start, len(text)), min(start + length, len(text))
    edited = Lines(text, encoding).edited(start, end, new)
    fresh = Lines(text[:start] + new + text[end:], encoding)
    assert edited.text == fresh.text
    assert [edited.position(at) for at in range(len(fresh.text) + 1)] == [
        fresh.position(at) for at in range(len(fresh.text) + 1)
    ]


@given(TEXTS, st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), TEXTS), max_size=5), st.integers(1, 9))
def test_many_edits_at_once_are_as_good_as_one_after_another_from_the_end(
    text: str, wanted: list[tuple[int, int, str]], step: int
) -> None:
    edits: list[tuple[int, int, str]] = []
    for start, length, new in sorted(wanted):
        begin = max(min(start, len(text)), edits[-1][1] if edits else 0)
        edits.append((begin, min(begin + length, len(text)), new))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "_STEP", step)  # what is kept of the lines before has many borders then
        lines = Lines(text, "utf-16")
        lines.position(len(text))
        one_by_one = lines
        for edit in reversed(edits):
            one_by_one = one_by_one.edited(*edit)
        spliced = lines.spliced(edits)
        assert spliced.text == one_by_one.text
        places = [fresh_position(spliced.text, at) for at in range(len(spliced.text) + 1)]
        for made in (spliced, one_by_one):
            assert [made.position(at) for at in range(len(made.text) + 1)] == places
            assert [made.position(at) for at in reversed(range(len(made.text) + 1))] == places[::-1]


def fresh_position(text: str, at: int) -> tuple[int, int]:
    """Counted as plainly as can be."""
    starts = [0] + [
        end + 1 for end, one in enumerate(text) if one == "\n" or (one == "\r" and text[end + 1 : end + 2] != "\n")
    ]
    line = max(number for number, start in enumerate(starts) if start <= at)
    return line, units(text[starts[line] : at], "utf-16")


def test_a_text_of_line_breaks_alone_costs_next_to_nothing() -> None:
    size = 1_000_000
    tracemalloc.start()
    lines = Lines("\n" * size, "utf-16")
    assert (lines.offset(size // 2, 0), lines.position(size)) == (size // 2, (size, 0))
    assert tracemalloc.get_traced_memory()[1] < 2 * size  # the text itself is one of them
    tracemalloc.stop()


PLACES = st.tuples(st.integers(0, 6), st.integers(0, 9))


@given(TEXTS, st.lists(st.tuples(PLACES, PLACES, TEXTS), max_size=5), st.sampled_from(ENCODINGS), st.booleans())
def test_changes_of_one_message_are_made_as_if_one_after_another(
    text: str, changes: list[Change], encoding: Encoding, from_the_end: bool
) -> None:
    if from_the_end:
        changes = [(start, start, new) for start, _, new in sorted(changes, reverse=True)]
    made = changed(Lines(text, encoding), changes, most=10**6)
    assert made is not None
    lines = Lines(text, encoding)
    for start, end, new in changes:
        begin = lines.offset(*start)
        lines = lines.edited(begin, max(begin, lines.offset(*end)), new)
    assert made.text == lines.text


def test_thousands_of_changes_from_the_end_are_made_at_once() -> None:
    lines = Lines("twenty characters or\n" * 100_000, "utf-16")
    changes: list[Change] = [((line, 0), (line, 6), "20") for line in range(4000, 0, -1)]
    made = changed(lines, changes, most=2 * len(lines.text))
    assert made is not None
    assert made.text.count("\n20 char") == 4000
    assert changed(lines, changes[::-1], most=2 * len(lines.text)) is None
    assert changed(lines, [((0, 10**9), (0, 10**9), "")] * 3, most=2 * len(lines.text)) is None
