"""Rendering and compaction through their methods."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from sidecar.core import limits
from sidecar.core.counting import binary_tokens, count_tokens, packed_size
from sidecar.core.errors import BadPath, BadSelector, Stale, TooLarge, UnsafePath
from tests.server.inside import Inside, awake

EMPTY_POOL = "SOURCES POOL (0 sources)"
HOSTING = {"hosted_uri": "s3://b/secret", "rn": "ef:secret", "key": "cb/secret"}
SUMMARY = "su:turn_1.conv.range.summary"


def block(kind: str, text: str = "", turn: str = "turn_1", **more: Any) -> dict[str, Any]:
    return {"type": kind, "turn_id": turn, "ts": "2026-02-18T09:00:00Z", "text": text, **more}


def prompt(turn: str = "turn_1", text: str = "do it") -> dict[str, Any]:
    return block("user.prompt", text, turn, path=f"ar:{turn}.user.prompt")


def call(name: str, turn: str = "turn_1") -> list[dict[str, Any]]:
    asked = orjson.dumps({"tool_id": "exec", "tool_call_id": name}).decode()
    path = f"tc:{turn}.{name}"
    return [
        block("react.tool.call", asked, turn, path=f"{path}.call", mime="application/json"),
        block("react.tool.result", "it worked", turn, path=f"{path}.result"),
    ]


def turn(name: str, *calls: str) -> list[dict[str, Any]]:
    inner = [one for text in calls for one in call(text, name)]
    return [
        block("turn.header", f"[TURN {name}]", name), prompt(name), *inner,
        block("assistant.completion", "done", name, path=f"ar:{name}.assistant.completion"),
    ]  # fmt: skip


async def told(inside: Inside, *blocks: dict[str, Any]) -> None:
    await inside.ask("timeline/append", {"blocks": list(blocks)})


async def rendered(inside: Inside, role: str = "runtime", **asked: Any) -> dict[str, Any]:
    return await inside.ask("timeline/render", asked, role=role)


async def labels(inside: Inside, **asked: Any) -> list[str]:
    """The first line of every message that is a text."""
    return [one["text"].split("\n")[0] for one in (await rendered(inside, **asked))["messages"] if "text" in one]


# What is rendered


@pytest.mark.rule("render.labels-blocks-as-the-seeds-show", "render.messages-are-text-image-or-document")
async def test_a_timeline_is_rendered_block_by_block(inside: Inside) -> None:
    picture = block("user.attachment", path="fi:turn_1.user.attachments/x.png", mime="image/png", base64="QUJD")
    del picture["text"]
    await told(inside, *turn("turn_1", "tc_1"), picture)
    answer = await rendered(inside, include_sources=False)
    assert [(one["type"], one.get("path")) for one in answer["messages"]] == [
        ("text", None),
        ("text", "ar:turn_1.user.prompt"),
        ("text", "tc:turn_1.tc_1.call"),
        ("text", "tc:turn_1.tc_1.result"),
        ("text", "ar:turn_1.assistant.completion"),
        ("text", "fi:turn_1.user.attachments/x.png"),
        ("image", "fi:turn_1.user.attachments/x.png"),
    ]
    assert answer["messages"][6] == {
        "type": "image", "base64": "QUJD", "mime": "image/png", "path": "fi:turn_1.user.attachments/x.png",
    }  # fmt: skip
    assert answer["messages"][3]["text"] == (
        "[TOOL RESULT tc_1].result exec\n[ts: 2026-02-18T09:00:00Z]\n[path: tc:turn_1.tc_1.result]\nit worked"
    )


@pytest.mark.rule("render.pool-comes-last-after-announce")
@pytest.mark.parametrize(
    ("asked", "after"),
    [
        ({}, ["[ANNOUNCE]", EMPTY_POOL]),
        ({"include_announce": False}, [EMPTY_POOL]),
        ({"include_sources": False}, ["[ANNOUNCE]"]),
        ({"include_sources": False, "include_announce": False}, []),
    ],
)
async def test_announce_comes_after_the_timeline_and_the_pool_last(
    inside: Inside, asked: dict[str, bool], after: list[str]
) -> None:
    await told(inside, prompt())
    await inside.ask("timeline/announce", {"blocks": [{"type": "announce", "text": "iteration 2 of 5"}]})
    assert await labels(inside, **asked) == ["[USER MESSAGE]", *after]


async def test_the_pool_is_rendered_as_it_is_now(inside: Inside) -> None:
    await inside.ask("sources/merge", {"rows": [{"url": "https://example.com/a", "title": "A", **HOSTING}]})
    for title in ("A", "A longer title"):
        await inside.ask("sources/merge", {"rows": [{"url": "https://example.com/a", "title": title}]})
        pool = (await inside.ask("sources/render"))["text"]
        assert title in pool
        assert (await rendered(inside))["messages"][-1] == {"type": "text", "text": pool}


@pytest.mark.rule("render.tokens-are-a-quarter-of-the-bytes")
async def test_the_tokens_are_those_of_all_messages(inside: Inside) -> None:
    picture = {"type": "user.attachment", "turn_id": "turn_1", "mime": "image/png", "base64": "QUJDREVGR0g="}
    await told(inside, prompt(text="ä" * 11), picture)
    answer = await rendered(inside)
    counted = [
        count_tokens(one["text"]) if "text" in one else binary_tokens(packed_size(one["base64"]))
        for one in answer["messages"]
    ]
    assert answer["tokens"] == sum(counted)


async def test_as_text_it_is_one_text(inside: Inside) -> None:
    await told(inside, *turn("turn_1", "tc_1"))
    messages = (await rendered(inside))["messages"]
    answer = await rendered(inside, **{"as": "text"})
    text = "\n\n".join(message["text"] for message in messages)
    assert answer == {"text": text, "tokens": count_tokens(text), "cache_points": []}


@pytest.mark.rule("render.max-tokens-never-truncates")
async def test_over_max_tokens_the_answer_is_whole_and_says_where_to_cut(inside: Inside) -> None:
    await told(inside, *turn("turn_1", "tc_1"), *turn("turn_2", "tc_2"))
    whole = await rendered(inside)
    tokens = whole["tokens"]
    assert await rendered(inside, max_tokens=tokens) == whole
    over = await rendered(inside, max_tokens=tokens - 1)
    assert (over.pop("over_by"), over.pop("cut")) == (1, 4)
    assert over == whole
    assert (await inside.ask("timeline/plan_compaction", {"keep_recent_tokens": (tokens - 1) * 7 // 10}))["cut"] == 4


async def test_over_max_tokens_with_nothing_to_cut_the_cut_is_null(inside: Inside) -> None:
    await told(inside, prompt())
    answer = await rendered(inside, max_tokens=1)
    assert answer["over_by"] == answer["tokens"] - 1
    assert answer["cut"] is None


@pytest.mark.rule("render.one-replacement-per-hidden-group")
async def test_a_hidden_group_is_one_replacement(inside: Inside) -> None:
    hidden = block("react.tool.result", "secret", path="fi:turn_1.files/a", hidden=True, replacement_text="HIDDEN")
    await told(inside, prompt(), hidden, hidden, {**hidden, "base64": "QUJD", "mime": "image/png"})
    messages = (await rendered(inside, include_sources=False))["messages"]
    assert len(messages) == 2
    assert messages[1]["text"].endswith("[path: fi:turn_1.files/a]\nHIDDEN")


async def test_what_was_hidden_by_request_is_rendered_once_and_shown_again_by_a_read(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "make it"})
    path = "fi:turn_1.files/a.md"
    await told(inside, *(block("react.tool.result", f"version {n}", path=path) for n in range(3)))
    await inside.ask("artifact/hide", {"paths": [path], "replacement": "three drafts"})
    shown = [one["text"] for one in (await rendered(inside))["messages"] if one.get("path") == path]
    assert len(shown) == 1
    assert shown[0].endswith(f"\nHIDDEN — three drafts. Retrieve with react.read({path})")
    await inside.ask("artifact/read", {"paths": [path], "tool_call_id": "tc_9"})
    shown = [one["text"] for one in (await rendered(inside))["messages"] if one.get("path") == path]
    assert shown[-1].endswith("version 2")


@pytest.mark.rule("blocks.unknown-types-are-rendered-as-text")
async def test_unknown_types_are_text(inside: Inside) -> None:
    await told(inside, block("agent.dream", "of sheep"))
    message = (await rendered(inside))["messages"][0]
    assert (message["type"], message["text"].splitlines()[0]) == ("text", "[agent.dream]")


async def test_no_hosting_field_is_rendered_for_anybody(inside: Inside) -> None:
    digest = orjson.dumps({"artifact_path": "fi:turn_1.files/a", "mime": "text/plain", **HOSTING}).decode()
    await told(
        inside, prompt(), block("react.tool.result", digest, mime="application/json", meta=HOSTING),
        block("react.tool.result", "a", path="fi:turn_1.files/a", meta={**HOSTING, "digest": digest}), prompt("turn_2"),
    )  # fmt: skip
    await inside.ask("timeline/announce", {"blocks": [block("announce", digest, meta=HOSTING)]})
    await inside.ask("sources/merge", {"rows": [{"physical_path": "turn_1/files/a", **HOSTING}]})
    answers = [await rendered(inside, role) for role in ("runtime", "editor")]
    answers.append(await rendered(inside, **{"as": "text"}))
    plan = await inside.ask("timeline/plan_compaction", {"keep_recent_tokens": 0})
    assert plan["cut"] == 3
    for answer in [*answers, plan]:
        body = orjson.dumps(answer)
        assert b"secret" not in body
        assert b"hosted_uri" not in body


async def test_an_editor_is_shown_nothing_internal(inside: Inside) -> None:
    path = "fi:turn_1.files/secret.md"
    secret = block("react.tool.result", "secret", path=path, meta={"visibility": "internal", "tool_call_id": "tc_1"})
    digest = orjson.dumps({"artifact_path": path, "visibility": "internal"}).decode()
    about = block("react.tool.result", digest, mime="application/json")
    await told(inside, prompt(), secret, about)
    await inside.ask("timeline/announce", {"blocks": [block("announce", "to all"), secret, about]})
    for messages in ((await rendered(inside, "editor"))["messages"],):
        assert [one["text"].splitlines()[0] for one in messages] == ["[USER MESSAGE]", "[ANNOUNCE]", EMPTY_POOL]
    assert len((await rendered(inside))["messages"]) == 7


# Cache points


@pytest.mark.rule("render.cache-points-are-three-at-most")
@pytest.mark.parametrize(
    ("blocks", "points"),
    [
        ([], []),
        ([prompt()], [0]),
        (turn("turn_1", "tc_1"), [4]),
        ([*turn("turn_1"), *turn("turn_2")], [2, 5]),
        # A round is a call or a turn's completion; here the fifth from the end is the completion of the first turn.
        ([*turn("turn_1", *"abcd"), *turn("turn_2", *"efg")], [10, 19]),
        ([*turn("turn_1", *"abcd"), *turn("turn_2", *"efghi")], [10, 16, 23]),
        ([prompt("turn_1"), *(one for name in "abcdef" for one in call(name))], [4, 12]),
    ],
    ids=["nothing", "one", "one turn", "two turns", "in the turn before", "in this turn", "no turn before"],
)
async def test_cache_points_stand_before_what_changes(
    inside: Inside, blocks: list[dict[str, Any]], points: list[int]
) -> None:
    if blocks:
        await told(inside, *blocks)
    await inside.ask("timeline/announce", {"blocks": [{"type": "announce", "text": "x"}]})
    assert (await rendered(inside))["cache_points"] == points


async def test_the_current_turn_is_the_open_one(inside: Inside) -> None:
    await told(inside, *turn("turn_1"))
    await inside.ask("turn/begin", {"turn_id": "turn_2", "prompt": "go"})
    await told(inside, block("turn.feedback", "late", "turn_1"))
    assert (await rendered(inside))["cache_points"] == [2, 5]


async def test_after_a_split_the_summary_is_cached_apart_from_the_turn(inside: Inside) -> None:
    await told(inside, *turn("turn_1", "tc_1"))
    await inside.ask("timeline/compact", {"cut": 2, "summary": "before"})
    assert await labels(inside) == [
        "[SUMMARY OF EARLIER TURNS]", "[TURN turn_1]", "[TOOL CALL tc_1].call exec", "[TOOL RESULT tc_1].result exec",
        "[ASSISTANT MESSAGE]", EMPTY_POOL,
    ]  # fmt: skip
    assert (await rendered(inside))["cache_points"] == [0, 4]


# Announce


@pytest.mark.rule("render.announce-is-kept-in-memory-only")
async def test_what_is_announced_is_replaced_and_never_stored(inside: Inside) -> None:
    await told(inside, prompt())
    revision = inside.workspace.revision
    for text in ("one", "two"):
        assert await inside.ask("timeline/announce", {"blocks": [{"type": "announce", "text": text}]}) == {}
    assert (await rendered(inside))["messages"][1]["text"].endswith("two")
    assert inside.workspace.revision == revision
    assert len((await inside.ask("timeline/blocks"))["blocks"]) == 1
    await inside.ask("timeline/flush")
    assert "two" not in (inside.out / "timeline.json").read_text()
    await inside.ask("timeline/announce", {"blocks": []})
    assert await labels(inside) == ["[USER MESSAGE]", EMPTY_POOL]


@pytest.mark.rule("render.announce-is-kept-in-memory-only")
async def test_after_a_restart_nothing_is_announced(tmp_path: Path) -> None:
    async with awake(tmp_path) as first:
        await first.ask("timeline/announce", {"blocks": [{"type": "announce", "text": "x"}]})
    async with awake(tmp_path) as second:
        assert await labels(second) == [EMPTY_POOL]


@pytest.mark.parametrize(
    ("blocks", "refusal"),
    [
        ([{"type": "x", "path": "zz:1"}], BadPath),
        ([{"type": "x", "path": "fi:turn_1.files/../x"}], UnsafePath),
        ([{"type": "x", "text": "x" * limits.ANNOUNCED_BYTES}], TooLarge),
    ],
)
async def test_what_cannot_be_announced_leaves_what_was(
    inside: Inside, blocks: list[dict[str, Any]], refusal: type[Exception]
) -> None:
    await inside.ask("timeline/announce", {"blocks": [{"type": "announce", "text": "stays"}]})
    with pytest.raises(refusal):
        await inside.ask("timeline/announce", {"blocks": blocks})
    assert await labels(inside) == ["[ANNOUNCE]", EMPTY_POOL]


# Compaction


@pytest.mark.rule("compaction.nothing-to-cut-is-null")
@pytest.mark.parametrize(("blocks", "keep"), [([], 0), ([prompt()], 0), (turn("turn_1", "tc_1"), 10_000)])
async def test_a_plan_without_a_cut_is_empty(inside: Inside, blocks: list[dict[str, Any]], keep: int) -> None:
    if blocks:
        await told(inside, *blocks)
    assert await inside.ask("timeline/plan_compaction", {"keep_recent_tokens": keep}) == {
        "cut": None,
        "text": "",
        "digest": {"artifacts": [], "tool_outputs": [], "hidden_blocks": []},
        "covered_turn_ids": [],
    }


@pytest.mark.rule("compaction.a-cut-inside-a-turn-splits-it")
async def test_a_cut_inside_a_turn_names_it_apart(inside: Inside) -> None:
    await told(inside, *turn("turn_1", "tc_1"), *turn("turn_2", "tc_2"))
    plan = await inside.ask("timeline/plan_compaction", {"keep_recent_tokens": 0})
    assert (plan["cut"], plan["covered_turn_ids"], plan["split_turn_id"]) == (9, ["turn_1"], "turn_2")
    assert plan["digest"]["tool_outputs"] == [
        {"path": f"tc:turn_{n}.tc_{n}.result", "tool_call_id": f"tc_{n}", "tool_id": "exec"} for n in (1, 2)
    ]


@pytest.mark.rule("render.slices-from-the-latest-summary", "compaction.never-loses-a-path")
async def test_after_compaction_the_summary_stands_for_what_still_resolves(inside: Inside) -> None:
    await told(inside, *turn("turn_1", "tc_1"), block("react.tool.code", "print()", path="fi:turn_1.code.tc_1"))
    inside.write("turn_1/files/a.txt", "made")
    await inside.sync()
    await told(inside, *turn("turn_2", "tc_2"))
    answer = await inside.ask("timeline/compact", {"cut": 6, "summary": "The first turn."})
    assert answer["path"] == SUMMARY
    assert (await labels(inside, include_sources=False))[:2] == ["[SUMMARY OF EARLIER TURNS]", "[TURN turn_2]"]
    paths = [
        "ar:turn_1.user.prompt", "ar:turn_1.assistant.completion", "tc:turn_1.tc_1.call", "tc:turn_1.tc_1.result",
        "fi:turn_1.code.tc_1", "fi:turn_1.files/a.txt", SUMMARY,
    ]  # fmt: skip
    found = (await inside.ask("artifact/resolve", {"paths": paths}))["results"]
    assert all(one["found"] for one in found)
    for path in paths:
        assert (await inside.ask("artifact/fetch", {"path": path}))["err"] is None
    assert len((await inside.ask("timeline/blocks"))["blocks"]) == 12


async def test_what_was_compacted_can_be_read_into_view_again(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "remember this"})
    path = "ar:turn_1.user.prompt"
    inside.write("turn_1/files/a.txt", "the file")
    await told(inside, block("react.tool.result", "the file", path="fi:turn_1.files/a.txt"), *turn("turn_2"))
    await inside.ask("timeline/compact", {"cut": 3, "summary": "before"})
    for at, text in ((path, "remember this"), ("fi:turn_1.files/a.txt", "the file")):
        asked = {"paths": [at], "tool_call_id": "tc_9"}
        assert "status" not in (await inside.ask("artifact/read", asked))["status"]["paths"][0]
        shown = [one["text"] for one in (await rendered(inside))["messages"]]
        assert [one.splitlines()[0] for one in shown if one.endswith(text)] == ["[TOOL RESULT tc_9].artifact"]
        (again,) = (await inside.ask("artifact/read", asked))["status"]["paths"]
        assert again["status"] == "exists_in_visible_context"
        assert (await labels(inside))[0] == "[SUMMARY OF EARLIER TURNS]"


async def test_compacting_the_same_turn_again_adds_a_version(inside: Inside) -> None:
    await told(inside, *turn("turn_1"), *turn("turn_2", "tc_1", "tc_2"))
    for cut, summary in ((5, "first"), (7, "second")):
        answer = await inside.ask("timeline/compact", {"cut": cut, "summary": summary})
        assert answer["path"] == SUMMARY
    versions = (await inside.ask("artifact/versions", {"path": SUMMARY}))["versions"]
    assert [one["version"] for one in versions] == [1, 2]
    shown = (await rendered(inside))["messages"]
    assert shown[0]["text"].endswith("second")
    assert not any(one["text"].endswith("first") for one in shown)
    assert (await inside.ask("artifact/fetch", {"path": SUMMARY}))["ret"]["text"] == "second"


@pytest.mark.parametrize(
    ("cut", "refusal"), [(0, Stale), (3, BadSelector), (2, Stale), (10, BadSelector), (2**53, BadSelector)]
)
async def test_a_cut_that_cannot_be_is_refused(inside: Inside, cut: int, refusal: type[Exception]) -> None:
    await told(inside, *turn("turn_1", "tc_1"), *turn("turn_2", "tc_2"))
    await inside.ask("timeline/compact", {"cut": 2, "summary": "x"})
    revision = inside.workspace.revision
    with pytest.raises(refusal):
        await inside.ask("timeline/compact", {"cut": cut, "summary": "y"})
    assert inside.workspace.revision == revision


async def test_the_same_request_compacts_once(inside: Inside) -> None:
    await told(inside, *turn("turn_1"), *turn("turn_2"))
    asked = {"cut": 3, "summary": "x", "embedding": [0.5, 1], "request_id": "r1"}
    first, second = await asyncio.gather(*(inside.ask("timeline/compact", asked) for _ in range(2)))
    assert first == second == await inside.ask("timeline/compact", asked)
    assert len(inside.workspace.timeline) == 7
    assert list(inside.workspace.vectors) == [("turn_1", "conv.range.summary")]
    with pytest.raises(Stale):
        await inside.ask("timeline/compact", {**asked, "summary": "y"})


async def test_of_two_compactions_at_one_cut_one_wins(inside: Inside) -> None:
    await told(inside, *turn("turn_1"), *turn("turn_2"))
    asked = [inside.ask("timeline/compact", {"cut": 3, "summary": text}) for text in ("x", "y")]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Stale", "dict"]


async def test_a_restart_renders_what_was_rendered(tmp_path: Path) -> None:
    async with awake(tmp_path) as first:
        await told(first, *turn("turn_1", "tc_1"), *turn("turn_2", "tc_2"))
        await first.ask("timeline/compact", {"cut": 7, "summary": "x"})
        before = await rendered(first)
    async with awake(tmp_path) as second:
        assert await rendered(second) == before
        assert (await rendered(second, "editor"))["messages"] == before["messages"]


async def test_numbers_where_text_is_usual_hinder_nothing(inside: Inside) -> None:
    odd = {
        "type": "react.notice",
        "turn_id": "turn_1",
        "ts": 1771408921.25,
        "tool_call_id": 7,
        "call_id": 8.5,
        "text": None,
    }
    await told(inside, {**odd, "meta": {"tool_id": 9, "ts": 1.5, "tool_call_id": 3}}, *turn("turn_1"), prompt("turn_2"))
    plan = await inside.ask("timeline/plan_compaction", {"keep_recent_tokens": 0})
    assert plan["cut"] == 4
    assert "[NOTICE]\n[ts: 2026-02-18T10:02:01.250Z]" in plan["text"]
    await inside.ask("timeline/compact", {"cut": 4, "summary": "x"})


async def test_what_no_message_can_carry_is_refused_before_it_is_put_together(inside: Inside) -> None:
    packed = "QUJD" * (4 * limits.MIB)
    for at in range(5):
        picture = {"type": "user.attachment", "turn_id": "turn_1", "mime": "image/png", "base64": packed}
        await told(inside, prompt(f"turn_{at}"), picture)
    with pytest.raises(TooLarge):
        await rendered(inside)
    plan = await inside.ask("timeline/plan_compaction", {"keep_recent_tokens": 4_000_000})
    assert plan["cut"] == 8
    await inside.ask("timeline/compact", {"cut": plan["cut"], "summary": "pictures"})
    assert (await rendered(inside))["messages"][-2]["type"] == "image"


async def test_an_editor_is_not_told_what_internal_files_a_summary_forgot(inside: Inside) -> None:
    secrets = (b"s.md", b"a plan", b"a word")
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "hello " * 50})
    written = {"path": "s.md", "content": "x", "kind": "file", "channel": "internal", "description": "a plan"}
    await inside.ask("artifact/write", written)
    await inside.ask("artifact/write", {"path": "open.md", "content": "x", "kind": "file"})
    await inside.ask("artifact/hide", {"paths": ["fi:turn_1.files/s.md"], "replacement": "a word"})
    await inside.ask("turn/end", {"turn_id": "turn_1", "completion": {"text": "done"}})
    await inside.ask("turn/begin", {"turn_id": "turn_2", "prompt": "again"})
    plan = await inside.ask("timeline/plan_compaction", {"keep_recent_tokens": 1})
    await inside.ask("timeline/compact", {"cut": plan["cut"], "summary": "a summary"})
    path = "su:turn_1.conv.range.summary"
    asked = [("timeline/render", {}), ("timeline/blocks", {"path": path}), ("artifact/read", {"paths": [path]})]
    for role, is_told in (("runtime", True), ("editor", False)):
        rendered, *others = [orjson.dumps(await inside.ask(method, params, role=role)) for method, params in asked]
        assert (b"s.md" in rendered, b"open.md" in rendered) == (is_told, True)
        for answer in others:
            assert {word in answer for word in secrets} == {is_told}
            assert b"open.md" in answer
    assert all(word in orjson.dumps(plan) for word in secrets)


async def test_a_summary_follows_what_becomes_internal(inside: Inside) -> None:
    await inside.ask("turn/begin", {"turn_id": "turn_1", "prompt": "hello " * 50})
    await inside.ask("artifact/write", {"path": "s.md", "content": "x", "kind": "file"})
    await inside.ask("turn/end", {"turn_id": "turn_1", "completion": {"text": "done"}})
    await inside.ask("turn/begin", {"turn_id": "turn_2", "prompt": "again"})
    plan = await inside.ask("timeline/plan_compaction", {"keep_recent_tokens": 1})
    await inside.ask("timeline/compact", {"cut": plan["cut"], "summary": "a summary"})
    assert "s.md" in (await rendered(inside, "editor", **{"as": "text"}))["text"]
    meta = {"visibility": "internal", "tool_call_id": "c"}
    secret = {"type": "react.tool.result", "path": "fi:turn_1.files/s.md", "text": "y", "meta": meta}
    await inside.ask("timeline/append", {"blocks": [secret]})
    assert "s.md" not in (await rendered(inside, "editor", **{"as": "text"}))["text"]
    assert "s.md" in (await rendered(inside, **{"as": "text"}))["text"]
