"""What may be hidden, what stands in its place, and what that saves."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from sidecar.core import limits
from sidecar.hiding import replacement_for, tokens_of
from tests.server.inside import Inside, awake


@pytest_asyncio.fixture
async def inside(tmp_path: Path) -> AsyncIterator[Inside]:
    async with awake(tmp_path) as workspace:
        await workspace.begin("turn_1")
        yield workspace


async def say(inside: Inside, name: str, text: str, **meta: Any) -> str:
    path = f"ar:turn_1.react.notes.{name}"
    block = {"type": "react.notes", "path": path, "text": text, "meta": meta}
    await inside.ask("timeline/append", {"blocks": [block]})
    return path


async def hide(inside: Inside, *paths: str, replacement: str = "said") -> list[str]:
    answer = await inside.ask("artifact/hide", {"paths": list(paths), "replacement": replacement})
    return [one["status"] for one in answer["results"]]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("an old draft", "HIDDEN — an old draft. Retrieve with react.read(fi:turn_1.files/a.md)"),
        (" an old draft.\n", "HIDDEN — an old draft. Retrieve with react.read(fi:turn_1.files/a.md)"),
    ],
)
def test_the_replacement_says_how_to_read_it_again(said: str, shown: str) -> None:
    assert replacement_for("fi:turn_1.files/a.md", said) == shown


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        ({"text": ""}, 0),
        ({"text": "abcde"}, 2),
        ({"text": "é" * 4}, 2),
        ({"base64": base64.b64encode(bytes(11)).decode()}, 2),
        ({"type": "x"}, 0),
    ],
)
def test_a_block_counts_as_its_text_or_its_bytes(block: dict[str, str], tokens: int) -> None:
    assert tokens_of(orjson.dumps(block)) == tokens


@pytest.mark.rule("hide.says-ok-not-found-or-too-old")
@pytest.mark.parametrize(("after", "status"), [(2000, "ok"), (2001, "too_old")])
async def test_the_tail_ends_after_so_many_tokens(inside: Inside, after: int, status: str) -> None:
    path = await say(inside, "old", "x" * 100_000)
    await say(inside, "filler", "x" * 4 * (after - 10))
    await say(inside, "more", "x" * 40)
    assert await hide(inside, path) == [status]


async def test_what_the_agent_does_not_see_takes_no_room_in_the_tail(inside: Inside) -> None:
    path = await say(inside, "old", "x")
    await say(inside, "thinking", "x" * 40_000, hidden=True)
    long = await say(inside, "long", "x" * 40_000)
    assert await hide(inside, long) == ["ok"]
    assert await hide(inside, path) == ["ok"]


async def test_a_long_tail_of_nothing_is_not_walked_to_its_end(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EDITABLE_TAIL_BLOCKS", 20)
    path = await say(inside, "old", "x")
    near = [await say(inside, f"n{n}", "") for n in range(30)]
    read: list[int] = []
    bodies = inside.workspace.bodies

    def counted(numbers: Any) -> list[bytes]:
        read.extend(numbers)
        return bodies(numbers)

    monkeypatch.setattr(inside.workspace, "bodies", counted)
    assert await hide(inside, path, near[0], near[-20], near[-19]) == ["too_old", "too_old", "ok", "ok"]
    assert len(read) <= 22


@pytest.mark.rule("hide.one-replacement-per-path")
async def test_one_replacement_speaks_for_all_that_is_hidden_at_a_path(inside: Inside) -> None:
    path = await say(inside, "a", "first")
    assert await hide(inside, path, replacement="one") == ["ok"]
    await say(inside, "a", "second")
    assert await hide(inside, path, replacement="two") == ["ok"]
    told = (await inside.ask("timeline/blocks", {"path": path}))["blocks"]
    assert [block["meta"]["replacement_text"] for block in told] == [replacement_for(path, "two")] * 2


async def test_what_is_hidden_is_hidden_after_a_restart(tmp_path: Path) -> None:
    async with awake(tmp_path) as inside:
        await inside.begin("turn_1")
        path = await say(inside, "a", "first")
        await hide(inside, path)
    async with awake(tmp_path) as inside:
        (block,) = (await inside.ask("timeline/blocks", {"path": path}))["blocks"]
        assert (block["meta"]["hidden"], block["text"]) == (True, "first")


async def test_hiding_what_is_internal_is_told_to_nobody_who_may_not_know_of_it(inside: Inside) -> None:
    await inside.ask("artifact/write", {"path": "s.md", "content": "x", "kind": "file", "visibility": "internal"})
    assert await hide(inside, "fi:turn_1.files/s.md", replacement="a secret") == ["ok"]
    for role, is_told in (("runtime", True), ("editor", False)):
        blocks = orjson.dumps((await inside.ask("timeline/blocks", role=role))["blocks"])
        assert (b"s.md" in blocks, b"a secret" in blocks) == (is_told, is_told)


async def test_what_was_hidden_before_it_became_internal_is_no_longer_told(inside: Inside) -> None:
    await inside.ask("artifact/write", {"path": "s.md", "content": "x", "kind": "file"})
    await hide(inside, "fi:turn_1.files/s.md", replacement="a secret")
    assert b"a secret" in orjson.dumps(await inside.ask("timeline/blocks", role="editor"))
    await inside.ask("artifact/write", {"path": "s.md", "content": "y", "kind": "file", "visibility": "internal"})
    assert b"a secret" not in orjson.dumps(await inside.ask("timeline/blocks", role="editor"))
