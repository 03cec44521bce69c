"""In which call a change is told, and what a call of its own begins and ends with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import pytest_asyncio

from sidecar.core.artifacts import Visibility
from sidecar.core.blocks import FLAGS, INTERNAL
from sidecar.core.entries import BlockTold, CallBegun, CallEnded
from sidecar.core.errors import NotFound, NotPermitted, UnknownTurn
from sidecar.core.told_blocks import result_block
from sidecar.within import Telling, Within, about, audience, entries_in, within
from tests.server.inside import Inside, awake

OWN = Within("write_1", "turn_9", "react.write", is_own=True)
THEIRS = Within("tc_1", "turn_9", "exec", is_own=False)
TELLING = Telling("write", None, {"path": "a.md"}, {"content": "a secret"})


@pytest_asyncio.fixture
async def inside(tmp_path: Path) -> AsyncIterator[Inside]:
    async with awake(tmp_path) as workspace:
        yield workspace


async def begin_call(inside: Inside, call_id: str) -> None:
    await inside.ask("call/begin", {"tool_call_id": call_id, "tool_id": "exec", "params": {}})


def named(call_id: str | None) -> Telling:
    return Telling("hide", call_id, {})


async def test_a_change_finds_its_call(inside: Inside) -> None:
    workspace = inside.workspace
    with pytest.raises(UnknownTurn):
        within(workspace, named(None))
    await inside.begin("turn_9")
    own = within(workspace, named(None))
    assert (own.tool_call_id[:5], len(own.tool_call_id), own.tool_id, own.is_own) == ("hide_", 17, "react.hide", True)
    await begin_call(inside, "tc_1")
    assert within(workspace, named(None)) == THEIRS
    await begin_call(inside, "tc_2")
    assert within(workspace, named(None)).is_own
    assert within(workspace, named("tc_1")) == THEIRS
    await inside.ask("call/end", {"tool_call_id": "tc_1"})
    with pytest.raises(NotPermitted):
        within(workspace, named("tc_1"))
    with pytest.raises(NotFound):
        within(workspace, named("tc_3"))


def told(call: Within, visibility: Visibility) -> list[BlockTold]:
    block = result_block("turn_9", call.tool_call_id, call.tool_id, {"ok": True})
    entries = entries_in(call, TELLING, [block], (), visibility=visibility, now=1.0)
    assert [type(entry) for entry in entries if not isinstance(entry, BlockTold)] == (
        [CallBegun, CallEnded] if call.is_own else []
    )
    return [entry for entry in entries if isinstance(entry, BlockTold)]


def test_a_call_of_its_own_says_what_was_asked() -> None:
    asked, result = told(OWN, "external")
    assert orjson.loads(orjson.loads(asked.told.body)["text"])["params"] == {"path": "a.md", "content": "a secret"}
    assert orjson.loads(result.told.body)["path"] == "tc:turn_9.write_1.result"
    assert len(told(THEIRS, "external")) == 1


@pytest.mark.parametrize(
    ("visibility", "shows", "is_internal"),
    [("external", True, False), ("pending", True, True), ("internal", False, True)],
)
def test_a_call_is_as_internal_as_what_it_makes(visibility: Visibility, *, shows: bool, is_internal: bool) -> None:
    blocks = told(OWN, visibility)
    assert [bool(block.told.head[FLAGS] & INTERNAL) for block in blocks] == [is_internal] * 2
    assert ("a secret" in blocks[0].told.body.decode()) == shows


def test_blocks_of_a_call_follow_the_artifacts_that_they_name() -> None:
    telling = replace(TELLING, about=("fi:turn_9.files/a.md",))
    blocks = [result_block("turn_9", "write_1", "react.write", {"ok": True})]
    entries = entries_in(OWN, telling, blocks, (), visibility="pending", now=0.0)
    told = [entry.told for entry in entries if isinstance(entry, BlockTold)]
    assert [one.part["about"] for one in told if one.part is not None] == [["fi:turn_9.files/a.md"]] * 2
    assert not any(one.head[FLAGS] & INTERNAL for one in told)


async def test_what_stands_at_paths_says_who_may_be_told(inside: Inside) -> None:
    await inside.begin()
    for name, visibility in (("a.md", "external"), ("b.md", "internal")):
        await inside.ask("artifact/write", {"path": name, "content": "x", "kind": "file", "visibility": visibility})
    (call,) = {head[4] for head in inside.workspace.timeline.heads if head[4].endswith(".call") and head[6] & INTERNAL}
    shown, secret = "fi:turn_1.files/a.md", "fi:turn_1.files/b.md"
    for paths, named, visibility in (
        ((shown,), (shown,), "external"),
        ((shown, "turn_1/files/b.md"), (shown, secret), "internal"),
        ((call,), (secret,), "internal"),
        (("so:sources_pool[1-9]", "../no"), (shown,), "external"),
        ((), (), "external"),
    ):
        assert about(inside.workspace, paths) == named
        assert audience(inside.workspace, paths) == visibility
    await begin_call(inside, "tc_1")
    inside.write("turn_1/files/c.md")
    await inside.sync()
    assert audience(inside.workspace, ("turn_1/files/c.md", shown)) == "pending"
