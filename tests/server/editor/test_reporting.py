"""Diagnostics follow the text and the workspace: published once, taken away again, or asked for, never both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from lsprotocol import types

from sidecar.core import limits
from sidecar.core.happened import Happened
from sidecar.server.editor import reporting
from sidecar.server.editor.documents import Documents
from sidecar.server.editor.reporting import Reporting
from sidecar.server.lsp import Editor
from tests.daemon_process import Workspace
from tests.server.editor.conftest import Told
from tests.server.editor.desk import CEILING, FULL, Desk, desk_of, story
from tests.server.joined import Remote, Workbench, join, service, until

PULLS = {
    "textDocument": {**FULL["textDocument"], "diagnostic": {}},
    "workspace": {**FULL["workspace"], "diagnostics": {"refreshSupport": True}},
}


@pytest.mark.rule("editor.diagnostics-follow-text-and-workspace")
def test_they_follow_the_text(desk: Desk) -> None:
    desk.open("😀 [[S:99]]")
    assert desk.diagnostics() == [("unknown_source", "[[S:99]]")]
    desk.edit("[[S:99]]", "[[S:98]] é")
    assert desk.diagnostics() == [("unknown_source", "[[S:98]]")]
    desk.edit("[[S:98]]", "[[S:1]]")
    assert desk.published() == []


@pytest.mark.rule("editor.diagnostics-follow-text-and-workspace")
def test_they_follow_the_workspace(workspace: Workspace) -> None:
    story(workspace)
    runtime = workspace.connect("runtime", ceiling=CEILING)
    with desk_of(workspace) as desk:
        desk.open("[[S:7]] turn_2/files/new.txt")
        assert desk.diagnostics() == [("unknown_source", "[[S:7]]"), ("unknown_path", "turn_2/files/new.txt")]
        workspace.write("turn_2/files/new.txt", "x")
        runtime.call("workspace/sync")
        assert desk.published() == []  # it was given the number 7 as well


def test_they_are_taken_away_with_the_document(desk: Desk) -> None:
    desk.open("[[S:99]]")
    assert desk.published()
    desk.close()
    assert desk.published() == []


def test_nothing_is_published_where_nothing_is_wrong(sit: Callable[..., Desk], told: Told) -> None:
    desk = sit().open("[[S:1]]", "good.md").open("[[S:99]]")
    assert desk.client.event("textDocument/publishDiagnostics")["uri"] == desk.uri("notes.md")


@pytest.mark.rule("editor.diagnostics-are-published-or-asked-for")
def test_who_asks_is_answered_and_nothing_is_published(workspace: Workspace) -> None:
    story(workspace)
    runtime = workspace.connect("runtime", ceiling=CEILING)
    with desk_of(workspace, capabilities=PULLS) as desk:
        assert desk.client.welcome["diagnosticProvider"]["interFileDependencies"] is True
        desk.open("turn_2/files/new.txt")
        first = desk.ask("textDocument/diagnostic")
        assert (first["kind"], [one["code"] for one in first["items"]]) == ("full", ["unknown_path"])
        again = desk.ask("textDocument/diagnostic", previousResultId=first["resultId"])
        assert again == {"kind": "unchanged", "resultId": first["resultId"]}
        workspace.write("turn_2/files/new.txt", "x")
        runtime.call("workspace/sync")
        desk.client.event("workspace/diagnostic/refresh")
        assert desk.ask("textDocument/diagnostic", previousResultId=first["resultId"])["items"] == []
        assert "textDocument/publishDiagnostics" not in desk.client.heard()


def test_who_asks_but_cannot_be_told_to_ask_again_gets_them_published(sit: Callable[..., Desk], told: Told) -> None:
    desk = sit(capabilities={"textDocument": {"diagnostic": {}}})
    assert "diagnosticProvider" not in desk.client.welcome
    assert desk.open("[[S:99]]").diagnostics()


# Inside


class Board:
    """A judge that counts, and documents of a client in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reporting, "TYPED_SECONDS", 0.0)
        monkeypatch.setattr(reporting, "CHANGED_SECONDS", 0.0)
        self.judged = 0
        self.under_way = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.fault: Exception | None = None
        self.listeners: list[Callable[[Happened], None]] = []
        workspace = type("Workspace", (), {"listeners": self.listeners})()
        services: Any = type(
            "Services", (), {"workspace": workspace, "outdir": type("OutDir", (), {"root": "/out"})()}
        )()
        self.documents = Documents(services)
        self.reporting = Reporting(services, self.documents, self.judge)

    async def judge(self, editor: Editor, opened: Any) -> list[types.Diagnostic]:
        self.judged += 1
        self.under_way += 1
        try:
            await self.gate.wait()
        finally:
            self.under_way -= 1
        if self.fault is not None:
            raise self.fault
        place = types.Range(types.Position(0, 0), types.Position(0, 1))
        return [types.Diagnostic(place, opened.text)]

    async def editing(self) -> Remote:
        features = [*self.documents.features(), *self.reporting.features()]
        remote = await join(service(Workbench(), features=features), role="editor")
        await remote.initialize()
        return remote


