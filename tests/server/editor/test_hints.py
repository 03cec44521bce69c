"""Hints: titles behind citations, in the asked range alone, at the right place in any encoding."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sidecar.server.editor import hints
from tests.server.editor.pens import URI, Pen, Room, room

pytestmark = pytest.mark.rule("editor.hints-of-source-titles")

LONG = "A history of games that goes on and on"


@pytest_asyncio.fixture
async def at(tmp_path: Path) -> AsyncIterator[Room]:
    async with room(tmp_path, hints) as made:
        rows = [{"title": title, "url": f"https://example.com/{title}"} for title in ("Game theory", LONG, "Bread")]
        assert (await made.inside.ask("sources/merge", {"rows": rows}))["added"] == [1, 2, 3]
        yield made


async def shown(pen: Pen, text: str, first: int = 0, last: int = 100) -> Any:
    pen.open(text)
    wanted = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
    return await pen.ask("textDocument/inlayHint", {"textDocument": {"uri": URI}, "range": wanted})


async def test_a_title_follows_its_citation(at: Room) -> None:
    pen = await at.pen()
    assert pen.capabilities["inlayHintProvider"] == {"resolveProvider": False}
    assert await shown(pen, "Games [[S:1]] are old.") == [
        {
            "position": {"line": 0, "character": 13},
            "label": "Game theory",
            "tooltip": "S:1 · Game theory",
            "paddingLeft": True,
        }
    ]


async def test_several_are_counted_and_told_whole(at: Room) -> None:
    [hint] = await shown(await at.pen(), "[[S:1-3]]")
    assert hint["label"] == "Game theory and 2 more"
    assert hint["tooltip"] == f"S:1 · Game theory\nS:2 · {LONG}\nS:3 · Bread"


async def test_a_long_title_is_cut_in_the_text_and_whole_in_the_tooltip(at: Room) -> None:
    [hint] = await shown(await at.pen(), "[[S:2]]")
    assert (len(hint["label"]), hint["label"][-1], LONG in hint["tooltip"]) == (hints.TITLE_CHARS, "…", True)


async def test_unknown_sources_and_code_have_none(at: Room) -> None:
    assert await shown(await at.pen(), "[[S:9]] `[[S:1]]`\n```\n[[S:1]]\n```\n") == []


async def test_only_the_asked_lines_are_answered(at: Room) -> None:
    text = "\n\n".join(f"Line [[S:{1 + number % 3}]]." for number in range(20))
    lines = [hint["position"]["line"] for hint in await shown(await at.pen(), text, 4, 9)]
    assert lines == [4, 6, 8]


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 18), ("utf-16", 13), ("utf-32", 11)])
async def test_places_are_counted_as_the_editor_counts(at: Room, encoding: str, character: int) -> None:
    pen = await at.pen(capabilities={"general": {"positionEncodings": [encoding]}})
    [hint] = await shown(pen, "🎉🎉 ü[[S:1]]")
    assert hint["position"] == {"line": 0, "character": character}


async def test_editors_are_asked_once_to_look_again_when_sources_come(at: Room, monkeypatch: Any) -> None:
    monkeypatch.setattr(hints, "REFRESH_SECONDS", 0.01)
    pen = await at.pen(capabilities={"workspace": {"inlayHint": {"refreshSupport": True}}})
    await shown(pen, "[[S:4]]")
    await asyncio.gather(
        *(
            at.inside.ask("sources/merge", {"rows": [{"title": f"New {n}", "url": f"https://e.org/{n}"}]})
            for n in (1, 2)
        )
    )
    question = await pen.remote.receive()
    assert question["method"] == "workspace/inlayHint/refresh"
    pen.remote.send({"jsonrpc": "2.0", "id": question["id"], "result": None})
    assert [hint["label"] for hint in await shown(pen, "[[S:4]]")] == ["New 1"]


async def test_others_are_served_while_many_hints_are_made(at: Room, monkeypatch: Any) -> None:
    monkeypatch.setattr("sidecar.pacing.SECONDS_AT_ONCE", -1.0)
    pen, rests = await at.pen(), []
    real = hints.Pace.rest

    async def rest(pace: hints.Pace) -> None:
        rests.append(pace)
        await real(pace)

    monkeypatch.setattr(hints.Pace, "rest", rest)
    assert len(await shown(pen, "[[S:1]] [[S:9]] " * 50)) == 50
    assert len(rests) >= 100
