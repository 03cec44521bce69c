"""Reactions to a turn: how a row says one, and how all of them are mirrored into the turn's log (seed 004, Notes).

The rows are what counts. Mirroring is a function of a turn log and all reactions of its turn, so whoever does it last,
having seen all rows, leaves the log right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from sidecar.core.blocks import iso
from sidecar.core.index_rows import IndexRow

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reaction:
    """What somebody thinks of a turn: `reaction` is `ok`, `not_ok` or `neutral`, `origin` `user` or `machine`."""

    turn_id: str
    reaction: str
    text: str
    confidence: float
    origin: str
    ts: float  # seconds since the epoch

    def record(self) -> Payload:
        """The reaction as it is stored, and as the text of its row."""
        return {
            "turn_id": self.turn_id,
            "text": self.text,
            "confidence": self.confidence,
            "ts": iso(self.ts),
            "reaction": self.reaction,
            "origin": self.origin,
        }


def feedback_of(row: IndexRow) -> Payload:
    """A reaction as a turn log lists it, from its row. What the row's text does not say is left out."""
    try:
        said = orjson.loads(row.text)
    except orjson.JSONDecodeError:
        said = {}
    said = said if isinstance(said, dict) else {}
    feedback = {
        "type": "feedback",
        "ts": said.get("ts") or iso(row.ts),
        "text": said.get("text", ""),
        "confidence": said.get("confidence", 1.0),
        "from_turn_id": row.turn_id,
        "origin": row.origin or said.get("origin"),
        "reaction": said.get("reaction"),
    }
    return {key: value for key, value in feedback.items() if value is not None}


def in_order(rows: Iterable[IndexRow]) -> list[IndexRow]:
    """Reactions oldest first: by time, ties by arrival; the last one is the latest."""
    return sorted(rows, key=lambda row: (row.ts, row.change, row.message_id))


def mirrored(payload: Mapping[str, Any], feedbacks: Sequence[Payload]) -> Payload:
    """A turn log with these feedbacks in it, oldest first, and no other; what else its `turn_log` lists stays."""
    known = payload.get("turn_log")
    entries = known.get("entries") if isinstance(known, dict) else None
    others = [one for one in entries or () if not (isinstance(one, dict) and one.get("area") == "feedback")]
    return {
        **payload,
        "turn_log": {"feedbacks": list(feedbacks), "entries": [*others, *map(_entry, feedbacks)]},
    }


def feedback_summary(feedbacks: Sequence[Payload]) -> Payload:
    """What the row of a turn log says of its feedback: how much there is, and the latest."""
    latest = feedbacks[-1]
    return {
        "count": len(feedbacks),
        "last_ts": latest.get("ts"),
        "last_reaction": latest.get("reaction"),
        "last_origin": latest.get("origin"),
        "last_text": str(latest.get("text", ""))[:TEXT_CHARS],
    }


def summary_with(text: str, feedbacks: Sequence[Payload]) -> str:
    """The text of a turn log's row with these feedbacks told in it; without any the member is not there."""
    try:
        said = orjson.loads(text)
    except orjson.JSONDecodeError:
        said = {}
    said = {key: value for key, value in said.items() if key != "feedback"} if isinstance(said, dict) else {}
    if feedbacks:
        said["feedback"] = feedback_summary(feedbacks)
    return orjson.dumps(said).decode()


def _entry(feedback: Payload) -> Payload:
    return {
        "t": str(feedback.get("ts", ""))[11:19],
        "area": "feedback",
        "msg": f"{feedback.get('text', '')} [{feedback.get('reaction', '')}]",
        "level": "info",
        "data": feedback,
    }


TEXT_CHARS = 500  # of a feedback, in a row that is read without its blob
