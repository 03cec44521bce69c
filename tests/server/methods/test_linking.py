"""Links: for what users may see, by a handle that was given out, and for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import pytest_asyncio

from sidecar.core.errors import BadPath, NotFound, NotPermitted, Refusal, UnsafePath
from sidecar.stores.folder_store import FolderStore
from tests.server.inside import Inside, awake
from tests.test_hosting import A, call, hosted


@pytest_asyncio.fixture
async def hosting(tmp_path: Path) -> AsyncIterator[Inside]:
    async with awake(tmp_path, store=FolderStore(str(tmp_path / "store"))) as inside:
        await inside.begin("turn_1")
        await call(inside, {A: "one"})
        await hosted(inside)
        yield inside


def download(url: str) -> bytes:
    with urlopen(url) as stream:
        return stream.read()


async def link(inside: Inside, role: str = "runtime", **params: Any) -> dict[str, Any]:
    return await inside.ask("artifact/link", params, role=role)


@pytest.mark.rule("link.mints-a-url-for-what-was-given-out")
@pytest.mark.parametrize("role", ["runtime", "editor"])
async def test_with_a_folder_the_link_leads_to_the_copy_in_out_dir(hosting: Inside, role: str) -> None:
    (hosting.out / A).unlink()
    rn = (await hosted(hosting, A, role))["rn"]
    for params in ({"rn": rn}, {"path": A}, {"path": "fi:turn_1.files/a/report.md", "ttl_seconds": 60}):
        answer = await link(hosting, role, **params)
        assert answer["url"] == (hosting.out / A).as_uri()
        assert await asyncio.to_thread(download, answer["url"]) == b"one"


async def test_a_handle_of_an_older_version_has_no_link_in_a_folder(hosting: Inside) -> None:
    rn = (await hosted(hosting))["rn"]
    await call(hosting, {A: "two!"}, "tc_2")
    await hosted(hosting)
    with pytest.raises(NotFound):
        await link(hosting, rn=rn)


@pytest.mark.rule("link.internal-is-refused")
async def test_an_internal_file_gets_no_link_even_by_the_handle_it_had(hosting: Inside) -> None:
    rn = (await hosted(hosting))["rn"]
    await call(hosting, {A: "secret"}, "tc_2", expect=[{"path": A, "visibility": "internal"}])
    for params in ({"rn": rn}, {"path": A}):
        with pytest.raises(NotPermitted):
            await link(hosting, "editor", **params)


@pytest.mark.parametrize(
    ("params", "refusal"),
    [
        ({"rn": "ef:default:default:chatbot:file:local:x:turn_1:artifact:y"}, NotFound),
        ({"path": "turn_1/files/never.txt"}, NotFound),
        ({"path": "../x"}, UnsafePath),
        ({"path": "ar:turn_1.user.prompt"}, BadPath),
    ],
)
async def test_what_leads_nowhere_gets_no_link(hosting: Inside, params: Any, refusal: type[Refusal]) -> None:
    with pytest.raises(refusal):
        await link(hosting, **params)


async def test_neither_a_key_nor_a_uri_is_a_handle(hosting: Inside) -> None:
    artifact = await hosted(hosting)
    for wrong in (artifact["key"], artifact["hosted_uri"]):
        with pytest.raises(NotFound):
            await link(hosting, rn=wrong)
