"""A block as it stands now: as it was told, and with what became of it since.

What was told is never written again. Blocks hidden or shown again later say so in `meta.hidden` and
`meta.replacement_text`, and the content block of a file that was hosted later carries its hosting fields in `meta`.
"""

from __future__ import annotations

from typing import Any

import orjson

from sidecar.core.artifacts import Artifacts
from sidecar.core.blocks import FLAGS, HOSTING, HOSTING_FIELDS, PATH
from sidecar.core.timeline import Timeline


def changes_since(timeline: Timeline, artifacts: Artifacts, number: int) -> dict[str, Any]:
    """What the block's `meta` says now beyond what it said; None for a key that it lost. Empty for most blocks."""
    changes: dict[str, Any] = {}
    if number in timeline.veils:
        words = timeline.veils[number]
        changes = {"hidden": True if words is not None else None, "replacement_text": words or None}
    head = timeline.heads[number]
    if head[PATH].startswith("fi:") and not head[FLAGS] & HOSTING:
        artifact = artifacts.get(head[PATH])
        for version in artifact.versions if artifact is not None else ():
            if version.is_hosted and number in (version.blocks.get(slot) for slot in ("text", "base64", "bare")):
                changes |= {field: version.facts[field] for field in HOSTING_FIELDS if field in version.facts}
    return changes


def as_it_stands(body: bytes, changes: dict[str, Any]) -> bytes:
    """The block's JSON with these changes of its `meta`."""
    return orjson.dumps(with_changes(orjson.loads(body), changes)) if changes else body


def with_changes(block: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The block with these changes of its `meta`."""
    if not changes:
        return block
    meta = {key: value for key, value in (block.get("meta") or {}).items() if key not in changes}
    return {**block, "meta": meta | {key: value for key, value in changes.items() if value is not None}}
