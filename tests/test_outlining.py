"""Outlines of a workspace: prompts are read once, and nothing is counted for those who may not see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.inside import Inside, awake

pytestmark = pytest.mark.rule("outline.turns-calls-and-counts")


async def make(inside: Inside, turns: int) -> None:
    for number in range(1, turns + 1):
        await inside.ask("turn/begin", {"turn_id": f"turn_{number}", "prompt": f"Question {number}"})
        inside.write(f"turn_{number}/files/a.txt")
    await inside.sync()


async def test_turns_come_with_their_prompts_and_their_ends(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await make(inside, 3)
        outline = await inside.ask("workspace/outline")
        assert [(one["title"], one["status"], one["artifacts"]) for one in outline["turns"]] == [
            ("Question 1", "abandoned", 1), ("Question 2", "abandoned", 1), ("Question 3", "open", 1),
        ]  # fmt: skip
        assert outline["revision"] == inside.workspace.revision


async def test_a_prompt_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with awake(tmp_path) as inside:
        await make(inside, 2)
        first = await inside.ask("workspace/outline")
        with monkeypatch.context() as patched:
            patched.setattr(inside.workspace, "bodies_in_turn", None)
            assert await inside.ask("workspace/outline") == first


@pytest.mark.rule("outline.cut-to-the-role")
async def test_what_an_open_call_makes_is_not_counted_for_editors(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await make(inside, 1)
        await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
        inside.write("turn_1/files/b.txt")
        await inside.sync()
        [turn] = (await inside.ask("workspace/outline"))["turns"]
        assert (turn["artifacts"], turn["calls"][0]["artifacts"]) == (2, 1)
        [turn] = (await inside.ask("workspace/outline", role="editor"))["turns"]
        assert (turn["artifacts"], turn["calls"]) == (1, [])


@pytest.mark.rule("outline.cut-to-the-role")
async def test_a_prompt_that_is_internal_titles_no_turn_of_an_editor(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.ask("turn/begin", {"turn_id": "turn_1"})
        block = {
            "type": "user.prompt",
            "path": "ar:turn_1.user.prompt",
            "text": "x",
            "meta": {"visibility": "internal"},
        }
        await inside.ask("timeline/append", {"blocks": [block]})
        assert (await inside.ask("workspace/outline"))["turns"][0]["title"] == "x"
        assert "title" not in (await inside.ask("workspace/outline", role="editor"))["turns"][0]


async def test_what_comes_later_is_counted_too(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await make(inside, 1)
        assert [one["artifacts"] for one in (await inside.ask("workspace/outline"))["turns"]] == [1]
        inside.write("turn_1/files/b.txt")
        inside.write("turn_9/files/a.txt")
        await inside.sync()
        outline = await inside.ask("workspace/outline")
        assert {one["turn_id"]: one["artifacts"] for one in outline["turns"]} == {"turn_1": 2, "turn_9": 1}
