"""A summary may forget whatever it likes: no artifact is lost from the agent's sight, and everything still resolves."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.core.compaction import check_cut
from sidecar.core.entries import BlocksHidden, BlockTold, Embedded
from sidecar.core.errors import BadSelector, Refusal, Stale
from tests.rendered_world import FILES, World, digest, seen

PROMPT = {"type": "user.prompt", "text": "go on"}


def content(path: str, **more: Any) -> dict[str, Any]:
    return {"type": "react.tool.result", "path": path, "text": "some content", **more}


def metadata(path: str, **more: Any) -> dict[str, Any]:
    return {"type": "react.tool.result", "mime": "application/json", "text": digest(path, "external"), **more}


async def compacted(world: World, cut: int, summary: str, embedding: list[float] | None = None) -> dict[str, Any]:
    """What the daemon answers; the summary is durable afterwards."""
    entries, result = await world.compacting().decide(cut, summary, embedding)
    await world.stage(*entries)
    return result


async def rendered_text(world: World) -> str:
    return "\n".join(message["text"] for message in (await world.render())["messages"])


def latest_summary(world: World) -> dict[str, Any]:
    assert world.workspace.timeline.summary is not None
    (body,) = world.journal.bodies([world.workspace.timeline.seqs[world.workspace.timeline.summary]])
    return orjson.loads(body)


# Artifacts as they come: whole, without metadata, with metadata alone, hidden, and found on disk alone.
MAKERS = {
    "whole": lambda path: [metadata(path), content(path)],
    "content": lambda path: [content(path, meta={"digest": digest(path, "external")})],
    "metadata": lambda path: [metadata(path)],
    "hidden": lambda path: [metadata(path, hidden=True), content(path, hidden=True, replacement_text="HIDDEN")],
    "mute": lambda path: [content(path, hidden=True)],
}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("make"), st.sampled_from(sorted(MAKERS)), st.sampled_from(FILES)),
        st.tuples(st.just("see"), st.sampled_from(FILES)),
        st.tuples(st.just("compact"), st.integers(0, 200), st.lists(st.sampled_from(FILES), max_size=2)),
    ),
    max_size=10,
)


async def carry_out(world: World, step: tuple[Any, ...]) -> None:
    match step:
        case ("make", how, path):
            turn = path.removeprefix("fi:").partition(".")[0]
            await world.tell(*({**block, "turn_id": turn} for block in MAKERS[how](path)), {**PROMPT, "turn_id": turn})
        case ("see", path):
            await world.stage(seen(path.removeprefix("fi:").replace(".files/", "/files/"), "external"))
        case ("compact", keep, named):
            plan = await world.compacting().plan(world.sight(), keep)
            if plan["cut"] is not None:
                await compacted(world, plan["cut"], " and ".join(["We made", *named]))


@pytest.mark.rule("compaction.never-loses-a-path", "compaction.keeps-the-metadata-blocks")
@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(0, 100))
def test_no_artifact_is_lost_from_sight_however_often_it_is_compacted(steps: list[tuple[Any, ...]], keep: int) -> None:
    async def play() -> None:
        world = World()
        for step in steps:
            await carry_out(world, step)
        plan = await world.compacting().plan(world.sight(), keep)
        planned = [one["artifact_path"] for one in plan["digest"]["artifacts"]]
        assert all(f'"artifact_path":"{path}"' in plan["text"] for path in planned)
        before = await rendered_text(world)
        visible = [path for path in FILES if path in before and world.workspace.artifacts.get(path) is not None]
        if plan["cut"] is not None:
            await compacted(world, plan["cut"], "What was before.")
        after = await rendered_text(world)
        assert [path for path in {*planned, *visible} if path not in after] == []
        for path in planned:
            assert world.workspace.artifacts.get(path) is not None

    asyncio.run(play())


@pytest.mark.rule("compaction.keeps-the-metadata-blocks")
async def test_the_plan_names_artifacts_whose_blocks_are_hidden_or_gone() -> None:
    world = World()
    for how, path in zip(MAKERS, FILES, strict=False):
        await carry_out(world, ("make", how, path))
    await world.stage(seen("turn_1/files/found.txt", "external"))
    plan = await world.compacting().plan(world.sight(), 0)
    listed = plan["text"].partition("<artifacts>\n")[2].partition("\n</artifacts>")[0]
    digests = [orjson.loads(line) for line in listed.splitlines()]
    assert digests == plan["digest"]["artifacts"]
    assert {one["artifact_path"] for one in digests} >= {*FILES, "fi:turn_1.files/found.txt"}
    assert all({"physical_path", "mime", "kind", "visibility"} <= one.keys() for one in digests)


@pytest.mark.rule("compaction.forgotten-refs-are-listed")
async def test_what_a_summary_forgets_or_invents_is_told_and_kept() -> None:
    world = World()
    await world.tell(metadata(FILES[0]), content(FILES[0]), metadata(FILES[1]), PROMPT, PROMPT)
    text = f"Made {FILES[1]}, read fi:turn_9.files/no.txt and ar:turn_1.assistant.completion, see [[S:7]]."
    answer = await compacted(world, 3, text)
    lost = ["fi:turn_9.files/no.txt", "ar:turn_1.assistant.completion", "[[S:7]]"]
    assert {said["code"]: said["missing"] for said in answer["notices"]} == {
        "refs_forgotten": [FILES[0]],
        "refs_unresolved": lost,
    }
    kept = latest_summary(world)["meta"]["compaction_digest"]
    assert (kept["forgotten"], kept["unresolved"]) == ([FILES[0]], lost)
    assert FILES[0] in await rendered_text(world)


async def test_a_summary_that_names_all_forgets_nothing() -> None:
    world = World()
    await world.tell(metadata(FILES[0]), metadata(FILES[1]), PROMPT, PROMPT)
    physical = FILES[1].removeprefix("fi:").replace(".files/", "/files/")
    answer = await compacted(world, 2, f"Made `{FILES[0]}` and {physical}; this is su:turn_1.conv.range.summary.")
    assert answer["notices"] == []


@pytest.mark.rule("compaction.the-daemon-calls-no-model")
async def test_the_summary_and_its_vector_are_the_callers() -> None:
    world = World()
    await world.tell(PROMPT, PROMPT)
    entries, result = await world.compacting().decide(1, "Mine.", [1.0, 2.5])
    told, vector = entries
    assert isinstance(told, BlockTold)
    assert vector == Embedded("turn_1", "conv.range.summary", (1.0, 2.5))
    assert result == {"path": "su:turn_1.conv.range.summary", "cut": 1, "notices": []}
    await world.stage(*entries)
    block = latest_summary(world)
    assert (block["text"], block["author"], block["meta"]["cut"]) == ("Mine.", "system", 1)


@pytest.mark.rule("compaction.cuts-at-stated-points")
async def test_a_cut_is_checked_again_before_it_is_decided() -> None:
    world = World()
    await world.tell(PROMPT, content(FILES[0]), PROMPT, PROMPT)
    with pytest.raises(BadSelector):
        await world.compacting().decide(1, "x", None)
    long = " ar:turn_1.user.prompt" * 1000
    deciding = asyncio.create_task(world.compacting().decide(2, long, None))
    await asyncio.sleep(0)
    await world.tell({"type": "conv.range.summary", "text": "faster", "meta": {"cut": 3}})
    with pytest.raises(Stale):
        await deciding


async def test_a_later_plan_begins_with_the_summary_before_it_and_what_that_forgot() -> None:
    world = World()
    await world.tell({"type": "turn.header"}, metadata(FILES[0]), PROMPT, {**PROMPT, "text": "the rest"}, PROMPT)
    await compacted(world, 2, "First of all.")
    plan = await world.compacting().plan(world.sight(), 12)
    assert plan["cut"] == 4
    assert plan["text"].startswith(f"First of all.\n\n[ARTIFACTS NOT NAMED ABOVE]\n{FILES[0]}\n\n[TURN turn_1]")
    assert "the rest" in plan["text"]
    assert plan["digest"]["artifacts"] == []
    await compacted(world, plan["cut"], "Second.")
    assert latest_summary(world)["meta"]["compaction_digest"]["forgotten"] == [FILES[0]]


async def test_what_was_hidden_is_listed_by_path() -> None:
    world = World()
    worded = {"hidden": True, "replacement_text": "gone"}
    await world.tell(
        content(FILES[0]), content(FILES[0], hidden=True), {"text": "x", **worded}, content(FILES[1], **worded)
    )
    await world.tell({"type": "react.thinking", "hidden": True, "text": "hm"}, PROMPT, PROMPT)
    await world.stage(BlocksHidden((0,), "HIDDEN"))
    plan = await world.compacting().plan(world.sight(), 0)
    assert plan["digest"]["hidden_blocks"] == [
        {"path": FILES[0], "blocks": 2, "replacement_text": "HIDDEN"},
        {"index": 2, "blocks": 1, "replacement_text": "gone"},
        {"path": FILES[1], "blocks": 1, "replacement_text": "gone"},
    ]


async def test_pictures_are_named_in_the_text_and_not_shown() -> None:
    world = World()
    await world.tell({"type": "user.attachment", "mime": "image/png", "base64": "QUJD"}, PROMPT, PROMPT)
    plan = await world.compacting().plan(world.sight(), 0)
    assert "(image/png, 3 bytes, is not shown here)" in plan["text"]
    assert "QUJD" not in plan["text"]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.sampled_from(["turn.header", "user.prompt", "note", "react.tool.call", "react.tool.result"]), max_size=12
    ),
    st.integers(0, 120),
)
def test_what_a_plan_cuts_can_be_compacted(kinds: list[str], keep: int) -> None:
    async def play() -> None:
        world = World()
        await world.tell(*({"type": kind, "turn_id": f"turn_{at // 4}"} for at, kind in enumerate(kinds)))
        plan = await world.compacting().plan(world.sight(), keep)
        if plan["cut"] is None:
            assert (plan["text"], plan["covered_turn_ids"]) == ("", [])
            return
        check_cut(world.workspace.timeline, plan["cut"])
        assert plan.get("split_turn_id") not in plan["covered_turn_ids"]
        answer = await compacted(world, plan["cut"], "before")
        assert (await world.render())["messages"][0]["path"] == answer["path"]
        with pytest.raises(Refusal):
            await compacted(world, plan["cut"], "again")

    asyncio.run(play())
