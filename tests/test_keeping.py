"""What is given up first when too much is kept."""

from __future__ import annotations

from pathlib import Path

from sidecar.core.paths import FilePath
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


async def test_bytes_that_no_version_knows_go_first(tmp_path: Path) -> None:
    async with awake(tmp_path, keep_bytes=8) as inside:
        stray = inside.assembly.blobs.writer()
        stray.write(b"nobody's")
        sha256 = stray.keep()
        inside.write(A.physical, "mine")
        await inside.sync()
        await inside.assembly.keeper.give_up_excess()
        assert not inside.assembly.blobs.has(sha256)
        assert inside.assembly.blobs.has(inside.workspace.artifact(A).sha256())
