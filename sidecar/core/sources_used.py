"""Which sources a block of a turn uses: those it names, and those that the agent's own words cite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sidecar.core.blocks import TYPE, Head, digest_in
from sidecar.core.citations import extract

# What the agent itself says. A tool's result may quote citations of others.
_OWN_WORDS = frozenset({"assistant.completion", "react.notes", "react.note"})


def speaks(head: Head) -> bool:
    """Whether a block of this head can use a source at all: what the user said and attached does not."""
    return not head[TYPE].startswith("user.")


def sources_used_in(block: Mapping[str, Any], sids: Sequence[int]) -> set[int]:
    """The numbers that a block uses, bounded by the pool. What a read showed again was used when it was made."""
    meta = block.get("meta") or {}
    if meta.get("rel") == "read":
        return set()
    used = numbers_in(meta.get("sources_used")) | numbers_in((digest_in(block) or {}).get("sources_used"))
    text = block.get("text")
    if block.get("type") in _OWN_WORDS and isinstance(text, str):
        used.update(extract(text, str(block.get("mime") or "text/markdown"), sids))
    return used


def numbers_in(value: Any) -> set[int]:
    """The numbers in a told list; what is none, or no list, counts for nothing."""
    if not isinstance(value, list):
        return set()
    return {one for one in value if isinstance(one, int) and not isinstance(one, bool)}
