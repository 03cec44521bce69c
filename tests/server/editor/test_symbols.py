"""Symbols: what a document refers to, by turn; what the workspace has, by letters of its name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sidecar.server.editor import contents, symbols
from sidecar.server.editor.symbols import SYMBOLS
from tests.server.editor.pens import URI, Pen, Room, made_by, room

pytestmark = pytest.mark.rule("editor.symbols-of-documents-and-workspace")

TREES = {"textDocument": {"documentSymbol": {"hierarchicalDocumentSymbolSupport": True}}}
TEXTS = {"workspace": {"textDocumentContent": {}}}
LAZY = {"workspace": {"symbol": {"resolveSupport": {"properties": ["location.range"]}}}}
TEXT = """# 🎉 Report

See fi:turn_1.files/a.md and `fi:turn_2.files/charts/x.png`, then fi:turn_1.files/a.md again.
fi:turn_1.files/none.md and fi:turn_1.files/hidden.md are not shown; 🎉 [[S:{sid}]] is, [[S:900]] is not.
"""


@pytest_asyncio.fixture
async def at(tmp_path: Path) -> AsyncIterator[Room]:
    async with room(tmp_path, symbols, contents) as made:
        await made_by(made.inside, "tc_1", "a.md", "my_report.md", internal=["hidden.md"])
        await made_by(made.inside, "tc_2", "report.md", "charts/x.png", turn="turn_2")
        rows = [{"title": "Reporting on games", "url": "https://example.com/games", "text": "What was said."}]
        merged = await made.inside.ask("sources/merge", {"rows": rows})
        made.sid = merged["rows"][0]["sid"]  # type: ignore[attr-defined]
        yield made


def text_of(at: Room) -> str:
    return TEXT.replace("{sid}", str(at.sid))  # type: ignore[attr-defined]


async def found(pen: Pen, query: str) -> list[str]:
    return [one["name"] for one in await pen.ask("workspace/symbol", {"query": query})]


async def test_a_document_shows_what_it_refers_to_by_turn(at: Room) -> None:
    pen = await at.pen(capabilities=TREES)
    pen.open(text_of(at))
    groups = await pen.ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
    assert [(one["name"], one["detail"], [inner["name"] for inner in one["children"]]) for one in groups] == [
        ("turn_1", "2 references", ["a.md", "a.md"]),
        ("turn_2", "1 reference", ["charts/x.png"]),
        ("Sources", "1 reference", [f"[S:{at.sid}] Reporting on games"]),  # type: ignore[attr-defined]
    ]
    [cited] = groups[2]["children"]
    line = text_of(at).split("\n")[3].encode("utf-16-le")
    start, end = (cited["range"][side]["character"] * 2 for side in ("start", "end"))
    assert line[start:end].decode("utf-16-le") == f"[[S:{at.sid}]]"  # type: ignore[attr-defined]


async def test_every_range_holds_what_is_selected_in_it(at: Room) -> None:
    pen = await at.pen(capabilities=TREES)
    pen.open(text_of(at))

    def place(position: dict[str, int]) -> tuple[int, int]:
        return position["line"], position["character"]

    def check(one: dict[str, Any]) -> None:
        whole, selected = one["range"], one["selectionRange"]
        assert place(whole["start"]) <= place(selected["start"]) <= place(selected["end"]) <= place(whole["end"])
        for inner in one.get("children", ()):
            check(inner)

    for group in await pen.ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}}):
        check(group)


async def test_an_editor_without_trees_gets_a_list(at: Room) -> None:
    pen = await at.pen()
    pen.open(text_of(at))
    listed = await pen.ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
    assert {(one["name"], one["containerName"]) for one in listed} >= {("a.md", "turn_1"), ("charts/x.png", "turn_2")}
    assert all(one["location"]["uri"] == URI for one in listed)


async def test_a_document_that_is_not_open_has_none(at: Room) -> None:
    assert await (await at.pen()).ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}}) == []


async def test_artifacts_are_found_by_letters_in_order(at: Room) -> None:
    pen = await at.pen()
    assert await found(pen, "rpt") == ["report.md", "my_report.md"]
    assert await found(pen, "chrtx") == ["x.png"]
    assert await found(pen, "REPORT.md") == ["report.md", "my_report.md"]
    assert await found(pen, "zzz") == []
    assert set(await found(pen, "")) == {"report.md", "x.png", "a.md", "my_report.md"}


async def test_a_symbol_says_where_it_is(at: Room) -> None:
    [symbol] = await (await at.pen()).ask("workspace/symbol", {"query": "x.png"})
    assert symbol["containerName"] == "turn_2/files/charts"
    assert symbol["location"]["uri"] == (at.inside.out / "turn_2/files/charts/x.png").as_uri()


async def test_sources_are_found_by_editors_that_show_them(at: Room) -> None:
    assert await found(await at.pen(), "games") == []
    pen = await at.pen(capabilities=TEXTS)
    [symbol] = await pen.ask("workspace/symbol", {"query": "games"})
    assert (symbol["name"], symbol["containerName"]) == (f"[S:{at.sid}] Reporting on games", "Sources")  # type: ignore[attr-defined]
    page = await pen.ask(contents.METHOD, {"uri": symbol["location"]["uri"]})
    assert page["text"] == "# Reporting on games\n\nhttps://example.com/games\n\nWhat was said.\n"
    error = await pen.refused(contents.METHOD, {"uri": "artifact-sidecar:/sources_pool/900.md"})
    assert error["data"]["kind"] == "not_found"


async def test_a_file_that_is_away_is_brought_when_it_is_chosen(at: Room) -> None:
    file = at.inside.out / "turn_2/files/report.md"
    file.unlink()
    await at.inside.sync()
    pen = await at.pen(capabilities=LAZY)
    chosen = (await pen.ask("workspace/symbol", {"query": "report.md"}))[0]
    assert "range" not in chosen["location"]
    resolved = await pen.ask("workspaceSymbol/resolve", chosen)
    assert (resolved["location"]["uri"], "range" in resolved["location"]) == (file.as_uri(), True)
    assert file.read_text("utf-8") == "report.md\n"


@pytest.mark.rule("editor.shows-only-what-the-role-may-see")
async def test_what_is_internal_is_found_by_those_who_see_it(at: Room) -> None:
    assert await found(await at.pen(), "hidden") == []
    assert await found(await at.pen("runtime"), "hidden") == ["hidden.md"]
    pen = await at.pen()
    symbol = {"name": "x", "kind": 1, "location": {"uri": "file:///x"}, "data": {"path": "fi:turn_1.files/hidden.md"}}
    (at.inside.out / "turn_1/files/hidden.md").unlink()
    await at.inside.sync()
    await pen.ask("workspaceSymbol/resolve", symbol)
    assert not (at.inside.out / "turn_1/files/hidden.md").exists()


async def test_answers_are_bounded_and_keep_the_best(at: Room) -> None:
    for number in range(SYMBOLS + 50):
        at.inside.write(f"turn_2/files/many/{number:04d}-a-n-y.txt")
    at.inside.write("turn_1/files/any")
    await at.inside.sync()
    names = await found(await at.pen(), "any")
    assert (len(names), names[0]) == (SYMBOLS, "any")


async def test_others_are_served_while_many_references_are_told(at: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    pen, rests = await at.pen(capabilities=TREES), []
    real = symbols.Pace.rest

    async def rest(pace: symbols.Pace) -> None:
        rests.append(pace)
        await real(pace)

    monkeypatch.setattr(symbols.Pace, "rest", rest)
    pen.open("fi:turn_1.files/a.md\n" * 50)
    [group] = await pen.ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
    assert (group["detail"], len(rests) >= 50) == ("50 references", True)
