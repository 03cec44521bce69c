"""What LSP itself offers, as editors of several kinds meet it: pytest-lsp has what each of them says it can do, and
fails a test when the daemon sends what such an editor does not take. The way in is the real door.

Every document has emoji before what is looked for, and what a range covers is cut out by the test's own counting.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

from tests.daemon_process import PROJECT, Workspace, environment
from tests.editors.agent_work import REPORT, UNSEEN, AgentWork

pytestmark = [pytest.mark.rule("editor.speaks-to-any-client"), pytest.mark.timeout(300)]

CEILING = 60.0
UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
TEXT = """# 🎉 Notes

🎉👩‍👩‍👧 See fi:turn_1.files/report.md, and 😀 [[S:{sid}]] too.
Not there: 😀 [[S:900]], and 🎉 fi:turn_1.files/none.md here.
"""


def profile(name: str, encodings: list[str] | None = None) -> types.ClientCapabilities:
    capabilities = client_capabilities(name)
    if encodings is not None:
        general = capabilities.general or types.GeneralClientCapabilities()
        general.position_encodings = cast("Any", encodings)
        capabilities.general = general
    return capabilities


PROFILES: dict[str, Callable[[], tuple[types.ClientCapabilities, str]]] = {
    "neovim": lambda: (profile("neovim"), "utf-8"),
    "neovim-0.8": lambda: (profile("neovim@v0.8.0"), "utf-16"),
    "vscode": lambda: (profile("visual-studio-code"), "utf-16"),
    "vscode-utf-8": lambda: (profile("visual-studio-code", ["utf-8"]), "utf-8"),
    "emacs": lambda: (profile("emacs"), "utf-32"),
    "least": lambda: (types.ClientCapabilities(), "utf-16"),
}


class Editor:
    """One client at the door, with a document open. What it asks is checked against what it said it can do."""

    def __init__(self, client: LanguageClient, capabilities: types.ClientCapabilities, encoding: str) -> None:
        self.client = client
        self.capabilities = capabilities
        self.encoding = encoding
        self.server = types.ServerCapabilities()
        self.uri = "file:///elsewhere/notes.md"
        self.text = ""

    def open(self, text: str) -> None:
        self.text = text
        item = types.TextDocumentItem(self.uri, "markdown", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    @property
    def document(self) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri)

    def units(self, text: str) -> int:
        name, width = UNITS[self.encoding]
        return len(text.encode(name)) // width

    def before(self, word: str) -> types.Position:
        lead = self.text[: self.text.index(word)]
        return types.Position(lead.count("\n"), self.units(lead.rpartition("\n")[2]))

    def behind(self, word: str) -> types.Position:
        return types.Position(self.before(word).line, self.before(word).character + self.units(word))

    def slice(self, place: types.Range) -> str:
        """What a range within one line covers, counted in this editor's units."""
        assert place.start.line == place.end.line
        name, width = UNITS[self.encoding]
        raw = self.text.split("\n")[place.start.line].encode(name)
        return raw[place.start.character * width : place.end.character * width].decode(name)

    async def diagnostics(self) -> dict[str, types.Diagnostic]:
        """By what they underline; asked for, or waited for, as this editor has it."""
        if self.server.diagnostic_provider is not None:
            asked = types.DocumentDiagnosticParams(self.document)
            report = await self.client.text_document_diagnostic_async(asked)
            assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
            return {self.slice(one.range): one for one in report.items}
        async with asyncio.timeout(CEILING):
            while self.uri not in self.client.diagnostics:
                await self.client.wait_for_notification("textDocument/publishDiagnostics")
        return {self.slice(one.range): one for one in self.client.diagnostics[self.uri]}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Workspace(tmp_path_factory.mktemp("lsp")) as workspace:
        AgentWork(workspace).two_turns()
        workspace.write("turn_1/files/older.md", "first\n")
        runtime = workspace.connect("runtime", ceiling=CEILING)
        runtime.call("workspace/sync")
        workspace.write("turn_1/files/older.md", "second 🎉\n")
        runtime.call("workspace/sync")
        yield workspace


@pytest.fixture(scope="module")
def sid(work: Workspace) -> int:
    """A source of the web."""
    rows = work.connect("runtime", ceiling=CEILING).call("sources/list")["rows"]
    return next(row["sid"] for row in rows if row.get("source_type") == "web")


@pytest_asyncio.fixture(params=PROFILES)
async def editor(request: pytest.FixtureRequest, work: Workspace, sid: int) -> AsyncIterator[Editor]:
    capabilities, encoding = PROFILES[request.param]()
    client = make_test_lsp_client()
    door = [sys.executable, "-m", "sidecar", "connect", "--role", "editor", *work.arguments]
    await client.start_io(*door, cwd=PROJECT, env=environment())
    try:
        async with asyncio.timeout(CEILING):
            made = Editor(client, capabilities, encoding)
            params = types.InitializeParams(capabilities, root_uri=Path(work.out_dir).as_uri())
            made.server = (await client.initialize_session(params)).capabilities
            made.open(TEXT.replace("{sid}", str(sid)))
        yield made
        async with asyncio.timeout(CEILING):
            await client.shutdown_session()
    finally:
        await client.stop()


async def test_positions_are_counted_as_the_editor_wants_it(editor: Editor) -> None:
    assert str(getattr(editor.server.position_encoding, "value", editor.server.position_encoding)) == editor.encoding
    assert editor.server.workspace is None or editor.server.workspace.workspace_folders is None


async def test_hover_is_about_the_very_words(editor: Editor, sid: int) -> None:
    for word in ("fi:turn_1.files/report.md", f"[[S:{sid}]]"):
        asked = types.HoverParams(editor.document, editor.before(word))
        hover = await editor.client.text_document_hover_async(asked)
        assert hover is not None
        assert hover.range is not None
        assert editor.slice(hover.range) == word


