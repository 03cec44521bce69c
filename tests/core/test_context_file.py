"""context.json: its shape, and the way back into a timeline."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from sidecar.core.blocks import Defaults, tell
from sidecar.core.context_blocks import completed, event_block, slot_block
from sidecar.core.context_file import ToolIndex, TurnTold, as_timeline, current_turn, prior_turn, rest

TS = "2026-01-01T00:00:00Z"


def stamped(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, "ts": TS, "author": "agent", "mime": "text/markdown"}


def turn(turn_id: str) -> TurnTold:
    record = {
        "artifact_id": "g",
        "artifact_kind": "inline",
        "value": {"a": 1},
        "tool_call_id": "tc_1",
        "inputs": {"p": 1},
    }
    return TurnTold(
        turn_id=turn_id,
        ts=TS,
        prompt={"type": "user.prompt", "text": "why?", "ts": TS},
        completion={"type": "assistant.completion", "text": "so [[S:1]]", "ts": TS, "meta": {"sources_used": [1]}},
        files=[{"filename": "a.md", "path": f"{turn_id}/files/a.md"}],
        blocks=[
            stamped(completed({"type": "context.artifact", **record, "turn_id": turn_id}, turn_id)),
            stamped(slot_block(turn_id, "report", {"type": "inline", "text": "x"}, content_lineage=["artifacts.g"])),
            stamped(event_block(turn_id, "decision", {"action": "go"}, tool_call_id="tc_1")),
            stamped({"type": "context.budget", "turn_id": turn_id, "caps": {"n": 2}, "used": {"n": 1}}),
        ],
    )


@pytest.mark.rule("context.layout-files-are-written")
def test_the_current_turn_has_slots_artifacts_events_and_a_counter() -> None:
    written = current_turn(turn("turn_2"))
    assert written.keys() >= {"turn_id", "user", "ts", "slots", "artifacts", "events", "tool_result_counter"}
    assert written["artifacts"]["g"] == {
        "artifact_id": "g", "artifact_kind": "inline", "value": {"a": 1}, "tool_call_id": "tc_1", "inputs": {"p": 1},
        "timestamp": TS,
    }  # fmt: skip
    lineage = ["ar:turn_2.context.artifact.g"]
    assert written["slots"]["report"] == {"type": "inline", "text": "x", "content_lineage": lineage, "timestamp": TS}
    assert written["events"] == [{"ts": TS, "kind": "decision", "data": {"action": "go"}, "tool_call_id": "tc_1"}]
    assert written["tool_result_counter"] == 1


@pytest.mark.rule("context.layout-files-are-written")
def test_a_turn_before_has_deliverables_and_what_was_said() -> None:
    written = prior_turn(turn("turn_1"))
    assert written["user"]["prompt"]["text"] == "why?"
    assert written["assistant"]["completion"] == {"text": "so [[S:1]]", "ts": TS, "sources_used": [1]}
    assert written["deliverables"]["report"]["text"] == "x"
    assert written["assistant"]["files"] == [{"filename": "a.md", "path": "turn_1/files/a.md"}]


def test_the_tool_index_stands_beside_the_turns() -> None:
    tools = ToolIndex({"tc_1": "llm.gen", "tc_2": "other"})
    tools.take(turn("turn_2").blocks)
    written = rest(turn("turn_2"), max_sid=7, tools=tools.calls, now=1.5)
    assert (written["max_sid"], written["last_persisted_at_ts"]) == (7, 1.5)
    assert written["tool_call_index"] == {
        "tc_1": {"tool_id": "llm.gen", "artifact_ids": ["g"], "turn_id": "turn_2"},
        "tc_2": {"tool_id": "other", "artifact_ids": []},
    }
    assert written["budget_state"] == {"caps": {"n": 2}, "used": {"n": 1}, "timestamp": TS}


def test_a_session_without_a_turn_has_none() -> None:
    assert rest(None, max_sid=0, tools={}, now=0)["current_turn"] is None


def session() -> dict[str, Any]:
    former = {"prior_turns": {"turn_1": prior_turn(turn("turn_1"))}, "sources_pool": [{"sid": 1, "title": "t"}]}
    return orjson.loads(orjson.dumps({**former, **rest(turn("turn_2"), max_sid=1, tools={}, now=0)}))


@pytest.mark.rule("context.layout-files-are-written")
def test_what_was_written_reads_back_as_the_same_records() -> None:
    timeline = as_timeline(session(), {})
    assert timeline["turn_ids"] == ["turn_1", "turn_2"]
    assert timeline["sources_pool"] == [{"sid": 1, "title": "t"}]
    bodies = [orjson.loads(tell(block, Defaults("turn_0", 0.0)).body) for block in timeline["blocks"]]
    for turn_id in ("turn_1", "turn_2"):
        told = {block["path"]: block for block in bodies if block["turn_id"] == turn_id and "path" in block}
        assert told[f"ar:{turn_id}.user.prompt"]["text"] == "why?"
        assert told[f"ar:{turn_id}.assistant.completion"]["meta"]["sources_used"] == [1]
        expected = {block["path"]: block for block in turn(turn_id).blocks if "path" in block}
        for path, block in expected.items():
            kept = {key: value for key, value in block.items() if key != "meta"}
            assert {key: told[path][key] for key in kept} == kept
        assert told[f"ar:{turn_id}.context.budget"]["caps"] == {"n": 2}


def test_a_session_as_others_wrote_it_is_read() -> None:
    context = {
        "prior_turns": {"turn_1": {"user": {"prompt": "plain"}, "assistant": "said", "deliverables": {}}},
        "current_turn": {
            "turn_id": "turn_2",
            "user": {"text": "at the root"},
            "artifacts": {
                "s": {"value": [{"sid": 1, "url": "https://x"}], "timestamp": 1767225600},
                "f": {"value": {"path": "current_turn/files/a.pdf", "type": "file"}},
                "i": {"value": "text"},
            },
            "slots": {"r": {"value": {"text": "nested"}}},
            "events": [{"ts": TS, "kind": "exit", "reason": "done"}],
        },
    }
    timeline = as_timeline(context, {"sources_pool": [{"sid": 4}]})
    told = {block["path"]: block for block in timeline["blocks"] if block and block.get("path")}
    kinds = {name: told[f"ar:turn_2.context.artifact.{name}"]["artifact_kind"] for name in "sfi"}
    assert kinds == {"s": "search", "f": "file", "i": "inline"}
    assert told["ar:turn_2.context.artifact.f"]["value"]["path"] == "turn_2/files/a.pdf"
    assert told["ar:turn_2.context.slot.r"]["value"] == {"text": "nested"}
    assert told["ar:turn_2.context.event.exit"]["data"] == {"reason": "done"}
    assert told["ar:turn_1.user.prompt"]["text"] == "plain"
    assert told["ar:turn_1.assistant.completion"]["text"] == "said"
    assert told["ar:turn_2.user.prompt"]["text"] == "at the root"
    assert timeline["sources_pool"] == [{"sid": 4}]


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"prior_turns": []},
        {"prior_turns": {"a.b": {}}},
        {"prior_turns": {"turn_1": 3}},
        {"current_turn": {"turn_id": "turn_1", "artifacts": {"a b": {"value": 1}}}},
        {"current_turn": {"turn_id": "turn_1", "events": [{"kind": 3}, 4], "slots": [1]}},
        {"current_turn": {"turn_id": 7}},
    ],
)
def test_what_is_no_session_is_told_of_as_none(context: dict[str, Any]) -> None:
    for block in as_timeline(context, {})["blocks"]:
        assert block is None or isinstance(block["type"], str)


def nested(levels: int) -> Any:
    return orjson.loads("[" * levels + "]" * levels)


def test_what_nests_too_deep_is_left_out_and_the_rest_is_read() -> None:
    deep = nested(900)
    files = [{"path": deep}, {"path": "a.md", "sources_used": deep}, {"path": "turn_1/files/b.md"}]
    told = {
        "artifacts": {"a": {"value": deep, "inputs": deep}, "b": {"value": 1}},
        "slots": {"s": {"text": deep, "gaps": deep}},
        "events": [{"kind": "error", "data": {"a": deep}}],
        "budget_state": {"caps": {"a": deep}},
        "assistant": {"files": files},
    }
    timeline = as_timeline({"prior_turns": {"turn_1": told}}, {})
    paths = [block.get("path") for block in timeline["blocks"] if block is not None]
    assert paths == [None, "fi:turn_1.files/b.md", "ar:turn_1.context.artifact.b"]
    assert timeline["blocks"].count(None) == 6


@pytest.mark.parametrize("bad", [5, "x", {"a": 1}, [], None])
def test_a_bad_pool_does_not_stand_before_a_good_file_of_its_own(bad: Any) -> None:
    rows = [{"sid": 1, "url": "https://x"}]
    assert as_timeline({"sources_pool": bad}, {"sources_pool": rows})["sources_pool"] == rows
    assert as_timeline({"sources_pool": rows}, {"sources_pool": bad})["sources_pool"] == rows
