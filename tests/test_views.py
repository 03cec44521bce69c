"""timeline.json is whole, current at rest, and holds nothing a sandbox must not have."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from sidecar.core.errors import TooLarge
from sidecar.views import rest_after
from tests.daemon_process import eventually
from tests.server.inside import Inside, awake

HOSTED = {"hosted_uri": "s3://b/k", "rn": "ef:1", "key": "cb/k"}


async def view(inside: Inside) -> dict[str, Any]:
    await inside.ask("timeline/flush")
    return orjson.loads((inside.out / "timeline.json").read_bytes())


async def test_rows_are_full_and_without_hosting_fields(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.ask("sources/merge", {"rows": [{"title": "a", "content": "long", "odd": 1, **HOSTED}]})
        (row,) = (await view(inside))["sources_pool"]
        assert row == {"sid": 1, "source_type": "manual", "title": "a", "content": "long", "odd": 1}


async def test_blocks_are_without_hosting_fields(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.ask("timeline/append", {"blocks": [{"type": "x", "turn_id": "t", "meta": {**HOSTED, "a": 1}}]})
        (block,) = (await view(inside))["blocks"]
        assert block["meta"] == {"a": 1, "turn_id": "t"}


async def test_contents_of_internal_files_are_left_out(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        meta = {"visibility": "internal", "tool_call_id": "c"}
        told = {"type": "react.tool.result", "turn_id": "t", "path": "fi:t.files/s.md", "text": "secret", "meta": meta}
        await inside.ask("timeline/append", {"blocks": [told]})
        (block,) = (await view(inside))["blocks"]
        assert "text" not in block
        assert block["path"] == "fi:t.files/s.md"


async def test_a_view_of_many_blocks_is_one_document(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        blocks = [{"type": "x", "turn_id": "t", "text": str(n)} for n in range(2500)]
        await inside.ask("timeline/append", {"blocks": blocks})
        assert [block["text"] for block in (await view(inside))["blocks"]] == [str(n) for n in range(2500)]


async def test_a_view_that_is_current_is_not_written_again(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await view(inside)
        before = (inside.out / "timeline.json").stat().st_mtime_ns
        await view(inside)
        assert (inside.out / "timeline.json").stat().st_mtime_ns == before


async def test_it_is_written_by_itself_at_rest(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        writing = asyncio.create_task(inside.assembly.views.run())
        await inside.begin()
        written = inside.out / "timeline.json"
        await asyncio.to_thread(eventually, written.exists)
        writing.cancel()
        assert orjson.loads(written.read_bytes())["turn_ids"] == ["turn_1"]


@pytest.mark.parametrize(("took", "rest"), [(0.001, 0.009), (2.0, 18.0), (50.0, 60.0)])
def test_a_view_that_takes_long_is_written_the_less_often(took: float, rest: float) -> None:
    assert rest_after(took) == pytest.approx(rest)


async def test_the_view_of_one_workspace_starts_another(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "out").mkdir(parents=True)
    async with awake(first) as inside:
        await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "hello"})
        await inside.ask("sources/merge", {"rows": [{"title": "a", "sid": 4}]})
        await view(inside)
    (second / "out/timeline.json").write_bytes((first / "out/timeline.json").read_bytes())
    async with awake(second) as inside:
        assert (await inside.ask("artifact/fetch", {"path": "ar:turn_1.user.prompt"}))["ret"]["text"] == "hello"
        assert (await inside.ask("sources/list"))["rows"][0]["sid"] == 4


PATCH = "--- a/n.txt\n+++ b/n.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+a secret\n"


async def test_what_a_call_patched_leaves_with_the_file_that_becomes_internal(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()
        await inside.ask("call/begin", {"tool_call_id": "c1", "tool_id": "x", "params": {}})
        inside.write("turn_1/files/n.txt", "one\ntwo\n")
        await inside.sync()
        assert (await inside.ask("artifact/patch", {"path": "n.txt", "patch": PATCH}))["ok"]
        await inside.ask("call/end", {"tool_call_id": "c1", "expect": [{"path": "n.txt", "visibility": "internal"}]})
        assert b"a secret" not in orjson.dumps(await view(inside))
        assert b"a secret" in orjson.dumps(await inside.ask("timeline/blocks"))


async def test_what_a_call_patched_stays_with_the_file_that_does_not(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()
        await inside.ask("call/begin", {"tool_call_id": "c1", "tool_id": "x", "params": {}})
        inside.write("turn_1/files/n.txt", "one\ntwo\n")
        await inside.sync()
        await inside.ask("artifact/patch", {"path": "n.txt", "patch": PATCH})
        assert b"a secret" not in orjson.dumps(await view(inside))
        await inside.ask("call/end", {"tool_call_id": "c1", "expect": ["n.txt"]})
        result = "tc:turn_1.c1.result"
        shown = [block.get("text", "") for block in (await view(inside))["blocks"] if block.get("path") == result]
        assert any("a secret" in text for text in shown)


async def test_contents_told_as_internal_are_left_out_wherever_they_stand(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        told = {"type": "react.note", "turn_id": "t", "text": "secret", "meta": {"visibility": "internal"}}
        await inside.ask("timeline/append", {"blocks": [told]})
        assert "text" not in (await view(inside))["blocks"][0]


async def test_an_internal_file_is_still_internal_in_a_workspace_started_from_the_view(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "out").mkdir(parents=True)
    async with awake(first) as inside:
        await inside.begin()
        await inside.ask("artifact/write", {"path": "n.md", "content": "a", "kind": "file", "visibility": "internal"})
        await view(inside)
    (second / "out/timeline.json").write_bytes((first / "out/timeline.json").read_bytes())
    async with awake(second) as inside:
        (artifact,) = (await inside.ask("artifact/list"))["artifacts"]
        assert artifact["visibility"] == "internal"


async def test_a_summary_in_the_view_forgot_nothing_internal(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        digest = {"forgotten": ["fi:t.files/a.md", "fi:t.files/s.md"], "hidden_blocks": [{"index": 1}, {"index": 2}]}
        meta = {"visibility": "internal", "tool_call_id": "c"}
        told = [
            {"type": "react.tool.result", "turn_id": "t", "path": "fi:t.files/s.md", "text": "secret", "meta": meta},
            {"type": "react.note", "turn_id": "t", "text": "x", "meta": {"visibility": "internal"}},
            {"type": "conv.range.summary", "turn_id": "t", "text": "s", "meta": {"compaction_digest": digest}},
        ]
        await inside.ask("timeline/append", {"blocks": told})
        summary = (await view(inside))["blocks"][-1]
        assert summary["meta"]["compaction_digest"] == {
            "forgotten": ["fi:t.files/a.md"],
            "hidden_blocks": [{"index": 2}],
        }


async def test_a_flush_writes_what_the_older_generation_reads_as_well(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()
        await inside.ask("sources/merge", {"rows": [{"title": "a", "content": "long", **HOSTED}]})
        files = (await inside.ask("timeline/flush"))["files"]
        read = {name: orjson.loads((inside.out / name).read_bytes()) for name in files}
        (row,) = read["sources_pool.json"]["sources_pool"]
        assert read["context.json"]["sources_pool"] == [row] == read["timeline.json"]["sources_pool"]
        assert row == {"sid": 1, "source_type": "manual", "title": "a", "content": "long"}
        assert read["context.json"]["current_turn"]["turn_id"] == "turn_1"


async def test_at_rest_only_the_timeline_is_written(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()
        await inside.assembly.views.refresh()
        assert [path.name for path in inside.out.glob("*.json")] == ["timeline.json"]
        await inside.ask("turn/end", {"turn_id": "turn_1"})
        assert len(list(inside.out.glob("*.json"))) == 3


async def test_a_view_that_somebody_removed_is_written_again(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()
        await view(inside)
        (inside.out / "context.json").unlink()
        await view(inside)
        assert (inside.out / "context.json").exists()


async def test_the_open_turn_is_the_current_one_wherever_it_was_first_told_of(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.ask("timeline/append", {"blocks": [{"type": "x", "turn_id": "turn_9"}]})
        await inside.begin("turn_10")
        await inside.ask("timeline/append", {"blocks": [{"type": "x", "turn_id": "turn_11"}]})
        await view(inside)
        context = orjson.loads((inside.out / "context.json").read_bytes())
        assert context["current_turn"]["turn_id"] == "turn_10"
        assert list(context["prior_turns"]) == ["turn_9", "turn_11"]


async def test_rows_of_internal_files_say_nothing_but_their_path(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        meta = {"visibility": "internal", "tool_call_id": "c"}
        told = {"type": "react.tool.result", "turn_id": "t", "path": "fi:t.files/s.md", "text": "secret", "meta": meta}
        value = [{"sid": 1, "title": "secret", "text": "secret", "physical_path": "t/files/s.md"}]
        search = {"type": "context.artifact", "turn_id": "t", "artifact_id": "s", "artifact_kind": "search"}
        await inside.ask("timeline/append", {"blocks": [told, {**search, "value": value}]})
        row = {"source_type": "file", "physical_path": "t/files/s.md"}
        said = {"title": "secret", "text": "secret", "content": "secret", "own": "secret"}
        await inside.ask("sources/merge", {"rows": [{**row, **said}, {"title": "open", "text": "open"}]})
        await inside.ask("timeline/flush")
        for name in ("timeline.json", "context.json", "sources_pool.json"):
            text = (inside.out / name).read_text("utf-8")
            assert "secret" not in text, name
            first, second = orjson.loads(text)["sources_pool"]
            assert (first["sid"], first["physical_path"], second["title"]) == (1, "t/files/s.md", "open")


@pytest.mark.parametrize("key", ["value", "inputs", "meta"])
async def test_a_session_that_nests_too_deep_is_told_and_the_rest_is_taken_in(tmp_path: Path, key: str) -> None:
    deep = "[" * 900 + "]" * 900
    turn = f'{{"artifacts":{{"a":{{"{key}":{deep},"value":{deep}}},"b":{{"value":1}}}},"ts":null}}'
    (tmp_path / "out").mkdir(parents=True, exist_ok=True)
    (tmp_path / "out" / "context.json").write_text(f'{{"prior_turns":{{"turn_1":{turn}}},"sources_pool":5}}', "utf-8")
    rows = f'[{{"url":"https://x"}},{{"url":"https://y","x":{deep}}}]'
    (tmp_path / "out" / "sources_pool.json").write_text(f'{{"sources_pool":{rows}}}', "utf-8")
    async with awake(tmp_path) as inside:
        answer = await inside.ask("context/fetch", {"path": "turn_1.artifacts.b.value"})
        assert answer["ret"] == 1
        rows = (await inside.ask("context/fetch", {"path": "sources_pool[1:]"}))["ret"]
        assert [row["url"] for row in rows] == ["https://x"]


async def test_an_append_that_nests_too_deep_is_too_large(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        block = {"type": "context.artifact", "turn_id": "t", "artifact_id": "x", "artifact_kind": "inline"}
        with pytest.raises(TooLarge):
            await inside.ask("timeline/append", {"blocks": [{**block, "value": orjson.loads("[" * 240 + "]" * 240)}]})