async def test_links_and_definitions_lead_to_the_file(editor: Editor, work: Workspace) -> None:
    report = (work.out_dir / "turn_1/files/report.md").as_uri()
    asked = types.DefinitionParams(editor.document, editor.before("fi:turn_1.files/report.md"))
    found = await editor.client.text_document_definition_async(asked)
    first = found[0] if isinstance(found, list | tuple) else found
    assert isinstance(first, types.Location)
    assert first.uri == report
    if editor.server.document_link_provider is not None:
        links = await editor.client.text_document_document_link_async(types.DocumentLinkParams(editor.document))
        assert {editor.slice(link.range): link.target for link in links or ()}["fi:turn_1.files/report.md"] == report


async def test_what_is_wrong_is_underlined_and_nothing_else(editor: Editor) -> None:
    assert set(await editor.diagnostics()) == {"[[S:900]]", "fi:turn_1.files/none.md"}


async def test_quick_fixes_replace_the_very_words(editor: Editor) -> None:
    if editor.server.code_action_provider is None:
        assert editor.capabilities.text_document is None
        return
    found = await editor.diagnostics()
    one = found["[[S:900]]"]
    asked = types.CodeActionParams(editor.document, one.range, types.CodeActionContext([one]))
    for action in await editor.client.text_document_code_action_async(asked) or ():
        assert isinstance(action, types.CodeAction)
        edit = action.edit
        changes = edit.changes.values() if edit is not None and edit.changes else ()
        assert all("[[S:900]]".find(editor.slice(part.range)) >= 0 for parts in changes for part in parts)


@pytest.mark.parametrize(("typed", "kind"), [("fi:turn_1.files/rep", "path"), ("[[S:", "citation")])
async def test_completion_replaces_all_that_was_typed(editor: Editor, typed: str, kind: str) -> None:
    editor.uri = f"file:///elsewhere/{kind}.md"
    editor.open(f"# Title\n\n🎉👩‍👩‍👧 ünï {typed}\nnext")
    asked = types.CompletionParams(editor.document, editor.behind(typed))
    answer = await editor.client.text_document_completion_async(asked)
    assert isinstance(answer, types.CompletionList)
    item = answer.items[0]
    assert isinstance(item.text_edit, types.TextEdit)
    replaced, new = editor.slice(item.text_edit.range), item.text_edit.new_text
    assert typed.endswith(replaced)
    assert item.text_edit.range.end == editor.behind(typed)
    done = typed.removesuffix(replaced) + new
    assert done == "fi:turn_1.files/report.md" if kind == "path" else done.startswith("[[S:") and done.endswith("]]")
    resolved = await editor.client.completion_item_resolve_async(item)
    assert resolved.documentation


async def test_symbols_of_the_document_stand_where_they_are(editor: Editor, sid: int) -> None:
    asked = types.DocumentSymbolParams(editor.document)
    symbols = await editor.client.text_document_document_symbol_async(asked) or ()
    names = {one.name for one in symbols}
    trees = [one for one in symbols if isinstance(one, types.DocumentSymbol)]
    if trees:
        assert names == {"turn_1", "Sources"}
        places = {editor.slice(inner.range) for one in trees for inner in one.children or ()}
    else:
        places = {editor.slice(one.location.range) for one in symbols if isinstance(one, types.SymbolInformation)}
    assert places == {"fi:turn_1.files/report.md", f"[[S:{sid}]]"}


async def test_artifacts_are_found_by_name_and_never_internal_ones(editor: Editor) -> None:
    found = await editor.client.workspace_symbol_async(types.WorkspaceSymbolParams("rprt")) or ()
    assert "report.md" in {one.name for one in found}
    everything = await editor.client.workspace_symbol_async(types.WorkspaceSymbolParams("")) or ()
    assert len(everything) > 3
    assert UNSEEN.rpartition("/")[2] not in {one.name for one in everything}


async def test_hints_stand_behind_their_citations(editor: Editor, sid: int) -> None:
    whole = types.Range(types.Position(0, 0), types.Position(9, 0))
    hints = await editor.client.text_document_inlay_hint_async(types.InlayHintParams(editor.document, whole)) or ()
    assert [hint.position for hint in hints] == [editor.behind(f"[[S:{sid}]]")]


async def test_an_older_version_is_a_document_of_its_own(editor: Editor) -> None:
    command = types.ExecuteCommandParams("artifact-sidecar.open", [{"path": "turn_1/files/older.md", "version": 1}])
    opened = cast("Any", await editor.client.workspace_execute_command_async(command))
    uri = opened["uri"] if isinstance(opened, dict) else opened.uri
    content = await editor.client.workspace_text_document_content_async(types.TextDocumentContentParams(uri))
    assert content.text == "first\n"


async def test_a_file_that_was_deleted_comes_back_by_a_command(editor: Editor, work: Workspace) -> None:
    file = work.out_dir / REPORT
    before = file.read_bytes()
    file.unlink()
    command = types.ExecuteCommandParams("artifact-sidecar.rehost", [{"paths": [REPORT]}])
    await editor.client.workspace_execute_command_async(command)
    assert file.read_bytes() == before


async def test_a_refusal_has_its_kind_and_a_hint(editor: Editor) -> None:
    command = types.ExecuteCommandParams("artifact-sidecar.open", [{"path": "fi:turn_1.files/none.md"}])
    with pytest.raises(JsonRpcException) as refusal:
        await editor.client.workspace_execute_command_async(command)
    data = cast("Any", refusal.value.data)
    said = data if isinstance(data, dict) else vars(data)
    assert (refusal.value.code, said["kind"]) == (-32803, "not_found")
    assert said["hint"]
