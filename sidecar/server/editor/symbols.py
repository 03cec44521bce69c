"""What a document refers to, by turn; and artifacts and sources of the workspace, by a few letters of their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from heapq import nsmallest
from typing import Any

from lsprotocol import types

from sidecar.core.catalogue import Entry
from sidecar.core.fuzzy import rank
from sidecar.core.paths import FilePath, PoolPath
from sidecar.pacing import Pace
from sidecar.server.editor.contents import source_uri
from sidecar.server.editor.documents import Documents, Opened
from sidecar.server.editor.seen import Met, Row, Seen, file_of, one_line, title
from sidecar.server.lsp import Editor, Feature
from sidecar.server.methods.seeing import may_see
from sidecar.services import Services

SYMBOLS = 200  # of one answer about the workspace
REFERENCES = 2000  # of one document
QUERY_CHARS = 100
TITLE_CHARS = 120
SOURCES = "Sources"

_FILE, _MODULE, _STRING, _KEY = 1, 2, 15, 20  # of LSP's kinds of symbols
_TOP = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}

Symbol = dict[str, Any]


def features(services: Services, documents: Documents) -> list[Feature]:
    return [
        Feature("textDocument/documentSymbol", partial(_of_document, services, documents)),
        Feature(
            "workspace/symbol",
            partial(_of_workspace, services, documents),
            options=types.WorkspaceSymbolOptions(resolve_provider=True),
        ),
        Feature("workspaceSymbol/resolve", partial(_resolve, services)),
    ]


# Of a document -------------------------------------------------------------------------------------------------------


async def _of_document(services: Services, documents: Documents, editor: Editor, params: Any) -> list[Symbol]:
    uri = params.text_document.uri
    opened = await documents.opened(editor, uri)
    if opened is None:
        return []
    seen = Seen(services, editor.client.role)
    groups: dict[str, list[Symbol]] = {}
    pace = Pace()
    for met in await seen.met(opened.references[:REFERENCES]):
        await pace.rest()
        if (found := _referred(seen, met)) is not None:
            group, symbol = found
            place = _range(opened, met.reference.start, met.reference.end)
            groups.setdefault(group, []).append({**symbol, "range": place, "selectionRange": place})
    if _takes_trees(editor):
        return [_group(name, inner) for name, inner in groups.items()]
    return [
        {
            "name": one["name"],
            "kind": one["kind"],
            "containerName": group,
            "location": {"uri": uri, "range": one["range"]},
        }
        for group, inner in groups.items()
        for one in inner
    ]


def _referred(seen: Seen, met: Met) -> tuple[str, Symbol] | None:
    """The group of a reference and what it is called there; None for what leads nowhere."""
    numbers = met.path.numbers if isinstance(met.path, PoolPath) else met.reference.numbers
    if numbers is not None:
        rows = seen.rows(numbers, 2)
        if not rows:
            return None
        more = " …" if len(rows) > 1 else ""
        name = one_line(f"[S:{rows[0]['sid']}] {title(rows[0])}{more}", TITLE_CHARS)
        return SOURCES, {"name": name, "kind": _KEY, "detail": one_line(met.reference.written, TITLE_CHARS)}
    if met.state in ("here", "absent", "gone") and isinstance(met.path, FilePath):
        detail = "" if met.state == "here" else "not on disk"
        return met.path.turn_id or "OUT_DIR", {"name": met.path.rel, "kind": _FILE, "detail": detail}
    if met.state == "told" and met.path is not None:
        turn_id = getattr(met.path, "turn_id", "")
        return turn_id, {"name": met.path.logical, "kind": _STRING}
    return None


def _group(name: str, inner: list[Symbol]) -> Symbol:
    """Its range is from the first of its references to the last, as far as they are apart."""
    whole = {"start": inner[0]["range"]["start"], "end": inner[-1]["range"]["end"]}
    counted = f"{len(inner)} reference{'s' if len(inner) != 1 else ''}"
    return {
        "name": name, "kind": _MODULE, "detail": counted, "range": whole, "selectionRange": inner[0]["range"],
        "children": inner,
    }  # fmt: skip


def _range(opened: Opened, start: int, end: int) -> dict[str, Any]:
    (first, begin), (last, close) = opened.lines.position(start), opened.lines.position(end)
    return {"start": {"line": first, "character": begin}, "end": {"line": last, "character": close}}


def _takes_trees(editor: Editor) -> bool:
    text_document = editor.client_capabilities.text_document
    symbols = text_document.document_symbol if text_document is not None else None
    return bool(symbols is not None and symbols.hierarchical_document_symbol_support)


# Of the workspace ----------------------------------------------------------------------------------------------------


async def _of_workspace(services: Services, documents: Documents, editor: Editor, params: Any) -> list[Symbol]:
    """The best fits; of equals, the newest turn's. Letters only have to come in order."""
    query = params.query[:QUERY_CHARS].strip().casefold()
    sees = partial(may_see, editor.client.role)
    found: list[tuple[int, int, Entry | Row]] = []
    pace = Pace()
    catalogue = await services.catalogue.ready()
    for at, entry in enumerate(catalogue.all(services.catalogue.newest_first())):
        if at % 32 == 0:
            await pace.rest()
        score = _score(query, entry)
        if score is not None and sees(entry.artifact):
            found.append((score, at, entry))
    if _shows_texts(editor):
        found += [
            (score, len(catalogue) + at, row) for at, (score, row) in enumerate(_sources(services, editor, query))
        ]
    chosen = nsmallest(SYMBOLS, found, key=lambda one: one[:2])
    lazy = _resolves(editor)
    return [_symbol(documents, thing, lazy=lazy) for _, _, thing in chosen]


