"""Whatever happened in between, a render of pages says what a render from scratch says, and costs what changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.core.compaction import is_cut_point
from sidecar.core.entries import BlocksHidden, BlocksShown
from sidecar.pages import Room
from sidecar.rendering import Asked
from tests.rendered_world import FILES, SMALL, TURNS, Here, World, digest, seen

LONG = 100  # characters, so that the texts below are some of them long


@pytest.fixture(autouse=True, scope="module")
def some_texts_are_long() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sidecar.pages.LONG_CHARS", LONG)
        yield


# Any sequence of changes

CALLS = st.sampled_from(["", "tc_1", "tc_2"])
BLOCKS = st.one_of(
    st.builds(
        lambda path, text, hidden, words: {
            "type": "react.tool.result", "path": path, "text": text,
            **({"hidden": True} if hidden else {}), **({"replacement_text": words} if words else {}),
        },
        st.sampled_from(FILES), st.text("xy", max_size=200), st.booleans(), st.sampled_from(["", "gone", "away"]),
    ),
    st.builds(
        lambda kind, turn: {"type": kind, "turn_id": turn},
        st.sampled_from(["turn.header", "user.prompt", "assistant.completion", "react.thinking", "conv.range.summary"]),
        st.sampled_from(TURNS),
    ),
    st.builds(
        lambda call, tool: {
            "type": "react.tool.call", "text": orjson.dumps({"tool_call_id": call, "tool_id": tool}).decode(),
        },
        CALLS, st.sampled_from(["exec", "write"]),
    ),
    st.builds(
        lambda call, path, visibility: {
            "type": "react.tool.result", "mime": "application/json", "text": digest(path, visibility),
            "meta": {"tool_call_id": call, "rel": "result"},
        },
        CALLS, st.sampled_from(FILES), st.sampled_from(["external", "internal"]),
    ),
    st.builds(
        lambda path, call: {
            "path": path, "type": "react.tool.result", "text": "read", "meta": {"rel": "read", "tool_call_id": call},
        },
        st.sampled_from(FILES), CALLS,
    ),
)  # fmt: skip
NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=4)
CHANGES = st.one_of(
    st.tuples(st.just("tell"), st.lists(BLOCKS, min_size=1, max_size=5)),
    st.tuples(st.just("hide"), NUMBERS, st.sampled_from(["", "HIDDEN", "veiled"])),
    st.tuples(st.just("show"), NUMBERS),
    st.tuples(st.just("see"), st.sampled_from(FILES), st.sampled_from(["external", "internal", "pending"])),
    st.tuples(st.just("compact"), st.integers(0, 30)),
    st.tuples(st.just("render")),
)


async def carry_out(world: World, change: tuple[Any, ...]) -> None:
    timeline = world.workspace.timeline
    match change:
        case ("tell", blocks):
            await world.tell(*blocks)
        case ("hide", numbers, words) if chosen := tuple(n for n in numbers if n < len(timeline)):
            await world.stage(BlocksHidden(chosen, words))
        case ("show", numbers) if chosen := tuple(n for n in numbers if n < len(timeline)):
            await world.stage(BlocksShown(chosen))
        case ("see", path, visibility):
            turn, _, name = path.removeprefix("fi:").partition(".files/")
            await world.stage(seen(f"{turn}/files/{name}", visibility, sha256=str(len(timeline))))
        case ("compact", number):
            points = [n for n in range(timeline.kept_from + 1, len(timeline)) if is_cut_point(timeline.heads[n])]
            if points:
                cut = points[number % len(points)]
                await world.tell({"type": "conv.range.summary", "text": "before", "meta": {"cut": cut}})
        case _:
            for role in ("runtime", "editor"):
                await world.render(role=role)


@settings(max_examples=150, deadline=None)
@given(st.lists(CHANGES, max_size=12))
def test_a_render_after_any_changes_is_a_render_from_scratch(changes: list[tuple[Any, ...]]) -> None:
    async def play() -> None:
        world = World()
        for change in [*changes, ("render",), *changes[:3]]:
            await carry_out(world, change)
        for role in ("runtime", "editor"):
            assert await world.render(role=role) == await world.render(world.from_scratch(), role)

    asyncio.run(play())


@settings(max_examples=60, deadline=None)
@given(st.lists(CHANGES, max_size=8), st.lists(CHANGES, min_size=1, max_size=6))
def test_changes_during_a_render_are_seen_by_the_next_one(
    before: list[tuple[Any, ...]], during: list[tuple[Any, ...]]
) -> None:
    async def play() -> None:
        world = World()
        for change in before:
            await carry_out(world, change)
        under_way = asyncio.create_task(world.render())
        for change in during:
            await asyncio.sleep(0)
            await carry_out(world, change)
        await under_way
        assert await world.render() == await world.render(world.from_scratch())

    asyncio.run(play())


@settings(max_examples=40, deadline=None)
@given(st.lists(CHANGES, max_size=10), st.integers(0, 12))
def test_a_render_that_was_cancelled_leaves_nothing_half_done(changes: list[tuple[Any, ...]], steps: int) -> None:
    async def play() -> None:
        world = World()
        for change in changes:
            await carry_out(world, change)
        given_up = asyncio.create_task(world.render())
        for _ in range(steps):
            await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        assert await world.render() == await world.render(world.from_scratch())

    asyncio.run(play())


@settings(max_examples=60, deadline=None)
@given(st.lists(CHANGES, max_size=12))
def test_no_block_of_the_kept_part_is_lost(changes: list[tuple[Any, ...]]) -> None:
    async def play() -> None:
        world = World()
        for number, change in enumerate(changes):
            await carry_out(world, change)
            await world.tell({"type": "user.prompt", "text": f"block {number} of many"})
        kept = (await world.render())["messages"]
        timeline = world.workspace.timeline
        for number in range(timeline.kept_from, len(timeline)):
            if timeline.heads[number][0] == "user.prompt" and not timeline.heads[number][6]:
                (body,) = world.workspace.bodies([number])
                said = orjson.loads(body).get("text", "")
                assert any(message["text"].endswith(said) for message in kept)

    asyncio.run(play())


# What it costs


async def test_with_room_for_all_pages_only_new_blocks_are_read() -> None:
    world = World()
    world.rendering = world.rendered_in(Room(blocks=3))
    await world.tell(*({"text": "x"} for _ in range(50)))
    await world.render()
    for hidden, cost in ((), 2), ((7,), 3 + 2):
        world.journal.asked = 0
        if hidden:
            await world.stage(BlocksHidden(hidden, "HIDDEN"))
        await world.tell({"text": "new"}, {"text": "new"})
        await world.render()
        assert world.journal.asked == cost


async def test_what_is_held_has_a_limit_and_pictures_go_first() -> None:
    world = World()
    picture = {"type": "user.attachment", "mime": "image/png", "base64": "QUJD" * 200}
    await world.tell(*({"text": "x"} for _ in range(3)), picture, *({"text": "y"} for _ in range(3)))
    first = await world.render()
    async with world.rendering.pages(world.sight()) as pages:
        assert sum(len(page.body) for page in pages._pages if page.body is not None) <= SMALL.held_bytes
        assert [page.body is None for page in pages._pages] == [False, True, False]
    assert await world.render() == first


async def test_the_loop_is_not_kept_by_a_first_render() -> None:
    world = World()
    await world.tell(*({"text": "x" * 500} for _ in range(3000)))
    longest, running = 0.0, True

    async def watch() -> None:
        nonlocal longest
        last = time.thread_time()  # what others on this machine do does not count
        while running:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, last = max(longest, now - last), now

    watching = asyncio.create_task(watch())
    await world.rendering.render(world.sight(), Asked())
    running = False
    await watching
    assert longest < 0.05


@pytest.mark.parametrize("steps", range(0, 30, 3))
async def test_a_render_is_of_one_moment(steps: int) -> None:
    world = World()
    world.rendering = world.rendered_in(Room(blocks=2, held_bytes=0))
    await world.tell(*({"path": FILES[0], "text": "seen"} for _ in range(9)))
    under_way = asyncio.create_task(world.texts())
    for _ in range(steps):
        await asyncio.sleep(0)
    await world.stage(BlocksHidden(tuple(range(9)), "HIDDEN"))
    assert (await under_way)[:-1] in (["HIDDEN"], ["seen"] * 9)


# Groups, calls, sight


@pytest.mark.rule("render.one-replacement-per-hidden-group")
async def test_a_hidden_group_speaks_once_wherever_its_pages_are() -> None:
    world = World()
    path = FILES[0]
    await world.tell(*({"path": path, "text": str(n)} for n in range(7)))
    await world.stage(BlocksHidden((1, 4, 6), "HIDDEN"))
    assert await world.texts() == ["0", "HIDDEN", "2", "3", "5", "SOURCES POOL (0 sources)"]
    await world.stage(BlocksShown((1,)))
    assert await world.texts() == ["0", "1", "2", "3", "HIDDEN", "5", "SOURCES POOL (0 sources)"]
    await world.stage(BlocksHidden((0,), "all of it"))
    assert await world.texts() == ["all of it", "1", "2", "3", "5", "SOURCES POOL (0 sources)"]


async def test_a_group_of_the_kept_part_speaks_though_it_spoke_before_the_cut() -> None:
    world = World()
    hidden = {"path": FILES[0], "text": "x", "hidden": True, "replacement_text": "HIDDEN"}
    await world.tell(hidden, {"type": "user.prompt", "text": "go"}, hidden, hidden)
    assert (await world.texts())[:2] == ["HIDDEN", "go"]
    await world.tell({"type": "conv.range.summary", "text": "before", "meta": {"cut": 1}})
    assert await world.texts() == ["before", "[TURN turn_1]", "go", "HIDDEN", "SOURCES POOL (0 sources)"]


async def test_a_summary_and_a_header_are_hidden_like_any_block() -> None:
    world = World()
    await world.tell({"type": "turn.header"}, {"text": "x"}, {"type": "user.prompt", "text": "go"})
    await world.tell({"type": "conv.range.summary", "text": "before", "meta": {"cut": 2}})
    assert (await world.texts())[:3] == ["before", "[ts: 1970-01-01T00:00:01Z]", "go"]
    await world.stage(BlocksHidden((0, 3), "HIDDEN"))
    assert (await world.texts())[:3] == ["HIDDEN", "HIDDEN", "go"]
    await world.stage(BlocksHidden((3,), ""))
    assert (await world.texts())[:2] == ["HIDDEN", "go"]


async def test_a_turn_that_goes_on_after_a_summary_gets_its_header_when_it_does() -> None:
    world = World()
    await world.tell({"text": "x"}, {"type": "conv.range.summary", "text": "before"})
    assert await world.texts() == ["before", "SOURCES POOL (0 sources)"]
    await world.tell({"text": "on"})
    assert await world.texts() == ["before", "[TURN turn_1]", "on", "SOURCES POOL (0 sources)"]


async def test_hidden_blocks_without_a_path_speak_for_themselves() -> None:
    world = World()
    await world.tell(*({"text": "x", "hidden": True, "replacement_text": str(n)} for n in range(2)))
    assert await world.texts() == ["0", "1", "SOURCES POOL (0 sources)"]


async def test_a_call_told_late_names_the_results_before_it() -> None:
    world = World()
    await world.tell(
        {"type": "react.tool.result", "path": "tc:turn_1.tc_1.result", "text": "r"}, *({} for _ in range(5))
    )
    assert (await world.render())["messages"][0]["text"].startswith("[TOOL RESULT tc_1].result\n")
    await world.tell({"type": "react.tool.call", "text": '{"tool_call_id":"tc_1","tool_id":"exec"}'})
    assert (await world.render())["messages"][0]["text"].startswith("[TOOL RESULT tc_1].result exec\n")


async def test_an_editor_sees_neither_what_is_internal_nor_what_is_pending() -> None:
    world = World()
    open_file, secret, making = FILES[0], FILES[1], FILES[2]
    await world.stage(seen("turn_2/files/a", "pending"))
    await world.tell(
        {"type": "react.tool.result", "path": open_file, "text": "for all"},
        {"type": "react.tool.result", "path": secret, "text": "secret", "meta": {"visibility": "internal"}},
        {"type": "react.tool.result", "path": making, "text": "not yet"},
        {"type": "react.tool.result", "mime": "application/json", "text": digest(making, "external")},
    )
    assert await world.texts("editor") == ["for all", "SOURCES POOL (0 sources)"]
    assert len(await world.texts()) == 5
    await world.stage(seen("turn_2/files/a", "external", sha256="bb"))
    assert (await world.texts("editor"))[:2] == ["for all", "not yet"]
    assert len(await world.texts("editor")) == 4
    await world.stage(seen("turn_1/files/a", "internal", sha256="cc"))
    assert "for all" not in await world.texts("editor")


async def test_what_is_long_is_rendered_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[object] = []
    off_loop = Here.off_loop

    async def counted(here: Here, work: Any, *args: Any) -> Any:
        steps.append(work)
        return await off_loop(here, work, *args)

    monkeypatch.setattr(Here, "off_loop", counted)
    counts: list[int] = []
    for length in (LONG, LONG + 1):
        world = World()
        await world.tell({"text": "x" * length})
        assert (await world.texts())[0] == "x" * length
        counts.append(len(steps))
    assert counts[1] - counts[0] == counts[0] + 1
