"""Open documents are read once for each state, kept for as long as they are open, and placed in OUT_DIR."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types

from sidecar.core import limits
from sidecar.core.paths import parse_physical
from sidecar.server.editor import documents as module
from sidecar.server.editor.documents import Documents, Opened
from sidecar.server.lsp import Editor, Feature
from tests.server.joined import Remote, Workbench, join, service

URI = "file:///out/turn_1/files/a.md"


class Reading:
    """Documents over no workspace, whose texts are counted as they are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.elsewhere = 0

        async def search(work: Any) -> Any:
            self.elsewhere += 1
            return work()

        services: Any = SimpleNamespace(
            outdir=SimpleNamespace(root="/out"), workspace=None, looker=SimpleNamespace(search=search)
        )
        self.documents = Documents(services)
        self.read: list[str] = []
        self.seen: list[Opened | None] = []
        real = module.references

        def references(text: str, mime: str, *, folder: str | None = None) -> Any:
            self.read.append(mime)
            return real(text, mime, folder=folder)

        monkeypatch.setattr(module, "references", references)

    async def hover(self, editor: Editor, params: types.HoverParams) -> None:
        self.seen.append(await self.documents.opened(editor, params.text_document.uri))

    async def editing(self, *encodings: str) -> Remote:
        features = [*self.documents.features(), Feature(types.TEXT_DOCUMENT_HOVER, self.hover)]
        remote = await join(service(Workbench(), features=features), role="editor")
        capabilities = {"general": {"positionEncodings": list(encodings)}} if encodings else {}
        await remote.call("init", "initialize", {"capabilities": capabilities})
        return remote

    async def opened(self, remote: Remote, uri: str = URI) -> Opened | None:
        at = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}
        assert (await remote.call(len(self.seen), "textDocument/hover", at))["result"] is None
        return self.seen[-1]


def told(text: str, language: str = "markdown", uri: str = URI) -> dict[str, Any]:
    return {"textDocument": {"uri": uri, "languageId": language, "version": 1, "text": text}}


def changed(version: int, text: str, *place: int) -> dict[str, Any]:
    start, end = {"line": place[0], "character": place[1]}, {"line": place[2], "character": place[3]}
    change = {"range": {"start": start, "end": end}, "text": text}
    return {"textDocument": {"uri": URI, "version": version}, "contentChanges": [change]}


async def test_a_state_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(monkeypatch)
    remote = await reading.editing()
    remote.tell("textDocument/didOpen", told("[[S:1]]"))
    first, again = await reading.opened(remote), await reading.opened(remote)
    assert first is again
    remote.tell("textDocument/didChange", changed(2, "[[S:2]]", 0, 7, 0, 7))
    second = await reading.opened(remote)
    assert second is not None
    assert (second.text, second.version, len(second.references)) == ("[[S:1]][[S:2]]", 2, 2)
    assert len(reading.read) == 2
    await remote.drop()


@pytest.mark.rule("editor.work-is-bounded")
@pytest.mark.parametrize(("length", "elsewhere"), [(module.SHORT_CHARS, 0), (module.SHORT_CHARS + 1, 1)])
async def test_a_long_text_is_read_in_another_thread(
    monkeypatch: pytest.MonkeyPatch, length: int, elsewhere: int
) -> None:
    reading = Reading(monkeypatch)
    remote = await reading.editing()
    remote.tell("textDocument/didOpen", told("x" * length))
    assert await reading.opened(remote) is not None
    assert reading.elsewhere == elsewhere
    await remote.drop()


@pytest.mark.rule("editor.positions-in-the-agreed-encoding")
@pytest.mark.parametrize(("encoding", "units"), [("utf-8", 8), ("utf-16", 5), ("utf-32", 4)])
async def test_changes_meet_the_place_that_the_client_means(
    monkeypatch: pytest.MonkeyPatch, encoding: str, units: int
) -> None:
    reading = Reading(monkeypatch)
    remote = await reading.editing(encoding)
    remote.tell("textDocument/didOpen", told("a\x0cb\u2028c\né 😀 x"))
    remote.tell("textDocument/didChange", changed(2, "y", 1, units, 1, 99))
    opened = await reading.opened(remote)
    assert opened is not None
    assert opened.text == "a\x0cb\u2028c\né 😀 y"
    await remote.drop()


