"""The documents that editors have open: their text, what it refers to, and where in LSP's positions that is.

A text is read once for each state of it, in another thread when it is long; every feature asks here. What is known of a
client's documents goes with the document and with its connection.
"""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

from lsprotocol import types

from sidecar.core import limits
from sidecar.core.errors import Refusal
from sidecar.core.mime import mime_by_name
from sidecar.core.paths import FilePath, parse_physical
from sidecar.core.positions import Lines
from sidecar.core.references import Reference, references
from sidecar.server.editor.names import Names
from sidecar.server.lsp import Editor, Feature
from sidecar.services import Services

SHORT_CHARS = 4 * limits.KIB  # read at once; a longer text would hold up everybody else


@dataclass(frozen=True, slots=True)
class Opened:
    """One state of an open document. `path` is where it lies in OUT_DIR, None elsewhere."""

    uri: str
    version: int | None
    text: str
    mime: str
    path: FilePath | None
    references: list[Reference]
    lines: Lines

    @property
    def folder(self) -> str | None:
        """The folder from which its relative links are read."""
        return self.path.physical.rpartition("/")[0] if self.path is not None else None

    def range(self, start: int, end: int) -> types.Range:
        return types.Range(types.Position(*self.lines.position(start)), types.Position(*self.lines.position(end)))

    def offset(self, position: types.Position) -> int:
        """Where a position is, in code points."""
        return self.lines.offset(position.line, position.character)

    def at(self, position: types.Position) -> Reference | None:
        """What stands under a caret, or right before it, by the longest reading of it."""
        offset = self.offset(position)
        before = bisect_right(self.references, offset, key=lambda one: one.start)
        one = self.references[before - 1] if before else None
        return one if one is not None and offset <= one.furthest else None

    def within(self, wanted: types.Range) -> list[Reference]:
        """What a range touches, in order."""
        start, end = self.offset(wanted.start), self.offset(wanted.end)
        # References do not overlap, so their ends are in order as well.
        first = bisect_left(self.references, start, key=lambda one: one.end)
        found: list[Reference] = []
        for one in self.references[first:]:
            if one.start > end:
                break
            found.append(one)
        return found


@dataclass(slots=True)
class _Kept:
    """What is known of one open document, by the uri it was opened with; who reads it holds the lock."""

    uri: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    opened: Opened | None = None


class Documents:
    """The open documents of every client."""

    def __init__(self, services: Services) -> None:
        self.on_change: list[Callable[[Editor, str], None]] = []
        self.on_close: list[Callable[[Editor, str], None]] = []
        self.names = Names(services.workspace)
        self._services = services
        self._root = services.outdir.root
        self._kept: dict[int, dict[str, _Kept]] = {}
        self.editors: dict[int, Editor] = {}  # those that have a document open, by the number of their connection

    def features(self) -> list[Feature]:
        return [
            Feature(types.TEXT_DOCUMENT_DID_OPEN, self._changed),
            Feature(types.TEXT_DOCUMENT_DID_CHANGE, self._changed),
            Feature(types.TEXT_DOCUMENT_DID_CLOSE, self._closed),
        ]

    def uris(self, editor: Editor) -> list[str]:
        """What this client has open."""
        return [kept.uri for kept in self._kept.get(editor.client.id, {}).values()]

    def has(self, editor: Editor, uri: str) -> bool:
        """Whether this client has a document open there."""
        return self._of(editor, uri) is not None

    def _of(self, editor: Editor, uri: str) -> _Kept | None:
        return self._kept.get(editor.client.id, {}).get(unquote(uri))

    async def opened(self, editor: Editor, uri: str) -> Opened | None:
        """The document as it is now; None when it is not open, or too long to be looked at."""
        kept = self._of(editor, uri)
        if kept is None:
            return None
        async with kept.lock:
            document = editor.document(uri)
            text = document.placed.text if document is not None else ""
            uri = kept.uri
            if document is None or len(text) > limits.REFERENCED_CHARS:
                kept.opened = None
            elif kept.opened is None or kept.opened.text is not text:
                lines, version = document.placed, document.version
                path, mime = await self.place_of(uri), _mime(document.language_id, uri)
                folder = path.physical.rpartition("/")[0] if path is not None else None
                found = await self._read(text, mime, folder)
                kept.opened = Opened(uri, version, text, mime, path, found, lines)
            return kept.opened

    def path_of(self, uri: str) -> FilePath | None:
        """The file of OUT_DIR that a `file://` uri names; None for anything else."""
        name = _file_name(uri)
        return self._below(name) if name is not None else None

    async def place_of(self, uri: str) -> FilePath | None:
        """The same for a uri that may come to OUT_DIR by a link above it, as a folder of a person often does."""
        name = _file_name(uri)
        if name is None or name.startswith(f"{self._root}/"):
            return self.path_of(uri)
        return self._below(await asyncio.to_thread(os.path.realpath, name))

    def _below(self, name: str) -> FilePath | None:
        if not name.startswith(f"{self._root}/"):
            return None
        try:
            return parse_physical(name[len(self._root) + 1 :])
        except Refusal:
            return None

    def uri_of(self, path: FilePath) -> str:
        """The `file://` uri of a file of OUT_DIR, percent-encoded."""
        return "file://" + quote(os.fsencode(f"{self._root}/{path.physical}"))

    async def _read(self, text: str, mime: str, folder: str | None) -> list[Reference]:
        if len(text) <= SHORT_CHARS:
            return references(text, mime, folder=folder)
        return await self._services.looker.search(lambda: references(text, mime, folder=folder))

    def _changed(
        self, editor: Editor, params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams
    ) -> None:
        number, uri = editor.client.id, params.text_document.uri
        if editor.document(uri) is None:
            return  # a change of what was never opened
        if number not in self._kept:
            self._kept[number] = {}
            self.editors[number] = editor
            editor.client.farewells.append(lambda: self._forget(number))
        # One document may be spelled in many ways, and it is known by the first one.
        kept = self._kept[number].setdefault(unquote(uri), _Kept(uri))
        for listener in self.on_change:
            listener(editor, kept.uri)

    def _closed(self, editor: Editor, params: types.DidCloseTextDocumentParams) -> None:
        kept = self._kept.get(editor.client.id, {}).pop(unquote(params.text_document.uri), None)
        if kept is None:
            return
        for listener in self.on_close:
            listener(editor, kept.uri)

    def _forget(self, number: int) -> None:
        self._kept.pop(number, None)
        self.editors.pop(number, None)


def _file_name(uri: str) -> str | None:
    try:
        parts = urlsplit(uri)
        name = os.fsdecode(unquote_to_bytes(parts.path))
    except ValueError:
        return None
    return name if parts.scheme == "file" and parts.netloc in ("", "localhost") and "\0" not in name else None


def _mime(language: str | None, uri: str) -> str:
    return _LANGUAGES.get((language or "").lower()) or mime_by_name(uri.rpartition("/")[2])


_LANGUAGES = {
    "markdown": "text/markdown",
    "quarto": "text/markdown",
    "rmd": "text/markdown",
    "mdx": "text/markdown",
    "html": "text/html",
    "xhtml": "application/xhtml+xml",
    "json": "application/json",
    "jsonc": "application/json",
    "plaintext": "text/plain",
}
