"""Paths are found in prose as people and models write them, and what resolves decides where they end."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.mentions import MENTIONS, mentions, spots
from sidecar.core.paths import Path, PoolPath

KNOWN = {
    "fi:turn_1.files/a.md",
    "fi:turn_1.files/my big report (final).md",
    "fi:turn_1.user.attachments/x.pdf",
    "ar:turn_1.user.prompt",
    "su:turn_1.conv.range.summary",
    "tc:turn_1.tc_1.result",
}


def resolves(path: Path) -> bool:
    if isinstance(path, PoolPath):
        return not path.numbers.select([1, 2, 3]).missing
    return path.logical in KNOWN


def found(text: str) -> tuple[list[str], list[str]]:
    """The canonical paths that a text names, and what it names in vain."""
    met = list(mentions(text, resolves))
    named = [one.path.logical or "" for one in met if one.path is not None]
    return named, [one.text for one in met if one.path is None]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("see fi:turn_1.files/a.md", ["fi:turn_1.files/a.md"]),
        ("see fi:turn_1.files/a.md.", ["fi:turn_1.files/a.md"]),
        ("(fi:turn_1.files/a.md), **fi:turn_1.files/a.md**", ["fi:turn_1.files/a.md"] * 2),
        ("`fi:turn_1.files/a.md`", ["fi:turn_1.files/a.md"]),
        ("[report](fi:turn_1.files/a.md)", ["fi:turn_1.files/a.md"]),
        ("turn_1/files/a.md, ./turn_1/files/a.md", ["fi:turn_1.files/a.md"]),
        ("fi:turn_1.files/my big report (final).md is done", ["fi:turn_1.files/my big report (final).md"]),
        ("`turn_1/files/my big report (final).md`", ["fi:turn_1.files/my big report (final).md"]),
        ("fi:turn_1.attachments/x.pdf", ["fi:turn_1.user.attachments/x.pdf"]),
        (
            "ar:turn_1.user.prompt; su:turn_1.conv.range.summary",
            ["ar:turn_1.user.prompt", "su:turn_1.conv.range.summary"],
        ),
        ("- tc:turn_1.tc_1.result\n- so:sources_pool[1-2]", ["tc:turn_1.tc_1.result", "so:sources_pool[1-2]"]),
        ("sources_pool[ 3 ]!", ["so:sources_pool[3]"]),
    ],
)
def test_a_path_is_found_as_it_is_written(text: str, named: list[str]) -> None:
    assert found(text) == (named, [])


@pytest.mark.parametrize(
    ("text", "vain"),
    [
        ("fi:turn_9.files/no.txt.", ["fi:turn_9.files/no.txt"]),
        ("fi:turn_1.files/a.md.bak", ["fi:turn_1.files/a.md.bak"]),
        ("turn_9/files/no.txt and more", ["turn_9/files/no.txt"]),
        ("so:sources_pool[1,9]", ["so:sources_pool[1,9]"]),
        ("fi:../../etc/passwd", ["fi:../../etc/passwd"]),
        ("tc:turn_1.tc_9.result\nfi:turn_1.files/a.md", ["tc:turn_1.tc_9.result"]),
    ],
)
def test_what_leads_nowhere_is_told_as_it_is_written(text: str, vain: list[str]) -> None:
    assert found(text)[1] == vain


@pytest.mark.parametrize(
    "text",
    [
        "the radar: is on", "hi-fi: good", "https://example.com/turn_1/files/a.md", "x/turn_1/files/a.md", "so: what",
        "a fi: alone", "xfi:turn_1.files/a.md", "sources_pool", "turn_1/files/ ",
    ],
)  # fmt: skip
def test_other_text_names_no_path(text: str) -> None:
    assert found(text) == ([], [])


PIECES = ["fi:", "turn_1", ".files/", "/files/", "a.md", " ", ".", "`", "(", ")", "\n", "so:", "sources_pool", "[", "]"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_is_read_to_its_end(text: str) -> None:
    for one in mentions(text, resolves):
        assert one.text
        assert one.text in text


def test_a_hostile_text_ends_soon() -> None:
    began = time.thread_time()
    texts = ["fi:x" + ")" * 500_000, "fi:a.b " * 100_000, "`fi:" * 100_000, "so:sources_pool[" * 30_000]
    counts = [sum(1 for _ in mentions(text, lambda path: False)) for text in texts]
    assert max(counts) <= MENTIONS
    assert time.thread_time() - began < 5


def test_spots_have_every_reading_with_words_only_where_a_name_may_end() -> None:
    [spot] = spots("in fi:turn_1.files/my plan.md and more")
    assert (spot.start, spot.usual) == (3, "fi:turn_1.files/my")
    assert spot.readings == ("fi:turn_1.files/my", "fi:turn_1.files/my plan.md")
    [quoted] = spots("`turn_1/files/my plan.md`")
    assert quoted.usual == "turn_1/files/my plan.md"
