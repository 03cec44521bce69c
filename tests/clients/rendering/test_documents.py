"""The list of sources, and what a page looks like around it."""

from __future__ import annotations

import pytest
from artifact_render.documents import SourceLine, goes_somewhere, source_lines, sources_section, whole

ROWS = [
    {"sid": 1, "source_type": "web", "url": "https://e.org/a", "title": "A <b>"},
    {"sid": 2, "source_type": "web", "url": "javascript:alert(1)", "title": "bad"},
    {
        "sid": 3,
        "source_type": "file",
        "artifact_path": "fi:t.files/a",
        "title": "a",
        "url": "https://e.org",
        "rn": "secret",
    },
    {"sid": 4, "source_type": "manual"},
    {"sid": 5, "source_type": "web", "url": "https://e.org/b"},
]


def test_rows_become_lines_and_nothing_that_runs_becomes_a_link() -> None:
    assert source_lines(ROWS) == (
        SourceLine(1, "A <b>", "https://e.org/a", "https://e.org/a"),
        SourceLine(2, "bad", "", None),
        SourceLine(3, "a", "fi:t.files/a", None),
        SourceLine(4, "Source 4", "", None),
        SourceLine(5, "https://e.org/b", "https://e.org/b", "https://e.org/b"),
    )


def test_the_list_is_escaped_and_empty_without_lines() -> None:
    section = sources_section(source_lines(ROWS))
    assert '<a href="https://e.org/a">A &lt;b&gt;</a>' in section
    assert "secr" not in section
    assert "javascript" not in section
    assert section.count("https://e.org/b") == 2
    assert sources_section(()) == ""


@pytest.mark.parametrize(
    ("url", "so"),
    [("https://e.org", True), (" HTTP://e.org", True), ("mailto:a@e.org", True), ("javascript:x", False),
     ("file:///x", False), ("data:x", False), ("turn_1/files/a", False), ("http://[", False), ("", False)],
)  # fmt: skip
def test_a_link_goes_out_or_nowhere(url: str, so: bool) -> None:
    assert goes_somewhere(url) is so


def test_a_document_stays_as_it_is_and_a_fragment_gets_one() -> None:
    for document in ("<!DOCTYPE html>x", "\n <html>x", "\ufeff<?xml version='1.0'?><html/>"):
        assert whole(document, "t") == document
    assert "<title>a &lt; b</title>" in whole("<p>x", "a < b")
