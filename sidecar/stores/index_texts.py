"""What both engines of the index can hold, so that they hold the same: texts, names, moments.

PostgreSQL has no U+0000 in a text, and neither engine has halves of surrogate pairs. What people write must not stop a
turn from being saved, so texts get U+FFFD in their place; a name with one of them is refused: it would not be found.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace

from sidecar.core.index_rows import Filters, IndexRow, Scope

MICROSECONDS = 1_000_000
EARLIEST, LATEST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, in seconds
MAX_TTL_DAYS = 1_000_000
NAMES = ("message_id", "kind", "turn_id", "role", "hosted_uri", "key", "rn", "origin", "user_type", "bundle_id")


def storable(text: str) -> str:
    """The text with U+FFFD where an engine could not hold a character."""
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    # Two halves that belong together are a character, so the text is looked at as UTF-16 would see it.
    return text if holdable(text) else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def checked(name: str) -> str:
    """A name as it is. Raises ValueError when it has a character that not every engine can hold."""
    if not holdable(name):
        raise ValueError("a name in the index has neither U+0000 nor half a surrogate pair")
    return name


def checked_scope(scope: Scope) -> Scope:
    """Raises ValueError."""
    return Scope(*map(checked, scope))


def storable_row(row: IndexRow) -> IndexRow:
    """The row as both engines hold it. Raises ValueError for names, moments and lives that cannot be."""
    for name in NAMES:
        checked(getattr(row, name))
    if not row.message_id:
        raise ValueError("a row has a message_id")
    if not 0 <= row.ttl_days <= MAX_TTL_DAYS:
        raise ValueError(f"a row lives 0 to {MAX_TTL_DAYS} days")
    tags = tuple(dict.fromkeys(map(checked, row.tags)))
    return replace(row, ts=micros(row.ts) / MICROSECONDS, text=storable(row.text), tags=tags)


def askable(filters: Filters) -> Filters | None:
    """The filters, with the ends of time within our years; None when no row can pass.

    A name that no row can have is left out of a list of which any will do.
    """
    kinds, turn_ids = _known(filters.kinds), _known(filters.turn_ids)
    if bool(kinds) != bool(filters.kinds) or bool(turn_ids) != bool(filters.turn_ids):
        return None
    if not all(map(holdable, filters.tags)):
        return None
    tags, but_kinds = tuple(dict.fromkeys(filters.tags)), _known(filters.but_kinds)
    return Filters(kinds, tags, turn_ids, _end(filters.since), _end(filters.until), but_kinds)


def micros(ts: float) -> int:
    """Seconds since the epoch as whole microseconds. Raises ValueError outside the years 1 to 9999."""
    if not EARLIEST <= ts <= LATEST:
        raise ValueError("a moment in the index lies in the years 1 to 9999")
    return round(ts * MICROSECONDS)


def _end(ts: float | None) -> float | None:
    if ts is None:
        return None
    if math.isnan(ts):
        raise ValueError("the end of a range of time is a number")
    return min(max(ts, EARLIEST), LATEST)


def _known(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(holdable, names)))


def holdable(text: str) -> bool:
    """Whether every engine can hold this text as it is."""
    return "\0" not in text and (text.isascii() or _HALF.search(text) is None)


_HALF = re.compile("[\ud800-\udfff]")
