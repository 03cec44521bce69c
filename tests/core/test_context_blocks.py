"""Records of the older context as blocks: their paths, and today's names in place of `current_turn`."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from sidecar.core.blocks import PATH, Defaults, tell
from sidecar.core.context_blocks import (
    Place,
    completed,
    event_block,
    file_named,
    files_of_row,
    place_at,
    record_in,
    slot_block,
    todays_name,
    without_contents,
)
from sidecar.core.errors import BadPath, TooLarge


def artifact_block(turn_id: str, record: dict[str, Any]) -> dict[str, Any]:
    """An artifact as a runtime tells it."""
    return completed({"type": "context.artifact", **record, "turn_id": turn_id}, turn_id)


@pytest.mark.rule("context.kinds-and-producers")
@pytest.mark.rule("context.events-and-budget-are-told")
@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"type": "context.artifact", "artifact_id": "gen_1", "artifact_kind": "inline", "value": 1},
         "ar:turn_1.context.artifact.gen_1"),
        ({"type": "context.slot", "slot": "report", "value": {}}, "ar:turn_1.context.slot.report"),
        ({"type": "context.event", "event": "decision", "data": {}}, "ar:turn_1.context.event.decision"),
        ({"type": "context.budget", "caps": {}}, "ar:turn_1.context.budget"),
    ],
    ids=["artifact", "slot", "event", "budget"],
)  # fmt: skip
def test_a_record_stands_at_a_path_of_its_own(block: dict[str, Any], path: str) -> None:
    whole = completed(block, "turn_1")
    assert whole["path"] == path
    place = place_at(path)
    assert place is not None
    assert place.logical == path
    assert tell(whole, Defaults("", 0.0)).head[PATH] == path


@pytest.mark.parametrize("path", ["ar:turn_1.user.prompt", "ar:turn_1.context.memory.x", "fi:turn_1.files/context", ""])
def test_any_other_path_is_none_of_them(path: str) -> None:
    assert place_at(path) is None


def test_a_record_that_names_another_path_is_refused() -> None:
    block = {"type": "context.budget", "caps": {}}
    assert completed({**block, "path": "ar:t.context.budget"}, "t")["path"] == "ar:t.context.budget"
    with pytest.raises(BadPath):
        completed({**block, "path": "ar:t.somewhere"}, "t")
    with pytest.raises(BadPath):
        completed(block, "")


@pytest.mark.rule("context.lineage-is-recorded")
def test_lineage_is_kept_in_todays_names() -> None:
    lineage = [
        "current_turn.artifacts.search_1[1,3]",
        "artifacts.search_1.value",
        "turn_1.slots.report.text",
        "turn_2.user.prompt.text",
        "current_turn.files.a.md",
        "sources_pool[3,1]",
        "fi:current_turn.files/b.md",
        "who knows",
    ]
    told = artifact_block(
        "turn_2", {"artifact_id": "x", "artifact_kind": "inline", "value": "", "content_lineage": lineage}
    )
    assert told["content_lineage"] == [
        "ar:turn_2.context.artifact.search_1",
        "ar:turn_1.context.slot.report",
        "ar:turn_2.user.prompt",
        "fi:turn_2.files/a.md",
        "so:sources_pool[1, 3]",
        "fi:turn_2.files/b.md",
        "who knows",
    ]


def test_no_field_of_a_record_says_current_turn() -> None:
    told = event_block("turn_2", "param_binding", {"fetch": [{"path": "current_turn.artifacts.x"}], "n": 1})
    slot = slot_block("turn_2", "s", {"path": "current_turn/files/a.md", "text": "stays"}, content_lineage=[])
    file = artifact_block(
        "turn_2",
        {
            "artifact_id": "f",
            "artifact_kind": "file",
            "value": {"path": "current_turn/files/a.md"},
            "inputs": {"content": "current_turn.artifacts.gen_1"},
        },
    )
    assert told["data"]["fetch"][0]["path"] == "turn_2.artifacts.x"
    assert slot["value"] == {"path": "turn_2/files/a.md", "text": "stays"}
    assert not any("current_turn" in orjson.dumps(block).decode() for block in (told, slot, file))


def test_what_an_artifact_holds_is_content_and_stays() -> None:
    value = {"content": "current_turn.artifacts.x", "path": "current_turn/files/x"}
    told = artifact_block("turn_2", {"artifact_id": "x", "artifact_kind": "inline", "value": value})
    assert told["value"] == {"content": "current_turn.artifacts.x", "path": "turn_2/files/x"}


def test_a_record_comes_back_without_what_every_block_has() -> None:
    record = {"artifact_id": "x", "artifact_kind": "inline", "value": [1], "own": {"a": 1}}
    whole = {**artifact_block("turn_2", record), "ts": "2026-01-01T00:00:00Z", "author": "agent"}
    assert record_in(whole) == {**record, "turn_id": "turn_2", "ts": "2026-01-01T00:00:00Z"}


def test_the_files_of_a_record_are_told_beside_it() -> None:
    file = artifact_block("t", {"artifact_id": "f", "artifact_kind": "file", "value": {"path": "report.pdf"}})
    rows = [{"sid": 1, "artifact_path": "fi:t.files/a.png"}, {"sid": 2, "url": "https://x"}]
    search = artifact_block("t", {"artifact_id": "s", "artifact_kind": "search", "value": rows})
    assert file["meta"]["about"] == ["fi:t.files/report.pdf"]
    assert search["meta"]["about"] == ["fi:t.files/a.png"]
    told = tell(file, Defaults("t", 0.0))
    assert told.part == {"about": ["fi:t.files/report.pdf"]}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("report.pdf", "t/files/report.pdf"),
        ("./report.pdf", "t/files/report.pdf"),
        ("out/t_1/files/a/b.md", "t_1/files/a/b.md"),
        ("current_turn/attachments/a.png", "t/attachments/a.png"),
        ("fi:t_1.files/a.md", "t_1/files/a.md"),
        ("logs/a.log", "logs/a.log"),
    ],
)
def test_a_record_names_a_file_of_its_turn_or_below_out_dir(text: str, path: str) -> None:
    named = file_named(text, "t")
    assert named is not None
    assert named.physical == path


@pytest.mark.parametrize("text", ["", "../x", "/etc/passwd", "ar:t.user.prompt", "t/files/../x"])
def test_what_is_no_file_s_path_names_no_file(text: str) -> None:
    assert file_named(text, "t") is None


def test_a_name_that_leads_nowhere_has_no_name_today() -> None:
    assert todays_name("../x", "t") is None


def test_contents_are_left_out_and_the_file_is_still_named() -> None:
    record = {"artifact_id": "f", "artifact_kind": "file", "text_surrogate": "secret", "summary": "secret"}
    told = artifact_block("t", {**record, "value": {"path": "a.md", "text": "secret", "mime": "text/markdown"}})
    cut = without_contents({key: value for key, value in told.items() if key != "text"})
    assert cut["value"] == {"path": "a.md", "mime": "text/markdown"}
    assert b"secret" not in orjson.dumps(cut)


def test_a_place_without_a_name_is_a_budget() -> None:
    assert Place("t", "budget", "").logical == "ar:t.context.budget"


def nested(levels: int) -> Any:
    return orjson.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize("key", ["value", "inputs", "data"])
def test_what_nests_too_deep_is_refused_and_never_walked(key: str) -> None:
    with pytest.raises(TooLarge):
        completed({"type": "context.artifact", "artifact_id": "x", key: nested(900)}, "t")


def test_of_an_internal_record_only_what_is_known_to_be_harmless_stays() -> None:
    record = {
        "artifact_id": "f", "artifact_kind": "inline", "tool_id": "x.y", "producer": {"a": "secret"},
        "value": {"path": "t/files/a.md", "format": {"a": "secret"}, "more": "secret"}, "error": "secret",
        "call_record": {"a": "secret"}, "anything": "secret", "meta": {"anything": "secret", "visibility": "internal"},
        "content_lineage": ["artifacts.g"],
    }  # fmt: skip
    told = artifact_block("t", record)
    cut = without_contents({key: value for key, value in told.items() if key != "text"})
    assert b"secret" not in orjson.dumps(cut)
    assert (cut["value"], cut["tool_id"]) == ({"path": "t/files/a.md"}, "x.y")
    assert cut["content_lineage"] == ["ar:t.context.artifact.g"]
    assert cut["meta"] == {"about": ["fi:t.files/a.md"], "visibility": "internal"}


@pytest.mark.parametrize(
    "row",
    [
        {"artifact_path": "fi:t.files/a.md"},
        {"physical_path": "t/files/a.md"},
        {"local_path": "./out/current_turn/files/a.md"},
        {"artifact_path": 5, "physical_path": "../x", "local_path": "out/t/files/a.md"},
    ],
)
def test_a_row_names_its_file_by_any_of_its_paths(row: dict[str, Any]) -> None:
    assert set(files_of_row(row, "t")) == {"fi:t.files/a.md"}
    told = artifact_block("t", {"artifact_id": "s", "artifact_kind": "search", "value": [{"sid": 1, **row}]})
    assert told["meta"]["about"] == ["fi:t.files/a.md"]


def test_what_a_record_is_told_to_be_about_stays() -> None:
    told = slot_block("t", "s", {"path": "t/files/b.md"}, meta={"about": ["fi:t.files/a.md", 5]})
    assert told["meta"]["about"] == ["fi:t.files/a.md", "fi:t.files/b.md"]
