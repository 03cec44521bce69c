"""The kinds of conversation artifacts: what is stored, what is embedded, and how rows are tagged (seed 004)."""

from __future__ import annotations

from typing import NamedTuple

TIMELINE = "conv.timeline.v1"
POOL = "conv:sources_pool"
TURN_LOG = "turn.log"
REACTION = "turn.log.reaction"
SUMMARY = "conv.range.summary"
THINKING = "conv.thinking.stream"
ARTIFACTS = "conv.artifacts.stream"
TIMELINE_TEXT = "conv.timeline_text.stream"
CHAT_USER = "chat:user"
CHAT_ASSISTANT = "chat:assistant"


class Kind(NamedTuple):
    """A row of seed 004's table. `embedded` means that a vector belongs to it, which the caller brings."""

    stored: bool
    embedded: bool
    tags: tuple[str, ...] = ()  # beyond `artifact:<kind>` and `turn:<turn_id>`


KINDS: dict[str, Kind] = {
    TIMELINE: Kind(stored=True, embedded=True),
    POOL: Kind(stored=True, embedded=True),
    TURN_LOG: Kind(stored=True, embedded=False, tags=("kind:turn.log",)),
    REACTION: Kind(stored=True, embedded=False),
    SUMMARY: Kind(stored=False, embedded=True),
    THINKING: Kind(stored=False, embedded=False),
    ARTIFACTS: Kind(stored=True, embedded=False, tags=("conversation", "stream")),
    TIMELINE_TEXT: Kind(stored=True, embedded=False, tags=("conversation", "stream")),
    CHAT_USER: Kind(stored=False, embedded=True, tags=("chat:user",)),
    CHAT_ASSISTANT: Kind(stored=False, embedded=True, tags=("chat:assistant",)),
}
"""The daemon's own kinds. `conv.thinking.stream` is made when it is fetched and has no row; `chat:*` are what the user
said and what the agent answered, so that a conversation is found by its words."""

WRITTEN_AT_TURN_END = (TURN_LOG, TIMELINE, POOL, ARTIFACTS, TIMELINE_TEXT, CHAT_USER, CHAT_ASSISTANT)


def tags_of(kind: str, turn_id: str, *more: str) -> tuple[str, ...]:
    """The tags of a row, without duplicates. They name its own turn alone, however long the conversation is."""
    own = KINDS[kind].tags if kind in KINDS else ()
    turn = (f"turn:{turn_id}",) if turn_id else ()
    return tuple(dict.fromkeys((f"artifact:{kind}", *turn, *own, *more)))
