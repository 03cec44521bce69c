"""The major number decides who can talk to whom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import protocol
from protocol.version import PROTOCOL_VERSION, speaks


@pytest.mark.parametrize(
    ("asked", "answer"), [("1.0", True), ("1.9", True), ("2.0", False), ("0.1", False), ("10.0", False)]
)
def test_the_major_number_decides(asked: str, answer: bool) -> None:
    assert speaks(asked) is answer


def test_it_speaks_its_own_version() -> None:
    assert speaks(PROTOCOL_VERSION)


def test_the_changelog_begins_with_this_version() -> None:
    changelog = Path(protocol.__path__[0], "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)$", changelog, re.MULTILINE)[0] == PROTOCOL_VERSION
