"""Lists of sources as params of tools: merged by what makes two rows one, numbered as the pool, cut to a budget.

A budget is shared so that no source is lost: short ones stay whole, and long ones get equal parts of what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar.core.counting import binary_tokens, count_tokens, packed_size
from sidecar.core.errors import Refusal
from sidecar.core.older_values import sid_of
from sidecar.core.sources import Row, SourcesPool, complete, dedupe_key, merge_row

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Capped:
    """Rows within a budget, and the places in the list of those that were cut."""

    rows: tuple[Row, ...]
    cut: tuple[int, ...]


def merged(rows: Iterable[Mapping[str, Any]], pool: SourcesPool) -> list[Row]:
    """The rows in the order asked, each source once, with the numbers and the blanks filled as the pool has them."""
    found: dict[str, Row] = {}
    names: dict[str, str] = {}  # what makes two rows one -> under which name it was found
    for row in rows:
        whole = _normalised(row, pool)
        sid, key = whole.get("sid"), dedupe_key(whole)
        name = f"sid:{sid}" if sid is not None else key or f"row:{len(found)}"
        # The number may be known of one row and not of its twin, which nobody merged into the pool.
        name = name if name in found or key is None else names.get(key, name)
        found[name] = merge_row(found[name], whole) if name in found else whole
        for known in (key, dedupe_key(found[name])):
            if known is not None:
                names.setdefault(known, name)
    return list(found.values())


def _normalised(row: Mapping[str, Any], pool: SourcesPool) -> Row:
    """A row with today's fields, as the pool knows it. A number that the pool gave to another source goes."""
    whole: Row = {key: value for key, value in row.items() if value is not None and key != "sid"}
    try:
        whole = complete(whole)
    except Refusal:
        pass  # a tool's own row that no pool would take is still a source to read
    sid, key = sid_of(row), dedupe_key(whole)
    known = pool.get(sid) if sid is not None else None
    if known is not None and key is not None and dedupe_key(known) != key:
        known, sid = None, None
    if known is None and key is not None and (given := pool.keys.durable.get(key)) is not None:
        known, sid = pool.get(given), given
    if known is not None:
        whole = merge_row(known, whole)
    if sid is not None:
        whole = {"sid": sid, **whole}
    packed = whole.get("base64")
    if isinstance(packed, str) and not whole.get("size_bytes"):
        whole["size_bytes"] = packed_size(packed)
    return whole


def need_of(row: Mapping[str, Any]) -> int:
    """What the words and bytes of a row count as; its title and addresses are never cut and are not counted."""
    packed = row.get("base64")
    return _words(row) + (binary_tokens(packed_size(packed)) if isinstance(packed, str) else 0)


def shares(needs: Sequence[int], budget: int) -> list[int]:
    """What each may use of a budget: no more than it needs, and at least an equal part of the whole where it needs it.

    Together they never exceed the budget.
    """
    given = [0] * len(needs)
    left = max(budget, 0)
    ascending = sorted(range(len(needs)), key=lambda at: needs[at])
    for rank, at in enumerate(ascending):
        given[at] = min(needs[at], left // (len(needs) - rank))
        left -= given[at]
    return given


def capped(rows: Sequence[Row], budget: int) -> Capped:
    """The rows with their words cut so that all together need at most `budget` tokens; every row stays."""
    needs = [need_of(row) for row in rows]
    given = shares(needs, budget)
    cut = tuple(at for at, need in enumerate(needs) if given[at] < need)
    short = frozenset(cut)
    return Capped(tuple(_within(row, given[at]) if at in short else row for at, row in enumerate(rows)), cut)


def _within(row: Row, tokens: int) -> Row:
    """A row that needs at most so many tokens. Bytes cannot be cut: they go, and the path to the file stays."""
    kept = {key: value for key, value in row.items() if key != "base64"}
    if _words(kept) <= tokens:
        return kept
    content = kept.get("content")
    if isinstance(content, str) and content:
        kept.pop("text", None)  # the full text says what its excerpt says
        return {**kept, "content": _cut(content, tokens)}
    return {**kept, "text": _cut(str(kept.get("text") or ""), tokens)}


def _words(row: Mapping[str, Any]) -> int:
    return sum(count_tokens(words) for key in ("text", "content") if isinstance(words := row.get(key), str))


def _cut(text: str, tokens: int) -> str:
    return text.encode("utf-8", "surrogatepass")[: tokens * _BYTES_PER_TOKEN].decode("utf-8", "ignore")
