"""What a daemon has saved of a conversation, looked at from outside: the rows of its index and the blobs they name."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sidecar.core.conversation_names import scope_of
from sidecar.core.index_rows import Filters, IndexRow
from sidecar.core.storage_names import Identity
from sidecar.ports import Index, Store
from sidecar.stores.folder_store import FolderStore
from sidecar.stores.indexes import open_index
from tests.daemon_process import Workspace

CONVERSATION = {"tenant": "acme", "project": "inn", "user_id": "ann", "conversation_id": "c-1"}
IDENTITY = Identity("acme", "inn", "ann", "registered", "c-1")
SCOPE = scope_of(IDENTITY)
STORED = frozenset(
    {"turn.log", "conv.timeline.v1", "conv:sources_pool", "conv.artifacts.stream", "conv.timeline_text.stream"}
)


class Shelf:
    """The store and the index of one conversation."""

    def __init__(self, store: Store, index: Index) -> None:
        self.store = store
        self.index = index

    @classmethod
    def of(cls, workspace: Workspace, store: Store | None = None) -> Shelf:
        """Those that a workspace has by default: beside its journal."""
        index = open_index(str(workspace.state_dir / "index.db"))
        index.open()
        return cls(store or FolderStore(str(Path(workspace.state_dir) / "store")), index)

    def rows(self, turn_id: str | None = None, kind: str | None = None) -> list[IndexRow]:
        turns = (turn_id,) if turn_id is not None else ()
        return self.index.rows(SCOPE, Filters(kinds=(kind,) if kind is not None else (), turn_ids=turns))

    def row(self, turn_id: str, kind: str) -> IndexRow:
        (row,) = self.rows(turn_id, kind)
        return row

    def kinds(self, turn_id: str) -> list[str]:
        return sorted(row.kind for row in self.rows(turn_id))

    def record(self, turn_id: str, kind: str) -> dict[str, Any]:
        return json.loads(self.bytes_at(self.row(turn_id, kind).key))

    def payload(self, turn_id: str, kind: str) -> dict[str, Any]:
        return self.record(turn_id, kind)["payload"]

    def stored(self, prefix: str = "cb/") -> list[str]:
        return self.store.list(prefix)

    def blobs(self, turn_id: str) -> list[str]:
        """The keys of the records that stand in the store for a turn."""
        return [key for key in self.stored() if f"/conversation/registered/ann/c-1/{turn_id}/" in key]

    def bytes_at(self, key: str) -> bytes:
        return b"".join(self.store.get(key))

    def zipped(self, key: str) -> dict[str, bytes]:
        with zipfile.ZipFile(io.BytesIO(self.bytes_at(key))) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def next_block(self) -> int:
        return self.index.standing(SCOPE).next_block

    def close(self) -> None:
        self.index.close()


def have_turn(client: Any, number: int, **ending: Any) -> dict[str, Any]:
    """A short turn in which a program makes a file; answers what its end answered."""
    turn = f"turn_{number}"
    client.call("turn/begin", {"turn_id": turn, "prompt": f"Question {number}", "conversation": CONVERSATION})
    written = {"path": "report.md", "content": f"# Report {number}\n", "kind": "file"}
    client.call("artifact/write", written)
    client.call("timeline/append", {"blocks": [{"type": "react.notes", "text": f"Looking at {number}"}]})
    return client.call("turn/end", {"turn_id": turn, "completion": {"text": f"Answer {number}"}, **ending})


def of_kind(items: Sequence[dict[str, Any]], kind: str) -> dict[str, Any]:
    (item,) = (one for one in items if one["kind"] == kind)
    return item
