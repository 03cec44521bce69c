"""The operational context through its methods."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import orjson
import pytest

from sidecar.core.errors import BadPath, Stale, TooLarge, UnknownTurn
from tests.server.inside import Inside

PDF = base64.b64encode(b"%PDF-1.4\nmenu").decode()
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nx").decode()
ROWS = [
    {"url": "https://a.example/x", "title": "A", "text": "alpha " * 200},
    {"url": "https://b.example", "title": "B", "text": "beta"},
    {"url": "https://c.example", "title": "C", "content": "gamma " * 100},
]


async def told(inside: Inside, *blocks: dict[str, Any]) -> list[str]:
    return [one["path"] for one in (await inside.ask("timeline/append", {"blocks": list(blocks)}))["blocks"]]


def artifact(name: str, kind: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "context.artifact", "artifact_id": name, "artifact_kind": kind, "value": value, **more}


async def begin(inside: Inside) -> None:
    """A turn with three sources, a search of them, a generated text, and a file."""
    await inside.begin()
    await inside.ask("sources/merge", {"rows": ROWS})
    rows = [{"sid": sid, **row} for sid, row in enumerate(ROWS, start=1)]
    await told(
        inside,
        artifact("search_1", "search", rows, producer="search", summary="what was looked for"),
        artifact(
            "gen_1", "inline", {"content": "hello [[S:2]]", "sources_used": [2]}, summary="a text about two things",
            content_lineage=["current_turn.artifacts.search_1[2]"],
        ),
        artifact("note", "inline", "a note"),
    )  # fmt: skip
    inside.write("turn_1/files/out/report 1.md", "# Report")
    await inside.sync()


async def fetched(inside: Inside, path: str, **role: str) -> Any:
    answer = await inside.ask("context/fetch", {"path": path}, **role)
    assert answer["err"] is None, answer
    return answer["ret"]


async def bound(inside: Inside, *paths: tuple[str, str], **asked: Any) -> dict[str, Any]:
    fetch_context = [{"path": path, "param_name": name} for path, name in paths]
    return await inside.ask("context/bind", {"tool_id": "a.tool", "fetch_context": fetch_context, **asked})


def codes(answer: dict[str, Any]) -> list[str]:
    return [said["code"] for said in answer["notices"]]


# Fetch


@pytest.mark.rule("context.older-paths-are-read")
async def test_every_root_of_a_turn_is_read(inside: Inside) -> None:
    attached = [{"name": "menu 1.pdf", "base64": PDF}, {"name": "note.txt", "text": "attached"}]
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "why?", "attachments": attached})
    await inside.ask("turn/end", {"turn_id": "turn_1", "completion": {"text": "so"}})
    await inside.begin("turn_2")
    assert await fetched(inside, "turn_1.user.prompt.text") == "why?"
    assert (await fetched(inside, "1.user"))["text"] == "why?"
    assert await fetched(inside, "turn_1.assistant.completion.text") == "so"
    assert (await fetched(inside, "turn_1.user.attachments.menu_1_pdf"))["base64"] == PDF
    assert (await fetched(inside, "1.attachments.menu 1.pdf"))["mime"] == "application/pdf"
    assert await fetched(inside, "turn_1.user.attachments.note_txt.text") == "attached"
    assert await fetched(inside, "turn_1.user.attachments.note.txt.filename") == "note.txt"


@pytest.mark.rule("context.older-paths-are-read")
async def test_artifacts_files_and_their_leaves_are_read(inside: Inside) -> None:
    await begin(inside)
    whole = await fetched(inside, "current_turn.artifacts.gen_1")
    assert (whole["artifact_kind"], whole["artifact_path"]) == ("inline", "ar:turn_1.context.artifact.gen_1")
    assert await fetched(inside, "artifacts.gen_1.value.content") == "hello [[S:2]]"
    assert await fetched(inside, "artifacts.gen_1.summary") == "a text about two things"
    assert await fetched(inside, "artifacts.gen_1.text") == "hello [[S:2]]"
    assert await fetched(inside, "current_turn.files.report_1_md.text") == "# Report"
    assert await fetched(inside, "turn_1.files.out/report 1.md.path") == "turn_1/files/out/report 1.md"
    assert await fetched(inside, "ar:turn_1.context.artifact.gen_1") == whole
    assert await fetched(inside, "fi:current_turn.files/out/report 1.md") == await fetched(inside, "files.report_1_md")


@pytest.mark.rule("context.older-paths-are-read")
async def test_an_artifact_of_another_turn_is_the_current_one_s(inside: Inside) -> None:
    await begin(inside)
    await inside.begin("turn_2")
    assert await fetched(inside, "turn_1.artifacts.note.value") == "a note"
    await told(inside, artifact("note", "inline", "another"), artifact("late", "inline", "late"))
    assert await fetched(inside, "turn_1.artifacts.note.value") == "a note"
    assert await fetched(inside, "turn_1.artifacts.late.value") == "late"


@pytest.mark.rule("context.kinds-and-producers")
async def test_a_record_told_again_is_its_next_version(inside: Inside) -> None:
    await begin(inside)
    (path,) = await told(inside, artifact("note", "inline", "revised"))
    assert await fetched(inside, "artifacts.note.value") == "revised"
    assert len((await inside.ask("artifact/versions", {"path": path}))["versions"]) == 2


@pytest.mark.rule("context.search-artifacts-are-sliced-by-sid")
async def test_a_search_is_sliced_by_sid(inside: Inside) -> None:
    await begin(inside)
    assert [row["sid"] for row in await fetched(inside, "artifacts.search_1[3,1]")] == [3, 1]
    assert [row["sid"] for row in await fetched(inside, "artifacts.search_1[2:]")] == [2, 3]
    assert [row["sid"] for row in await fetched(inside, "artifacts.search_1.value[:2]")] == [1, 2]
    assert await fetched(inside, "artifacts.search_1[9]") == []


@pytest.mark.rule("context.requested-order-of-the-older-pool-slice")
async def test_the_pool_is_sliced_in_the_order_asked(inside: Inside) -> None:
    await begin(inside)
    assert [row["sid"] for row in await fetched(inside, "sources_pool[3,1]")] == [3, 1]
    assert [row["sid"] for row in await fetched(inside, "so:sources_pool[3,1]")] == [1, 3]


@pytest.mark.rule("context.slots-carry-sources-used")
async def test_the_sources_used_are_answered_as_rows(inside: Inside) -> None:
    await begin(inside)
    rows = await fetched(inside, "artifacts.gen_1.value.sources_used")
    assert [row["url"] for row in rows] == ["https://b.example"]
    whole = await fetched(inside, "artifacts.gen_1")
    assert whole["value"]["sources_used"] == rows
    await told(inside, artifact("odd", "inline", {}, sources_used=[2, 99]))
    assert [row["sid"] for row in await fetched(inside, "artifacts.odd.sources_used")] == [2, 99]


@pytest.mark.rule("context.errors-are-a-closed-list")
@pytest.mark.parametrize(
    ("path", "code", "about"),
    [
        ("", "invalid_path_empty", ""),
        ("literal:x", "invalid_path_literal", "literal:x"),
        ("literal:current_turn.x", "invalid_path_literal", "literal:turn_1.x"),
        (" current_turn.artifacts.nobody ", "not_found", "turn_1.artifacts.nobody"),
        ("./out/current_turn/files/x", "unknown_turn_id", "./out/turn_1/files/x"),
        ("a current_turn.x", "unknown_turn_id", "a turn_1.x"),
        ("files.current_turn.x", "not_found", "files.turn_1.x"),
        ("current_turn.current_turn[1]", "not_found", "turn_1.turn_1[1]"),
        ("fi:fi:current_turn.x", "not_found", "fi:fi:turn_1.x"),
        ("turn_9.user.prompt", "unknown_turn_id", "turn_9.user.prompt"),
        ("current_turn.artifacts.nobody", "not_found", "turn_1.artifacts.nobody"),
        ("current_turn.artifacts.gen_1.value.colour", "not_found", "turn_1.artifacts.gen_1.value.colour"),
        ("current_turn.files.nobody.md", "not_found", "turn_1.files.nobody.md"),
        ("current_turn.files.../../etc/passwd", "not_found", "turn_1.files.../../etc/passwd"),
        ("fi:current_turn.files/../x", "not_found", "fi:turn_1.files/../x"),
        ("slots.s.value", "invalid_slot_value_access", "slots.s.value"),
        ("slots.s.colour", "invalid_slot_leaf", "slots.s.colour"),
        ("slots.s", "not_found", "slots.s"),
        ("tc:turn_1.nobody.result", "not_found", "tc:turn_1.nobody.result"),
    ],
)
async def test_a_refusal_has_a_code_and_never_says_current_turn(
    inside: Inside, path: str, code: str, about: str
) -> None:
    await begin(inside)
    error = (await inside.ask("context/fetch", {"path": path}, role="exec"))["err"]
    assert (error["code"], error["details"]["path"]) == (code, about)
    assert "current_turn" not in orjson.dumps(error).decode()


async def test_bytes_that_nobody_has_any_more_are_not_found(inside: Inside) -> None:
    await begin(inside)
    (inside.out / "turn_1/files/out/report 1.md").unlink()
    for kept in (inside.out.parent / "state/kept").rglob("*"):
        if kept.is_file():
            kept.unlink()
    assert (await inside.ask("context/fetch", {"path": "files.report_1_md.text"}))["err"]["code"] == "not_found"
    assert await fetched(inside, "files.report_1_md.mime") == "text/markdown"


async def test_a_program_gets_no_hosting_field(inside: Inside) -> None:
    await inside.begin()
    row = {"url": "https://a.example", "hosted_uri": "s3://b/k", "rn": "ef:x", "key": "cb/k"}
    await inside.ask("sources/merge", {"rows": [row]})
    value = {"path": "turn_1/files/a.bin", "hosted_uri": "s3://b/k", "rn": "ef:x", "key": "cb/k"}
    await told(inside, artifact("f", "file", value, text_surrogate="s"), artifact("s", "search", [{"sid": 1, **row}]))
    for path in ("artifacts.f", "artifacts.s[1]", "sources_pool[1]"):
        assert "hosted_uri" in orjson.dumps(await fetched(inside, path)).decode()
        seen = orjson.dumps(await fetched(inside, path, role="exec")).decode()
        assert not any(field in seen for field in ("hosted_uri", "s3://", "ef:x", '"key"'))
    shown = await inside.ask("context/show_artifacts", {"paths": ["artifacts.f", "artifacts.s"]}, role="exec")
    assert "s3://" not in orjson.dumps(shown).decode()


@pytest.mark.parametrize("role", ["runtime", "exec"])
@pytest.mark.parametrize("field", ["hosted_uri", "rn", "key"])
async def test_a_hosting_field_alone_is_not_found(inside: Inside, role: str, field: str) -> None:
    await inside.begin()
    held = {"hosted_uri": "s3://b/k", "rn": "ef:x", "key": "cb/k"}
    inside.write("turn_1/files/report.md", "# Report")
    await inside.sync()
    meta = {"visibility": "external", "tool_call_id": "c", **held}
    said = {"type": "react.tool.result", "path": "fi:turn_1.files/report.md", "text": "# Report", "meta": meta}
    value = [{"sid": 1, "url": "https://a.example", **held}]
    file = artifact("f", "file", {"path": "report.md", **held})
    await told(
        inside, said, artifact("s", "search", value), artifact("t", "inline", orjson.dumps(value).decode()), file
    )
    beginnings = ("files.report_md", "artifacts.s.value.0", "artifacts.t.value.0", "artifacts.f.value", "artifacts.f")
    paths = [f"{begin}.{field}" for begin in beginnings]
    for path in paths:
        error = (await inside.ask("context/fetch", {"path": path}, role=role))["err"]
        assert (error or {}).get("code") == "not_found", path
    shown = await inside.ask("context/show_artifacts", {"paths": paths}, role=role)
    assert (shown["items"], {one["reason"] for one in shown["missing"]}) == ([], {"not_found"})
    assert not {"hosted_uri", "rn", "key"} & (await fetched(inside, "files.report_md")).keys()


# Bind


@pytest.mark.rule("context.texts-are-bound-by-two-newlines")
async def test_texts_are_joined_by_two_newlines_behind_what_the_param_said(inside: Inside) -> None:
    await begin(inside)
    answer = await bound(
        inside,
        ("artifacts.note", "content"), ("artifacts.gen_1.value.content", "content"), ("files.report_1_md", "content"),
        params={"content": "first", "other": 1},
    )  # fmt: skip
    assert answer["params"] == {"content": "first\n\na note\n\nhello [[S:2]]\n\n# Report", "other": 1}


async def test_a_value_bound_alone_stays_what_it_is(inside: Inside) -> None:
    await begin(inside)
    answer = await bound(inside, ("artifacts.gen_1.value", "data"), ("artifacts.search_1[1]", "rows"))
    assert answer["params"]["data"] == {"content": "hello [[S:2]]", "sources_used": [2]}
    assert [row["sid"] for row in answer["params"]["rows"]] == [1]


@pytest.mark.rule("context.source-lists-are-merged-by-url")
async def test_lists_of_sources_are_merged_by_url(inside: Inside) -> None:
    await begin(inside)
    answer = await bound(
        inside,
        ("sources_pool[3,1]", "sources_list"),
        ("artifacts.search_1[1:2]", "sources_list"),
        params={"sources_list": [{"url": "https://B.example/#x"}, {"url": "https://new.example"}, 3, 77]},
    )
    rows = answer["params"]["sources_list"]
    assert [row.get("sid") for row in rows] == [2, None, 3, 1]
    assert rows[0]["text"] == "beta"
    assert codes(answer) == ["source_unknown"]


@pytest.mark.rule("context.source-lists-are-merged-by-url")
async def test_numbers_become_rows_wherever_they_stand(inside: Inside) -> None:
    await begin(inside)
    for given in ([2], "[2]", "sources_pool[2]"):
        answer = await bound(inside, params={"sources_list": given})
        assert [row["title"] for row in answer["params"]["sources_list"]] == ["B"]
    answer = await bound(inside, ("sources_pool[99,2]", "sources_list"), ("artifacts.search_1[98]", "sources_list"))
    assert [said["missing_sids"] for said in answer["notices"]] == [[99], [98]]
    answer = await bound(inside, ("artifacts.gen_1.value.sources_used", "sources_list"))
    assert [row["title"] for row in answer["params"]["sources_list"]] == ["B"]


@pytest.mark.rule("context.citation-aware-tools-get-sources")
async def test_a_citation_aware_tool_gets_the_sources_of_what_is_bound(inside: Inside) -> None:
    await begin(inside)
    answer = await bound(inside, ("artifacts.gen_1.value.content", "content"), citation_aware=True)
    assert [row["sid"] for row in answer["params"]["sources_list"]] == [2]
    answer = await bound(inside, ("artifacts.gen_1.value.content", "content"))
    assert "sources_list" not in answer["params"]


@pytest.mark.rule("context.generator-sources-are-capped-and-balanced")
async def test_a_generator_s_sources_are_cut_to_its_budget_and_none_is_lost(inside: Inside) -> None:
    await begin(inside)
    answer = await bound(inside, ("sources_pool[1,2,3]", "sources_list"), generator=True, budget_tokens=41)
    rows = answer["params"]["sources_list"]
    assert [row["sid"] for row in rows] == [1, 2, 3]
    assert [len(row.get("content") or row["text"]) for row in rows] == [80, 4, 80]
    assert codes(answer) == ["sources_capped"]
    assert codes(await bound(inside, ("sources_pool[1,2,3]", "sources_list"), generator=True)) == []


@pytest.mark.rule("context.envelopes-become-content-for-write-tools")
@pytest.mark.parametrize("path", ["current_turn.artifacts.gen_1", "artifacts.gen_1.value"])
async def test_a_write_tool_gets_the_content_of_an_envelope(inside: Inside, path: str) -> None:
    await begin(inside)
    for asked in ({"tool_id": "rendering.write_pdf"}, {"write_tool": True}):
        answer = await bound(inside, (path, "content"), **asked)
        assert answer["params"]["content"] == "hello [[S:2]]"
        (said,) = answer["notices"]
        assert said["code"] == "llm_envelope_content_leaf_required"
        assert said["normalized"] == "turn_1.artifacts.gen_1.value.content"


@pytest.mark.rule("context.unsliced-search-is-skipped")
@pytest.mark.parametrize("param", ["sources_list", "content"])
async def test_a_search_that_is_not_sliced_is_skipped(inside: Inside, param: str) -> None:
    await begin(inside)
    for path in ("artifacts.search_1", "artifacts.search_1.value"):
        answer = await bound(inside, (path, param))
        assert (answer["params"], answer["content_lineage"]) == ({}, [])
        assert codes(answer) == ["unsliced_search_skipped"]
    answer = await bound(inside, params={"sources_list": "current_turn.artifacts.search_1"})
    assert codes(answer) == ["unsliced_search_skipped"]


@pytest.mark.rule("context.lineage-is-recorded")
async def test_lineage_is_what_was_bound_in_todays_names(inside: Inside) -> None:
    await begin(inside)
    answer = await bound(
        inside,
        ("current_turn.artifacts.gen_1.value.content", "content"), ("artifacts.gen_1", "content"),
        ("files.report_1_md", "content"), ("sources_pool[3,1]", "sources_list"), ("turn_9.user", "content"),
    )  # fmt: skip
    assert answer["content_lineage"] == [
        "ar:turn_1.context.artifact.gen_1", "fi:turn_1.files/out/report 1.md", "so:sources_pool[1, 3]",
    ]  # fmt: skip
    assert codes(answer) == ["context_path_missing"]


@pytest.mark.rule("context.lineage-is-recorded")
@pytest.mark.rule("context.events-and-budget-are-told")
async def test_a_bind_within_a_call_tells_what_was_bound(inside: Inside) -> None:
    await begin(inside)
    paths = [("current_turn.artifacts.gen_1.value.content", "content")]
    before = len(inside.workspace.timeline)
    await bound(inside, *paths)
    assert len(inside.workspace.timeline) == before
    await bound(inside, *paths, tool_call_id="tc_1", request_id="r1")
    await bound(inside, *paths, tool_call_id="tc_1", request_id="r1")
    (event,) = (await inside.ask("timeline/blocks", {"path": "ar:turn_1.context.event.param_binding"}))["blocks"]
    assert event["tool_call_id"] == "tc_1"
    assert event["data"] == {
        "tool_id": "a.tool",
        "fetch_context": [{"path": "turn_1.artifacts.gen_1.value.content", "param_name": "content"}],
        "content_lineage": ["ar:turn_1.context.artifact.gen_1"],
    }
    with pytest.raises(Stale):
        await bound(inside, tool_call_id="tc_1", request_id="r1")


async def test_a_bind_within_a_call_needs_a_turn(inside: Inside) -> None:
    with pytest.raises(UnknownTurn):
        await bound(inside, tool_call_id="tc_1")


@pytest.mark.rule("context.multimodal-sources-carry-mime-and-bytes")
async def test_a_picture_bound_as_a_source_has_mime_size_and_its_file_in_place(inside: Inside) -> None:
    attached = [{"name": "menu.pdf", "base64": PDF}]
    await inside.ask("turn/begin", {"turn_id": "turn_1", "attachments": attached})
    (inside.out / "turn_1/attachments/menu.pdf").unlink()
    answer = await bound(inside, ("user.attachments.menu_pdf", "sources_list"))
    (row,) = answer["params"]["sources_list"]
    assert (row["sid"], row["mime"], row["size_bytes"]) == (1, "application/pdf", 13)
    assert (inside.out / row["physical_path"]).read_bytes() == base64.b64decode(PDF)


async def test_what_has_no_text_or_no_sources_is_skipped_with_a_notice(inside: Inside) -> None:
    attached = [{"name": "menu.pdf", "base64": PDF}]
    await inside.ask("turn/begin", {"turn_id": "turn_1", "attachments": attached})
    await told(inside, artifact("note", "inline", "a note"))
    answer = await bound(inside, ("user.attachments.menu_pdf", "content"), ("artifacts.note", "sources_list"))
    assert answer["params"] == {}
    assert codes(answer) == ["binding_skipped", "binding_skipped"]


async def test_what_is_too_long_to_carry_is_bound_in_part_and_says_so(inside: Inside) -> None:
    await inside.begin()
    inside.write("turn_1/files/long.txt", "x" * 300_000)
    await inside.sync()
    answer = await bound(inside, ("files.long_txt", "content"))
    assert len(answer["params"]["content"]) == 256 * 1024
    assert codes(answer) == ["binding_truncated"]


# Slots


async def mapped(inside: Inside, *slots: dict[str, Any], **more: Any) -> dict[str, Any]:
    return await inside.ask("context/map_slots", {"slots": list(slots), **more})


@pytest.mark.rule("context.slots-map-from-leaf-or-object")
@pytest.mark.rule("context.slots-carry-sources-used")
async def test_a_slot_is_mapped_from_a_leaf_or_from_the_thing_itself(inside: Inside) -> None:
    await begin(inside)
    answer = await mapped(
        inside,
        {"slot": "leaf", "path": "current_turn.artifacts.gen_1.value.content"},
        {"slot": "object", "path": "current_turn.artifacts.gen_1"},
        contract={"leaf": {"format": "markdown"}, "object": {}},
    )
    assert answer["notices"] == []
    leaf, whole = answer["slots"]
    assert (leaf["path"], leaf["mapped_from"]) == ("ar:turn_1.context.slot.leaf", "ar:turn_1.context.artifact.gen_1")
    for slot in (leaf, whole):
        value = slot["value"]
        assert (value["type"], value["text"], value["sources_used"]) == ("inline", "hello [[S:2]]", [2])
    assert leaf["value"]["format"] == "markdown"
    assert await fetched(inside, "current_turn.slots.leaf.text") == "hello [[S:2]]"
    assert [row["sid"] for row in await fetched(inside, "turn_1.slots.object.sources_used")] == [2]
    assert (await fetched(inside, "slots.leaf"))["name"] == "leaf"


@pytest.mark.rule("context.file-names-are-normalised-for-slots")
@pytest.mark.rule("context.best-summary-by-lineage")
async def test_a_file_s_name_finds_its_artifact_and_takes_the_best_summary_of_its_inputs(inside: Inside) -> None:
    await begin(inside)
    lineage = ["current_turn.artifacts.search_1[2]", "current_turn.artifacts.gen_1.value.content"]
    await told(
        inside,
        artifact(
            "pdf_1", "file", {"path": "turn_1/files/out/report 1.md", "mime": "text/markdown"}, producer="write",
            text_surrogate="what the report says [[S:2]]", summary="wrote 8 bytes", content_lineage=lineage,
        ),
    )  # fmt: skip
    (slot,) = (await mapped(inside, {"slot": "report", "path": "current_turn.files.report_1_md"}))["slots"]
    assert slot["mapped_from"] == "ar:turn_1.context.artifact.pdf_1"
    value = slot["value"]
    assert (value["type"], value["path"]) == ("file", "turn_1/files/out/report 1.md")
    assert (value["text"], value["summary"]) == ("what the report says [[S:2]]", "a text about two things")
    assert value["sources_used"] == [2]


@pytest.mark.rule("context.best-summary-by-lineage")
async def test_lineage_that_goes_in_a_circle_ends(inside: Inside) -> None:
    await begin(inside)
    circle = [artifact(name, "inline", "x", content_lineage=[f"artifacts.{to}"]) for name, to in ("ab", "ba")]
    file = artifact("f", "file", {"path": "out/report 1.md"}, content_lineage=["artifacts.a"], summary="its own")
    await told(inside, *circle, {**file, "value": {"path": "turn_1/files/out/report 1.md"}})
    (slot,) = (await mapped(inside, {"slot": "report", "path": "artifacts.f"}))["slots"]
    assert slot["value"]["summary"] == "its own"


@pytest.mark.rule("context.drafts-carry-gaps")
async def test_a_text_becomes_a_draft_where_the_rendered_file_is_missing(inside: Inside) -> None:
    await begin(inside)
    await told(inside, artifact("lost", "file", {"path": "lost.pdf"}, text_surrogate="what it would say"))
    answer = await mapped(
        inside,
        {"slot": "a", "path": "artifacts.gen_1.value.content"},
        {"slot": "b", "path": "artifacts.lost"},
        {"slot": "c", "path": "artifacts.note", "draft": True, "gaps": ["no pictures"]},
        contract={"a": {"type": "file", "mime": "application/pdf"}, "d": {"type": "inline"}},
    )
    a, b, c = (slot["value"] for slot in answer["slots"])
    assert (a["draft"], a["type"], a["text"], bool(a["gaps"])) == (True, "file", "hello [[S:2]]", True)
    assert (b["draft"], b["type"], b["text"], bool(b["gaps"])) == (True, "file", "what it would say", True)
    assert (c["draft"], c["gaps"]) == (True, ["no pictures"])
    assert codes(answer) == ["slot_drafted", "slot_drafted", "slots_missing"]


async def test_a_slot_that_nothing_can_be_mapped_into_is_told(inside: Inside) -> None:
    await begin(inside)
    answer = await mapped(inside, {"slot": "a", "path": "current_turn.artifacts.nobody"})
    assert answer["slots"] == []
    (said,) = answer["notices"]
    assert (said["code"], said["path"]) == ("slot_not_mapped", "turn_1.artifacts.nobody")


@pytest.mark.rule("context.events-and-budget-are-told")
async def test_a_mapping_is_told_as_a_slot_and_an_event_once(inside: Inside) -> None:
    await begin(inside)
    asked = {"slots": [{"slot": "a", "path": "artifacts.note"}], "request_id": "r"}
    assert await inside.ask("context/map_slots", asked) == await inside.ask("context/map_slots", asked)
    for path in ("ar:turn_1.context.slot.a", "ar:turn_1.context.event.slot_mapped"):
        assert len((await inside.ask("timeline/blocks", {"path": path}))["blocks"]) == 1


async def test_slots_need_a_turn(inside: Inside) -> None:
    with pytest.raises(UnknownTurn):
        await mapped(inside, {"slot": "a", "path": "sources_pool[1]"})


async def test_a_slot_of_an_earlier_turn_is_mapped_again(inside: Inside) -> None:
    await begin(inside)
    await mapped(inside, {"slot": "report", "path": "files.report_1_md"})
    await inside.begin("turn_2")
    (slot,) = (await mapped(inside, {"slot": "report", "path": "turn_1.slots.report"}))["slots"]
    assert slot["path"] == "ar:turn_2.context.slot.report"
    assert slot["value"]["path"] == "turn_1/files/out/report 1.md"


# Show


@pytest.mark.rule("context.show-artifacts-is-compact")
async def test_shown_artifacts_are_compact_with_one_attachment_of_each_type_and_two_at_most(inside: Inside) -> None:
    names = {"a.png": PNG, "b.png": PNG, "menu.pdf": PDF, "c.gif": base64.b64encode(b"GIF89a").decode()}
    attached = [{"name": name, "base64": held} for name, held in names.items()]
    await inside.ask("turn/begin", {"turn_id": "turn_1", "attachments": attached})
    await told(inside, artifact("long", "inline", "x" * 100_000))
    paths = ["artifacts.long", "artifacts.nobody", *(f"current_turn.user.attachments.{name}" for name in names)]
    shown = await inside.ask("context/show_artifacts", {"paths": paths}, role="exec")
    assert [item["path"] for item in shown["items"]][:2] == [
        "ar:turn_1.context.artifact.long", "fi:turn_1.user.attachments/a.png",
    ]  # fmt: skip
    assert all(len(item["text"]) < 5000 for item in shown["items"])
    assert shown["missing"] == [{"path": "artifacts.nobody", "reason": "not_found"}]
    assert shown["attachments"] == [
        {"path": "fi:turn_1.user.attachments/a.png", "mime": "image/png", "physical_path": "turn_1/attachments/a.png"},
        {
            "path": "fi:turn_1.user.attachments/menu.pdf",
            "mime": "application/pdf",
            "physical_path": "turn_1/attachments/menu.pdf",
        },
    ]


@pytest.mark.rule("context.show-artifacts-is-compact")
async def test_a_picture_that_is_away_is_brought_back_or_another_one_is_shown(inside: Inside) -> None:
    attached = [{"name": "a.png", "base64": PNG}]
    await inside.ask("turn/begin", {"turn_id": "turn_1", "attachments": attached})
    (inside.out / "turn_1/attachments/a.png").unlink()
    await told(inside, artifact("lost", "file", {"path": "lost.png", "mime": "image/png"}, text_surrogate="a picture"))
    shown = await inside.ask("context/show_artifacts", {"paths": ["artifacts.lost", "attachments.a_png"]})
    assert [one["physical_path"] for one in shown["attachments"]] == ["turn_1/attachments/a.png"]
    assert (inside.out / "turn_1/attachments/a.png").exists()


@pytest.mark.rule("context.show-artifacts-is-compact")
async def test_rows_slots_and_messages_are_shown_as_text(inside: Inside) -> None:
    await begin(inside)
    await mapped(inside, {"slot": "s", "path": "artifacts.note"})
    paths = ["artifacts.search_1[2]", "sources_pool[2]", "slots.s", "artifacts.gen_1.value.content"]
    shown = await inside.ask("context/show_artifacts", {"paths": paths})
    assert [item["text"] for item in shown["items"]] == [
        '[S:2] b.example  |  "B"', '[S:2] b.example  |  "B"', "s (inline)\na note", "hello [[S:2]]",
    ]  # fmt: skip


# Blocks


@pytest.mark.rule("context.kinds-and-producers")
@pytest.mark.rule("context.events-and-budget-are-told")
async def test_records_are_blocks_that_resolve_are_rendered_and_compacted(inside: Inside) -> None:
    await begin(inside)
    await told(
        inside,
        {"type": "context.event", "event": "decision", "data": {"action": "go"}},
        {"type": "context.budget", "caps": {"searches": 3}, "used": {"searches": 1}},
    )
    text = (await inside.ask("timeline/render", {"as": "text"}))["text"]
    for line in ("[ARTIFACT]", "gen_1 (inline)", "[EVENT]", 'decision: {"action":"go"}', "searches: 1 of 3"):
        assert line in text
    (found,) = (await inside.ask("artifact/resolve", {"paths": ["ar:turn_1.context.artifact.gen_1"]}))["results"]
    assert found["found"]
    await inside.ask("turn/end", {"turn_id": "turn_1"})
    await inside.begin("turn_2")
    await inside.ask("turn/end", {"turn_id": "turn_2", "completion": {"text": "x " * 500}})
    plan = await inside.ask("timeline/plan_compaction", {"keep_recent_tokens": 10})
    assert "gen_1 (inline)" in plan["text"]
    await inside.ask("timeline/compact", {"cut": plan["cut"], "summary": "a summary"})
    assert "gen_1 (inline)" not in (await inside.ask("timeline/render", {"as": "text"}))["text"]
    assert await fetched(inside, "turn_1.artifacts.gen_1.value.content") == "hello [[S:2]]"


async def test_a_record_at_another_path_is_refused(inside: Inside) -> None:
    await inside.begin()
    with pytest.raises(BadPath):
        await told(inside, {**artifact("a", "inline", 1), "path": "ar:turn_1.user.prompt"})


async def test_an_editor_is_told_of_no_record_of_an_internal_file(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("artifact/write", {"path": "secret.md", "content": "x", "kind": "file", "visibility": "internal"})
    await told(inside, artifact("f", "file", {"path": "secret.md"}, text_surrogate="secret words"))
    blocks = (await inside.ask("timeline/blocks", role="editor"))["blocks"]
    assert not [block for block in blocks if block["type"] == "context.artifact"]
    await inside.ask("timeline/flush")
    for name in ("timeline.json", "context.json"):
        assert "secret words" not in (inside.out / name).read_text()


async def test_an_editor_is_told_of_no_slot_that_was_mapped_from_an_internal_file(inside: Inside) -> None:
    await inside.begin()
    write = {"path": "secret.md", "content": "secret words", "kind": "file", "visibility": "internal"}
    await inside.ask("artifact/write", write)
    row = {"sid": 9, "title": "secret words", "physical_path": "turn_1/files/secret.md"}
    inline = artifact("i", "inline", {"path": "turn_1/files/secret.md", "more": "secret words"})
    surrogate = artifact("f", "file", {"path": "secret.md"}, text_surrogate="secret words")
    await told(inside, surrogate, artifact("s", "search", [row]), inline, artifact("open", "inline", "an open word"))
    paths = ("files.secret.md", "files.secret_md.text", "artifacts.f.text", "artifacts.s[9]", "artifacts.i.value.more")
    slots = [{"slot": f"m{at}", "path": path} for at, path in enumerate(paths)]
    answer = await mapped(inside, *slots, {"slot": "open", "path": "artifacts.open"})
    assert len(answer["slots"]) == len(paths) + 1
    blocks = (await inside.ask("timeline/blocks", role="editor"))["blocks"]
    assert [block["slot"] for block in blocks if block["type"] == "context.slot"] == ["open"]
    await inside.ask("timeline/flush")
    for name in ("timeline.json", "context.json", "sources_pool.json"):
        assert "secret words" not in (inside.out / name).read_text(), name


async def test_a_summary_is_looked_for_in_so_many_records_and_no_more(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begin(inside)
    monkeypatch.setattr("sidecar.context.slots._RECORDS", 2)
    chain = [artifact(f"c{n}", "inline", "x", content_lineage=[f"artifacts.c{n + 1}"]) for n in range(4)]
    file = artifact("f", "file", {"path": "turn_1/files/out/report 1.md"}, content_lineage=["artifacts.c0"])
    await told(inside, *chain, artifact("c4", "inline", "x", summary="too far"), file)
    slots = (await mapped(inside, *({"slot": name, "path": "artifacts.f"} for name in ("a", "b"))))["slots"]
    assert ["summary" in slot["value"] for slot in slots] == [False, False]


@pytest.mark.rule("context.older-paths-are-read")
async def test_many_ask_at_once(inside: Inside) -> None:
    await begin(inside)
    paths = ["artifacts.gen_1.value.content", "files.report_1_md.text", "turn_1.artifacts.note.value"] * 20
    assert set(await asyncio.gather(*(fetched(inside, path) for path in paths))) == {
        "hello [[S:2]]", "# Report", "a note",
    }  # fmt: skip


@pytest.mark.parametrize("call", [{}, {"tool_call_id": "tc_1"}])
async def test_params_that_nest_too_deeply_to_be_answered_are_refused(inside: Inside, call: dict[str, str]) -> None:
    await begin(inside)
    deep: Any = "x"
    for _ in range(250):
        deep = [deep]
    with pytest.raises(TooLarge):
        await inside.ask("context/bind", {"tool_id": "a.tool", "fetch_context": [], "params": {"x": deep}, **call})


async def test_an_event_that_names_an_internal_file_is_not_for_editors(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("call/begin", {"tool_call_id": "tc_9", "tool_id": "x", "params": {}})
    inside.write("turn_1/files/secret.txt", "hush")
    expect = [{"path": "turn_1/files/secret.txt", "visibility": "internal"}]
    await inside.ask("call/end", {"tool_call_id": "tc_9", "expect": expect})
    for data in ({"said": ["hush", {"path": "fi:turn_1.files/secret.txt"}]}, {"why": "turn_1/files/secret.txt: hush"}):
        event = {"type": "context.event", "event": "decision", "data": data}
        await inside.ask("timeline/append", {"blocks": [event]})
    told = {
        role: [one["type"] for one in (await inside.ask("timeline/blocks", role=role))["blocks"]]
        for role in ("runtime", "editor")
    }
    assert told["runtime"].count("context.event") == 2
    assert "context.event" not in told["editor"]
    assert "hush" not in (await inside.ask("timeline/render", {"as": "text"}, role="editor"))["text"]
