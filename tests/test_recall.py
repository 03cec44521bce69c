"""Blocks are read at once where that is quick, and in a hand where it is not; they are the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from sidecar.recall import recall, recall_as_they_stand
from sidecar.stores.journal import BYTES_NOW
from tests.server.inside import Inside, awake


@pytest_asyncio.fixture
async def inside(tmp_path: Path) -> AsyncIterator[Inside]:
    async with awake(tmp_path) as one:
        yield one


@pytest.mark.parametrize(("texts", "is_handed"), [(["a", "b"], False), (["a", "x" * BYTES_NOW], True)])
async def test_long_blocks_are_read_off_the_loop(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, texts: list[str], is_handed: bool
) -> None:
    await inside.begin()
    await inside.ask("timeline/append", {"blocks": [{"type": "react.note", "text": text} for text in texts]})
    workspace, looker = inside.workspace, inside.assembly.looker
    handed: list[object] = []
    off_loop = looker.off_loop
    monkeypatch.setattr(looker, "off_loop", lambda work, *args: handed.append(work) or off_loop(work, *args))
    numbers = [number for number, head in enumerate(workspace.timeline.heads) if head[0] == "react.note"]
    async with asyncio.timeout(30):
        while workspace.busy:  # noqa: ASYNC110 - while it commits nothing is read at once
            await asyncio.sleep(0.01)
        blocks = await recall(workspace, looker, numbers)
    assert [block["text"] for block in blocks] == texts
    assert bool(handed) is is_handed


async def test_what_is_told_while_blocks_are_read_was_not_asked_for(inside: Inside) -> None:
    await inside.begin()
    note = {"type": "react.note", "path": "ar:turn_1.note.x", "text": "x" * BYTES_NOW}
    await inside.ask("timeline/append", {"blocks": [note, note]})
    workspace, looker = inside.workspace, inside.assembly.looker
    numbers = workspace.timeline.at(note["path"])  # as it grows
    reading = asyncio.create_task(recall_as_they_stand(workspace, looker, numbers))
    texts = asyncio.create_task(inside.assembly.services.reader.texts(note["path"]))
    await asyncio.sleep(0)
    await inside.ask("timeline/append", {"blocks": [note]})
    async with asyncio.timeout(30):
        assert (len(await reading), len(await texts), len(numbers)) == (2, 2, 3)
