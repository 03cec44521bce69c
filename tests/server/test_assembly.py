"""A workspace wakes up: from nothing, from its journal, from a foreign timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.server.inside import awake

FOREIGN: dict[str, Any] = {
    "version": 1,
    "conversation_title": "t",
    "blocks": [
        {"type": "user.prompt", "turn_id": "t1", "ts": 1771408921.25, "path": "ar:t1.user.prompt", "text": "hi"},
        {"type": "react.tool.result", "turn_id": "t1", "path": "fi:t1.files/a.md", "text": "v1",
         "meta": {"tool_call_id": "c", "hosted_uri": "s3://evil/k", "key": "k", "rn": "r"}},
        "no block",
        {"type": "x", "turn_id": "a.b"},
    ],
    "sources_pool": [
        {"sid": 7, "url": "https://e.com", "title": "E", "hosted_uri": "s3://evil"}, {"title": "manual"}, 5,
    ],
}  # fmt: skip


def put_foreign(folder: Path, told: object = FOREIGN) -> None:
    (folder / "out").mkdir()
    (folder / "out/timeline.json").write_bytes(orjson.dumps(told))


async def test_a_foreign_timeline_alone_is_enough_to_start(tmp_path: Path) -> None:
    put_foreign(tmp_path)
    async with awake(tmp_path) as inside:
        assert (await inside.ask("artifact/fetch", {"path": "ar:t1.user.prompt"}))["ret"]["text"] == "hi"
        assert [row["sid"] for row in (await inside.ask("sources/list"))["rows"]] == [7, 8]


async def test_what_could_not_be_taken_in_is_told(tmp_path: Path) -> None:
    put_foreign(tmp_path)
    async with awake(tmp_path) as inside:
        changes = (await inside.ask("workspace/changes", {"since": 0}))["changes"]
        assert sum(change["kind"] == "notice" for change in changes) == 2


@pytest.mark.parametrize(("trusted", "fields"), [(False, set[str]()), (True, {"hosted_uri", "key", "rn"})])
async def test_foreign_hosting_fields_count_only_when_trusted(tmp_path: Path, trusted: bool, fields: set[str]) -> None:
    put_foreign(tmp_path)
    async with awake(tmp_path, trust_timeline=trusted) as inside:
        (one,) = (await inside.ask("artifact/resolve", {"paths": ["fi:t1.files/a.md"]}))["results"]
        assert one["artifact"].keys() & {"hosted_uri", "key", "rn"} == fields


@pytest.mark.parametrize("told", [[], "text", {"blocks": 5, "sources_pool": None}])
async def test_what_is_no_timeline_is_an_empty_one(tmp_path: Path, told: object) -> None:
    put_foreign(tmp_path, told)
    async with awake(tmp_path) as inside:
        assert (await inside.ask("workspace/status"))["counts"]["blocks"] == 0


async def test_once_a_journal_exists_the_view_is_not_read_back(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()
    (tmp_path / "out/timeline.json").write_bytes(orjson.dumps(FOREIGN))
    async with awake(tmp_path) as inside:
        assert (await inside.ask("workspace/status"))["counts"]["blocks"] == 1


async def test_a_restart_finds_everything_as_it_was(tmp_path: Path) -> None:
    async with awake(tmp_path) as before:
        await before.begin()
        await before.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
        before.write("turn_1/files/a.txt", "one")
        await before.ask("call/end", {"tool_call_id": "tc_1"})
        before.write("turn_1/files/a.txt", "two")
        await before.sync()
        asked = {"paths": ["fi:turn_1.files/a.txt", "tc:turn_1.tc_1.call"]}
        first = await before.ask("artifact/resolve", asked)
        rows = await before.ask("sources/list")
        status = await before.ask("workspace/status")
    async with awake(tmp_path) as after:
        assert await after.ask("artifact/resolve", asked) == first
        assert await after.ask("sources/list") == rows
        again = await after.ask("workspace/status")
        assert (again["counts"], again["conversation"]) == (status["counts"], status["conversation"])


async def test_a_restart_reads_no_file_again(tmp_path: Path) -> None:
    async with awake(tmp_path) as before:
        before.write("turn_1/files/a.txt", "one")
        await before.sync()
        revision = before.workspace.revision
    async with awake(tmp_path) as after:
        await after.sync()
        assert after.workspace.revision == revision
