"""Bringing bytes back: once for any number of waiters, whole or not at all."""

from __future__ import annotations

import asyncio
import gc
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sidecar.core.errors import ShuttingDown
from sidecar.core.paths import FilePath
from sidecar.rehost import Missing, Rehosted
from tests.server.inside import Inside, awake

PATH = FilePath("turn_1", "files", "a.txt")


@pytest_asyncio.fixture
async def gone(tmp_path: Path) -> AsyncIterator[Inside]:
    """A workspace whose one file was registered and then deleted."""
    async with awake(tmp_path) as inside:
        file = inside.write(PATH.physical, "content")
        await inside.sync()
        file.unlink()
        yield inside


@pytest.fixture
def writes(gone: Inside, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths written, as they are written."""
    written: list[str] = []
    put_back = gone.assembly.outdir.put_back

    def counted(path: str, *args: object, **options: object) -> object:
        written.append(path)
        return put_back(path, *args, **options)

    monkeypatch.setattr(gone.assembly.outdir, "put_back", counted)
    return written


@pytest.mark.rule("rehost.one-download-for-all-waiters")
async def test_many_waiters_cost_one_fetch(gone: Inside, writes: list[str]) -> None:
    rehoster = gone.assembly.services.rehoster
    answers = await asyncio.gather(*(rehoster.rehost(PATH) for _ in range(20)))
    assert {type(answer) for answer in answers} == {Rehosted}
    assert writes == [PATH.physical]


async def test_a_waiter_that_leaves_does_not_stop_the_others(gone: Inside) -> None:
    rehoster = gone.assembly.services.rehoster
    leaving = asyncio.create_task(rehoster.rehost(PATH))
    staying = asyncio.create_task(rehoster.rehost(PATH))
    await asyncio.sleep(0)
    leaving.cancel()
    assert isinstance(await staying, Rehosted)
    assert leaving.cancelled() or leaving.done()


async def test_a_failure_that_nobody_waits_for_any_more_is_no_noise(
    gone: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehoster, go_on, heard = gone.assembly.services.rehoster, asyncio.Event(), list[dict[str, object]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))

    async def ends(*_: object) -> None:
        await go_on.wait()
        raise ShuttingDown("workspace/rehost")

    monkeypatch.setattr(rehoster._looker, "look_at", ends)
    asker = asyncio.create_task(rehoster.rehost(PATH))
    await asyncio.sleep(0)
    under_way = next(iter(rehoster._under_way.values()))
    asker.cancel()
    await asyncio.gather(asker, return_exceptions=True)
    go_on.set()
    await asyncio.wait({under_way})
    await asyncio.sleep(0)
    del under_way
    gc.collect()
    assert heard == []
    assert rehoster._under_way == {}


@pytest.mark.rule("rehost.is-verified-and-whole")
async def test_a_damaged_copy_is_never_delivered(gone: Inside) -> None:
    (pack,) = Path(gone.assembly.blobs.folder, "packs").iterdir()
    pack.write_bytes(pack.read_bytes()[:-1] + b"?")
    answer = await gone.assembly.services.rehoster.rehost(PATH)
    assert answer == Missing("gone")
    assert not (gone.out / PATH.physical).exists()


async def test_what_is_brought_back_is_no_new_version(gone: Inside) -> None:
    await gone.assembly.services.rehoster.rehost(PATH)
    artifact = gone.workspace.artifact(PATH)
    assert artifact is not None
    assert (len(artifact.versions), artifact.on_disk, artifact.sid) == (1, True, 1)


async def test_a_folder_in_the_way_is_unsafe(gone: Inside) -> None:
    (gone.out / PATH.physical).mkdir()
    assert await gone.assembly.services.rehoster.rehost(PATH) == Missing("unsafe_path")


@pytest.mark.rule("rehost.has-a-deadline-per-file")
async def test_a_file_that_takes_too_long_is_given_up(gone: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()
    monkeypatch.setattr("sidecar.core.limits.REHOST_DEADLINE", 0.05)
    monkeypatch.setattr(gone.assembly.blobs, "open", lambda _: let_go.wait(5))
    try:
        assert await gone.assembly.services.rehoster.rehost(PATH) == Missing("store_unavailable", "timed_out")
    finally:
        let_go.set()


@pytest.mark.rule("rehost.unknown-bytes-are-never-overwritten")
@pytest.mark.parametrize("before", [None, "stale"])
async def test_a_file_made_while_bytes_are_on_their_way_stays(
    gone: Inside, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    if before is not None:
        gone.write(PATH.physical, "newer")
        await gone.sync()
        gone.write(PATH.physical, "content")  # an older version: a stale copy, to be refreshed
    open_kept = gone.assembly.blobs.open

    def meanwhile(sha256: str) -> object:
        (gone.out / PATH.physical).unlink(missing_ok=True)
        gone.write(PATH.physical, "a program's own")
        return open_kept(sha256)

    monkeypatch.setattr(gone.assembly.blobs, "open", meanwhile)
    answer = await gone.assembly.services.rehoster.rehost(PATH)
    assert isinstance(answer, Rehosted)
    assert answer.origin == "on_disk"
    assert (gone.out / PATH.physical).read_text() == "a program's own"
    assert gone.workspace.artifact(PATH).sha256() == answer.sha256


async def test_with_out_dir_away_nothing_is_called_gone(gone: Inside) -> None:
    shutil.rmtree(gone.out)
    assert await gone.assembly.services.rehoster.rehost(PATH) == Missing("store_unavailable", "no_out_dir")
    gone.out.mkdir()
    assert isinstance(await gone.assembly.services.rehoster.rehost(PATH), Rehosted)


async def test_what_was_copied_from_kept_bytes_is_not_read_again(gone: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    take_in = gone.assembly.outdir.take_in_all

    def noted(paths: list[str], *rest: Any) -> Any:
        read.extend(paths)
        return take_in(paths, *rest)

    monkeypatch.setattr(gone.assembly.outdir, "take_in_all", noted)
    await gone.sync()
    answer = await gone.assembly.services.rehoster.rehost(PATH)
    await gone.sync()
    assert isinstance(answer, Rehosted)
    assert (answer.origin, read) == ("kept", [])
    assert gone.workspace.files[PATH.physical] == gone.assembly.outdir.key(PATH.physical)


async def test_many_files_come_back_side_by_side(gone: Inside) -> None:
    paths = [FilePath("turn_1", "files", f"{number}.txt") for number in range(40)]
    for number, path in enumerate(paths):
        gone.write(path.physical, f"content {number}")
    await gone.sync()
    for path in paths:
        (gone.out / path.physical).unlink()
    answers = await asyncio.gather(*(gone.assembly.services.rehoster.rehost(path) for path in paths))
    assert {one.origin for one in answers if isinstance(one, Rehosted)} == {"kept"}
    assert [(gone.out / path.physical).read_text() for path in paths] == [f"content {number}" for number in range(40)]
