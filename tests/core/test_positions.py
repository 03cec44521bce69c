"""Lines end where LSP says, characters are the units that were agreed upon, and an edit is as good as a new reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.positions import Encoding, Lines

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


@pytest.mark.parametrize(("line", "character", "offset"), [(0, 99, 2), (1, 99, 6), (7, 0, 6), (0, 0, 0), (2, 0, 6)])
def test_a_position_behind_a_line_is_its_end(line: int, character: int, offset: int) -> None:
    assert Lines("ab\r\ncd", "utf-16").offset(line, character) == offset


def test_half_a_character_is_none() -> None:
    assert Lines("a😀b", "utf-16").offset(0, 2) == 1
    assert Lines("a😀b", "utf-8").offset(0, 4) == 1


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