async def test_what_is_closed_or_too_long_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(monkeypatch)
    remote = await reading.editing()
    assert await reading.opened(remote) is None
    remote.tell("textDocument/didOpen", told("x" * (limits.REFERENCED_CHARS + 1)))
    assert await reading.opened(remote) is None
    remote.tell("textDocument/didOpen", told("x"))
    assert await reading.opened(remote) is not None
    remote.tell("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert await reading.opened(remote) is None
    await remote.drop()


async def test_a_change_of_what_was_never_opened_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(monkeypatch)
    remote = await reading.editing()
    remote.tell("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2}, "contentChanges": []})
    await remote.call(1, "test/echo")
    assert reading.documents._kept == reading.documents.editors == {}
    await remote.drop()


async def test_a_document_is_one_however_its_uri_is_spelled(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(monkeypatch)
    remote = await reading.editing()
    closed: list[str] = []
    reading.documents.on_close.append(lambda _, uri: closed.append(uri))
    spelled = URI.replace("a.md", "%61.md")
    for uri in (URI, spelled):
        remote.tell("textDocument/didOpen", told("x", "markdown", uri))
    opened = await reading.opened(remote, spelled)
    assert opened is not None
    [editor] = reading.documents.editors.values()
    assert (opened.uri, reading.documents.uris(editor)) == (URI, [URI])
    assert reading.documents.has(editor, spelled)
    remote.tell("textDocument/didClose", {"textDocument": {"uri": spelled}})
    assert await reading.opened(remote) is None
    assert (closed, reading.documents.has(editor, URI)) == ([URI], False)
    await remote.drop()


@pytest.mark.parametrize(
    ("language", "uri", "mime"),
    [
        ("markdown", "file:///x", "text/markdown"),
        ("html", "file:///x", "text/html"),
        ("", "file:///x/a.html", "text/html"),
        ("jsonc", "untitled:1", "application/json"),
        ("python", "file:///x/a.py", "text/x-python"),
    ],
)
async def test_the_kind_of_a_text_is_its_language_or_its_name(
    monkeypatch: pytest.MonkeyPatch, language: str, uri: str, mime: str
) -> None:
    reading = Reading(monkeypatch)
    remote = await reading.editing()
    remote.tell("textDocument/didOpen", told("x", language, uri))
    await reading.opened(remote, uri)
    assert reading.read == [mime]
    await remote.drop()


@pytest.mark.parametrize(
    ("uri", "physical"),
    [
        ("file:///out/turn_1/files/a%20b%C3%A9.md", "turn_1/files/a bé.md"),
        ("file://localhost/out/x.log", "x.log"),
        ("file:///out/../etc/passwd", None),
        ("file:///out/turn_1/files/..%2F..%2Fx", None),
        ("file:///out", None),
        ("file:///output/x", None),
        ("file://host/out/x", None),
        ("https://out/x", None),
        ("file:///out/%FF", None),
        ("file://[", None),
    ],
)
def test_uris_of_files_of_out_dir(monkeypatch: pytest.MonkeyPatch, uri: str, physical: str | None) -> None:
    path = Reading(monkeypatch).documents.path_of(uri)
    assert (path.physical if path is not None else None) == physical


def test_a_path_has_one_uri(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = Reading(monkeypatch).documents
    path = parse_physical("turn_1/files/a b#é?.md")
    assert documents.uri_of(path) == "file:///out/turn_1/files/a%20b%23%C3%A9%3F.md"
    assert documents.path_of(documents.uri_of(path)) == path


async def test_a_document_is_known_that_was_opened_by_a_link_above_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "linked").symlink_to("/out")
    reading = Reading(monkeypatch)
    remote = await reading.editing()
    uri = f"file://{tmp_path}/linked/turn_1/files/a.md"
    remote.tell("textDocument/didOpen", told("x", "markdown", uri))
    opened = await reading.opened(remote, uri)
    assert opened is not None
    assert opened.path == parse_physical("turn_1/files/a.md")


async def test_what_stands_under_the_caret(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(monkeypatch)
    remote = await reading.editing()
    remote.tell("textDocument/didOpen", told("[[S:1]] x [[S:2]]\n[[S:3]]"))
    opened = await reading.opened(remote)
    assert opened is not None

    def under(character: int) -> str | None:
        one = opened.at(types.Position(0, character))
        return one.written if one is not None else None

    assert [under(at) for at in (0, 7, 8, 9, 10, 17)] == ["[[S:1]]", "[[S:1]]", None, None, "[[S:2]]", "[[S:2]]"]
    touched = opened.within(types.Range(types.Position(0, 8), types.Position(1, 0)))
    assert [one.written for one in touched] == ["[[S:2]]", "[[S:3]]"]
    await remote.drop()
