"""Which protocol this is, and which ones it understands."""

from __future__ import annotations

MAJOR = 1
MINOR = 5
PROTOCOL_VERSION = f"{MAJOR}.{MINOR}"


def speaks(asked: str) -> bool:
    """Whether a client of that version can be served: the major number decides (spec section 7)."""
    return asked.partition(".")[0] == str(MAJOR)
