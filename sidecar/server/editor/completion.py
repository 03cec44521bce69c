"""What completes while it is typed: paths by turn and name, citations by number and title.

Every key press asks, so answers are plain, and short: at most 200 items, what a person reads of one comes when it is
looked at. An editor is always asked to ask again, for it is the daemon that knows what fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any
from urllib.parse import unquote

from lsprotocol import types

from sidecar.core import limits
from sidecar.core.artifacts import Artifact
from sidecar.core.caret import Typed, typed
from sidecar.core.catalogue import FAMILY, Catalogue, Entry, Folder, Spelling
from sidecar.server.editor.documents import Documents
from sidecar.server.editor.seen import Row, Seen, file_of, one_line, title, web_address
from sidecar.server.lsp import Editor, Feature
from sidecar.server.methods.seeing import may_see
from sidecar.services import Services

ITEMS = 200
FOLDERS = 50  # of turns, before their files
TRIGGERS = (":", "[", "/", ".")
SNIPPET_CHARS = 600

_FILE, _REFERENCE, _FOLDER = 17, 18, 19  # of LSP's kinds of items
_NOT_IN_TARGETS = re.compile(r"[\s()<>\[\]\"\\%#?]")

Item = dict[str, Any]


def features(services: Services, documents: Documents) -> list[Feature]:  # noqa: ARG001 - all parts are made alike
    offered = types.CompletionOptions(trigger_characters=list(TRIGGERS), resolve_provider=True)
    titles = Titles(services)
    return [
        Feature("textDocument/completion", partial(_complete, services, titles), options=offered),
        Feature("completionItem/resolve", partial(_resolve, services)),
    ]


async def _complete(services: Services, titles: Titles, editor: Editor, params: Any) -> dict[str, Any] | None:
    document = editor.document(params.text_document.uri)
    if document is None:
        return None
    lines = document.placed
    if len(lines.text) > limits.REFERENCED_CHARS:
        return None
    here = typed(lines.text, lines.offset(params.position.line, params.position.character))
    if here is None:
        return None
    catalogue = await services.catalogue.ready() if here.kind != "citation" else None
    items = _citations(titles, editor, here) if catalogue is None else _paths(services, catalogue, editor, here)
    (line, first), (_, last) = lines.position(here.start), lines.position(here.end)
    place = {"start": {"line": line, "character": first}, "end": {"line": line, "character": last}}
    listed = [_placed(item, place, at) for at, item in enumerate(islice(items, ITEMS))]
    return {"isIncomplete": True, "items": listed}


def _placed(item: Item, place: dict[str, Any], at: int) -> Item:
    return {**item, "textEdit": {"range": place, "newText": item.pop("newText")}, "sortText": f"{at:03d}"}


# Paths ---------------------------------------------------------------------------------------------------------------


def _paths(services: Services, catalogue: Catalogue, editor: Editor, here: Typed) -> Iterator[Item]:
    spelling: Spelling = "logical" if here.kind == "logical" else "physical"
    text = unquote(here.text) if here.is_target else here.text
    order, sees = services.catalogue.newest_first(), partial(may_see, editor.client.role)
    folders = islice(catalogue.folders(text, spelling, order, sees), FOLDERS)
    beginning = catalogue.begin_with(text, spelling, order, sees)
    found = chain(
        (_folder_item(folder, here) for folder in folders),
        (_file_item(entry, entry.spelled(spelling), here) for entry in beginning),
    )
    first = next(found, None)
    if first is not None:
        return chain((first,), found)
    words = text.removeprefix(FAMILY)
    if spelling == "physical" or not words or here.loose:
        return iter(())
    return (_named_item(entry, words, here) for entry in catalogue.holding(words, order, sees))


def _folder_item(folder: Folder, here: Typed) -> Item:
    written = _written(folder.path, here)
    return {"label": written, "kind": _FOLDER, "detail": folder.turn_id, "filterText": written, "newText": written}


def _file_item(entry: Entry, path: str, here: Typed) -> Item:
    written = _written(path, here)
    return {**_entry_item(entry), "filterText": written, "newText": written}


def _named_item(entry: Entry, words: str, here: Typed) -> Item:
    """Found by a part of its name, which is what an editor compares with what was typed."""
    rel = entry.artifact.path.rel
    at = entry.folded.find(words.casefold())
    found = f"{FAMILY}{rel[at:]}" if rel[at : at + len(words)].casefold() == words.casefold() else here.text
    return {**_entry_item(entry), "filterText": _written(found, here), "newText": _written(entry.logical, here)}


def _entry_item(entry: Entry) -> Item:
    path = entry.artifact.path
    return {
        "label": path.rel,
        "kind": _FILE,
        "labelDetails": {"description": path.turn_id or "OUT_DIR"},
        "detail": entry.artifact.latest.facts.get("mime") or "",
        "data": {"path": entry.logical},
    }


def _written(path: str, here: Typed) -> str:
    """A path as it may stand where it is typed: the target of a Markdown link ends at a blank."""
    return _NOT_IN_TARGETS.sub(lambda found: f"%{ord(found[0]):02X}", path) if here.is_target else path


# Citations -----------------------------------------------------------------------------------------------------------


class Titles:
    """How sources are called, in small letters, made once for each state of a row."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._folded: dict[int, tuple[Row, str, str]] = {}

    def folded(self, row: Row) -> tuple[str, str]:
        """Title and address, whatever their case."""
        sid: int = row["sid"]
        known = self._folded.get(sid)
        if known is None or known[0] is not row:
            known = self._folded[sid] = (row, title(row).casefold(), _place_of(row).casefold())
        return known[1], known[2]


