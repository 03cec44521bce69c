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
