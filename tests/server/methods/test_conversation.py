"""The conversation through its methods: who is told what, and what a repeated request does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sidecar.core.errors import BadPath, NotFound, NotPermitted, Stale, StoreUnavailable, UnknownTurn
from sidecar.server.failures import Failed
from sidecar.stores.folder_store import FolderStore
from tests.server.inside import Inside, awake

NOTE = {"kind": "my.note", "content_str": "soup"}


def store(tmp_path: Path) -> FolderStore:
    return FolderStore(str(tmp_path / "store"))


async def notes(inside: Inside, role: str = "runtime", **asked: Any) -> list[dict[str, Any]]:
    return (await inside.ask("conversation/recent", {"kinds": ["my.note"], **asked}, role=role))["items"]


async def test_the_same_request_twice_at_once_saves_once(tmp_path: Path) -> None:
    async with awake(tmp_path, store=store(tmp_path)) as inside:
        await inside.begin()
        asked = {**NOTE, "request_id": "s-1"}
        first, second = await asyncio.gather(*(inside.ask("conversation/save", asked) for _ in range(2)))
        assert first == second
        assert len(await notes(inside)) == 1
        assert await inside.ask("conversation/save", asked) == first
        with pytest.raises(Stale):
            await inside.ask("conversation/save", {**asked, "content_str": "fish"})


async def test_two_requests_without_an_id_save_twice(tmp_path: Path) -> None:
    async with awake(tmp_path, store=store(tmp_path)) as inside:
        await asyncio.gather(*(inside.ask("conversation/save", NOTE) for _ in range(2)))
        assert len(await notes(inside)) == 2


async def test_without_a_store_only_rows_are_saved(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        with pytest.raises(StoreUnavailable):
            await inside.ask("conversation/save", NOTE)
        saved = await inside.ask("conversation/save", {**NOTE, "index_only": True})
        assert [one["message_id"] for one in await notes(inside)] == [saved["message_id"]]


async def test_a_vector_that_does_not_fit_is_a_wrong_param(tmp_path: Path) -> None:
    async with awake(tmp_path, store=store(tmp_path)) as inside:
        await inside.ask("conversation/save", {**NOTE, "embedding": [1, 0]})
        for method, params in [
            ("conversation/save", {**NOTE, "embedding": [1]}),
            ("conversation/search", {"embedding": [1]}),
        ]:
            with pytest.raises(Failed) as caught:
                await inside.ask(method, params)
            assert caught.value.failure.code == -32602


async def test_accounting_is_kept_at_its_own_place_and_has_no_row(tmp_path: Path) -> None:
    async with awake(tmp_path, store=store(tmp_path)) as inside:
        await inside.begin()
        record = {"service_name": "model", "agent": "answer", "tokens": 3}
        saved = await inside.ask("conversation/save", {"kind": "accounting", "content": record})
        assert "/accounting/default/project/" in saved["hosted_uri"]
        assert len(list((tmp_path / "store" / "accounting").rglob("*.json"))) == 1
        assert (await inside.ask("conversation/recent", {"kinds": ["accounting"]}))["items"] == []


async def test_refusals_are_those_that_are_declared(tmp_path: Path) -> None:
    async with awake(tmp_path, store=store(tmp_path)) as inside:
        for method, params, refusal in [
            ("conversation/save", {"kind": "turn.log", "content": {}}, NotPermitted),
            ("conversation/save", {**NOTE, "turn_id": "turn_9"}, UnknownTurn),
            ("conversation/save", {"kind": "my.note", "message_id": "m", "embedding": [1]}, NotFound),
            ("conversation/recent", {"since": "soon"}, BadPath),
            ("conversation/search", {"query": "x", "until": "soon"}, BadPath),
            ("conversation/reactions", {"since": "soon"}, BadPath),
            ("turn/feedback", {"turn_id": "turn_9", "reaction": "ok", "text": "", "origin": "user"}, UnknownTurn),
        ]:
            with pytest.raises(refusal):
                await inside.ask(method, params)


@pytest.mark.rule("store.saved-contents-are-cut-to-the-role")
async def test_an_editor_gets_handles_and_no_key_and_nothing_internal(tmp_path: Path) -> None:
    async with awake(tmp_path, store=store(tmp_path)) as inside:
        await inside.begin()
        await inside.ask("artifact/write", {"path": "mine.md", "content": "zz", "kind": "file", "channel": "internal"})
        content = {
            "path": "turn_1/files/other.md", "hosted_uri": "s3://b/k", "rn": "ef:r", "key": "cb/k",
            "about": [{"path": "fi:turn_1.files/mine.md", "text": "zz"}, "turn_1/files/mine.md"],
        }  # fmt: skip
        await inside.ask("conversation/save", {"kind": "my.note", "content": content})
        (item,) = await notes(inside, role="editor", with_payload=True)
        assert item["payload"] == {"path": "turn_1/files/other.md", "rn": "ef:r", "about": []}
        assert "mine.md" not in item["text"]
        assert "s3://" not in item["text"]
        (turn,) = (await inside.ask("conversation/fetch", {"kinds": ["my.note"]}, role="editor"))["turns"]
        assert turn["files"] == []
        assert [one["payload"] for one in turn["artifacts"]] == [item["payload"]]
        (hit,) = (await inside.ask("conversation/search", {"query": "other", "kinds": ["my.note"]}, role="editor"))[
            "hits"
        ]
        assert "s3://" not in hit["snippet"]
        assert (await inside.ask("conversation/search", {"query": "zz"}, role="editor"))["hits"] == []


async def test_days_are_counted_back_from_now(tmp_path: Path) -> None:
    async with awake(tmp_path, store=store(tmp_path)) as inside:
        await inside.ask("conversation/save", NOTE)
        assert len(await notes(inside, days=0.5)) == 1
        assert await notes(inside, since="2100-01-01T00:00:00Z") == []
