"""Each numbered invariant of ARCHITECTURE.md names the test that keeps it, and that test exists."""

from __future__ import annotations

import re

import pytest

from tests.tidy.tree import PROJECT, names_of_tests

pytestmark = pytest.mark.rule("house.invariants-name-their-tests")

ARCHITECTURE = PROJECT / "sidecar/ARCHITECTURE.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")
FILE = re.compile(r"`((?:sidecar|protocol|tests|clients)/[\w./-]+)`")


def invariants() -> dict[int, str]:
    """The numbered list below the heading that speaks of invariants: number -> its whole text."""
    text = ARCHITECTURE.read_text("utf-8")
    section = re.search(r"^#+ [^\n]*invariants[^\n]*\n(.*?)(?=^#|\Z)", text, re.IGNORECASE | re.DOTALL | re.MULTILINE)
    assert section, "there is a heading with the word `Invariants`"
    items = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", section[1], re.DOTALL | re.MULTILINE)
    return {int(number): body for number, body in items}


def test_the_invariants_are_numbered_without_a_gap() -> None:
    assert list(invariants()) == list(range(1, len(invariants()) + 1))
    assert len(invariants()) >= 15


def test_every_invariant_names_a_test() -> None:
    assert [number for number, body in invariants().items() if not NAMED.search(body)] == []


def test_every_named_test_exists() -> None:
    def exists(file: str, test: str) -> bool:
        path = PROJECT / file
        return path.is_file() and (not test or test in names_of_tests(path))

    named = [match for body in invariants().values() for match in NAMED.findall(body)]
    assert [f"{file}::{test}" for file, test in named if not exists(file, test)] == []


def test_every_file_it_speaks_of_exists() -> None:
    spoken = FILE.findall(ARCHITECTURE.read_text("utf-8"))
    assert [name for name in spoken if not (PROJECT / name).exists()] == []


def test_it_stays_short_enough_to_be_read() -> None:
    assert len(ARCHITECTURE.read_text("utf-8").splitlines()) < 300
