"""Files that prose names, in every way in which people and models write them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.asset_names import named_references


def usual(text: str) -> list[str]:
    return [reference.text for reference in named_references(text)]


def possible(text: str) -> set[str]:
    return {reading for one in named_references(text) for reading in (one.text, *one.others)}


@pytest.mark.rule("assets.plain-mentions-are-found")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see turn_1/files/report.pdf", ["turn_1/files/report.pdf"]),
        ("see turn_1/files/report.pdf.", ["turn_1/files/report.pdf"]),
        ("turn_1/files/a.png, turn_1/attachments/b.png!", ["turn_1/files/a.png", "turn_1/attachments/b.png"]),
        ("(turn_1/files/a.png)", ["turn_1/files/a.png"]),
        ("(see turn_1/files/a(1).png)", ["turn_1/files/a(1).png"]),
        ("(turn_1/files/a(1).png)", ["turn_1/files/a(1).png"]),
        ("(turn_1/files/a.pdf, page 3)", ["turn_1/files/a.pdf"]),
        ("`turn_1/files/b c.txt`", ["turn_1/files/b c.txt"]),
        ('"turn_1/files/b c.txt"', ["turn_1/files/b c.txt"]),
        ("'turn_1/files/b c.txt'", ["turn_1/files/b c.txt"]),
        ("“turn_1/files/b c.txt”", ["turn_1/files/b c.txt"]),
        ("**turn_1/files/a.md**", ["turn_1/files/a.md"]),
        ("./turn_1/files/a.md", ["./turn_1/files/a.md"]),
        ("turn_1/files/deep/er/a.md", ["turn_1/files/deep/er/a.md"]),
        ("turn_1/files/a.md:12", ["turn_1/files/a.md:12"]),
        ("as fi:turn_1.files/a.md says", ["fi:turn_1.files/a.md"]),
        ("fi:turn_1.user.attachments/x.pdf", ["fi:turn_1.user.attachments/x.pdf"]),
        ("one\nturn_1/files/a.md\ttwo", ["turn_1/files/a.md"]),
        ("turn-2/files/a.md", ["turn-2/files/a.md"]),
        ("![x](turn_1/files/b c.png)", ["turn_1/files/b c.png"]),
        ("https://e.com/turn_1/files/no.png", []),
        ("/tmp/turn_1/files/no.png", []),
        ("../turn_1/files/no.png", []),
        ("x.turn_1/files/no.png", []),
        ("?p=turn_1/files/no.png", []),
        ("turn_1/files", []),
        ("turn_1/files/ nothing", []),
        ("files/a.md", []),
    ],
)  # fmt: skip
def test_files_of_turns_are_found_in_prose(text: str, names: list[str]) -> None:
    assert usual(text) == names


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("turn_1/files/my big report.pdf is done", "turn_1/files/my big report.pdf"),
        ("turn_1/files/a.md:12", "turn_1/files/a.md:12"),
        ("see turn_1/files/a.", "turn_1/files/a."),
        ("turn_1/files/who?", "turn_1/files/who?"),
        ("turn_1/files/my report (final).pdf", "turn_1/files/my report (final).pdf"),
    ],
)
def test_longer_readings_are_there_for_those_who_look(text: str, meant: str) -> None:
    assert meant in possible(text)


@given(st.text(st.sampled_from("turn_1/filesattachmen ().,`'\"<>\n-%")))
def test_no_prose_is_an_error(text: str) -> None:
    for reference in named_references(text):
        assert reference.how == "named"
        assert len(reference.others) < 32


@pytest.mark.parametrize(
    "unit", ["a", "a-", " ", "turn_1/files/", "turn_1/files/a ", "(turn_1/files/a", "`turn_1/files/a", "("]
)  # fmt: skip
def test_hostile_prose_takes_the_time_of_its_length(unit: str) -> None:
    def spent(length: int) -> float:
        text = unit * (length // len(unit))
        began = time.thread_time()
        for _ in named_references(text):
            pass
        return time.thread_time() - began

    short, long = min(spent(20_000) for _ in range(3)), spent(200_000)
    assert long < max(30 * short, 2.0)  # the square of it would be a hundred times as long
