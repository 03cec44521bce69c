"""A change asked for twice under one id happens once, also when the second asking comes too early."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sidecar.core.errors import Stale
from tests.server.inside import Inside, awake

ASKED = {"blocks": [{"type": "react.note", "turn_id": "turn_1"}], "request_id": "r1"}


async def test_two_at_once_append_one_block(inside: Inside) -> None:
    first, second = await asyncio.gather(inside.ask("timeline/append", ASKED), inside.ask("timeline/append", ASKED))
    assert first == second
    assert len(inside.workspace.timeline) == 1


async def test_the_answer_outlives_the_daemon(tmp_path: Path) -> None:
    async with awake(tmp_path) as before:
        first = await before.ask("timeline/append", ASKED)
    async with awake(tmp_path) as after:
        assert await after.ask("timeline/append", ASKED) == first
        assert len(after.workspace.timeline) == 1


@pytest.mark.rule("wire.request-id-with-other-params-is-stale")
async def test_one_id_with_two_meanings_at_once_is_stale(inside: Inside) -> None:
    await inside.begin()
    asked = [{"path": f"{name}.md", "content": name, "kind": "file", "request_id": "r1"} for name in ("a", "b")]
    first, second = await asyncio.gather(*(inside.ask("artifact/write", one) for one in asked), return_exceptions=True)
    assert isinstance(second, Stale)
    assert first == await inside.ask("artifact/write", asked[0])
    assert not (inside.out / "turn_1/files/b.md").exists()
    assert inside.workspace.asking == {}


async def test_what_was_answered_is_not_held_in_memory(inside: Inside) -> None:
    await inside.begin()
    await inside.ask("artifact/write", {"path": "a.md", "content": "x", "kind": "file", "request_id": "r1"})
    assert [type(part) for part in inside.workspace.answers.durable["r1"]] == [str, int]
