"""Records of the older context in few words."""

from __future__ import annotations

import pytest

from sidecar.core.context_text import artifact_text, brief, clipped, search_text, slot_text, text_for

ROW = {"sid": 2, "url": "https://a.example/x", "title": "A", "hosted_uri": "s3://b/k"}


@pytest.mark.rule("context.show-artifacts-is-compact")
def test_a_search_is_a_line_per_source() -> None:
    record = {"artifact_id": "s", "artifact_kind": "search", "producer": "search", "summary": "what was found"}
    text = artifact_text({**record, "value": [ROW, {"title": "no number"}]}, 500)
    assert text == 's (search, by search)\nwhat was found\n[S:2] a.example  |  "A"\n(1 more without a number)'


def test_a_file_is_its_path_and_its_surrogate() -> None:
    value = {"path": "t/files/r.pdf", "mime": "application/pdf"}
    record = {"artifact_id": "f", "artifact_kind": "file", "value": value, "text_surrogate": "what it says"}
    assert artifact_text(record, 500) == "f (file)\nfile: t/files/r.pdf | application/pdf\nwhat it says"


def test_an_inline_artifact_is_its_content_with_its_sources() -> None:
    record = {"artifact_id": "g", "tool_id": "llm.gen", "value": {"content": "hello", "sources_used": [2, 3]}}
    assert artifact_text(record, 500) == "g (inline, by llm.gen)\nsources: [S:2], [S:3]\nhello"


@pytest.mark.rule("context.drafts-carry-gaps")
def test_a_slot_says_that_it_is_a_draft_and_what_it_lacks() -> None:
    value = {"type": "file", "draft": True, "gaps": ["no pictures"], "text": "hello"}
    assert slot_text({"slot": "report", "value": value}, 500) == 'report (draft, file)\ngaps: ["no pictures"]\nhello'


@pytest.mark.rule("context.show-artifacts-is-compact")
@pytest.mark.parametrize("most", [80, 200])
def test_no_text_is_longer_than_asked(most: int) -> None:
    record = {"artifact_id": "g", "value": "x" * 10_000}
    assert len(artifact_text(record, most)) <= most + 20
    assert clipped("x" * most, most) == "x" * most


def test_no_hosting_field_is_told() -> None:
    block = {"type": "context.artifact", "artifact_id": "s", "artifact_kind": "inline", "value": {"a": ROW}}
    assert "s3://" not in text_for(block)


@pytest.mark.rule("context.events-and-budget-are-told")
def test_an_event_and_a_budget_are_a_line_each() -> None:
    assert text_for({"type": "context.event", "event": "exit", "data": {"why": "done"}}) == 'exit: {"why":"done"}'
    budget = {"type": "context.budget", "caps": {"searches": 3, "files": 1}, "used": {"searches": 2}}
    assert text_for(budget) == "searches: 2 of 3\nfiles: 0 of 1"


def test_a_value_on_one_line() -> None:
    assert brief("a\n b", 10) == "a b"
    assert brief(None, 10) == ""


def test_names_cannot_break_their_line() -> None:
    assert search_text([{"sid": 1, "title": "a\nb", "url": "https://x.example"}]) == '[S:1] x.example  |  "a b"'