def _score(query: str, entry: Entry) -> int | None:
    """A fit in the name counts before one that needs the folders."""
    score = rank(query, entry.last)
    if score is not None or len(entry.last) == len(entry.folded):
        return score
    score = rank(query, entry.folded)
    return None if score is None else score + 5_000_000


def _sources(services: Services, editor: Editor, query: str) -> Iterator[tuple[int, Row]]:
    """Rows of files are found by their files."""
    seen, pool = Seen(services, editor.client.role), services.workspace.pool
    for sid in pool.sids:
        row = pool.rows.durable[sid]
        if file_of(row) is None and (score := rank(query, title(row).casefold())) is not None and seen.row(sid):
            yield score, row


def _symbol(documents: Documents, thing: Entry | Row, *, lazy: bool) -> Symbol:
    if not isinstance(thing, Entry):
        place = {"uri": source_uri(thing["sid"]), "range": _TOP}
        name = one_line(f"[S:{thing['sid']}] {title(thing)}", TITLE_CHARS)
        return {"name": name, "kind": _KEY, "containerName": SOURCES, "location": place}
    path = thing.artifact.path
    location: dict[str, Any] = {"uri": documents.uri_of(path)}
    symbol: Symbol = {
        "name": path.rel.rpartition("/")[2], "kind": _FILE, "containerName": path.physical.rpartition("/")[0],
        "location": location,
    }  # fmt: skip
    if lazy and not thing.artifact.on_disk:
        return symbol | {"data": {"path": thing.logical}}  # it is brought when it is chosen
    location["range"] = _TOP
    return symbol


async def _resolve(services: Services, editor: Editor, symbol: Any) -> Any:
    """Bring the file that was chosen. What cannot be brought is opened in vain, as what is not there is."""
    path = symbol.data.get("path") if isinstance(symbol.data, dict) else None
    artifact = services.workspace.artifacts.get(path) if isinstance(path, str) else None
    answer: Symbol = {"name": symbol.name, "kind": symbol.kind, "location": {"uri": symbol.location.uri, "range": _TOP}}
    if symbol.container_name is not None:
        answer["containerName"] = symbol.container_name
    if artifact is not None and artifact.versions and may_see(editor.client.role, artifact):
        await services.rehoster.rehost(artifact.path)
    return answer


def _resolves(editor: Editor) -> bool:
    workspace = editor.client_capabilities.workspace
    symbols = workspace.symbol if workspace is not None else None
    support = symbols.resolve_support if symbols is not None else None
    wanted: Sequence[str] = support.properties if support is not None else ()
    return "location.range" in wanted


def _shows_texts(editor: Editor) -> bool:
    """Whether the editor asks for the texts behind addresses of ours."""
    workspace = editor.client_capabilities.workspace
    return workspace is not None and workspace.text_document_content is not None
