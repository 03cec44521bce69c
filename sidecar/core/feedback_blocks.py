"""How reactions reach the agent: as blocks where its cache is cold, announced while it is warm (seed 004, Notes)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sidecar.core.limits import FEEDBACKS_ANNOUNCED
from sidecar.core.paths import MessagePath

Feedback = Mapping[str, Any]
"""A reaction as `feedback.feedback_of` gives it."""

TEXT_CHARS = 1000  # of a reaction that is announced; the block of it has all


def feedback_path(turn_id: str) -> str:
    return MessagePath(turn_id, "feedback.latest").logical


def feedback_block(feedback: Feedback) -> dict[str, Any]:
    """The block that tells of the latest reaction to a turn."""
    turn_id, origin = feedback["from_turn_id"], feedback.get("origin")
    meta = {name: feedback[name] for name in ("origin", "reaction", "confidence", "from_turn_id") if name in feedback}
    return {
        "type": "turn.feedback",
        "author": "user" if origin == "user" else "system",
        "turn_id": turn_id,
        "mime": "text/markdown",
        "path": feedback_path(turn_id),
        "text": str(feedback.get("text", "")),
        "meta": meta,
    }


def announced(feedbacks: Iterable[Feedback]) -> list[dict[str, Any]]:
    """The block that announces the newest reactions, newest first as they are given; none where there are none."""
    rows = [_row(one) for one in feedbacks][:FEEDBACKS_ANNOUNCED]
    if not rows:
        return []
    return [{"type": "announce", "author": "system", "text": "\n".join(["[NEW USER FEEDBACKS]", *rows])}]


def _row(feedback: Feedback) -> str:
    said = {
        "feedback_ts": feedback.get("ts", ""),
        "reaction": feedback.get("reaction", ""),
        "origin": feedback.get("origin", ""),
        "text": str(feedback.get("text", ""))[:TEXT_CHARS],
    }
    fields = (f"{name}={value}" for name, value in said.items())
    return _BREAKS.sub(" ", " | ".join([f"turn {feedback['from_turn_id']}", *fields]))


_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # a row stays a row, whatever somebody wrote