def _citations(titles: Titles, editor: Editor, here: Typed) -> Iterator[Item]:
    seen, pool = Seen(titles.services, editor.client.role), titles.services.workspace.pool
    wanted = here.text.strip().casefold() if here.is_begun else ""
    if wanted.isdecimal() and wanted.isascii():
        sids: Iterable[int] = (sid for sid in pool.sids if str(sid).startswith(wanted))
    else:
        sids = _by_words(titles, wanted) if wanted else pool.sids
    rows = (row for sid in sids if (row := seen.row(sid)) is not None)
    return (_source_item(row, here, wanted) for row in rows)


def _by_words(titles: Titles, wanted: str) -> list[int]:
    """Titles that begin so come first, then those with a word that does, then the others, then addresses."""
    found: list[tuple[int, int]] = []
    pool = titles.services.workspace.pool
    for sid in pool.sids:
        name, address = titles.folded(pool.rows.durable[sid])
        at = name.find(wanted)
        if at >= 0:
            found.append((0 if at == 0 else 1 if not name[at - 1].isalnum() else 2, sid))
        elif wanted in address:
            found.append((3, sid))
    return [sid for _, sid in sorted(found)]


def _source_item(row: Row, here: Typed, wanted: str) -> Item:
    sid, name = row["sid"], title(row)
    at = name.casefold().find(wanted)
    found = str(sid) if wanted.isdecimal() else name[at:] if at >= 0 else here.text
    return {
        "label": f"[S:{sid}] {name}",
        "kind": _REFERENCE,
        "detail": _place_of(row),
        "filterText": found if here.is_begun else f"{here.text}{sid} {name}",
        "newText": f"{sid}]]" if here.is_begun else f"[[S:{sid}]]",
        "data": {"sid": sid},
    }


def _place_of(row: Row) -> str:
    return one_line(web_address(row) or file_of(row) or str(row.get("url") or ""), SNIPPET_CHARS)


# What is read of one item --------------------------------------------------------------------------------------------


def _resolve(services: Services, editor: Editor, item: Any) -> Any:
    """The item with what there is to say of it; one that is not there any more stays as it is."""
    data = item.data if isinstance(item.data, dict) else {}
    path, sid = data.get("path"), data.get("sid")
    if isinstance(path, str):
        artifact = services.workspace.artifacts.get(path)
        if artifact is not None and artifact.versions and may_see(editor.client.role, artifact):
            item.documentation = _about(services, artifact)
    elif isinstance(sid, int) and (row := Seen(services, editor.client.role).row(sid)) is not None:
        said = one_line(str(row.get("text") or row.get("content") or ""), SNIPPET_CHARS)
        item.documentation = "\n\n".join(part for part in (title(row), _place_of(row), said) if part)
    return item


def _about(services: Services, artifact: Artifact) -> str:
    record = services.reader.record(artifact)
    size = f", {record['size_bytes']} bytes" if "size_bytes" in record else ""
    made = " ".join(str(record[key]) for key in ("turn_id", "tool_id", "tool_call_id") if key in record)
    count = record["version"]
    lines = [
        str(record["artifact_path"]),
        f"{record['mime']}{size}",
        f"{made}, {count} version{'s' if count != 1 else ''}",
        str(record.get("description") or ""),
    ]
    return "\n".join(one_line(line, SNIPPET_CHARS) for line in lines if line)
