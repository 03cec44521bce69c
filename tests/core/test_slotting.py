"""What a deliverable becomes."""

from __future__ import annotations

import pytest

from sidecar.core.paths import FilePath
from sidecar.core.slotting import NO_FILE, Source, Wanted, best_summary, implied_text, slot_value

FILE = FilePath("t", "files", "out/report.pdf")
TEXT = Source("hello", None, is_file=False, is_object=True, sources_used=(1, 2), summary="s")
RENDERED = Source("surrogate", FILE, is_file=True, is_object=True, mime="application/pdf", size_bytes=9)
LOST = Source("surrogate", None, is_file=True, is_object=True, mime="application/pdf")


@pytest.mark.rule("context.slots-map-from-leaf-or-object")
def test_a_text_becomes_an_inline_slot() -> None:
    assert slot_value(TEXT, Wanted(format="markdown", description="d")) == {
        "type": "inline", "text": "hello", "format": "markdown", "description": "d", "summary": "s",
        "sources_used": [1, 2],
    }  # fmt: skip


@pytest.mark.rule("context.slots-map-from-leaf-or-object")
def test_a_file_becomes_a_file_slot_with_its_text() -> None:
    assert slot_value(RENDERED, Wanted()) == {
        "type": "file", "path": "t/files/out/report.pdf", "filename": "report.pdf", "mime": "application/pdf",
        "size_bytes": 9, "text": "surrogate",
    }  # fmt: skip


def test_a_file_wanted_inline_is_its_text() -> None:
    value = slot_value(RENDERED, Wanted(type="inline"))
    assert value is not None
    assert (value["type"], value["text"], "path" in value) == ("inline", "surrogate", False)


def test_a_leaf_of_a_file_is_a_text_unless_a_file_is_due() -> None:
    leaf = Source("surrogate", FILE, is_file=True, is_object=False)
    assert slot_value(leaf, Wanted()) == {"type": "inline", "text": "surrogate"}
    due = slot_value(leaf, Wanted(type="file"))
    assert due is not None
    assert due["path"] == "t/files/out/report.pdf"


@pytest.mark.rule("context.drafts-carry-gaps")
@pytest.mark.parametrize("source", [TEXT, LOST])
def test_a_text_where_a_file_is_due_is_a_draft_with_gaps(source: Source) -> None:
    value = slot_value(source, Wanted(type="file"))
    assert value is not None
    assert (value["draft"], value["gaps"], value["text"]) == (True, NO_FILE, source.text)


@pytest.mark.rule("context.drafts-carry-gaps")
def test_a_draft_says_the_gaps_that_were_told() -> None:
    value = slot_value(TEXT, Wanted(draft=True, gaps=["no pictures"]))
    assert value is not None
    assert (value["type"], value["draft"], value["gaps"]) == ("inline", True, ["no pictures"])


def test_nothing_to_map_is_nothing() -> None:
    assert slot_value(Source("", None, is_file=True, is_object=True), Wanted(type="file")) is None
    assert slot_value(Source("", None, is_file=False, is_object=True), Wanted()) is None


@pytest.mark.rule("context.best-summary-by-lineage")
def test_the_longest_written_summary_wins_over_any_search_s() -> None:
    search = {"artifact_kind": "search", "summary": "a long sentence about what was looked for and where"}
    short, long = {"artifact_kind": "inline", "summary": "short"}, {"artifact_kind": "inline", "summary": "longer one"}
    assert best_summary([search, short, long]) == "longer one"
    assert best_summary([search]) == search["summary"]
    assert best_summary([{"summary": " "}, {"summary": None}, {}]) is None


def test_the_implied_text_is_the_surrogate_the_content_or_the_value() -> None:
    assert implied_text({"artifact_kind": "file", "value": {"path": "x"}, "text_surrogate": "s"}) == "s"
    assert implied_text({"artifact_kind": "file", "value": {"path": "x", "text": "t"}}) == "t"
    assert implied_text({"artifact_kind": "file", "value": {"path": "x"}}) == ""
    assert implied_text({"artifact_kind": "inline", "value": '{"content": "c"}'}) == "c"
    assert implied_text({"artifact_kind": "inline", "value": "v"}) == "v"