def opened(text: str) -> dict[str, Any]:
    return {"textDocument": {"uri": "file:///a.md", "languageId": "markdown", "version": 1, "text": text}}


def changed(text: str) -> dict[str, Any]:
    return {"textDocument": {"uri": "file:///a.md", "version": 2}, "contentChanges": [{"text": text}]}


async def test_one_look_at_a_time_and_the_last_text_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board(monkeypatch)
    remote = await board.editing()
    board.gate.clear()
    remote.tell("textDocument/didOpen", opened("0"))
    await until(lambda: board.under_way == 1)
    for number in range(1, 50):
        remote.tell("textDocument/didChange", changed(str(number)))
    await remote.call(1, "test/echo")
    assert board.under_way == 1
    board.gate.set()
    said = [(await remote.receive())["params"]["diagnostics"][0]["message"]]
    while said[-1] != "49":
        said.append((await remote.receive())["params"]["diagnostics"][0]["message"])
    assert board.judged < 10
    await remote.drop()


@pytest.mark.rule("editor.work-ends-with-its-connection")
async def test_what_is_under_way_ends_with_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board(monkeypatch)
    remote = await board.editing()
    board.gate.clear()
    remote.tell("textDocument/didOpen", opened("0"))
    await until(lambda: board.under_way == 1)
    await remote.drop()
    await until(lambda: board.under_way == 0)
    assert (board.reporting._desks, board.documents.editors, board.documents._kept) == ({}, {}, {})
    for listener in board.listeners:
        listener(Happened())
    await asyncio.sleep(0)
    assert board.judged == 1


async def test_an_unexpected_failure_ends_one_look_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    board = Board(monkeypatch)
    remote = await board.editing()
    board.fault = RuntimeError("secret")
    remote.tell("textDocument/didOpen", opened("0"))
    await until(lambda: "sidecar.incident" in [record.name for record in caplog.records])
    board.fault = None
    remote.tell("textDocument/didChange", changed("1"))
    assert (await remote.receive())["params"]["diagnostics"][0]["message"] == "1"
    await remote.drop()


async def test_a_look_at_many_documents_rests_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.pacing.SECONDS_AT_ONCE", -1.0)
    board = Board(monkeypatch)
    remote = await board.editing()
    for number in range(20):
        text = opened("x" * (limits.REFERENCED_CHARS + 1) if number == 0 else "")
        text["textDocument"]["uri"] = f"file:///{number}.md"
        remote.tell("textDocument/didOpen", text)
    await remote.call(1, "test/echo")
    await until(lambda: not board.reporting._desks[next(iter(board.documents.editors))].timers)
    [desk] = board.reporting._desks.values()
    await until(lambda: not desk.tasks)
    for kept in next(iter(board.documents._kept.values())).values():
        kept.uri = f"{kept.uri}#"  # none of them is there any more
    rounds = 0
    look = asyncio.get_running_loop().create_task(board.reporting._guarded(desk, ""))
    while not look.done():
        rounds += 1
        await asyncio.sleep(0)
    assert rounds >= 20
    await remote.drop()
