"""Records of other turns that tell of an erased one: stored anew without it, and what they were before is deleted.

A blob is written once, so a record that loses something becomes another blob. The keys of the former ones are written
down before any row lets go of them: an erase that was killed is finished by the next one.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from sidecar.core.conversation_kinds import SUMMARY
from sidecar.core.conversation_names import blob_key, message_id, scope_of
from sidecar.core.erasing import role_in
from sidecar.core.errors import NotFound
from sidecar.core.forgetting import Doomed
from sidecar.core.index_rows import Commit, Fence, Filters, IndexRow, Written
from sidecar.core.storage_names import Identity
from sidecar.ports import Index, Store
from sidecar.stores.durable import sync_folder

PENDING = "erasing.json"
MIME = "application/json"


@dataclass(frozen=True, slots=True)
class Archived:
    """Where a conversation is saved, and who may write it."""

    identity: Identity
    index: Index
    store: Store | None
    fence: Fence


def clean_others(archived: Archived, doomed: Doomed, state_dir: str) -> int:
    """Rid the rows and blobs of all other turns of one turn. Answers how many told of it.

    Raises StoreUnavailable, LeaseLost, and RowChanged when somebody gave feedback meanwhile: then do it again.
    """
    scope = scope_of(archived.identity)
    former: list[str] = []
    count = 0
    for row in archived.index.rows(scope, Filters()):
        if row.turn_id == doomed.turn_id:
            continue
        if row.kind == SUMMARY and row.turn_id in doomed.summaries:
            after: IndexRow | None = None
        else:
            after = _cleaned(archived, row, doomed)
            if after is row:
                continue
        count += 1
        if row.key and (after is None or after.key != row.key):
            former.append(row.key)
            _write_down(state_dir, former)
        archived.index.commit(scope, _exchange(row, after), fence=archived.fence)
    return count


def delete_pending(archived: Archived, state_dir: str) -> int:
    """Delete the blobs that an erase, this one or one that was killed, has replaced. Answers how many."""
    try:
        with open(os.path.join(state_dir, PENDING), encoding="utf-8") as file:
            keys = json.load(file)
    except (FileNotFoundError, ValueError):
        return 0
    named = {row.key for row in archived.index.rows(scope_of(archived.identity), Filters())}
    mine = [key for key in keys if role_in(key, archived.identity) and key not in named]
    if archived.store is not None and mine:
        archived.store.delete(mine)
    os.unlink(os.path.join(state_dir, PENDING))
    return len(mine)


def _exchange(before: IndexRow, after: IndexRow | None) -> Commit:
    if after is None:
        return Commit(remove=[before.message_id])
    if before.has_embedding:
        # The vector was made of what the row said before; what is removed first is put without one.
        return Commit(rows=[Written(after)], remove=[before.message_id])
    return Commit(rows=[Written(after, expected=before.change)])


def _cleaned(archived: Archived, row: IndexRow, doomed: Doomed) -> IndexRow:
    """The row as it is to stand, its new blob stored; the row itself when it tells nothing of the turn."""
    text = doomed.cleaned_text(row.text)
    record = _record(archived, row)
    after = doomed.cleaned(record) if record is not None else None
    if record is not None and isinstance(record.get("text"), str):
        said = doomed.cleaned_text(record["text"])
        if said != record["text"] and isinstance(after, dict):
            after = {**after, "text": said}
    if text == row.text and after is record:
        return row
    row = replace(row, text=text)
    if not isinstance(after, dict):
        return row
    store = archived.store
    assert store is not None
    body = orjson.dumps(after)
    sha256 = hashlib.sha256(body).hexdigest()
    key = blob_key(archived.identity, row.turn_id, message_id(row.kind, row.ts, mark=sha256))
    store.put(key, io.BytesIO(body), size=len(body), sha256=sha256, mime=MIME)
    return replace(row, key=key, hosted_uri=store.uri(key))


def _record(archived: Archived, row: IndexRow) -> dict[str, Any] | None:
    """What the row's blob holds; None where there is none any more, or none that is ours."""
    if archived.store is None or not role_in(row.key, archived.identity):
        return None
    try:
        record = orjson.loads(b"".join(archived.store.get(row.key)))
    except (NotFound, orjson.JSONDecodeError):
        return None
    return record if isinstance(record, dict) else None


def _write_down(state_dir: str, keys: Sequence[str]) -> None:
    path = os.path.join(state_dir, PENDING)
    known: list[str] = []
    try:
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    except (FileNotFoundError, ValueError):
        pass
    arriving = f"{path}.new"
    fd = os.open(arriving, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump([*dict.fromkeys((*known, *keys))], file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(arriving, path)
    sync_folder(state_dir)
