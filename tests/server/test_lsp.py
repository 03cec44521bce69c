"""LSP by the library below, without its faults: capabilities, documents, features, questions to the client."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import re
import weakref
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.feature_manager import FeatureManager
from pygls.protocol import LanguageServerProtocol
from pygls.workspace import TextDocument

from sidecar.server import lsp
from sidecar.server.caller import Client
from sidecar.server.lsp import Editor, Editors, Feature
from sidecar.server.peer import Peer
from tests.server.joined import Remote, Workbench, join, service, until

POSITION = {"textDocument": {"uri": "file:///a.md"}, "position": {"line": 0, "character": 0}}


def hover(editor: Editor, params: types.HoverParams) -> types.Hover:
    document = editor.workspace.get_text_document(params.text_document.uri)
    return types.Hover(contents=f"{editor.client.role}:{document.source}")


async def symbols(editor: Editor, params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
    await asyncio.sleep(0)
    location = types.Location("file:///a", types.Range(types.Position(0, 0), types.Position(0, 1)))
    return [types.SymbolInformation(name=params.query, kind=types.SymbolKind.File, location=location)]


async def editing(*features: Feature, role: str = "editor", bench: Workbench | None = None) -> Remote:
    remote = await join(service(bench or Workbench(), features=features), role=role)
    await remote.initialize()
    return remote


def opened(text: str, uri: str = "file:///a.md") -> dict[str, Any]:
    return {"textDocument": {"uri": uri, "languageId": "markdown", "version": 1, "text": text}}


def resolved(editor: Editor, item: types.CompletionItem) -> types.CompletionItem:
    return item


@pytest.mark.parametrize("depth", [180, 220, 250, 300, 600])
async def test_params_that_nest_too_deeply_to_be_written_again_are_refused(depth: int) -> None:
    feature = Feature("completionItem/resolve", resolved)
    remote = await editing(Feature("textDocument/completion", hover), feature)
    deep: Any = 1
    for _ in range(depth):
        deep = [deep]
    answer = await remote.call(2, "completionItem/resolve", {"label": "x", "data": deep})
    assert answer.get("error", {"code": 0})["code"] == (0 if depth < 200 else -32602)
    await remote.drop()


@pytest.mark.parametrize("uri", ["file://\uff0fx", "file://[", "http://a]b/"])
async def test_a_document_at_no_uri_is_not_kept_and_is_no_incident(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    remote = await editing(Feature(types.TEXT_DOCUMENT_HOVER, hover))
    remote.tell("textDocument/didOpen", opened("text", uri))
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "x"}]}
    remote.tell("textDocument/didChange", change)
    assert "result" in await remote.call(2, "test/echo")
    assert not [record for record in caplog.records if record.name == "sidecar.incident"]
    assert "at no URI" in caplog.text
    await remote.drop()


# initialize


async def greeted(**params: Any) -> dict[str, Any]:
    remote = await join(service(Workbench(), features=[Feature(types.TEXT_DOCUMENT_HOVER, hover)]))
    answer = await remote.call(1, "initialize", params)
    await remote.drop()
    return answer


async def test_initialize_tells_capabilities_the_server_and_our_own() -> None:
    result = (await greeted(capabilities={}))["result"]
    assert result["serverInfo"] == {"name": "artifact-sidecar", "version": "0"}
    assert result["capabilities"]["hoverProvider"]
    assert result["capabilities"]["experimental"]["artifact_sidecar"]["role"] == "exec"
    assert "completionProvider" not in result["capabilities"]


async def test_the_smallest_initialize_is_enough() -> None:
    assert "result" in await greeted()


async def test_nothing_is_claimed_for_workspace_folders() -> None:
    folders = [{"uri": "file:///x", "name": "x"}]
    assert "workspace" not in (await greeted(workspaceFolders=folders))["result"]["capabilities"]


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(["utf-8", "utf-16"], "utf-8"), (["utf-32"], "utf-32"), (["utf-7"], "utf-16"), (None, "utf-16")],
)
async def test_position_encodings_are_negotiated(offered: list[str] | None, chosen: str) -> None:
    capabilities = {"general": {"positionEncodings": offered}} if offered else {}
    assert (await greeted(capabilities=capabilities))["result"]["capabilities"]["positionEncoding"] == chosen


async def test_an_initialize_of_another_shape_is_refused() -> None:
    error = (await greeted(capabilities={"general": {"positionEncodings": 5}}))["error"]
    assert error["code"] == -32602
    assert error["data"]["faults"][0]["where"] == "capabilities.general.positionEncodings"


async def test_a_feature_is_offered_to_those_who_can_use_it() -> None:
    def options(capabilities: types.ClientCapabilities) -> types.DocumentLinkOptions | None:
        document = capabilities.text_document
        return types.DocumentLinkOptions() if document is not None and document.document_link is not None else None

    def links(editor: Editor, params: types.DocumentLinkParams) -> list[Any]:
        return []

    asked = {"textDocument": {"uri": "file:///a.md"}}
    for capabilities, offered in (({}, False), ({"textDocument": {"documentLink": {}}}, True)):
        remote = await join(
            service(Workbench(), features=[Feature(types.TEXT_DOCUMENT_DOCUMENT_LINK, links, options)]), role="editor"
        )
        answer = await remote.call(0, "initialize", {"capabilities": capabilities})
        assert ("documentLinkProvider" in answer["result"]["capabilities"]) is offered
        assert ("result" in await remote.call(1, "textDocument/documentLink", asked)) is offered
        await remote.drop()


async def test_of_the_workspace_what_is_offered_is_told() -> None:
    remote = await join(
        service(
            Workbench(),
            features=[
                Feature(types.WORKSPACE_WILL_RENAME_FILES, hover, types.FileOperationRegistrationOptions([])),
                Feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT, hover, types.TextDocumentContentOptions(["x"])),
            ],
        )
    )
    capabilities = {"workspace": {"fileOperations": {"willRename": True}}}
    answer = await remote.call(0, "initialize", {"capabilities": capabilities})
    assert answer["result"]["capabilities"]["workspace"] == {
        "fileOperations": {"willRename": {"filters": []}},
        "textDocumentContent": {"schemes": ["x"]},
    }
    await remote.drop()


# Features and documents


async def test_lines_end_as_lsp_says() -> None:
    remote = await editing(Feature(types.TEXT_DOCUMENT_HOVER, hover))
    remote.tell("textDocument/didOpen", opened("a\x0cb\u2028c\nd 😀e"))
    change = {"range": {"start": {"line": 1, "character": 4}, "end": {"line": 9, "character": 9}}, "text": "!"}
    which = {"uri": "file:///a.md", "version": 2}
    remote.tell("textDocument/didChange", {"textDocument": which, "contentChanges": [change]})
    assert (await remote.call(1, "textDocument/hover", POSITION))["result"]["contents"] == "editor:a\x0cb\u2028c\nd 😀!"
    await remote.drop()


async def test_a_feature_sees_the_clients_own_unsaved_text() -> None:
    feature = Feature(types.TEXT_DOCUMENT_HOVER, hover)
    one, two = await editing(feature), await editing(feature)
    one.tell("textDocument/didOpen", opened("one"))
    two.tell("textDocument/didOpen", opened("two"))
    change = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}, "text": "O"}
    one.tell(
        "textDocument/didChange", {"textDocument": {"uri": "file:///a.md", "version": 2}, "contentChanges": [change]}
    )
    answers = [(await remote.call(1, "textDocument/hover", POSITION))["result"]["contents"] for remote in (one, two)]
    assert answers == ["editor:One", "editor:two"]
    await one.drop()
    await two.drop()


async def test_an_async_feature_is_answered_in_lsps_spelling() -> None:
    remote = await editing(Feature(types.WORKSPACE_SYMBOL, symbols))
    [symbol] = (await remote.call(1, "workspace/symbol", {"query": "q"}))["result"]
    assert (symbol["name"], symbol["location"]["uri"]) == ("q", "file:///a")
    await remote.drop()


async def test_an_async_feature_can_be_cancelled() -> None:
    bench = Workbench()

    async def slow(editor: Editor, params: Any) -> None:
        await bench.wait(None, None)  # type: ignore[arg-type]

    remote = await editing(Feature(types.WORKSPACE_SYMBOL, slow), bench=bench)
    remote.ask(1, "workspace/symbol", {"query": "q"})
    await until(bench.entered.is_set)
    remote.tell("$/cancelRequest", {"id": 1})
    assert (await remote.answer())["error"]["code"] == -32800
    assert bench.cancelled == 1
    await remote.drop()


async def test_a_feature_cancelled_before_it_began_leaves_nothing_behind() -> None:
    remote = await editing(Feature(types.WORKSPACE_SYMBOL, symbols))
    remote.ask(1, "workspace/symbol", {"query": "q"})
    remote.tell("$/cancelRequest", {"id": 1})
    assert (await remote.answer())["error"]["code"] == -32800
    await remote.drop()


def raising(error: BaseException) -> list[Any]:
    def plain(editor: Editor, params: Any) -> None:
        raise error

    async def later(editor: Editor, params: Any) -> None:
        raise error

    return [plain, later]


@pytest.mark.parametrize("which", [0, 1], ids=["plain", "async"])
async def test_a_features_own_error_keeps_its_number_and_words(which: int) -> None:
    answer = raising(JsonRpcException("not here", code=-32803, data={"a": 1}))[which]
    remote = await editing(Feature(types.TEXT_DOCUMENT_HOVER, answer))
    error = (await remote.call(1, "textDocument/hover", POSITION))["error"]
    assert error == {"code": -32803, "message": "not here", "data": {"a": 1}}
    await remote.drop()


@pytest.mark.parametrize("error", [RuntimeError("secret"), SystemExit(3)], ids=["accident", "exit"])
@pytest.mark.parametrize("which", [0, 1], ids=["plain", "async"])
async def test_a_feature_that_fails_is_an_incident(which: int, error: BaseException) -> None:
    remote = await editing(Feature(types.TEXT_DOCUMENT_HOVER, raising(error)[which]))
    answer = await remote.call(1, "textDocument/hover", POSITION)
    assert answer["error"]["code"] == -32603
    assert "secret" not in json.dumps(answer)
    assert "result" in await remote.call(2, "test/echo")
    await remote.drop()


async def test_a_notification_whose_handler_fails_is_logged_and_told_to_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    remote = await editing(Feature(types.TEXT_DOCUMENT_DID_SAVE, raising(RuntimeError("secret"))[0]))
    remote.tell("textDocument/didSave", {"textDocument": {"uri": "file:///a"}})
    assert "result" in await remote.call(1, "test/echo")
    assert remote.notifications == []
    assert [record.name for record in caplog.records].count("sidecar.incident") == 1
    await remote.drop()


async def test_a_change_to_a_document_that_is_not_open_is_a_clients_mistake_and_no_incident(
    caplog: pytest.LogCaptureFixture,
) -> None:
    remote = await editing(Feature(types.TEXT_DOCUMENT_HOVER, hover))
    change = {"textDocument": {"uri": "file:///no", "version": 2}, "contentChanges": [{"text": "x"}]}
    remote.tell("textDocument/didChange", change)
    assert "result" in await remote.call(1, "test/echo")
    assert remote.notifications == []
    assert [(record.name, record.levelname) for record in caplog.records] == [("sidecar.lsp", "WARNING")]
    await remote.drop()


async def test_notifications_to_an_async_feature_are_limited_like_requests() -> None:
    bench = Workbench()

    async def slow(editor: Editor, params: Any) -> None:
        bench.callers.append(editor)  # type: ignore[arg-type]
        await bench.gate.wait()

    made = service(bench, features=[Feature(types.TEXT_DOCUMENT_DID_SAVE, slow)], in_flight=8)
    remote = await join(made)
    await remote.initialize()
    for _ in range(2000):
        remote.tell("textDocument/didSave", {"textDocument": {"uri": "file:///a"}})
    await until(lambda: len(bench.callers) == 8)
    assert len(remote.connection._dispatch.running) == 8
    bench.gate.set()
    await until(lambda: len(bench.callers) == 2000)
    await remote.drop()


async def test_open_documents_are_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(lsp, "DOCUMENT_CHARS", 10_000)
    remote = await editing(Feature(types.TEXT_DOCUMENT_HOVER, lambda e, p: len(e.workspace.text_documents)))
    for number in range(50):
        remote.tell("textDocument/didOpen", opened("x" * 1000, f"file:///{number}"))
    assert (await remote.call(1, "textDocument/hover", POSITION))["result"] < 10
    for number in range(50):
        remote.tell("textDocument/didClose", {"textDocument": {"uri": f"file:///{number}"}})
    remote.tell("textDocument/didOpen", opened("x"))
    assert (await remote.call(2, "textDocument/hover", POSITION))["result"] == 1
    await remote.drop()


async def test_the_number_of_open_documents_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsp, "DOCUMENTS", 3)
    remote = await editing(Feature(types.TEXT_DOCUMENT_HOVER, lambda e, p: len(e.workspace.text_documents)))
    for number in range(5):
        remote.tell("textDocument/didOpen", opened("", f"file:///{number}"))
    assert (await remote.call(1, "textDocument/hover", POSITION))["result"] == 3
    await remote.drop()


async def test_features_hear_that_a_document_is_not_kept_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsp, "DOCUMENT_CHARS", 10_000)
    heard: list[str] = []
    methods = (types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE, types.TEXT_DOCUMENT_DID_CLOSE)
    remote = await editing(*(Feature(one, lambda e, p, one=one: heard.append(one)) for one in methods))
    remote.tell("textDocument/didOpen", opened("x"))
    remote.tell("textDocument/didChange", several({"text": "x" * 20_000}))
    remote.tell("textDocument/didOpen", opened("x" * 20_000))
    await remote.call(1, "test/echo")
    assert heard == ["textDocument/didOpen", "textDocument/didClose"]
    await remote.drop()


def several(*changes: dict[str, Any]) -> dict[str, Any]:
    return {"textDocument": {"uri": "file:///a.md", "version": 2}, "contentChanges": changes}


def change(line: int, first: int, last: int, text: str) -> dict[str, Any]:
    return {
        "range": {"start": {"line": line, "character": first}, "end": {"line": line, "character": last}},
        "text": text,
    }


async def test_changes_of_one_notification_are_made_in_their_order() -> None:
    remote = await editing(Feature(types.TEXT_DOCUMENT_HOVER, hover))
    remote.tell("textDocument/didOpen", opened("one\ntwo"))
    remote.tell("textDocument/didChange", several(change(1, 0, 3, "2"), change(0, 0, 3, "1")))
    assert (await remote.call(1, "textDocument/hover", POSITION))["result"]["contents"] == "editor:1\n2"
    remote.tell("textDocument/didChange", several(change(0, 0, 1, "x"), {"text": "a\nb"}, change(0, 0, 1, "!")))
    assert (await remote.call(2, "textDocument/hover", POSITION))["result"]["contents"] == "editor:!\nb"
    await remote.drop()


async def test_changes_that_are_too_much_work_end_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsp, "EDITED_CHARS", 1_000_000)
    remote = await editing(Feature(types.TEXT_DOCUMENT_HOVER, lambda e, p: len(e.workspace.text_documents)))
    remote.tell("textDocument/didOpen", opened("words\n" * 50_000))
    remote.tell("textDocument/didChange", several(*(change(line, 0, 1, "W") for line in range(1000, 0, -1))))
    assert (await remote.call(1, "textDocument/hover", POSITION))["result"] == 1
    remote.tell("textDocument/didChange", several(*(change(line, 0, 1, "W") for line in range(1000))))
    assert (await remote.call(2, "textDocument/hover", POSITION))["result"] == 0
    await remote.drop()


# Questions to the client


async def test_a_feature_can_ask_the_client() -> None:
    async def ask(editor: Editor, params: Any) -> Any:
        answer = await editor.protocol.send_request_async("workspace/configuration", {"items": [{"section": "a"}]})
        return types.Hover(contents=answer[0])

    remote = await editing(Feature(types.TEXT_DOCUMENT_HOVER, ask))
    remote.ask(1, "textDocument/hover", POSITION)
    question = await remote.receive()
    assert (question["method"], question["id"][:2]) == ("workspace/configuration", "s:")
    remote.send({"jsonrpc": "2.0", "id": 1, "result": ["forged"]})
    remote.send({"jsonrpc": "2.0", "id": question["id"], "result": ["mine"]})
    assert (await remote.answer())["result"]["contents"] == "mine"
    await remote.drop()


async def test_features_can_publish() -> None:
    def publish(editor: Editor, params: Any) -> None:
        editor.text_document_publish_diagnostics(types.PublishDiagnosticsParams("file:///a", []))

    remote = await editing(Feature(types.TEXT_DOCUMENT_HOVER, publish))
    assert (await remote.call(1, "textDocument/hover", POSITION))["result"] is None
    [told] = remote.notifications
    assert told["params"] == {"uri": "file:///a", "diagnostics": []}
    await remote.drop()


# The library itself


def test_the_names_of_the_library_that_we_rely_on_are_still_there() -> None:
    assert {"_run_generator", "_send_data", "get_message_type", "get_result_type", "send_request"} <= set(
        dir(LanguageServerProtocol)
    )
    assert list(inspect.signature(LanguageServerProtocol._run_generator).parameters) == [
        "self", "future", "gen", "result_future",
    ]  # fmt: skip
    assert {"_features", "_feature_options"} <= set(vars(FeatureManager()))
    assert "_source" in vars(TextDocument("file:///a", "text"))
    protocol = Editor(Editors(version="0"), Client(1, "exec", Peer(1, 1)), Workbench()).protocol  # type: ignore[arg-type]
    assert isinstance(protocol._request_futures, dict)
    assert types.INITIALIZE in protocol.fm.builtin_features
    assert set(protocol.fm.builtin_features) >= lsp._BUILTIN


async def test_sessions_share_one_converter_and_are_forgotten_with_their_clients() -> None:
    made = service(Workbench())
    remote = await join(made)
    await remote.initialize()
    session = remote.connection._dispatch._lsp
    assert session is not None
    assert session._converter is made.editors.converter
    session._protocol.get_message_type("initialize")
    kept = weakref.ref(session._protocol)
    await remote.drop()
    del session, remote
    gc.collect()
    assert kept() is None


def knowing(library: str) -> set[str]:
    package = Path(lsp.__file__).parents[1]
    return {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(rf"^\s*(from|import) {library}", path.read_text("utf-8"), re.MULTILINE)
    }


def test_the_library_is_known_to_one_module_only() -> None:
    assert knowing("pygls") == {"server/lsp.py"}
    assert all(name == "server/lsp.py" or name.startswith("server/editor/") for name in knowing("lsprotocol"))
