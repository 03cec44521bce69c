"""From values to JSON bytes, cut to the role that gets them. This is the only way out of the daemon."""

from __future__ import annotations

from typing import Any

import orjson

from sidecar.core.hosting import CUT_FOR, without


def encode(result: Any, role: str) -> bytes:
    """Serialise a result or an event for a role. Raises TypeError for what is no JSON.

    A spliced `orjson.Fragment` must have been cut before: it is passed on as it is.
    """
    body = orjson.dumps(result)
    fields = CUT_FOR[role]
    if fields and _may_hold_hosting(body):
        return orjson.dumps(without(result, fields))
    return body


def cut_block(body: bytes, role: str) -> bytes:
    """A block's JSON for a role. Only called for blocks that are known to hold a hosting field."""
    fields = CUT_FOR[role]
    return orjson.dumps(without(orjson.loads(body), fields)) if fields else body


def _may_hold_hosting(body: bytes) -> bool:
    """Whether one of the fields may stand in this JSON. Written out, because every answer passes here.

    Behind a backslash are the spellings of a quote or a letter in JSON that is itself held in a JSON text.
    """
    if b"hosted_uri" in body or b'rn"' in body or b'key"' in body:
        return True
    return b"\\" in body and (b"rn\\" in body or b"key\\" in body or b"\\u00" in body)
