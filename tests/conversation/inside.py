"""A conversation inside the test's own process: a real index and a real store, over a journal in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sidecar.conversation.accounting import Accounting
from sidecar.conversation.archive import Archive
from sidecar.conversation.contents import Onlooker
from sidecar.conversation.contributing import Contribution, Contributions
from sidecar.conversation.finding import Finding
from sidecar.conversation.lease import Lease
from sidecar.core.blocks import Defaults, tell
from sidecar.core.conversation_kinds import tags_of
from sidecar.core.entries import BlockTold, Remembered
from sidecar.core.index_rows import Commit, IndexRow, Written
from sidecar.hosting import Hosting
from sidecar.ports import Index
from sidecar.stores.blobs import Blobs
from sidecar.stores.folder_store import FolderStore
from sidecar.stores.outdir import OutDir
from sidecar.stores.sqlite_index import SqliteIndex
from sidecar.workspace import Workspace
from tests.memory_journal import MemoryJournal
from tests.rendered_world import Here

IDENTITY = {
    "tenant": "acme", "project": "inn", "user_id": "ann", "user_type": "registered", "conversation_id": "c-1",
}  # fmt: skip


class Inside:
    """Everything that answers for one conversation. `folder` holds what it stands on, and may be shared by several."""

    def __init__(self, folder: Path, index: Index) -> None:
        out_dir, state = folder / "out", folder / "state"
        out_dir.mkdir(parents=True, exist_ok=True)
        self.workspace = Workspace(MemoryJournal())
        outdir, here = OutDir(str(out_dir)), Here()
        store = FolderStore(str(folder / "store"))
        hosting = Hosting(self.workspace, here, outdir, Blobs(str(state)), store)  # type: ignore[arg-type]
        self.store = folder / "store"
        self.archive = Archive(self.workspace, hosting, index)
        self.lease = Lease(self.workspace, self.archive, label="a test")
        accounting = Accounting(self.archive, hosting)
        self.contributions = Contributions(self.workspace, self.archive, self.lease, accounting)
        self.finding = Finding(self.workspace, here, self.archive)  # type: ignore[arg-type]

    async def tell(self, *blocks: dict[str, Any], turn_id: str = "turn_1") -> None:
        entries = (BlockTold(tell({"type": "note", **block}, Defaults(turn_id, 1.0))) for block in blocks)
        await self.workspace.stage(*entries)

    async def put(self, *rows: IndexRow, embeddings: tuple[list[float], ...] = ()) -> None:
        """Rows as a turn's end leaves them, whoever holds the lease."""
        vectors = embeddings or (None,) * len(rows)
        written = [Written(row, vector) for row, vector in zip(rows, vectors, strict=True)]
        await self.archive.ask(self.archive.index.commit, self.archive.scope, Commit(rows=written))

    async def save(self, **said: Any) -> dict[str, Any]:
        given: dict[str, Any] = {"kind": "my.note", "content": None, "text": None, "turn_id": None} | said
        return await self.contributions.save(Contribution(**given))

    def blobs(self) -> list[Path]:
        return sorted(path for path in self.store.rglob("*.json") if path.is_file())


@asynccontextmanager
async def inside(folder: Path, index: Index | None = None) -> AsyncIterator[Inside]:
    """The conversation, its index open and its lease taken unless somebody else has it."""
    one = Inside(folder, index or SqliteIndex(str(folder / "index.db")))
    folder.mkdir(parents=True, exist_ok=True)
    await one.workspace.stage(Remembered({"conversation": IDENTITY, "opened": "2026-01-01T00:00:00Z"}))
    if index is None:
        await one.archive.ask(one.archive.index.open)
    await one.lease.take()
    try:
        yield one
    finally:
        one.archive.close()


EVERYTHING = Onlooker(True, lambda _: True, lambda _: True, lambda content, _: content)


def row(message_id: str, kind: str, text: str, turn_id: str = "turn_1", ts: float = 1.0) -> IndexRow:
    return IndexRow(message_id=message_id, kind=kind, turn_id=turn_id, ts=ts, text=text, tags=tags_of(kind, turn_id))
