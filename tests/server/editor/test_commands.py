"""Commands open artifacts, bring files back and cite sources, and refuse as everything here refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from protocol.methods import COMMANDS
from sidecar.server.editor import commands, contents
from tests.server.editor.pens import Pen, Room, made_by, room

pytestmark = pytest.mark.rule("editor.commands")

OPEN, REHOST, CITE = COMMANDS
LISTENING = {"window": {"workDoneProgress": True}}


@pytest_asyncio.fixture
async def at(tmp_path: Path) -> AsyncIterator[Room]:
    async with room(tmp_path, commands, contents) as made:
        await made_by(made.inside, "tc_1", "a b.md", "secret.md", internal=["hidden.md"])
        yield made


def checked(command: str, result: Any) -> Any:
    COMMANDS[command].result.model_validate_json(json.dumps(result))
    return result


async def test_the_commands_are_offered(at: Room) -> None:
    assert (await at.pen()).capabilities["executeCommandProvider"] == {"commands": [OPEN, REHOST, CITE]}


async def test_a_file_is_opened_by_any_of_its_names(at: Room) -> None:
    pen = await at.pen()
    for path in ("fi:turn_1.files/a b.md", "turn_1/files/a b.md"):
        assert checked(OPEN, await pen.run(OPEN, {"path": path})) == {
            "uri": (at.inside.out / "turn_1/files/a b.md").as_uri(),
            "artifact_path": "fi:turn_1.files/a b.md",
            "physical_path": "turn_1/files/a b.md",
            "name": "a b.md",
            "mime": "text/markdown",
            "kind": "file",
            "version": 1,
            "text": True,
            "read_only": False,
        }


async def test_an_absent_file_is_brought_back_first(at: Room) -> None:
    pen = await at.pen()
    file = at.inside.out / "turn_1/files/a b.md"
    file.unlink()
    await at.inside.sync()
    await pen.run(OPEN, {"path": "turn_1/files/a b.md"})
    assert file.read_text("utf-8") == "a b.md\n"


async def test_pictures_are_no_text(at: Room) -> None:
    at.inside.write("turn_1/files/a.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 20)
    at.inside.write("turn_1/files/long.md", "a" * 4095 + "é" * 10)
    await at.inside.sync()
    pen = await at.pen()
    assert (await pen.run(OPEN, {"path": "turn_1/files/a.png"}))["text"] is False
    assert (await pen.run(OPEN, {"path": "turn_1/files/long.md"}))["text"] is True


async def test_a_file_of_no_turn_is_opened_too(at: Room) -> None:
    at.inside.write("logs/out.log", "line\n")
    opened = checked(OPEN, await (await at.pen()).run(OPEN, {"path": "logs/out.log"}))
    assert (opened["name"], opened["text"], "version" in opened, "kind" in opened) == ("out.log", True, False, False)


async def test_an_older_version_is_a_document_to_read(at: Room) -> None:
    at.inside.write("turn_1/files/a b.md", "second\n")
    await at.inside.sync()
    pen = await at.pen()
    opened = checked(OPEN, await pen.run(OPEN, {"path": "turn_1/files/a b.md", "version": 1}))
    assert opened["uri"] == "artifact-sidecar:/turn_1/files/a%20b.md?version=1"
    assert (opened["read_only"], opened["version"]) == (True, 1)
    assert await pen.ask(contents.METHOD, {"uri": opened["uri"]}) == {"text": "a b.md\n"}
    latest = await pen.run(OPEN, {"path": "turn_1/files/a b.md", "version": 2})
    assert latest["uri"].startswith("file:")


async def test_a_display_that_is_no_file_is_a_document_to_read(at: Room) -> None:
    write = {"path": "shown.md", "content": "# Shown\n", "kind": "display"}
    await at.inside.ask("artifact/write", write)
    pen = await at.pen()
    opened = checked(OPEN, await pen.run(OPEN, {"path": "fi:turn_1.files/shown.md"}))
    assert (opened["read_only"], opened["kind"]) == (True, "display")
    assert await pen.ask(contents.METHOD, {"uri": opened["uri"]}) == {"text": "# Shown\n"}
    assert not (at.inside.out / "turn_1/files/shown.md").exists()


@pytest.mark.parametrize(
    ("argument", "kind"),
    [
        ({"path": "fi:turn_1.files/none.md"}, "not_found"),
        ({"path": "fi:turn_1.files/hidden.md"}, "not_found"),
        ({"path": "fi:turn_1.files/hidden.md", "version": 1}, "not_found"),
        ({"path": "turn_1/files/a b.md", "version": 9}, "not_found"),
        ({"path": "../x"}, "unsafe_path"),
        ({"path": "xx:1"}, "bad_path"),
        ({"path": "ar:turn_1.user.prompt"}, "bad_path"),
    ],
)
async def test_what_cannot_be_opened_is_refused_in_words(at: Room, argument: dict[str, Any], kind: str) -> None:
    error = await (await at.pen()).run_refused(OPEN, argument)
    assert (error["code"], error["data"]["kind"]) == (-32803, kind)
    assert error["data"]["about"]
    assert error["data"]["hint"]
    assert kind in COMMANDS[OPEN].fails_with


@pytest.mark.rule("editor.shows-only-what-the-role-may-see")
async def test_what_is_internal_is_refused_exactly_as_what_is_not_there(at: Room) -> None:
    pen = await at.pen()
    hidden = await pen.run_refused(OPEN, {"path": "fi:turn_1.files/hidden.md"})
    absent = await pen.run_refused(OPEN, {"path": "fi:turn_1.files/hiddex.md"})
    assert str(hidden).replace("hidden", "hiddex") == str(absent)
    assert (await (await at.pen("runtime")).run(OPEN, {"path": "fi:turn_1.files/hidden.md"}))["name"] == "hidden.md"


@pytest.mark.parametrize(
    "params",
    [
        {"command": "artifact-sidecar.none"},
        {"command": OPEN},
        {"command": OPEN, "arguments": []},
        {"command": OPEN, "arguments": [{}]},
        {"command": OPEN, "arguments": ["turn_1/files/a b.md"]},
        {"command": OPEN, "arguments": [{"path": "a", "extra": 1}]},
        {"command": OPEN, "arguments": [{"path": "a"}, {}]},
        {"command": OPEN, "arguments": [{"path": "a", "version": 0}]},
        {"command": REHOST, "arguments": [{"paths": []}]},
    ],
)
async def test_wrong_arguments_are_told_where_they_are_wrong(at: Room, params: dict[str, Any]) -> None:
    error = await (await at.pen()).refused(commands.METHOD, params)
    assert error["code"] == -32602
    assert error["data"]["faults"]


# Bring back


async def gone(at: Room, *files: str) -> list[str]:
    for file in files:
        (at.inside.out / "turn_1/files" / file).unlink()
    await at.inside.sync()
    return [f"fi:turn_1.files/{file}" for file in files]


async def test_files_are_brought_back(at: Room) -> None:
    paths = await gone(at, "a b.md", "hidden.md")
    result = checked(REHOST, await (await at.pen()).run(REHOST, {"paths": [*paths, "fi:turn_1.files/none.md", "../x"]}))
    [brought] = result["rehosted"]
    assert (brought["path"], brought["origin"]) == (paths[0], "kept")
    assert brought["uri"] == (at.inside.out / "turn_1/files/a b.md").as_uri()
    assert {one["path"]: one["reason"] for one in result["missing"]} == {
        paths[1]: "unknown", "fi:turn_1.files/none.md": "unknown", "../x": "unsafe_path",
    }  # fmt: skip


def told(pen: Pen, token: object) -> list[str]:
    values = [one["params"] for one in pen.remote.notifications if one["method"] == "$/progress"]
    return [one["value"]["kind"] for one in values if one["token"] == token]


@pytest.mark.rule("editor.progress-of-commands")
async def test_progress_goes_under_the_token_of_the_request(at: Room) -> None:
    paths = await gone(at, "a b.md")
    pen = await at.pen()
    await pen.run(REHOST, {"paths": paths}, workDoneToken="mine")
    assert told(pen, "mine") == ["begin", "report", "end"]


@pytest.mark.rule("editor.progress-of-commands")
async def test_an_editor_that_offers_progress_is_asked_for_a_token(at: Room) -> None:
    paths = await gone(at, "a b.md", "secret.md")
    pen = await at.pen(capabilities=LISTENING)
    pen.remote.ask(1, commands.METHOD, {"command": REHOST, "arguments": [{"paths": paths}]})
    question = await pen.remote.receive()
    assert question["method"] == "window/workDoneProgress/create"
    pen.remote.send({"jsonrpc": "2.0", "id": question["id"], "result": None})
    answer = await pen.remote.answer()
    assert len(answer["result"]["rehosted"]) == 2


@pytest.mark.rule("editor.progress-of-commands")
async def test_an_editor_that_never_agrees_is_answered_all_the_same(at: Room) -> None:
    pen = await at.pen(capabilities=LISTENING)
    await pen.run(REHOST, {"paths": await gone(at, "a b.md")})
    assert [one["method"] for one in pen.remote.notifications] == ["window/workDoneProgress/create"]


@pytest.mark.rule("editor.progress-of-commands")
async def test_nobody_else_is_asked_for_a_token(at: Room) -> None:
    pen = await at.pen()
    await pen.run(REHOST, {"paths": await gone(at, "a b.md")})
    assert pen.remote.notifications == []


@pytest.mark.rule("editor.progress-of-commands")
async def test_work_that_is_given_up_answers_with_what_was_done(at: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, entered = asyncio.Event(), asyncio.Event()
    bring_back = commands.bring_back

    async def slow(*args: Any) -> Any:
        entered.set()
        await gate.wait()
        return await bring_back(*args)

    monkeypatch.setattr(commands, "bring_back", slow)
    pen = await at.pen()
    asked = {"paths": ["fi:turn_1.files/a b.md"] * 20}
    pen.remote.ask(1, commands.METHOD, {"command": REHOST, "arguments": [asked], "workDoneToken": 7})
    await asyncio.wait_for(entered.wait(), 5)
    pen.remote.tell("window/workDoneProgress/cancel", {"token": 7})
    pen.remote.ask(2, commands.METHOD, {"command": "none"})
    assert (await pen.remote.answer())["id"] == 2  # so the cancel was taken before
    gate.set()
    result = checked(REHOST, (await pen.remote.answer())["result"])
    assert (len(result["rehosted"]), result["cancelled"]) == (8, True)


# Cite


async def test_sources_are_cited_as_the_daemon_reads_them(at: Room) -> None:
    rows = [{"title": f"T{n}", "url": f"https://example.com/{n}"} for n in range(5)]
    merged = await at.inside.ask("sources/merge", {"rows": rows})
    first = merged["rows"][0]["sid"]
    pen = await at.pen()
    cited = checked(CITE, await pen.run(CITE, {"sids": [first, first + 1, first + 2, first + 4, 900]}))
    assert cited == {"text": f"[[S:{first}-{first + 2},{first + 4}]]", "missing": [900]}
    assert (await at.inside.ask("citations/extract", {"text": cited["text"]}))["sids"] == [
        first, first + 1, first + 2, first + 4,
    ]  # fmt: skip
    assert (await pen.run_refused(CITE, {"sids": [900]}))["data"]["kind"] == "not_found"
