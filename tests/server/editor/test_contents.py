"""Older versions as documents: addresses in any editor's spelling, texts with the hash they had, clear refusals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from sidecar.core import limits
from sidecar.core.errors import BadPath, UnsafePath
from sidecar.core.paths import parse_physical
from sidecar.server.editor import contents
from sidecar.server.editor.contents import METHOD, parse_uri, uri_of
from tests.server.editor.pens import Room, made_by, room

pytestmark = pytest.mark.rule("editor.older-versions-are-documents")

URI = "artifact-sidecar:/turn_1/files/a.md?version="


@pytest_asyncio.fixture
async def at(tmp_path: Path) -> AsyncIterator[Room]:
    async with room(tmp_path, contents) as made:
        await made_by(made.inside, "tc_1", "a.md", internal=["hidden.md"])
        yield made


async def again(at: Room, content: str | bytes, file: str = "a.md") -> None:
    at.inside.write(f"turn_1/files/{file}", content)
    await at.inside.sync()


async def test_each_version_is_answered_as_it_was(at: Room) -> None:
    await again(at, "zweite 🎉\n")
    await again(at, "third\n")
    pen = await at.pen()
    texts = [(await pen.ask(METHOD, {"uri": f"{URI}{number}"}))["text"] for number in (1, 2, 3)]
    assert texts == ["a.md\n", "zweite 🎉\n", "third\n"]


async def test_the_scheme_is_told_as_a_capability(at: Room) -> None:
    told = (await at.pen()).capabilities["workspace"]["textDocumentContent"]
    assert told == {"schemes": ["artifact-sidecar"]}


@pytest.mark.parametrize("physical", ["turn_1/files/a.md", "turn_1/files/a b/ü?#%41=.md", "turn_1/attachments/x&y.txt"])
def test_addresses_lead_back_to_where_they_came_from(physical: str) -> None:
    path = parse_physical(physical)
    assert parse_uri(uri_of(path, 12)) == (path, 12)


@pytest.mark.parametrize(
    "uri",
    [
        "artifact-sidecar:/turn_1/files/a%20b.md?version=2",
        "artifact-sidecar:/turn_1/files/a%20b.md?version%3D2",
        "artifact-sidecar:///turn_1/files/a%20b.md?version=2",
        "artifact-sidecar:/turn_1/files/a%20b.md?version=2#L3",
        "artifact-sidecar:/turn_1/files/a b.md?version=2",
    ],
)
def test_addresses_are_read_as_editors_spell_them(uri: str) -> None:
    path, version = parse_uri(uri.partition("#")[0])
    assert (path.physical, version) == ("turn_1/files/a b.md", 2)


@pytest.mark.parametrize(
    "uri",
    [
        "", "file:///a.md?version=1", "artifact-sidecar:/turn_1/files/a.md", "artifact-sidecar:/a?version=x",
        "artifact-sidecar:/a?version=-1", "artifact-sidecar:?version=1", "artifact-sidecar:/a?version=1&x=2",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(uri: str) -> None:
    with pytest.raises(BadPath):
        parse_uri(uri)


@pytest.mark.parametrize("path", ["..%2F..%2Fetc/passwd", "%2Fetc/passwd", "a%00b", "a%5Cb"])
def test_an_address_never_leads_out_of_the_folder(path: str) -> None:
    with pytest.raises(UnsafePath):
        parse_uri(f"artifact-sidecar:/{path}?version=1")


@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        (f"{URI}2", "not_found"),
        (f"{URI}0", "not_found"),
        ("artifact-sidecar:/turn_1/files/none.md?version=1", "not_found"),
        ("artifact-sidecar:/turn_1/files/hidden.md?version=1", "not_found"),
        ("artifact-sidecar:/../x?version=1", "unsafe_path"),
        ("artifact-sidecar:/x", "bad_path"),
    ],
)
async def test_what_is_not_there_is_refused_in_words(at: Room, uri: str, kind: str) -> None:
    error = await (await at.pen()).refused(METHOD, {"uri": uri})
    assert (error["code"], error["data"]["kind"]) == (-32803, kind)
    assert error["data"]["hint"]


async def test_a_version_that_is_no_text_is_refused(at: Room) -> None:
    await again(at, b"\0\1")
    error = await (await at.pen()).refused(METHOD, {"uri": f"{URI}2"})
    assert (error["data"]["kind"], "no text" in error["data"]["hint"]) == ("not_permitted", True)


async def test_a_long_version_is_refused_with_its_size(at: Room) -> None:
    await again(at, "x" * (limits.OLD_VERSION_BYTES + 1))
    error = await (await at.pen()).refused(METHOD, {"uri": f"{URI}2"})
    assert (error["data"]["kind"], str(limits.OLD_VERSION_BYTES) in error["data"]["hint"]) == ("too_large", True)


async def test_bytes_that_are_nowhere_are_said_to_be_gone(at: Room) -> None:
    await again(at, "second\n")
    blobs = at.inside.assembly.blobs
    artifact = at.inside.workspace.artifact(parse_physical("turn_1/files/a.md"))
    assert artifact is not None
    blobs.evict(str(artifact.versions[0].sha256))
    artifact.versions[0].blocks.clear()
    error = await (await at.pen()).refused(METHOD, {"uri": f"{URI}1"})
    assert (error["data"]["kind"], "neither kept nor hosted" in error["data"]["hint"]) == ("not_found", True)
