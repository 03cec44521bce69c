"""What is given up first when too much is kept."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from sidecar.core.errors import StoreUnavailable
from sidecar.core.paths import FilePath
from sidecar.stores.folder_store import FolderStore
from tests.server.inside import awake

A, B = FilePath("turn_1", "files", "a.txt"), FilePath("turn_1", "files", "b.txt")


async def test_below_the_limit_nothing_is_given_up(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        inside.write(A.physical, "one")
        await inside.sync()
        assert await inside.assembly.keeper.give_up_excess() == 0


async def test_superseded_versions_go_before_latest_ones(tmp_path: Path) -> None:
    async with awake(tmp_path, keep_bytes=12) as inside:
        for text in ("old old old", "new"):
            inside.write(A.physical, text)
            await inside.sync()
        inside.write(B.physical, "other")
        await inside.sync()
        assert await inside.assembly.keeper.give_up_excess() == len("old old old")
        assert all(inside.assembly.blobs.has(inside.workspace.artifact(path).sha256()) for path in (A, B))


async def test_giving_up_a_latest_version_is_told(tmp_path: Path) -> None:
    async with awake(tmp_path, keep_bytes=3) as inside:
        file = inside.write(A.physical, "four")
        await inside.sync()
        await inside.assembly.keeper.give_up_excess()
        file.unlink()
        answer = await inside.ask("artifact/rehost", {"paths": [A.logical]})
        assert answer["missing"] == [{"path": A.logical, "reason": "gone"}]
        changes = (await inside.ask("workspace/changes", {"since": 0}))["changes"]
        assert [change["kind"] for change in changes if change["kind"] == "notice"] == ["notice"]


async def test_bytes_that_no_version_knows_go_first_once_their_version_had_time_to_come(tmp_path: Path) -> None:
    async with awake(tmp_path, keep_bytes=8) as inside:
        inside.write(A.physical, "latest")
        await inside.sync()
        stray = inside.assembly.blobs.writer()
        stray.write(b"nobody's")
        sha256 = stray.keep()
        keeper, blobs = inside.assembly.keeper, inside.assembly.blobs
        latest = inside.workspace.artifact(A).sha256()
        inside.write(B.physical, "mine")
        await keeper.give_up_excess()
        assert blobs.has(sha256), "it may have been taken in a moment ago"
        blobs.evict(latest)
        await inside.sync()
        await keeper.give_up_excess()
        assert not blobs.has(sha256)
        assert blobs.has(inside.workspace.artifact(B).sha256())


@pytest.mark.rule("kept.until-keep-bytes-is-reached")
async def test_hosted_ones_go_before_superseded_and_those_before_the_only_ones(tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path / "store"))
    async with awake(tmp_path, store=store) as inside:
        await inside.begin()
        await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
        inside.write(A.physical, "hosted")
        await inside.ask("call/end", {"tool_call_id": "tc_1"})
        await inside.assembly.hosting.settle(5)
        for text in ("superseded", "only"):
            inside.write(B.physical, text)
            await inside.sync()
        hashes = {text: hashlib.sha256(text.encode()).hexdigest() for text in ("hosted", "superseded", "only")}
        keeper = inside.assembly.keeper
        left: list[list[str]] = []
        for limit in (19, 9, 3):
            keeper.keep_bytes = limit
            await keeper.give_up_excess()
            left.append([text for text, sha256 in hashes.items() if inside.assembly.blobs.has(sha256)])
        assert left == [["superseded", "only"], ["only"], []]
        resolved = await inside.ask("artifact/resolve", {"paths": [A.logical, B.logical]})
        assert [one["artifact"].get("kept") for one in resolved["results"]] == [None, False]


class Unwilling(FolderStore):
    """A store that takes nothing in."""

    def put(self, *args: Any, **named: Any) -> Any:
        raise StoreUnavailable("store", "it takes nothing in", fault="server_error")


async def test_giving_up_what_is_still_to_be_hosted_is_told_although_it_is_superseded(tmp_path: Path) -> None:
    async with awake(tmp_path, store=Unwilling(str(tmp_path / "store"))) as inside:
        await inside.begin()
        await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
        inside.write(A.physical, "wanted by the store")
        await inside.ask("call/end", {"tool_call_id": "tc_1"})
        inside.write(A.physical, "newer")
        await inside.sync()
        inside.assembly.keeper.keep_bytes = len("newer")
        told: list[Any] = []
        inside.workspace.listeners.append(lambda happened: told.extend(happened.notices))
        assert await inside.assembly.keeper.give_up_excess() == len("wanted by the store")
        sha256 = hashlib.sha256(b"wanted by the store").hexdigest()
        evicted = [one for one in told if one["code"] == "kept_evicted"]
        assert [(one["path"], one["sha256"]) for one in evicted] == [(A.physical, sha256)]
