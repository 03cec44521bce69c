"""timeline.json is whole, current at rest, and holds nothing a sandbox must not have."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson

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
