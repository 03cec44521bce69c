"""A content lands and is told of, or nothing happened: whoever interferes, and whatever fails."""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.core.errors import JournalUnavailable, NotPermitted, Stale, StoreUnavailable, UnknownTurn
from sidecar.core.paths import FilePath, Rewritten
from sidecar.ports import Placed
from sidecar.stores.folder_store import FolderStore
from sidecar.writing import Writ, target_of
from tests.server.inside import Inside, awake

PATH = FilePath("turn_9", "files", "a.md")
FILE = PATH.logical


@pytest_asyncio.fixture
async def inside(tmp_path: Path) -> AsyncIterator[Inside]:
    """A workspace with an open turn."""
    async with awake(tmp_path) as workspace:
        await workspace.begin("turn_9")
        yield workspace


def sha(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


async def write(inside: Inside, content: str = "new", **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await inside.ask(
        "artifact/write", {"path": PATH.physical, "kind": "file", "content": content} | more
    )
    return answer


async def patch(inside: Inside, text: str) -> dict[str, Any]:
    answer: dict[str, Any] = await inside.ask("artifact/patch", {"path": PATH.physical, "patch": text})
    return answer


def files(inside: Inside) -> dict[str, str]:
    """Everything below OUT_DIR, hidden names included."""
    return {str(path.relative_to(inside.out)): path.read_text() for path in inside.out.rglob("*") if path.is_file()}


def refuse(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the journal's disk is full."""

    def append(_: object, done: Callable[[Exception | None], None]) -> None:
        asyncio.get_running_loop().call_soon(done, OSError(errno.ENOSPC, "no space left"))

    monkeypatch.setattr(inside.workspace._journal, "append", append)


def at_the_rename(inside: Inside, monkeypatch: pytest.MonkeyPatch, deed: Callable[[], object]) -> None:
    """Once, just before a file gets its name, another program does something."""
    place = inside.assembly.outdir.place
    deeds = [deed]

    def interrupted(*args: Any, **options: Any) -> Placed:
        while deeds:
            deeds.pop()()
        return place(*args, **options)

    monkeypatch.setattr(inside.assembly.outdir, "place", interrupted)


@pytest.mark.rule("write.whole-or-not-at-all")
async def test_what_the_journal_refuses_did_not_happen(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    await write(inside, "old\n")
    inode, revision = (inside.out / PATH.physical).stat().st_ino, inside.workspace.revision
    with monkeypatch.context() as full:
        refuse(inside, full)
        for asked in (write(inside), patch(inside, "@@ -1 +1 @@\n-old\n+new\n"), write(inside, kind="display")):
            with pytest.raises(JournalUnavailable):
                await asked
        assert files(inside) == {PATH.physical: "old\n"}
        assert (await inside.ask("artifact/fetch", {"path": FILE}))["ret"]["text"] == "old\n", "reads go on"
        assert (inside.out / PATH.physical).stat().st_ino == inode
    assert inside.workspace.revision == revision
    await inside.sync()
    assert len((await inside.ask("artifact/versions", {"path": FILE}))["versions"]) == 1
    assert (await write(inside))["artifact"]["version"] == 2


@pytest.mark.rule("write.whole-or-not-at-all", "patch.all-hunks-or-none")
async def test_a_new_file_or_a_copy_that_cannot_be_told_of_is_gone_again(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.write("turn_1/files/a.md", "old\n")
    await inside.sync()
    with monkeypatch.context() as full:
        refuse(inside, full)
        with pytest.raises(JournalUnavailable):
            await write(inside)
        with pytest.raises(JournalUnavailable):
            await inside.ask("artifact/patch", {"path": "turn_1/files/a.md", "patch": "@@ -1 +1 @@\n-old\n+new\n"})
    assert files(inside) == {"turn_1/files/a.md": "old\n"}
    await inside.sync()
    assert inside.workspace.artifact(PATH) is None


@pytest.mark.parametrize(
    ("failure", "refusal"),
    [
        (OSError(errno.ENOSPC, "no space left"), StoreUnavailable),
        (OSError(errno.EDQUOT, "quota"), StoreUnavailable),
        (OSError(errno.EROFS, "read-only"), StoreUnavailable),
        (PermissionError(errno.EACCES, "not yours"), NotPermitted),
    ],
)
async def test_a_disk_that_takes_nothing_is_a_refusal_and_the_next_try_works(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, failure: OSError, refusal: type[Exception]
) -> None:
    await write(inside, "old")

    def failing(*_: object) -> int:
        raise failure

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", failing)
        with pytest.raises(refusal) as refused:
            await inside.assembly.services.writing.write(*_writ(inside), lambda _: [])
        assert os.strerror(failure.errno or 0) in str(refused.value) or refusal is NotPermitted
    assert files(inside) == {PATH.physical: "old"}
    assert (await write(inside))["artifact"]["version"] == 2


def _writ(inside: Inside) -> tuple[Rewritten, Writ]:
    return target_of(inside.workspace, PATH.physical), Writ("new", None, "file")


async def test_out_dir_itself_may_be_away(inside: Inside) -> None:
    inside.out.rename(inside.out.parent / "elsewhere")
    with pytest.raises(StoreUnavailable):
        await write(inside)
    (inside.out.parent / "elsewhere").rename(inside.out)
    assert (await write(inside))["artifact"]["version"] == 1


async def test_a_program_that_is_faster_keeps_what_it_made(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    at_the_rename(inside, monkeypatch, lambda: inside.write(PATH.physical, "a program's own"))
    assert (await write(inside))["artifact"]["version"] == 2
    assert files(inside) == {PATH.physical: "new"}
    assert inside.assembly.blobs.has(sha("a program's own"))


async def test_a_program_that_is_faster_makes_an_expectation_stale(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(inside, "old")
    at_the_rename(inside, monkeypatch, lambda: inside.write(PATH.physical, "a program's own"))
    with pytest.raises(Stale) as stale:
        await write(inside, expected_sha256=sha("old"))
    assert stale.value.actual == sha("a program's own")
    assert files(inside) == {PATH.physical: "a program's own"}


async def test_a_patch_is_made_again_of_what_a_program_made(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    await write(inside, "one\ntwo\n")
    at_the_rename(inside, monkeypatch, lambda: inside.write(PATH.physical, "one\ntwo\nthree\n"))
    assert (await patch(inside, "@@ -1 +1 @@\n-one\n+eins\n"))["ok"]
    assert files(inside) == {PATH.physical: "eins\ntwo\nthree\n"}


async def test_a_file_that_is_deleted_meanwhile_is_written_anew(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(inside, "old")
    at_the_rename(inside, monkeypatch, (inside.out / PATH.physical).unlink)
    await write(inside)
    assert files(inside) == {PATH.physical: "new"}


@pytest.mark.rule("write.internal-is-never-hosted")
async def test_a_look_in_between_makes_no_source_of_an_internal_file(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing = inside.assembly.services.landing
    settled = landing._settled
    looks: list[asyncio.Future[None]] = []

    async def looked(path: FilePath) -> None:
        looks.append(asyncio.ensure_future(inside.assembly.looker.look("")))
        done, _ = await asyncio.wait(looks, timeout=0.2)
        assert not done, "a look does not end before the file is told of"
        found = await inside.ask("artifact/search", {"root": "", "content_regex": "new"}, role="editor")
        assert found["hits"] == []
        await settled(path)

    monkeypatch.setattr(landing, "_settled", looked)
    artifact = (await write(inside, visibility="internal"))["artifact"]
    async with asyncio.timeout(5):
        await asyncio.gather(*looks)
    assert artifact["visibility"] == "internal"
    assert inside.workspace.artifact(PATH).visibility == "internal"
    assert (await inside.ask("sources/list"))["rows"] == []
    assert artifact["version"] == 1


@pytest.mark.rule("write.internal-is-never-hosted")
async def test_what_is_external_is_hosted_and_what_is_internal_never(tmp_path: Path) -> None:
    async with awake(tmp_path, store=FolderStore(str(tmp_path / "store"))) as inside:
        await inside.begin("turn_9")
        await write(inside, "shown", path="shown.md")
        await write(inside, "shown, too", path="display.md", kind="display")
        await inside.ask("artifact/patch", {"path": "display.md", "patch": "shown and a file"})
        await write(inside, "a secret", path="secret.md", visibility="internal")
        await write(inside, "a secret", path="note.md", channel="internal")
        await write(inside, "a secret", path="thought.md", kind="display", channel="internal")
        await inside.ask("artifact/patch", {"path": "thought.md", "patch": "another secret"})
        await inside.ask("turn/end", {"turn_id": "turn_9"})
        assert await inside.assembly.hosting.settle(5)
        listed = (await inside.ask("artifact/list", {"turn_id": "turn_9"}))["artifacts"]
        hosted = {one["physical_path"].rpartition("/")[2]: "rn" in one for one in listed}
    assert hosted == {
        "shown.md": True, "display.md": True, "secret.md": False, "note.md": False, "thought.md": False,
    }  # fmt: skip
    # Beside the hosted files lies what the turn leaves behind, which is nobody's to download.
    stored = [path.read_text() for path in (tmp_path / "store").rglob("attachments/**/*") if path.is_file()]
    assert sorted(stored) == ["shown", "shown and a file"]


async def test_the_turn_may_end_while_it_is_written(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    landing = inside.assembly.services.landing
    settled = landing._settled

    async def ended(path: FilePath) -> None:
        await inside.begin("turn_10")
        await settled(path)

    monkeypatch.setattr(landing, "_settled", ended)
    with pytest.raises(UnknownTurn):
        await write(inside)
    assert not (inside.out / PATH.physical).exists()


async def test_whoever_stops_waiting_leaves_nothing_half_done(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    placed = asyncio.Event()
    loop = asyncio.get_running_loop()
    place = inside.assembly.outdir.place

    def noticed(*args: Any, **options: Any) -> Placed:
        done = place(*args, **options)
        loop.call_soon_threadsafe(placed.set)
        return done

    monkeypatch.setattr(inside.assembly.outdir, "place", noticed)
    writing = asyncio.create_task(write(inside))
    async with asyncio.timeout(5):
        await placed.wait()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
    assert files(inside) == {PATH.physical: "new"}
    artifact = inside.workspace.artifact(PATH)
    assert artifact is not None
    assert artifact.sha256() == sha("new")
    assert (await write(inside, "newer"))["artifact"]["version"] == 2


async def test_a_restart_finds_what_was_written(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin("turn_9")
        await write(inside, "old", kind="display", description="words")
        before = (await write(inside, "new"))["artifact"]
    async with awake(tmp_path) as inside:
        (found,) = (await inside.ask("artifact/resolve", {"paths": [FILE]}))["results"]
        assert found["artifact"] == before


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(
        st.binary(max_size=2000),
        st.text(max_size=500).map(lambda text: text.encode("utf-8", "ignore")),
        st.sampled_from([b"", b"\xef\xbb\xbfbom\r\n", b"\0", b"\x89PNG\r\n\x1a\n" + bytes(50), b"x" * 300_000]),
    ),
    name=st.sampled_from(["a.md", "b.png", "c", "d.json", "e.pdf", "f.bin"]),
)
async def test_what_is_written_and_deleted_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str
) -> None:
    async with awake(tmp_path_factory.mktemp("w")) as inside:
        await inside.begin("turn_9")
        packed = base64.b64encode(content).decode()
        asked = {"path": name, "kind": "file", "base64": packed}
        artifact = (await inside.ask("artifact/write", asked))["artifact"]
        file = inside.out / artifact["physical_path"]
        file.unlink()
        answer = await inside.ask("artifact/rehost", {"paths": [artifact["artifact_path"]]})
        assert answer["missing"] == []
        assert file.read_bytes() == content


async def test_a_daemon_that_dies_before_it_tells_of_an_internal_file_shows_it_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin()

        def die(*_: object) -> None:
            raise SystemError("as if killed here")

        async def nothing(*_: object) -> None:
            """The dead undo nothing."""

        landing = inside.assembly.services.landing
        monkeypatch.setattr(landing, "_keep", die)
        monkeypatch.setattr(landing, "_take_back", nothing)
        monkeypatch.setattr(landing, "_promise_nothing", nothing)
        with pytest.raises(SystemError):
            await inside.ask(
                "artifact/write", {"path": "n.md", "content": "secret", "kind": "file", "visibility": "internal"}
            )
    async with awake(tmp_path) as inside:
        await inside.sync()
        assert (inside.out / "turn_1/files/n.md").exists()
        assert (await inside.ask("artifact/list", role="editor"))["artifacts"] == []
        assert (await inside.ask("sources/list"))["rows"] == []


async def test_a_promise_that_was_not_kept_binds_nobody(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    await inside.begin()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(inside.assembly.services.landing, "_keep", refuse)
    with pytest.raises(OSError, match="No space"):
        await inside.ask("artifact/write", {"path": "n.md", "content": "x", "kind": "file", "visibility": "internal"})
    inside.write("turn_1/files/n.md", "somebody else's")
    await inside.sync()
    assert [one["visibility"] for one in (await inside.ask("artifact/list"))["artifacts"]] == ["external"]
