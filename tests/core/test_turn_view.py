"""A turn as a client shows it."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.core.turn_view import TurnView

TS = "2026-02-18T09:00:00Z"


def block(kind: str, text: str | None = None, path: str = "", ts: str = TS, **meta: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"type": kind, "ts": ts, "meta": meta}
    return told | ({"path": path} if path else {}) | ({"text": text} if text is not None else {})


def record(name: str = "files/a.md", **more: Any) -> dict[str, Any]:
    turn, _, rel = "turn_1", "", name
    place = "user.attachments" if rel.startswith("attachments/") else "files"
    told = {
        "artifact_path": f"fi:{turn}.{place}/{rel.partition('/')[2]}", "physical_path": f"{turn}/{rel}",
        "mime": "text/markdown", "kind": "file", "visibility": "external", "sources_used": [],
    }  # fmt: skip
    return {**told, **more}


def view(*blocks: dict[str, Any], records: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    turn = TurnView("turn_1", (1, 2, 3))
    for one in blocks:
        turn.take(one)
    return turn.view(records)


def test_a_turn_in_which_nothing_happened_is_empty() -> None:
    assert view() == {
        "turn_id": "turn_1", "attachments": [], "files": [], "thinking": [], "timeline_text": [], "sources_used": [],
    }  # fmt: skip


def test_the_first_completion_of_a_turn_is_its_answer() -> None:
    shown = view(
        block("user.prompt", "why?"),
        block("assistant.completion", "because [[S:2]]"),
        block("assistant.completion", "on second thought", ts="2026-02-18T10:00:00Z"),
    )
    assert shown["user"] == {"text": "why?", "ts": TS}
    assert shown["assistant"] == {"text": "because [[S:2]]", "ts": TS}
    assert shown["sources_used"] == [2]


def test_a_completion_that_a_read_showed_again_is_not_the_answer() -> None:
    assert "assistant" not in view(block("assistant.completion", "old", rel="read"))


@pytest.mark.rule("store.display-artifacts-are-no-files")
def test_a_display_is_no_file_of_the_turn() -> None:
    assert view(records=(record(kind="display"),))["files"] == []


@pytest.mark.parametrize("more", [{"visibility": "internal"}, {"visibility": "pending"}, {"error": {"code": "x"}}])
def test_what_is_not_for_the_user_or_failed_is_no_file_of_the_turn(more: dict[str, Any]) -> None:
    assert view(records=(record(**more),))["files"] == []


@pytest.mark.rule("store.hosted-files-are-no-conversation-artifacts")
def test_files_and_attachments_say_where_they_are_and_hold_no_content() -> None:
    hosting = {"rn": "ef:x", "hosted_uri": "s3://b/k", "key": "k"}
    shown = view(records=(record(**hosting, sid=3, size_bytes=4), record("attachments/m.csv", description="a menu")))
    assert shown["files"] == [
        {
            "filename": "a.md", "artifact_path": "fi:turn_1.files/a.md", "physical_path": "turn_1/files/a.md",
            "mime": "text/markdown", "size_bytes": 4, "sid": 3, **hosting,
        }
    ]  # fmt: skip
    assert [(one["filename"], one["summary"]) for one in shown["attachments"]] == [("m.csv", "a menu")]


@pytest.mark.rule("store.turn-log-blocks-are-not-listed")
def test_the_blocks_that_the_agent_works_with_are_not_listed() -> None:
    shown = view(
        block("react.tool.call", '{"tool_id":"exec"}', "tc:turn_1.tc_1.call"),
        block("react.tool.result", "secret result", "tc:turn_1.tc_1.result"),
        block("react.thinking", "hm", "ar:turn_1.react.thinking.0"),
        block("react.notes", "on it", "ar:turn_1.react.notes.tc_1"),
    )
    assert "secret result" not in str(shown)
    assert [item["text"] for item in shown["thinking"]] == ["hm"]
    assert [item["text"] for item in shown["timeline_text"]] == ["on it"]


def test_what_the_agent_suggests_and_asks_back_is_told_as_last_said() -> None:
    shown = view(
        block("stage.suggested_followups", items=["a"]),
        block("stage.suggested_followups", items=["b", 3]),
        block("stage.clarification", questions=["which?"]),
    )
    assert (shown["followups"], shown["clarification_questions"]) == (["b"], ["which?"])


def test_sources_are_those_of_blocks_and_of_what_was_added() -> None:
    turn = TurnView("turn_1", (1, 2, 3))
    turn.take(block("react.tool.result", "x", sources_used=[3]))
    turn.take(block("user.prompt", "[[S:1]]"))
    turn.use([2])
    assert turn.view(())["sources_used"] == [2, 3]
