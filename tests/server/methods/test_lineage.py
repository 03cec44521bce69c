"""What comes over a call's own channel is used by what the call makes; others have no call, whatever they say."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sidecar.core.errors import NotFound, NotPermitted, Refusal
from sidecar.server.caller import Client
from tests.server.inside import Inside, awake

A, B, OUT = "fi:turn_1.files/a.txt", "fi:turn_1.files/b.txt", "fi:turn_2.files/out.txt"


def connect(inside: Inside, name: str, role: str = "exec") -> Client:
    """The connection of a role gets a name, as the kernel would give it one."""
    client = inside.clients[role]
    client.channel = name
    inside.assembly.services.channels.join(client)
    return client


async def begin(inside: Inside, call: str = "tc_1", **more: Any) -> None:
    await inside.ask("call/begin", {"tool_call_id": call, "tool_id": "exec", "params": {}, **more})


async def up(inside: Inside, path: str, **more: Any) -> tuple[list[tuple[str, str, str]], bool]:
    answer = await inside.ask("artifact/lineage", {"path": path, "direction": "up", **more})
    return [(edge["from"], edge["tool_call_id"], edge["how"]) for edge in answer["edges"]], answer["complete"]


@pytest_asyncio.fixture
async def bound(inside: Inside) -> Inside:
    """Two files of an earlier turn, and an open call whose program has the exec connection."""
    inside.write("turn_1/files/a.txt", "one")
    inside.write("turn_1/files/b.txt", "two")
    await inside.sync()
    await inside.begin("turn_2")
    connect(inside, "00a1f")
    await begin(inside, channel="00a1f")
    return inside


ASKED = {
    "fetch": ("artifact/fetch", {"path": A}, A),
    "fetch by its number": ("artifact/fetch", {"path": "so:sources_pool[1]"}, A),
    "fetch what was said": ("artifact/fetch", {"path": "tc:turn_2.tc_1.call"}, "tc:turn_2.tc_1.call"),
    "read": ("artifact/read", {"paths": ["turn_1/files/a.txt"]}, A),
    "read in its call": ("artifact/read", {"paths": ["turn_1/files/a.txt"], "tool_call_id": "tc_1"}, A),
    "rehost": ("artifact/rehost", {"paths": [A]}, A),
    "pull": ("assets/pull", {"content": "<img src='turn_1/files/a.txt'>"}, A),
}


@pytest.mark.rule("lineage.what-a-call-used-went-into-what-it-made")
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
async def test_what_comes_over_a_calls_own_channel_is_used(
    bound: Inside, asked: tuple[str, dict[str, Any], str]
) -> None:
    method, params, used = asked
    await bound.ask(method, params, role="exec")
    bound.write("turn_2/files/out.txt")
    await bound.ask("call/end", {"tool_call_id": "tc_1"})
    assert await up(bound, OUT) == ([(used, "tc_1", "observed")], True)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("artifact/fetch", {"path": "fi:turn_1.files/nothing"}),
        ("artifact/fetch", {"path": "../x"}),
        ("artifact/read", {"paths": ["fi:turn_1.files/nothing"]}),
        ("artifact/read", {"paths": [A], "stats_only": True}),
        ("artifact/rehost", {"paths": ["fi:turn_1.files/nothing"]}),
        ("artifact/resolve", {"paths": [A]}),
    ],
)
async def test_what_was_not_got_was_not_used(bound: Inside, method: str, params: dict[str, Any]) -> None:
    await bound.ask(method, params, role="exec")
    bound.write("turn_2/files/out.txt")
    await bound.ask("call/end", {"tool_call_id": "tc_1"})
    assert await up(bound, OUT) == ([], True)


async def test_a_read_before_or_after_the_call_is_not_its_own(bound: Inside) -> None:
    bound.write("turn_2/files/out.txt")
    await bound.ask("call/end", {"tool_call_id": "tc_1"})
    await bound.ask("artifact/fetch", {"path": A}, role="exec")
    assert await up(bound, OUT) == ([], True)


async def test_without_a_channel_a_read_belongs_to_no_call(inside: Inside) -> None:
    inside.write("turn_1/files/a.txt")
    await inside.begin("turn_2")
    await begin(inside)
    await inside.ask("artifact/fetch", {"path": A}, role="exec")
    inside.write("turn_2/files/out.txt")
    await inside.ask("call/end", {"tool_call_id": "tc_1"})
    assert await up(inside, OUT) == ([], False)


@pytest.mark.rule("lineage.uses-are-durable-and-cost-no-waiting")
async def test_a_use_is_journalled_once_however_often_it_happens(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        inside.write("turn_1/files/a.txt")
        await inside.begin("turn_2")
        connect(inside, "x")
        await begin(inside, channel="x")
        for _ in range(3):
            await inside.ask("artifact/fetch", {"path": A}, role="exec")
            await inside.ask("artifact/read", {"paths": [A, A]}, role="exec")
        inside.write("turn_2/files/out.txt")
        await inside.ask("call/end", {"tool_call_id": "tc_1"})
    with closing(sqlite3.connect(tmp_path / "state/journal.db")) as journal:
        assert len(journal.execute("select * from journal where kind = 'used'").fetchall()) == 1
    async with awake(tmp_path) as again:
        assert await up(again, OUT) == ([(A, "tc_1", "observed")], True)


@pytest.mark.rule("lineage.uses-are-durable-and-cost-no-waiting")
async def test_a_read_is_answered_before_its_use_is_durable(bound: Inside) -> None:
    await bound.workspace.stage()
    before = bound.workspace.revision
    answer = await bound.ask("artifact/fetch", {"path": "so:sources_pool[1]"}, role="exec")
    assert answer["err"] is None
    assert (bound.workspace.revision, bound.workspace.uses.of) == (before, {})
    await bound.workspace.stage()
    assert bound.workspace.uses.of == {"tc_1": {A: "observed"}}


async def test_what_a_record_says_it_was_made_of_is_declared(inside: Inside) -> None:
    inside.write("turn_1/files/a.txt")
    inside.write("turn_1/files/b.txt")
    await inside.sync()
    await inside.begin("turn_1")
    record = {
        "type": "context.artifact",
        "path": "ar:turn_1.context.artifact.draft",
        "artifact_id": "draft",
        "artifact_kind": "inline",
        "value": "text",
        "content_lineage": ["turn_1/files/a.txt"],
        "inputs": {"style": "turn_1/files/b.txt"},
        "sources_used": [1],
        "meta": {"tool_call_id": "tc_7"},
    }
    await inside.ask("timeline/append", {"blocks": [record]})
    edges, complete = await up(inside, "ar:turn_1.context.artifact.draft")
    assert edges == [(A, "tc_7", "declared"), (B, "tc_7", "declared")]
    assert not complete


async def test_a_record_may_be_made_of_one_that_was_told_with_it(inside: Inside) -> None:
    await inside.begin("turn_1")
    first, second = (
        {"type": "context.artifact", "artifact_id": name, "artifact_kind": "inline", "value": name,
         "path": f"ar:turn_1.context.artifact.{name}"}
        for name in ("one", "two")
    )  # fmt: skip
    await inside.ask("timeline/append", {"blocks": [first, {**second, "content_lineage": [first["path"]]}]})
    answer = await inside.ask("artifact/lineage", {"path": second["path"], "direction": "up"})
    assert answer == {"edges": [{"from": first["path"], "to": second["path"], "how": "declared"}], "complete": True}


async def test_the_file_of_a_record_was_made_of_the_same(inside: Inside) -> None:
    inside.write("turn_1/files/a.txt")
    inside.write("turn_1/files/b.txt")
    await inside.sync()
    await inside.begin("turn_1")
    record = {
        "type": "context.artifact", "artifact_id": "page", "artifact_kind": "file",
        "path": "ar:turn_1.context.artifact.page", "value": {"path": "b.txt"}, "content_lineage": [A],
    }  # fmt: skip
    await inside.ask("timeline/append", {"blocks": [record]})
    answer = await inside.ask("artifact/lineage", {"path": A, "direction": "down"})
    assert [edge["to"] for edge in answer["edges"]] == ["ar:turn_1.context.artifact.page", B]


async def test_a_file_without_a_name_has_no_lineage(inside: Inside) -> None:
    inside.write("turn_1.files/a.txt")
    with pytest.raises(Refusal) as refused:
        await up(inside, "turn_1.files/a.txt")
    assert refused.value.kind == "bad_path"


# Which call a connection is of


@pytest.mark.rule("roles.a-channel-is-bound-by-the-runtime", "roles.a-foreign-call-id-is-refused")
async def test_a_bound_channel_may_name_its_call_and_no_other(bound: Inside) -> None:
    await begin(bound, "tc_2")
    read = {"paths": [A], "tool_call_id": "tc_1"}
    assert (await bound.ask("artifact/read", read, role="exec"))["blocks"]
    with pytest.raises(NotPermitted):
        await bound.ask("artifact/read", {**read, "tool_call_id": "tc_2"}, role="exec")
    with pytest.raises(NotPermitted):
        await bound.ask("artifact/read", read, role="renderer")


@pytest.mark.rule("roles.a-channel-is-bound-by-the-runtime")
@pytest.mark.parametrize(
    ("role", "method", "params"),
    [
        ("exec", "artifact/read", {"paths": ["fi:turn_1.files/nothing"]}),
        ("exec", "assets/pull", {"content": "<img src='turn_1/files/nothing.png'>"}),
        ("renderer", "artifact/read", {"paths": ["fi:turn_1.files/nothing"]}),
        ("renderer", "assets/pull", {"content": "<img src='turn_1/files/nothing.png'>"}),
        ("renderer", "artifact/write", {"path": "late.txt", "content": "x", "kind": "file"}),
    ],
)
async def test_a_program_tells_nothing_in_its_call_once_that_has_ended(
    bound: Inside, role: str, method: str, params: dict[str, Any]
) -> None:
    connect(bound, "later", role=role)
    bound.clients[role].call = ""
    await begin(bound, "tc_2", channel="later")
    asked = {**params, "tool_call_id": "tc_2", "request_id": "r"}
    first = await bound.ask(method, asked, role=role)
    await bound.ask("call/end", {"tool_call_id": "tc_2"})
    before = len(bound.workspace.timeline)
    with pytest.raises(NotPermitted) as refused:
        await bound.ask(method, {**asked, "request_id": "s"}, role=role)
    assert refused.value.about == "tc_2"
    assert await bound.ask(method, asked, role=role) == first, "what was answered once is answered again"
    assert len(bound.workspace.timeline) == before


@pytest.mark.rule("roles.exec-never-appends-content")
async def test_a_program_that_reads_in_its_call_tells_the_timeline_notices_alone(bound: Inside) -> None:
    before = len(bound.workspace.timeline)
    read = {"paths": [A, "fi:turn_1.files/nothing"], "tool_call_id": "tc_1"}
    answer = await bound.ask("artifact/read", read, role="exec")
    told = bound.workspace.timeline.heads[before:]
    assert [(head[0], head[4]) for head in told] == [("react.notice", "tc:turn_2.tc_1.notice")]
    assert [block.get("text") for block in answer["blocks"]][1] == "one"
    again = await bound.ask("artifact/read", {**read, "paths": [A]}, role="exec")
    assert [block.get("text") for block in again["blocks"]][1] == "one"


@pytest.mark.rule("roles.a-channel-is-bound-by-the-runtime")
async def test_a_renderer_pulls_and_writes_in_its_call(bound: Inside) -> None:
    connect(bound, "r", role="renderer")
    await begin(bound, "tc_2", channel="r")
    page = {"content": "<img src='turn_1/files/b.txt'>", "tool_call_id": "tc_2"}
    await bound.ask("assets/pull", page, role="renderer")
    write = {"path": "out.txt", "content": "x", "kind": "file", "tool_call_id": "tc_2"}
    await bound.ask("artifact/write", write, role="renderer")
    await bound.ask("call/end", {"tool_call_id": "tc_2"})
    assert (await up(bound, OUT))[0] == [(B, "tc_2", "observed")]


@pytest.mark.rule("roles.a-channel-is-bound-by-the-runtime")
@pytest.mark.parametrize(("name", "kind"), [("nobody", NotFound), ("00a1f", NotPermitted)])
async def test_a_channel_that_is_not_there_or_taken_begins_no_call(bound: Inside, name: str, kind: type) -> None:
    with pytest.raises(kind):
        await begin(bound, "tc_2", channel=name)
    await begin(bound, "tc_2")


async def test_beginning_the_same_call_again_binds_nothing_again(inside: Inside) -> None:
    await inside.begin("turn_2")
    connect(inside, "x")
    asked = {"tool_call_id": "tc_1", "tool_id": "t", "params": {}, "channel": "x", "request_id": "r"}
    first = await inside.ask("call/begin", asked)
    assert await inside.ask("call/begin", asked) == first
