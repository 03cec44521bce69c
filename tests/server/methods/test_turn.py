"""A turn begins once, and the first one names the conversation."""

from __future__ import annotations

import pytest

from sidecar.core.errors import NotPermitted
from tests.server.inside import Inside


async def test_a_turn_begins_with_its_header_and_prompt(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "make a report"})
    blocks = (await inside.ask("timeline/blocks"))["blocks"]
    assert [(block["type"], block.get("path")) for block in blocks] == [
        ("turn.header", None),
        ("user.prompt", "ar:turn_1.user.prompt"),
    ]


async def test_beginning_the_open_turn_again_changes_nothing(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "a"})
    revision = inside.workspace.revision
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "a"})
    assert inside.workspace.revision == revision


async def test_the_open_turn_with_other_params_is_refused(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "a"})
    with pytest.raises(NotPermitted):
        await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "b"})


async def test_another_turn_ends_the_open_one_for_good(inside: Inside) -> None:
    await inside.begin("turn_1")
    await inside.begin("turn_2")
    assert (await inside.ask("workspace/status"))["turn_id"] == "turn_2"
    with pytest.raises(NotPermitted):
        await inside.begin("turn_1")


async def test_an_abandoned_turn_settles_what_its_calls_made(inside: Inside) -> None:
    await inside.begin("turn_1")
    await inside.ask("call/begin", {"tool_call_id": "tc_1", "tool_id": "exec", "params": {}})
    inside.write("turn_1/files/a.txt")
    await inside.sync()
    await inside.begin("turn_2")
    resolved = await inside.ask("artifact/resolve", {"paths": ["fi:turn_1.files/a.txt"]})
    artifact = resolved["results"][0]["artifact"]
    assert (artifact["visibility"], artifact["sid"]) == ("external", 1)


async def test_another_conversation_is_refused(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "conversation": {"conversation_id": "c1"}})
    assert (await inside.ask("workspace/status"))["conversation"]["conversation_id"] == "c1"
    with pytest.raises(NotPermitted):
        await inside.ask("turn/begin", {"turn_id": "turn_2", "conversation": {"conversation_id": "c2"}})
