"""A change asked for twice under one id happens once, also when the second asking comes too early."""

from __future__ import annotations

import asyncio
from pathlib import Path

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
