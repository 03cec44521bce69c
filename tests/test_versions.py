"""The bytes of a version: from what was kept, from the timeline, from the store, and never any other bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from sidecar.core.artifacts import Artifact
from sidecar.core.errors import Fault, NotFound, StoreUnavailable, TooLarge
from sidecar.core.paths import parse_physical
from sidecar.stores.folder_store import FolderStore
from tests.server.inside import Inside, awake

pytestmark = pytest.mark.rule("editor.older-versions-are-documents")

PATH = "turn_1/files/a.md"
OLD = "first\n" * 100


class Moody(FolderStore):
    """A folder that can be told to fail, or to give other bytes."""

    fault: Fault | None = None
    lies = False

    def get(self, key: str, *, start: int = 0) -> object:  # type: ignore[override]
        if self.fault is not None:
            raise StoreUnavailable("the store", "it is in a mood", fault=self.fault)
        return iter([b"other"]) if self.lies else super().get(key, start=start)


@pytest.fixture
def store(tmp_path: Path) -> Moody:
    return Moody(str(tmp_path / "store"))


@pytest_asyncio.fixture
async def hosted(tmp_path: Path, store: Moody) -> AsyncIterator[Inside]:
    """A file with two versions; the first one is hosted, and no longer kept."""
    async with awake(tmp_path, store=store) as inside:
        await inside.begin("turn_1")
        inside.write(PATH, OLD)
        await inside.sync()
        await inside.ask("turn/end", {"turn_id": "turn_1"})
        inside.write(PATH, "second\n")
        await inside.sync()
        yield inside


def artifact(inside: Inside) -> Artifact:
    found = inside.workspace.artifact(parse_physical(PATH))
    assert found is not None
    return found


async def read(inside: Inside, number: int, **more: int) -> bytes:
    return await inside.assembly.services.versions.bytes_of(artifact(inside), number, **more)


def forget(inside: Inside, number: int) -> None:
    inside.assembly.blobs.evict(str(artifact(inside).versions[number - 1].sha256))


async def test_kept_bytes_are_answered(hosted: Inside) -> None:
    assert [await read(hosted, number) for number in (1, 2)] == [OLD.encode(), b"second\n"]


async def test_what_stands_on_disk_is_answered_when_it_is_that_version(hosted: Inside) -> None:
    forget(hosted, 2)
    assert await read(hosted, 2) == b"second\n"


async def test_what_is_hosted_comes_from_the_store(hosted: Inside) -> None:
    forget(hosted, 1)
    artifact(hosted).versions[0].blocks.clear()
    assert await read(hosted, 1) == OLD.encode()
    assert (hosted.out / PATH).read_text("utf-8") == "second\n"


async def test_a_store_that_is_away_is_said_to_be(hosted: Inside, store: Moody) -> None:
    forget(hosted, 1)
    artifact(hosted).versions[0].blocks.clear()
    store.fault = "unreachable"
    with pytest.raises(StoreUnavailable) as refusal:
        await read(hosted, 1)
    assert refusal.value.fault == "unreachable"


async def test_other_bytes_are_never_answered(hosted: Inside, store: Moody) -> None:
    forget(hosted, 1)
    artifact(hosted).versions[0].blocks.clear()
    store.lies = True
    with pytest.raises(StoreUnavailable) as refusal:
        await read(hosted, 1)
    assert refusal.value.fault == "wrong_bytes"


async def test_the_timeline_gives_what_it_holds(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin("turn_1")
        for text in ("one", "two"):
            await inside.ask("artifact/write", {"path": "a.md", "content": text, "kind": "display"})
        assert [await read(inside, number) for number in (1, 2)] == [b"one", b"two"]


@pytest.mark.parametrize("number", [0, -1, 3, 10**12])
async def test_there_are_no_other_versions(hosted: Inside, number: int) -> None:
    with pytest.raises(NotFound, match="2 versions"):
        await read(hosted, number)


async def test_too_much_is_refused(hosted: Inside) -> None:
    with pytest.raises(TooLarge):
        await read(hosted, 1, most=10)
