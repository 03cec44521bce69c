"""What a click leads to: the web page of a source, or a file, which is brought back first when it is absent.

Editors without links have "go to definition", which answers the same: a web page is shown by `window/showDocument`.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from sidecar.core.errors import NotFound, Refusal, StoreUnavailable
from sidecar.core.numbers import NumberSet
from sidecar.core.paths import FilePath, PoolPath, parse_physical
from sidecar.pacing import Pace
from sidecar.rehost import Missing
from sidecar.server.editor.documents import Documents, Opened
from sidecar.server.editor.seen import Met, Row, Seen, file_of, one_line, title, web_address
from sidecar.server.lsp import Editor, Feature
from sidecar.services import Services

TITLES = 5  # that a tooltip names
ROWS = 20  # of one citation that are looked at for a target


def features(services: Services, documents: Documents) -> list[Feature]:
    links = _Links(services, documents)
    return [
        Feature(types.TEXT_DOCUMENT_DOCUMENT_LINK, links.links, _link_options),
        Feature(types.DOCUMENT_LINK_RESOLVE, links.resolve),
        Feature(types.TEXT_DOCUMENT_DEFINITION, links.definition),
    ]


def _link_options(capabilities: types.ClientCapabilities) -> types.DocumentLinkOptions | None:
    return types.DocumentLinkOptions(resolve_provider=True) if _has_links(capabilities) else None


def _has_links(capabilities: types.ClientCapabilities) -> bool:
    return capabilities.text_document is not None and capabilities.text_document.document_link is not None


def _shows_pages(capabilities: types.ClientCapabilities) -> bool:
    window = capabilities.window
    return window is not None and window.show_document is not None and bool(window.show_document.support)


class _Links:
    def __init__(self, services: Services, documents: Documents) -> None:
        self._services = services
        self._documents = documents

    async def links(self, editor: Editor, params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        opened = await self._documents.opened(editor, params.text_document.uri)
        if opened is None:
            return []
        seen = Seen(self._services, editor.client.role)
        links: list[types.DocumentLink] = []
        pace = Pace()
        for met in await seen.met(opened.references):
            await pace.rest()
            link = self._link(seen, opened, met)
            if link is not None:
                links.append(link)
        return links

    def _link(self, seen: Seen, opened: Opened, met: Met) -> types.DocumentLink | None:
        place = opened.range(met.reference.start, met.reference.end)
        rows = seen.rows(numbers, ROWS) if (numbers := _cited(met)) is not None else []
        if rows:
            return self._row_link(seen, place, rows)
        if isinstance(met.path, FilePath) and met.state in ("here", "absent"):
            return self._file_link(place, met.path, absent=met.state == "absent", tooltip=f"Open {_shown(met.path)}")
        return None

    def _row_link(self, seen: Seen, place: types.Range, rows: list[Row]) -> types.DocumentLink | None:
        named = [f"S:{row['sid']} · {title(row)}" for row in rows[:TITLES]]
        tooltip = "\n".join([*named, *(["…"] if len(rows) > TITLES else [])])
        for row in rows:
            url, physical = web_address(row), file_of(row)
            if url is not None:
                return types.DocumentLink(place, target=url, tooltip=tooltip)
            if physical is not None:
                path = parse_physical(physical)
                artifact = seen.artifact(path)
                absent = artifact is None or not artifact.on_disk
                return self._file_link(place, path, absent=absent, tooltip=tooltip)
        return None

    def _file_link(self, place: types.Range, path: FilePath, *, absent: bool, tooltip: str) -> types.DocumentLink:
        if absent:
            return types.DocumentLink(place, tooltip=f"{tooltip}\n(brought back first)", data={"path": path.physical})
        return types.DocumentLink(place, target=self._documents.uri_of(path), tooltip=tooltip)

    async def resolve(self, editor: Editor, link: types.DocumentLink) -> types.DocumentLink:
        """Bring the file, and say where it is. Raises NotFound or StoreUnavailable when it cannot be brought."""
        data: Any = link.data
        asked = data.get("path") if isinstance(data, dict) else None
        if link.target is not None or not isinstance(asked, str):
            return link
        path = parse_physical(asked)
        await self._bring(Seen(self._services, editor.client.role), path)
        link.target = self._documents.uri_of(path)
        return link

    async def _bring(self, seen: Seen, path: FilePath) -> None:
        brought = await self._services.rehoster.rehost(path) if seen.may_be(path) else Missing("unknown")
        if not isinstance(brought, Missing) and not seen.may_be(path):
            brought = Missing("unknown")  # it became known as what it is while it was brought
        if not isinstance(brought, Missing):
            return
        if brought.reason == "store_unavailable":
            raise StoreUnavailable(
                path.physical, "its bytes are in the store alone", fault=brought.fault or "unreachable"
            )
        raise NotFound(path.physical, f"the file cannot be brought back ({brought.reason})")

    async def definition(self, editor: Editor, params: types.DefinitionParams) -> types.Location | None:
        opened = await self._documents.opened(editor, params.text_document.uri)
        reference = opened.at(params.position) if opened is not None else None
        if reference is None or opened is None:
            return None
        seen = Seen(self._services, editor.client.role)
        [met] = await seen.met([reference])
        if opened.offset(params.position) > met.reference.end:
            return None
        link = self._link(seen, opened, met)
        if link is None:
            return None
        capabilities = editor.client_capabilities
        if link.target is None and not _has_links(capabilities):
            # Editors that have links ask for definitions whenever the mouse comes by, and that shall fetch nothing.
            link = await self._brought(editor, link)
        if link is None or link.target is None:
            return None
        if link.target.startswith("file:"):
            return types.Location(link.target, types.Range(types.Position(0, 0), types.Position(0, 0)))
        if not _has_links(capabilities) and _shows_pages(capabilities):
            editor.window_show_document(types.ShowDocumentParams(uri=link.target, external=True))
        return None

    async def _brought(self, editor: Editor, link: types.DocumentLink) -> types.DocumentLink | None:
        try:
            return await self.resolve(editor, link)
        except Refusal as refusal:
            said = types.ShowMessageParams(types.MessageType.Warning, one_line(f"{refusal.about}: {refusal.hint}", 500))
            editor.window_show_message(said)
            return None


def _cited(met: Met) -> NumberSet | None:
    return met.path.numbers if isinstance(met.path, PoolPath) else met.reference.numbers


def _shown(path: FilePath) -> str:
    return one_line(path.logical or path.physical, 300)
