"""A file of OUT_DIR is about to get another name: what open documents call it is changed with it.

The documents on disk are left alone. An old version of a page names what there was at its time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace

from lsprotocol import types

from sidecar.core.errors import Refusal
from sidecar.core.paths import FilePath, parse_physical
from sidecar.core.references import Reference, respelled
from sidecar.pacing import Pace
from sidecar.server.editor.documents import Documents, Opened
from sidecar.server.editor.edits import Place, workspace_edit
from sidecar.server.editor.seen import Seen
from sidecar.server.lsp import Editor, Feature
from sidecar.services import Services

FILES = 1000  # renamed at once that are looked after


def features(services: Services, documents: Documents) -> list[Feature]:
    return [Feature(types.WORKSPACE_WILL_RENAME_FILES, _Renaming(services, documents).edits, _EVERY_FILE)]


# A person may have come to OUT_DIR by a link above it, so it is we who know which files are below.
_EVERY_FILE = types.FileOperationRegistrationOptions(
    [types.FileOperationFilter(types.FileOperationPattern(glob="**"), scheme="file")]
)


class _Renaming:
    def __init__(self, services: Services, documents: Documents) -> None:
        self._services = services
        self._documents = documents

    async def edits(self, editor: Editor, params: types.RenameFilesParams) -> types.WorkspaceEdit | None:
        pairs = [await self._pair(one) for one in params.files[:FILES]]
        moved = dict(pair for pair in pairs if pair is not None)
        if not moved:
            return None
        seen = Seen(self._services, editor.client.role)
        changes: list[tuple[Opened, list[Place]]] = []
        pace = Pace()
        for uri in self._documents.uris(editor):
            opened = await self._documents.opened(editor, uri)
            await pace.rest()
            if opened is None:
                continue
            places = [place async for place in self._places(seen, opened, moved, pace)]
            if places:
                changes.append((opened, places))
        return workspace_edit(editor, changes) if changes else None

    async def _pair(self, one: types.FileRename) -> tuple[str, str] | None:
        """The old and the new OUT_DIR-relative name of a file or a folder, both legal."""
        before = await self._documents.place_of(one.old_uri.rstrip("/"))
        after = await self._documents.place_of(one.new_uri.rstrip("/"))
        return (before.physical, after.physical) if before is not None and after is not None else None

    async def _places(self, seen: Seen, opened: Opened, moved: Mapping[str, str], pace: Pace) -> AsyncIterator[Place]:
        home = opened.path.physical if opened.path is not None else None
        new_home = _renamed(home, moved) if home is not None else None
        folder = (new_home or home or "").rpartition("/")[0] if home is not None else None
        for reference in opened.references:
            await pace.rest()
            for place in _place(seen, reference, moved, folder, own=new_home is not None):
                yield place


def _place(
    seen: Seen, reference: Reference, moved: Mapping[str, str], folder: str | None, *, own: bool
) -> Iterator[Place]:
    if reference.kind != "path":
        return
    met = seen.meet(reference)
    readings = [(met.reference, met.path)]
    if met.state == "unknown":
        # Nobody has registered what is meant: what is usually meant counts, and then whatever has the name.
        readings += [(_read_as(reference, reading.written), reading.path) for reading in reference.readings]
    for one, path in readings:
        after = _renamed(path.physical, moved) if isinstance(path, FilePath) else None
        target = _parsed(after) if after is not None else None
        if target is not None:
            yield one.start, one.end, respelled(one, target, folder, instead_of=path)
            return
    if own and reference.form == "relative" and isinstance(met.path, FilePath) and met.state != "unknown":
        # The page itself moves, and what it refers to stays where it is.
        text = respelled(met.reference, met.path, folder, instead_of=met.path)
        if text != met.reference.written:
            yield met.reference.start, met.reference.end, text


def _read_as(reference: Reference, written: str) -> Reference:
    return replace(reference, end=reference.start + len(written), written=written)


def _renamed(physical: str, moved: Mapping[str, str]) -> str | None:
    """What becomes of a path when it, or the nearest folder above it, gets another name."""
    rest = ""
    while physical:
        if physical in moved:
            return f"{moved[physical]}{rest}"
        physical, slash, last = physical.rpartition("/")
        rest = f"{slash}{last}{rest}"
    return None


def _parsed(physical: str) -> FilePath | None:
    try:
        return parse_physical(physical)
    except Refusal:
        return None
