"""Accounting: small records of what a turn cost and made, each at its own place in the store (seed 004, layout)."""

from __future__ import annotations

import hashlib
import io
import logging
import time
from typing import Any

import orjson

from sidecar.conversation.archive import MIME, Archive
from sidecar.conversation.gathering import Left
from sidecar.core.blocks import iso
from sidecar.core.conversation_names import NAME_CHARS, accounting_key
from sidecar.core.errors import StoreUnavailable
from sidecar.core.storage_names import encoded
from sidecar.hosting import Hosting

log = logging.getLogger(__name__)

SERVICE = "sidecar"
AGENT = "answer.generator.regular"


class Accounting:
    """Keeps records. They have no row in the index."""

    def __init__(self, archive: Archive, hosting: Hosting) -> None:
        self._archive = archive
        self._hosting = hosting

    async def keep(self, turn_id: str, record: dict[str, Any]) -> dict[str, Any]:
        """Store a record of a turn as it came to be now; answers `{key, hosted_uri}`. Raises StoreUnavailable.

        It says itself which service it is of (`service_name`) and which agent (`agent`).
        """
        return await self.keep_at(time.time(), turn_id, record)

    async def keep_turn(self, left: Left, *, calls: int) -> None:
        """Keep what a turn came to. Where no accounts can be written that is logged, and no reason to save nothing."""
        turn = left.turn
        sizes = [version.size or 0 for file in left.files for version in file.versions[-1:]]
        record = {
            "status": turn.status,
            "blocks": len(left.told.numbers),
            "tokens": left.told.tokens,
            "files": len(sizes),
            "bytes": sum(sizes),
            "calls": calls,
            "sources_used": list(left.told.sources_used),
            "seconds": round(max(0.0, left.ts - turn.began), 6) if turn.began else None,
        }
        try:
            await self.keep_at(left.ts, turn.turn_id, record)
        except (StoreUnavailable, OSError, ValueError) as fault:
            log.warning("no account of turn %s was kept: %s", turn.turn_id, fault)

    async def keep_at(self, ts: float, turn_id: str, record: dict[str, Any]) -> dict[str, Any]:
        """The same for a moment in seconds since the epoch: of one moment, service and agent there is one record."""
        store = self._hosting.store
        if store is None:
            raise StoreUnavailable("accounting", "no store is configured", fault="no_store")
        identity, bundle = self._archive.identity, self._archive.conversation.get("bundle_id", "")
        service, agent = _word(record.get("service_name"), SERVICE), _word(record.get("agent"), AGENT)
        key = accounting_key(identity, bundle_id=bundle, service=service, turn_id=turn_id, agent=agent, ts=ts)
        whole = {
            "tenant": identity.tenant,
            "project": identity.project,
            "user_id": identity.user_id,
            "user_type": identity.user_type,
            "conversation_id": identity.conversation_id,
            "turn_id": turn_id,
            "bundle_id": bundle or None,
            "timestamp": iso(ts),
            **record,
            "service_name": service,
            "agent": agent,
        }

        def send() -> None:
            body = orjson.dumps(whole)
            sha256 = hashlib.sha256(body).hexdigest()
            try:
                store.put(key, io.BytesIO(body), size=len(body), sha256=sha256, mime=MIME)
            except ValueError:
                if store.head(key) is None:
                    raise
                # A save that was not finished left it; what it says was true then.

        await self._hosting.ask(send)
        return {"key": key, "hosted_uri": store.uri(key)}


def _word(said: Any, default: str) -> str:
    """A part of a key as somebody says it; what is none is the default."""
    is_one = isinstance(said, str) and said not in ("", ".", "..") and len(encoded(said)) <= NAME_CHARS
    return said if is_one else default
