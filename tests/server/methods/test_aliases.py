"""The older dialect as another spelling of today's paths."""

from __future__ import annotations

import pytest

from sidecar.core.errors import NotFound
from tests.server.inside import Inside

pytestmark = pytest.mark.rule("context.older-paths-are-read")


async def begin(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "why?"})
    inside.write("turn_1/files/out/report.md", "# Report")
    await inside.sync()
    block = {"type": "context.artifact", "artifact_id": "note", "artifact_kind": "inline", "value": "a note"}
    await inside.ask("timeline/append", {"blocks": [block]})


@pytest.mark.parametrize(
    ("older", "canonical"),
    [
        ("current_turn.user.prompt.text", "ar:turn_1.user.prompt"),
        ("1.user.prompt", "ar:turn_1.user.prompt"),
        ("turn_1.files.report_md", "fi:turn_1.files/out/report.md"),
        ("current_turn/files/out/report.md", "fi:turn_1.files/out/report.md"),
        ("fi:current_turn.files/out/report.md", "fi:turn_1.files/out/report.md"),
        ("current_turn.artifacts.note", "ar:turn_1.context.artifact.note"),
    ],
)
async def test_reading_methods_take_older_paths(inside: Inside, older: str, canonical: str) -> None:
    await begin(inside)
    (found,) = (await inside.ask("artifact/resolve", {"paths": [older]}))["results"]
    assert found["artifact"]["artifact_path"] == canonical
    fetched = await inside.ask("artifact/fetch", {"path": older}, role="exec")
    assert fetched["ret"]["text"] == (await inside.ask("artifact/fetch", {"path": canonical}))["ret"]["text"]
    read = await inside.ask("artifact/read", {"paths": [older]})
    assert read["blocks"][-1]["path"] == canonical
    assert await inside.ask("artifact/versions", {"path": older})
    assert "current_turn" not in str([found, fetched, read])


async def test_a_file_is_brought_back_by_its_older_name(inside: Inside) -> None:
    await begin(inside)
    (inside.out / "turn_1/files/out/report.md").unlink()
    answer = await inside.ask("artifact/rehost", {"paths": ["turn_1.files.report_md"]})
    assert [one["physical_path"] for one in answer["rehosted"]] == ["turn_1/files/out/report.md"]


async def test_lineage_and_pages_are_asked_for_by_older_paths(inside: Inside) -> None:
    await begin(inside)
    source = {"type": "context.artifact", "artifact_id": "more", "artifact_kind": "inline", "value": "x"}
    await inside.ask("timeline/append", {"blocks": [{**source, "content_lineage": ["current_turn.artifacts.note"]}]})
    answer = await inside.ask("artifact/lineage", {"path": "current_turn.artifacts.more", "direction": "up"})
    assert [edge["from"] for edge in answer["edges"]] == ["ar:turn_1.context.artifact.note"]
    inside.write("turn_1/files/out/page.md", "![x](report.md)")
    await inside.sync()
    pulled = await inside.ask("assets/pull", {"path": "current_turn.files.page_md"}, role="renderer")
    assert [one["physical_path"] for one in pulled["present"]] == ["turn_1/files/out/report.md"]


@pytest.mark.parametrize(
    ("method", "params"), [("artifact/lineage", {"direction": "up"}), ("assets/pull", {})], ids=["lineage", "pull"]
)
async def test_what_is_not_there_is_named_with_the_turns_own_id(
    inside: Inside, method: str, params: dict[str, str]
) -> None:
    await begin(inside)
    with pytest.raises(NotFound) as refused:
        await inside.ask(method, {"path": "current_turn/files/nobody.md", **params})
    assert refused.value.about == "turn_1/files/nobody.md"


async def test_what_an_older_path_does_not_find_is_read_as_today(inside: Inside) -> None:
    await begin(inside)
    inside.write("turn_1.slots.txt", "a file of that name")
    fetched = await inside.ask("artifact/fetch", {"path": "turn_1.slots.txt"})
    assert fetched["ret"]["text"] == "a file of that name"
    assert (await inside.ask("artifact/fetch", {"path": "turn_1.files.nobody"}))["err"]["code"] == "not_found"


async def test_without_a_turn_the_older_word_is_a_name_like_any_other(inside: Inside) -> None:
    inside.write("current_turn/files/a.md", "older")
    fetched = await inside.ask("artifact/fetch", {"path": "current_turn/files/a.md"})
    assert fetched["ret"]["text"] == "older"


async def test_what_is_read_by_its_older_name_within_a_call_is_used_by_it(inside: Inside) -> None:
    await begin(inside)
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "a.tool", "params": {}})
    await inside.ask("artifact/read", {"paths": ["turn_1.files.report_md"], "tool_call_id": "tc_1"})
    fetch_context = [{"path": "current_turn.artifacts.note", "param_name": "content"}]
    await inside.ask("context/bind", {"tool_id": "a.tool", "fetch_context": fetch_context, "tool_call_id": "tc_1"})
    inside.write("turn_1/files/made.md", "made")
    await inside.ask("call/end", {"tool_call_id": "tc_1"})
    edges = (await inside.ask("artifact/lineage", {"path": "fi:turn_1.files/made.md", "direction": "up"}))["edges"]
    assert {edge["from"] for edge in edges} == {"fi:turn_1.files/out/report.md", "ar:turn_1.context.artifact.note"}
