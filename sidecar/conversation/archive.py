"""The way to what is saved of this conversation: blobs in the store, rows in the index, both asked off the loop.

Blob first, then row: a blob that no row names is nothing yet, and a row never names a blob that is not there.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import orjson

from sidecar.core.blocks import iso
from sidecar.core.conversation_names import blob_key, conversation_prefix, message_handle, message_id, scope_of
from sidecar.core.errors import Fault, NotFound, StoreUnavailable
from sidecar.core.index_rows import INDEX_ONLY, TTL_DAYS, Filters, IndexRow, Scope
from sidecar.core.storage_names import Identity
from sidecar.hosting import Hosting
from sidecar.pieces import Pieces
from sidecar.ports import Index
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)
T = TypeVar("T")

THREADS = 4  # that ask the index; one more waits for news
MOVES = 20  # of one row's blob, while it is being read
BLOB_BYTES = 512 * 1024 * 1024  # no record is larger than what one conversation may hold in memory
MIME = "application/json"


@dataclass(frozen=True, slots=True)
class Content:
    """What is to be stored of one kind for one turn. `payload` is JSON; `text` is what the index row says."""

    kind: str
    turn_id: str
    ts: float
    payload: Pieces
    text: str
    message_id: str = ""  # of the row that is there already; else one is made of the content


@dataclass(frozen=True, slots=True)
class Blob:
    """Where a content stands now, and the id and handle of its row."""

    message_id: str
    key: str
    hosted_uri: str
    rn: str


class Archive:
    """Blobs and rows of the workspace's own conversation. Without a store nothing is stored as a blob."""

    def __init__(self, workspace: Workspace, hosting: Hosting, index: Index) -> None:
        self.index = index
        self.fault: Fault | None = None  # of the index; the store's own is `hosting.fault`
        self._workspace = workspace
        self._hosting = hosting
        self._askers = ThreadPoolExecutor(THREADS, thread_name_prefix="index")

    @property
    def conversation(self) -> Mapping[str, str]:
        """Whose conversation it is, as the workspace remembers it."""
        return self._workspace.facts["conversation"]

    @property
    def identity(self) -> Identity:
        return Identity.of(self.conversation)

    @property
    def scope(self) -> Scope:
        return scope_of(self.identity)

    @property
    def stores(self) -> bool:
        """Whether there is a store for blobs at all."""
        return self._hosting.store is not None

    def state(self) -> dict[str, Any]:
        """How the index is, as `workspace/status` answers it."""
        answer: dict[str, Any] = {"state": "unavailable" if self.fault else "ok", "kind": self.index.kind}
        return answer | ({"reason": self.fault} if self.fault else {})

    async def ask(self, work: Callable[..., T], *args: Any, **named: Any) -> T:
        """Ask the index something off the loop. Raises what the index raises; that it answered at all is noted."""

        def run() -> T:
            return work(*args, **named)

        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._askers, run)
        except StoreUnavailable as refusal:
            if self.fault is None:
                log.warning("the index does not answer: %s (%s)", refusal.fault, refusal.hint)
            self.fault = refusal.fault
            raise
        if self.fault is not None:
            log.info("the index answers again")
        self.fault = None
        return answer

    async def fits(self, vector: Sequence[float]) -> None:
        """Raises WrongDimension for a vector of another length than the index holds, and StoreUnavailable."""
        await self.ask(self.index.nearest, self.scope, vector, Filters(), limit=0)

    async def put(self, content: Content) -> Blob:
        """Store a content under a key that nothing else ever has. Raises StoreUnavailable, also without a store."""
        store = self._hosting.store
        if store is None:
            raise StoreUnavailable("conversation", "no store is configured", fault="no_store")
        blob, body = await asyncio.to_thread(self._record, content)

        def send() -> None:
            store.put(blob.key, body.opened(), size=len(body), sha256=body.sha256(), mime=MIME)

        try:
            await self._hosting.ask(send)
        except ValueError as fault:  # an identity of many and long parts makes a key that no store takes
            raise StoreUnavailable(blob.key, str(fault), fault="key_too_long") from fault
        return blob

    async def get(self, row: IndexRow) -> dict[str, Any]:
        """The record of a row: `{…, payload, meta}`. Raises NotFound where it has none, and StoreUnavailable.

        A row that was stored again meanwhile, under another key, is read as it is now.
        """
        for _ in range(MOVES):
            try:
                return await self._hosting.ask(self._read, self._checked(row))
            except NotFound:
                now = await self.ask(self.index.row, self.scope, row.message_id)
                if now is None or now.key == row.key:
                    raise
                row = now
        raise StoreUnavailable(row.message_id, "it is stored again faster than it can be read", fault="server_error")

    async def delete(self, keys: list[str]) -> None:
        """Remove blobs that no row names any more. What cannot be removed now is left; it is in nobody's way."""
        store = self._hosting.store
        if store is None or not keys:
            return
        try:
            await self._hosting.ask(store.delete, keys)
        except StoreUnavailable as refusal:
            log.warning("%d blobs that nothing names any more could not be removed: %s", len(keys), refusal)

    def row(self, content: Content, blob: Blob | None, *, tags: tuple[str, ...], **more: Any) -> IndexRow:
        """The row of a content; without a blob it is index-only."""
        own = content.message_id or message_id(content.kind, content.ts, mark=content.turn_id + content.text)
        return IndexRow(
            message_id=blob.message_id if blob else own,
            kind=content.kind,
            turn_id=content.turn_id,
            ts=content.ts,
            text=content.text,
            tags=tags,
            hosted_uri=blob.hosted_uri if blob else INDEX_ONLY,
            key=blob.key if blob else "",
            rn=blob.rn if blob else "",
            user_type=self.identity.user_type,
            bundle_id=self.conversation.get("bundle_id", ""),
            **more,
        )

    def close(self) -> None:
        """Ask nothing any more. What is under way is left to itself."""
        self._askers.shutdown(wait=False, cancel_futures=True)
        self.index.close()

    def _checked(self, row: IndexRow) -> str:
        """The key of a row's blob, which lies in this conversation's own place or is none."""
        owner = replace(self.identity, user_type=row.user_type)
        if not row.key or not row.key.startswith(conversation_prefix(owner)):
            raise NotFound(row.message_id, "this row has no blob")
        return row.key

    def _record(self, content: Content) -> tuple[Blob, Pieces]:
        """The record as it is stored (seed-system 1.9), and where. Blocking: it serialises and hashes."""
        identity = self.identity
        own = content.message_id or message_id(
            content.kind, content.ts, mark=content.turn_id + content.payload.sha256()
        )
        rn = message_handle(identity, content.turn_id, own)
        record = {
            "tenant": identity.tenant,
            "project": identity.project,
            "user": identity.user_id,
            "user_id": identity.user_id,
            "conversation_id": identity.conversation_id,
            "turn_id": content.turn_id,
            "bundle_id": self.conversation.get("bundle_id"),
            "role": "artifact",
            "text": content.text,
            "timestamp": iso(content.ts),
        }
        about = {
            "meta": {
                "kind": content.kind,
                "message_id": own,
                "turn_id": content.turn_id,
                "user_type": identity.user_type,
                "ttl_days": TTL_DAYS,
                "rn": rn,
            },
        }
        pieces = [orjson.dumps(record)[:-1], b',"payload":', *content.payload.pieces, b",", orjson.dumps(about)[1:]]
        # What is stored again under the id of its row is another blob, and nobody else's even if two say the same: who
        # was not the first to name it in the row takes his own away.
        name = own if not content.message_id else message_id(content.kind, content.ts, mark=secrets.token_hex(16))
        key = blob_key(identity, content.turn_id, name)
        store = self._hosting.store
        assert store is not None
        return Blob(own, key, store.uri(key), rn), Pieces(pieces)

    def _read(self, key: str) -> dict[str, Any]:
        store = self._hosting.store
        if store is None:
            raise StoreUnavailable(key, "no store is configured", fault="no_store")
        body = bytearray()
        for chunk in store.get(key):
            body += chunk
            if len(body) > BLOB_BYTES:
                raise StoreUnavailable(key, "a record is larger than any we write", fault="wrong_bytes")
        try:
            record = orjson.loads(body)
        except orjson.JSONDecodeError as fault:
            raise StoreUnavailable(key, f"a record is no JSON: {fault}", fault="wrong_bytes") from fault
        if not isinstance(record, dict):
            raise StoreUnavailable(key, "a record is a JSON object", fault="wrong_bytes")
        return record
