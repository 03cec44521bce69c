"""Completion offers what the role sees, replaces all that was typed, and counts positions as the editor does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sidecar.core.paths import FilePath, parse_physical
from sidecar.core.references import references
from sidecar.server.editor import completion
from sidecar.server.editor.completion import ITEMS
from tests.server.editor.pens import URI, Pen, Room, made_by, room

pytestmark = pytest.mark.rule("editor.completes-paths-and-citations")

ENCODINGS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
WIDTH = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


@pytest_asyncio.fixture
async def at(tmp_path: Path) -> AsyncIterator[Room]:
    async with room(tmp_path, completion) as made:
        await made_by(made.inside, "tc_1", "old.md", "a b.md", internal=["hidden.md"])
        made.inside.write("turn_1/attachments/in.csv", "a,b\n")
        await made_by(made.inside, "tc_2", "Report.md", "charts/x.png", turn="turn_2")
        rows = [
            {"title": "Game theory", "url": "https://example.com/games"},
            {"title": "A history of games", "url": "https://example.org/h"},
            {"title": "Bread", "url": "https://bakery.example/game"},
        ]
        await made.inside.ask("sources/merge", {"rows": rows})
        yield made


def units(text: str, encoding: str) -> int:
    return len(text.encode(ENCODINGS[encoding])) // WIDTH[encoding]


async def offered(pen: Pen, marked: str, *, encoding: str = "utf-16") -> Any:
    """The answer at `|`, in the last line."""
    text = marked.replace("|", "", 1)
    pen.open(text)
    line = marked.partition("|")[0].count("\n")
    character = units(marked.partition("|")[0].rpartition("\n")[2], encoding)
    position = {"line": line, "character": character}
    return await pen.ask("textDocument/completion", {"textDocument": {"uri": URI}, "position": position})


async def labels(pen: Pen, marked: str) -> list[str]:
    answer = await offered(pen, marked)
    return [] if answer is None else [item["label"] for item in answer["items"]]


def applied(text: str, item: Any, encoding: str) -> str:
    """The text with the item's edit made, counted in the editor's units."""
    edit = item["textEdit"]
    lines = text.split("\n")
    raw = lines[edit["range"]["start"]["line"]].encode(ENCODINGS[encoding])
    start, end = (edit["range"][side]["character"] * WIDTH[encoding] for side in ("start", "end"))
    new = raw[:start].decode(ENCODINGS[encoding]) + edit["newText"] + raw[end:].decode(ENCODINGS[encoding])
    return "\n".join([*lines[: edit["range"]["start"]["line"]], new, *lines[edit["range"]["end"]["line"] + 1 :]])


async def test_it_is_offered_with_what_triggers_it(at: Room) -> None:
    told = (await at.pen()).capabilities["completionProvider"]
    assert (told["triggerCharacters"], told["resolveProvider"]) == ([":", "[", "/", "."], True)


async def test_paths_complete_by_turn_and_then_by_name_newest_first(at: Room) -> None:
    pen = await at.pen()
    folders = ["fi:turn_2.files/", "fi:turn_1.files/", "fi:turn_1.user.attachments/"]
    assert await labels(pen, "fi:|") == [*folders, "Report.md", "charts/x.png", "a b.md", "old.md", "in.csv"]
    assert await labels(pen, "see fi:turn_2.files/c|") == ["charts/x.png"]
    assert await labels(pen, "fi:turn_1.u|") == ["fi:turn_1.user.attachments/", "in.csv"]


async def test_paths_on_disk_complete_too(at: Room) -> None:
    pen = await at.pen()
    answer = await offered(pen, '<img src="turn_2/files/|">')
    assert [item["textEdit"]["newText"] for item in answer["items"]] == [
        "turn_2/files/Report.md",
        "turn_2/files/charts/x.png",
    ]
    assert await labels(pen, "turn_1/a|") == ["turn_1/attachments/", "in.csv"]


async def test_a_part_of_a_name_is_enough(at: Room) -> None:
    answer = await offered(await at.pen(), "fi:rep|")
    [item] = answer["items"]
    assert (item["textEdit"]["newText"], item["filterText"]) == ("fi:turn_2.files/Report.md", "fi:Report.md")


async def test_editors_that_filter_find_what_was_typed(at: Room) -> None:
    pen = await at.pen()
    for marked in (
        "fi:|",
        "fi:turn_1.|",
        "fi:OLD|",
        "turn_|",
        "[[S:|",
        "[[S:ga|",
        "[[S:2|",
        "[[S:1,ga|",
        "[[|",
        "［［S：|",
    ):
        answer = await offered(pen, marked)
        assert answer["items"], marked
        start = answer["items"][0]["textEdit"]["range"]["start"]["character"]
        typed = marked.replace("|", "")[start:]
        wrong = [
            one["filterText"] for one in answer["items"] if not one["filterText"].lower().startswith(typed.lower())
        ]
        assert wrong == [], marked
        assert [one["sortText"] for one in answer["items"]] == sorted(one["sortText"] for one in answer["items"])


async def test_a_name_with_a_blank_goes_on(at: Room) -> None:
    pen = await at.pen()
    assert await labels(pen, "fi:turn_1.files/a b|") == ["a b.md"]
    assert await labels(pen, "fi:turn_1.files/old.md and then|") == []


async def test_the_target_of_a_link_is_written_so_that_it_ends_where_it_should(at: Room) -> None:
    text = "![x](fi:turn_1.files/a|)"
    [item] = (await offered(await at.pen(), text))["items"]
    assert item["textEdit"]["newText"] == "fi:turn_1.files/a%20b.md"
    written = applied(text.replace("|", ""), item, "utf-16")
    [reference] = references(written, "text/markdown")
    wanted = parse_physical("turn_1/files/a b.md")
    assert isinstance(wanted, FilePath)
    assert wanted in [reading.path for reading in reference.readings]
    [item] = (await offered(await at.pen(), "![x](fi:turn_1.files/a%20|)"))["items"]
    assert item["filterText"].startswith("fi:turn_1.files/a%20")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("typed", ["fi:turn_2.files/Re", "[[S:1,ga"])
async def test_what_was_typed_is_replaced_wherever_it_stands(at: Room, encoding: str, typed: str) -> None:
    pen = await at.pen(capabilities={"general": {"positionEncodings": [encoding]}})
    assert pen.capabilities["positionEncoding"] == encoding
    lead = "# Title 🎉\n\nünï 🎉👩‍👩‍👧 "
    answer = await offered(pen, f"{lead}{typed}|\nnext", encoding=encoding)
    item = answer["items"][0]
    wanted = "fi:turn_2.files/Report.md" if typed.startswith("fi:") else f"[[S:1,{item['textEdit']['newText']}"
    assert applied(f"{lead}{typed}\nnext", item, encoding) == f"{lead}{wanted}\nnext"


async def test_citations_complete_by_number_and_by_title(at: Room) -> None:
    pen = await at.pen()
    rows = {row["title"]: row["sid"] for row in (await at.inside.ask("sources/list"))["rows"] if "url" in row}
    game, history, bread = rows["Game theory"], rows["A history of games"], rows["Bread"]
    answer = await offered(pen, "As [[S:game|")
    assert [item["textEdit"]["newText"] for item in answer["items"]] == [f"{n}]]" for n in (game, history, bread)]
    assert answer["items"][0]["detail"] == "https://example.com/games"
    assert answer["items"][0]["label"] == f"[S:{game}] Game theory"
    assert await labels(pen, f"[[S:{history}|") == [f"[S:{history}] A history of games"]
    assert len(await labels(pen, "[[|")) == len((await at.inside.ask("sources/list"))["rows"])
    answer = await offered(pen, "[[S:1, 3-|]]")
    assert applied("[[S:1, 3-]]", answer["items"][0], "utf-16") == "[[S:1, 3-1]]"
    answer = await offered(pen, "see [[|")
    assert applied("see [[", answer["items"][0], "utf-16") == "see [[S:1]]"


async def test_brackets_are_never_doubled(at: Room) -> None:
    pen = await at.pen()
    for text in ("x [[S:gam|]] y", "x [[S:gam|] y", "x [[S:gam| y"):
        answer = await offered(pen, text)
        done = applied(text.replace("|", ""), answer["items"][0], "utf-16")
        assert (done.count("[["), done.count("]]")) == (1, 1)
        assert done.endswith(" y")


@pytest.mark.rule("editor.shows-only-what-the-role-may-see")
async def test_what_is_internal_or_pending_is_not_offered(at: Room) -> None:
    await at.inside.ask("call/begin", {"tool_call_id": "tc_3", "tool_id": "exec", "params": {}})
    at.inside.write("turn_2/files/pending.md")
    await at.inside.sync()
    runtime, editor = await at.pen("runtime"), await at.pen()
    for name in ("hidden", "pending"):
        assert await labels(runtime, f"fi:{name}|") == [f"{name}.md"]
        assert await labels(editor, f"fi:{name}|") == []
    assert "pending.md" not in await labels(editor, "fi:turn_2.files/|")


async def test_what_there_is_to_say_comes_when_it_is_looked_at(at: Room) -> None:
    pen = await at.pen()
    [item] = (await offered(pen, "fi:turn_2.files/R|"))["items"]
    assert "documentation" not in item
    told = (await pen.ask("completionItem/resolve", item))["documentation"]
    assert all(word in told for word in ("fi:turn_2.files/Report.md", "text/markdown", "tc_2", "1 version"))
    [item, *_] = (await offered(pen, "[[S:game|"))["items"]
    assert "Game theory" in (await pen.ask("completionItem/resolve", item))["documentation"]


@pytest.mark.rule("editor.shows-only-what-the-role-may-see")
async def test_nothing_is_said_of_what_may_not_be_seen(at: Room) -> None:
    item = {"label": "x", "data": {"path": "fi:turn_1.files/hidden.md"}}
    assert "documentation" not in await (await at.pen()).ask("completionItem/resolve", item)


async def test_an_answer_is_never_long(at: Room) -> None:
    for number in range(ITEMS + 50):
        at.inside.write(f"turn_2/files/many/{number:04d}.txt")
    await at.inside.sync()
    answer = await offered(await at.pen(), "fi:|")
    assert (len(answer["items"]), answer["isIncomplete"]) == (ITEMS, True)


async def test_elsewhere_nothing_is_offered(at: Room) -> None:
    pen = await at.pen()
    assert await offered(pen, "plain words|") is None
    position = {"line": 0, "character": 0}
    assert (
        await pen.ask("textDocument/completion", {"textDocument": {"uri": "file:///not-open"}, "position": position})
        is None
    )


async def test_in_a_text_that_is_too_long_nothing_is_offered(at: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    pen = await at.pen()
    assert await offered(pen, "fi:turn_1.files/|") is not None
    monkeypatch.setattr("sidecar.core.limits.REFERENCED_CHARS", 5)
    assert await offered(pen, "fi:turn_1.files/|") is None
