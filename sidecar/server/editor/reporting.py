"""When an editor is told what is wrong: a moment after a change of its document, and when the workspace changed it.

A client that asks by itself, and can be told to ask again, is answered; every other one gets it published. Never both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from lsprotocol import types

from sidecar.core.happened import Happened
from sidecar.pacing import Pace
from sidecar.server import failures
from sidecar.server.editor.documents import Documents, Opened
from sidecar.server.lsp import NAME, Editor, Feature
from sidecar.services import Services

TYPED_SECONDS = 0.15  # after the last key
CHANGED_SECONDS = 0.3  # after the first change of the workspace, however many follow

Diagnostics = list[types.Diagnostic]
Judge = Callable[[Editor, Opened], Awaitable[Diagnostics]]


@dataclass(slots=True)
class _Desk:
    """What one client was told last, and what is still to be told. It ends with the connection."""

    editor: Editor
    told: dict[str, tuple[int, Diagnostics]] = field(default_factory=dict)
    timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)  # by document; the empty text is for all
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)  # asked for while a task of the same name runs
    asking: Future[Any] | None = None
    serial: int = 0

    def settle(self, uri: str, found: Diagnostics) -> bool:
        """Take note of what is to be told. Answers whether it is something new."""
        known = self.told.get(uri)
        if known is not None and known[1] == found:
            return False
        self.serial += 1
        self.told[uri] = (self.serial, found)
        return known is not None or bool(found)

    def close(self) -> None:
        for waiting in (*self.timers.values(), *self.tasks.values()):
            waiting.cancel()
        self.timers.clear()


class Reporting:
    """Keeps every client's idea of its documents' faults true."""

    def __init__(self, services: Services, documents: Documents, judge: Judge) -> None:
        self._documents = documents
        self._judge = judge
        self._desks: dict[int, _Desk] = {}
        documents.on_change.append(self._typed)
        documents.on_close.append(self._closed)
        services.workspace.listeners.append(self._happened)

    def features(self) -> list[Feature]:
        return [Feature(types.TEXT_DOCUMENT_DIAGNOSTIC, self._asked, _pull_options)]

    async def _asked(
        self, editor: Editor, params: types.DocumentDiagnosticParams
    ) -> types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport:
        uri = params.text_document.uri
        opened = await self._documents.opened(editor, uri)
        found = await self._judge(editor, opened) if opened is not None else []
        desk = self._desk(editor)
        if opened is None or self._desks.get(editor.client.id) is not desk:
            return types.RelatedFullDocumentDiagnosticReport(items=found)
        uri = opened.uri
        desk.settle(uri, found)
        number = str(desk.told[uri][0])
        if params.previous_result_id == number:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=number)
        return types.RelatedFullDocumentDiagnosticReport(items=found, result_id=number)

    def _desk(self, editor: Editor) -> _Desk:
        number = editor.client.id
        if number not in self._desks:
            self._desks[number] = _Desk(editor)
            editor.client.farewells.append(lambda: self._desks.pop(number).close())
        return self._desks[number]

    def _typed(self, editor: Editor, uri: str) -> None:
        if not _pulls(editor.client_capabilities):
            desk = self._desk(editor)
            if uri in desk.timers:
                desk.timers.pop(uri).cancel()
            self._later(desk, uri, TYPED_SECONDS)

    def _closed(self, editor: Editor, uri: str) -> None:
        desk = self._desks.get(editor.client.id)
        if desk is None:
            return
        if uri in desk.timers:
            desk.timers.pop(uri).cancel()
        desk.again.discard(uri)
        _, told = desk.told.pop(uri, (0, []))
        if told and not _pulls(editor.client_capabilities):
            editor.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def _happened(self, _: Happened) -> None:
        for editor in self._documents.editors.values():
            desk = self._desk(editor)
            if "" not in desk.timers and self._documents.uris(editor):
                self._later(desk, "", CHANGED_SECONDS)

    def _later(self, desk: _Desk, what: str, seconds: float) -> None:
        desk.timers[what] = asyncio.get_running_loop().call_later(seconds, self._start, desk, what)

    def _start(self, desk: _Desk, what: str) -> None:
        desk.timers.pop(what, None)
        if what in desk.tasks:
            desk.again.add(what)  # the newest state is looked at when the look under way is over
            return
        task = asyncio.get_running_loop().create_task(self._guarded(desk, what), name="diagnostics")
        desk.tasks[what] = task
        task.add_done_callback(lambda _: self._over(desk, what))

    def _over(self, desk: _Desk, what: str) -> None:
        desk.tasks.pop(what, None)
        if what in desk.again and self._desks.get(desk.editor.client.id) is desk:
            desk.again.discard(what)
            self._start(desk, what)

    async def _guarded(self, desk: _Desk, what: str) -> None:
        try:
            pace = Pace()
            uris = [what] if what else self._documents.uris(desk.editor)
            news = False
            for uri in uris:
                news = await self._look(desk, uri) or news
                await pace.rest()  # one that is not there is looked at without any
            if news and _pulls(desk.editor.client_capabilities):
                self._ask_again(desk)
        except Exception as error:  # noqa: BLE001 - nobody waits for it; what comes next is looked at all the same
            failures.unexpected(error, client=desk.editor.client.id, method=types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)

    async def _look(self, desk: _Desk, uri: str) -> bool:
        editor = desk.editor
        opened = await self._documents.opened(editor, uri)
        found = await self._judge(editor, opened) if opened is not None else []
        if not self._documents.has(editor, uri):
            return False  # closed meanwhile, and cleared
        pulls = _pulls(editor.client_capabilities)
        if pulls:
            return uri in desk.told and desk.told[uri][1] != found
        if desk.settle(uri, found):
            version = opened.version if opened is not None else None
            editor.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))
        return False

    def _ask_again(self, desk: _Desk) -> None:
        if desk.asking is None or desk.asking.done():  # one question at a time: who does not answer gets no more
            desk.asking = desk.editor.protocol.send_request(types.WORKSPACE_DIAGNOSTIC_REFRESH)


def _pulls(capabilities: types.ClientCapabilities) -> bool:
    """Whether the client asks for diagnostics by itself, and listens when it is to ask again."""
    document, workspace = capabilities.text_document, capabilities.workspace
    refresh = workspace.diagnostics if workspace is not None else None
    asks = document is not None and document.diagnostic is not None
    return asks and refresh is not None and bool(refresh.refresh_support)


def _pull_options(capabilities: types.ClientCapabilities) -> types.DiagnosticOptions | None:
    if not _pulls(capabilities):
        return None
    return types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=False, identifier=NAME)
