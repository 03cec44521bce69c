"""What a store can do, found out by doing it (reference: a careless store is used with a warning, none is trusted)."""

from __future__ import annotations

import hashlib
import io
import secrets

from sidecar.core.errors import Refusal
from sidecar.ports import Abilities, Store

PROBE_PREFIX = "probe/"


class Sample:
    """Some bytes under a random key that nothing else has."""

    def __init__(self, size: int = 64) -> None:
        self.key = f"{PROBE_PREFIX}{secrets.token_hex(16)}"
        self.body = secrets.token_bytes(size)
        self.sha256 = hashlib.sha256(self.body).hexdigest()

    def put(self, store: Store, body: bytes | None = None, *, sha256: str = "") -> None:
        """Put the sample, or other bytes of the same size, under the sample's key."""
        sent = self.body if body is None else body
        hashed = sha256 or hashlib.sha256(sent).hexdigest()
        store.put(self.key, io.BytesIO(sent), size=len(sent), sha256=hashed, mime="application/octet-stream")


def probe_folder(store: Store) -> Abilities:
    """Put, read, read from the middle, put other bytes over it, put wrong ones; and leave nothing behind."""
    sample, wrong = Sample(), Sample()
    try:
        sample.put(store)
        return Abilities(
            reads_back=b"".join(store.get(sample.key)) == sample.body,
            ranges=b"".join(store.get(sample.key, start=10)) == sample.body[10:],
            atomic_create=_refuses(sample, store, sample.body[::-1]),
            verifies_sha256=_refuses(wrong, store, wrong.body, sha256="0" * 64) and store.head(wrong.key) is None,
            presigns=False,
        )
    finally:
        store.delete([sample.key, wrong.key])


def _refuses(sample: Sample, store: Store, body: bytes, *, sha256: str = "") -> bool:
    try:
        sample.put(store, body, sha256=sha256)
    except ValueError:
        return True
    except Refusal:
        return False
    return False
