"""The catalogue is made when it is asked for, and kept up from then on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.inside import awake

pytestmark = pytest.mark.rule("editor.completes-paths-and-citations")


async def test_what_was_there_and_what_comes_is_in_it(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        catalogue = inside.assembly.services.catalogue
        await inside.begin("turn_1")
        inside.write("turn_1/files/a.txt")
        await inside.sync()
        assert len(await catalogue.ready()) == 1
        inside.write("turn_1/files/b.txt")
        await inside.sync()
        assert len(await catalogue.ready()) == 2
        assert len(inside.workspace.listeners) == len(set(inside.workspace.listeners))


async def test_the_newest_turn_comes_first(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        catalogue = inside.assembly.services.catalogue
        for turn in ("turn_b", "turn_a", "turn_empty"):
            await inside.begin(turn)
            if turn != "turn_empty":
                inside.write(f"{turn}/files/a.txt")
                await inside.sync()
        await catalogue.ready()
        assert catalogue.newest_first() == ["turn_a", "turn_b"]
