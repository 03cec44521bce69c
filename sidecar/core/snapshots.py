"""The conversation as it stands at the end of a turn: its timeline from the latest summary on, and its sources pool.

The pool is whole in a record of its own. Beside the timeline, and in the texts of rows, its rows are compact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from sidecar.core.limits import ROW_TEXT_BYTES
from sidecar.core.spelled import Spelled
from sidecar.core.timeline import Timeline

VERSION = 1
COMPACT_TEXT_CHARS = 500
TITLE_CHARS = 500

Payload = dict[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What is said of a conversation beside its blocks and sources. Moments are ISO 8601 texts, or None.

    `max_sid` is the highest number that a source was ever given, whether its row is still there or not.
    `more` are facts that were remembered of it: when its cache was touched, which feedback is known.
    """

    turn_ids: Sequence[str]
    title: str | None = None
    started_at: str | None = None
    last_activity_at: str | None = None
    max_sid: int = 0
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The blocks of a snapshot: their JSON as it stands, their numbers, and how many the conversation has by then.

    `truncated` says that the first of them did not fit into one record.
    """

    bodies: Sequence[bytes]
    numbers: Sequence[int]
    next_block: int
    truncated: bool = False


def kept_numbers(timeline: Timeline, end: int) -> list[int]:
    """The blocks that the agent still sees as they are, and before them the summary of all others."""
    start = timeline.kept_from
    lead = [timeline.summary] if timeline.summary is not None and timeline.summary < start else []
    return [*lead, *range(start, end)]


def timeline_payload(ts: str, kept: Kept, rows: Iterable[Row], about: Conversation) -> Payload:
    """The payload of `conv.timeline.v1`, its blocks spliced in. `rows` is the whole pool, ascending."""
    compact = [compact_row(row) for row in rows]
    payload: Payload = {
        "version": VERSION,
        "ts": ts,
        "blocks": Spelled(kept.bodies),
        "indexes": list(kept.numbers),
        "sources_pool": compact,
        "turn_ids": list(about.turn_ids),
        "conversation_title": about.title[:TITLE_CHARS] if about.title is not None else None,
        "conversation_started_at": about.started_at,
        "last_activity_at": about.last_activity_at,
        **{name: about.more.get(name) for name in REMEMBERED},
        "next_block": kept.next_block,
        "max_sid": about.max_sid,
    }
    return payload | ({"truncated": True} if kept.truncated else {})


def pool_payload(rows: Iterable[Row], about: Conversation) -> Payload:
    """The payload of `conv:sources_pool`: every row in full."""
    whole = [dict(row) for row in rows]
    return {
        "sources_pool": whole,
        "sources_pool_count": len(whole),
        "max_sid": about.max_sid,
        "turn_ids": list(about.turn_ids),
        "last_activity_at": about.last_activity_at,
    }


def timeline_text(payload: Mapping[str, Any]) -> str:
    """The compact JSON that the row of a timeline says, at most `ROW_TEXT_BYTES`."""
    names = ("conversation_title", "conversation_started_at", "last_activity_at")
    said: Payload = {name: payload[name] for name in names}
    said["blocks_count"] = len(payload["indexes"])
    return _bounded(said, payload["sources_pool"], payload["turn_ids"])


def pool_text(payload: Mapping[str, Any]) -> str:
    """The same of a pool."""
    said: Payload = {"last_activity_at": payload["last_activity_at"], "max_sid": payload["max_sid"]}
    return _bounded(said, payload["sources_pool"], payload["turn_ids"], compact_row)


def stream_text(items: Sequence[Mapping[str, Any]]) -> str:
    """What the row of a stream says: how many items it has, and their names, the first ones that have room."""
    names: list[str] = []
    room = ROW_TEXT_BYTES // 2
    for item in items:
        name = str(item.get("artifact_name") or "")
        room -= 2 * len(name.encode()) + 3  # quotes in a name take a byte more each
        if room < 0:
            break
        names.append(name)
    return orjson.dumps({"items_count": len(items), "artifact_names": names}).decode()


def words(text: str) -> str:
    """What somebody said, as the text of a row: as much as a row may hold, and without what no index takes."""
    return text.replace("\0", " ").encode("utf-8", "replace")[:ROW_TEXT_BYTES].decode("utf-8", "ignore")


def compact_row(row: Row) -> Payload:
    """A source in a few words; what is empty is left out."""
    text = row.get("text") or row.get("content")
    compact = {
        "sid": row["sid"],
        "title": row.get("title"),
        "url": row.get("url"),
        "text": text[:COMPACT_TEXT_CHARS] if isinstance(text, str) else None,
        "published_time_iso": row.get("published_time_iso"),
        "favicon": row.get("favicon"),
    }
    return {name: value for name, value in compact.items() if value not in (None, "", [], {})}


def _bounded(
    said: Payload, rows: Sequence[Row], turn_ids: Sequence[str], told: Callable[[Row], Row] = lambda row: row
) -> str:
    """What is said with as many of the latest turns, then rows, as there is room for; that some are missing is said.

    A row is `told` in its words only where it is looked at: there may be many more.
    """
    said = {**said, "sources_pool_count": len(rows)}
    room = ROW_TEXT_BYTES - len(orjson.dumps({**said, "sources_pool": [], "turn_ids": [], "truncated": True}))
    turns, room = _latest(turn_ids, room)
    latest, _ = _latest(rows, room, told)
    is_whole = len(turns) == len(turn_ids) and len(latest) == len(rows)
    more: Payload = {"sources_pool": latest, "turn_ids": turns} | ({} if is_whole else {"truncated": True})
    return orjson.dumps(said | more).decode()


def _latest(items: Sequence[Any], room: int, told: Callable[[Any], Any] = lambda item: item) -> tuple[list[Any], int]:
    """The last items that fit into the room, and what they leave of it."""
    taken: list[Any] = []
    for item in map(told, reversed(items)):
        size = len(orjson.dumps(item)) + 1
        if size > room:
            break
        room -= size
        taken.append(item)
    return taken[::-1], room


REMEMBERED = ("cache_last_touch_at", "cache_last_ttl_seconds", "last_known_feedback_ts")
