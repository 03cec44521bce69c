"""A file of OUT_DIR is about to get another name: what open documents call it is changed with it.

The documents on disk are left alone. An old version of a page names what there was at its time.
"""

from __future__ import annotations

import asyncio
import glob
from collections.abc import AsyncIterator, Iterator

from lsprotocol import types

from sidecar.core.errors import Refusal
from sidecar.core.paths import FilePath, parse_physical
from sidecar.core.references import Reference, respelled
from sidecar.server.editor.documents import Documents, Opened
from sidecar.server.editor.edits import Place, workspace_edit
from sidecar.server.editor.seen import Seen
from sidecar.server.lsp import Editor, Feature
from sidecar.services import Services

FILES = 1000  # renamed at once that are looked after
AT_ONCE = 500  # references that are compared before others are served


def features(services: Services, documents: Documents) -> list[Feature]:
    return [Feature(types.WORKSPACE_WILL_RENAME_FILES, _Renaming(services, documents).edits, _options(services))]


def _options(services: Services) -> types.FileOperationRegistrationOptions:
    below = types.FileOperationPattern(glob=f"{glob.escape(services.outdir.root)}/**")
    return types.FileOperationRegistrationOptions([types.FileOperationFilter(below, scheme="file")])


class _Renaming:
    def __init__(self, services: Services, documents: Documents) -> None:
        self._services = services
        self._documents = documents

    async def edits(self, editor: Editor, params: types.RenameFilesParams) -> types.WorkspaceEdit | None:
        moved = [pair for one in params.files[:FILES] if (pair := self._pair(one)) is not None]
        if not moved:
            return None
        seen = Seen(self._services, editor.client.role)
        changes: list[tuple[Opened, list[Place]]] = []
        for uri in self._documents.uris(editor):
            opened = await self._documents.opened(editor, uri)
            if opened is None:
                continue
            places = [place async for place in self._places(seen, opened, moved)]
            if places:
                changes.append((opened, places))
        return workspace_edit(editor, changes) if changes else None

    def _pair(self, one: types.FileRename) -> tuple[str, str] | None:
        """The old and the new OUT_DIR-relative name of a file or a folder, both legal."""
        before = self._documents.path_of(one.old_uri.rstrip("/"))
        after = self._documents.path_of(one.new_uri.rstrip("/"))
        return (before.physical, after.physical) if before is not None and after is not None else None

    async def _places(self, seen: Seen, opened: Opened, moved: list[tuple[str, str]]) -> AsyncIterator[Place]:
        home = opened.path.physical if opened.path is not None else None
        new_home = _renamed(home, moved) if home is not None else None
        folder = (new_home or home or "").rpartition("/")[0] if home is not None else None
        for at, reference in enumerate(opened.references, 1):
            if at % AT_ONCE == 0:
                await asyncio.sleep(0)
            for place in _place(seen, reference, moved, folder, own=new_home is not None):
                yield place


def _place(
    seen: Seen, reference: Reference, moved: list[tuple[str, str]], folder: str | None, *, own: bool
) -> Iterator[Place]:
    if reference.kind != "path":
        return
    for written, path in reference.readings:
        after = _renamed(path.physical, moved) if isinstance(path, FilePath) else None
        if after is not None and isinstance(path, FilePath):
            target = _parsed(after)
            if target is not None:
                text = respelled(reference, target, folder)
                yield reference.start, reference.start + len(written), text
                return
    if own and reference.form == "relative":
        # The page itself moves, and what it refers to stays where it is.
        met = seen.meet(reference)
        path = met.path
        if isinstance(path, FilePath) and met.state != "unknown":
            text = respelled(reference, path, folder)
            if text != reference.written:
                yield reference.start, reference.end, text


def _renamed(physical: str, moved: list[tuple[str, str]]) -> str | None:
    for before, after in moved:
        if physical == before:
            return after
        if physical.startswith(f"{before}/"):
            return f"{after}{physical[len(before) :]}"
    return None


def _parsed(physical: str) -> FilePath | None:
    try:
        return parse_physical(physical)
    except Refusal:
        return None
