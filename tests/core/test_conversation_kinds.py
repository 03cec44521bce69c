"""The table of what turns leave behind."""

from __future__ import annotations

import pytest

from sidecar.core.conversation_kinds import KINDS, tags_of

# Kind, stored, embedded, tags: the rows of seed 004's table.
SEED = {
    "conv.timeline.v1": (True, True, {"artifact:conv.timeline.v1", "turn:t"}),
    "conv:sources_pool": (True, True, {"artifact:conv:sources_pool", "turn:t"}),
    "turn.log": (True, False, {"kind:turn.log", "artifact:turn.log", "turn:t"}),
    "turn.log.reaction": (True, False, {"artifact:turn.log.reaction", "turn:t"}),
    "conv.range.summary": (False, True, {"artifact:conv.range.summary", "turn:t"}),
    "conv.thinking.stream": (False, False, {"artifact:conv.thinking.stream", "turn:t"}),
    "conv.artifacts.stream": (True, False, {"artifact:conv.artifacts.stream", "turn:t", "conversation", "stream"}),
    "conv.timeline_text.stream": (
        True,
        False,
        {"artifact:conv.timeline_text.stream", "turn:t", "conversation", "stream"},
    ),
}


@pytest.mark.rule("store.tags-name-artifact-and-turn")
@pytest.mark.parametrize("kind", SEED)
def test_each_kind_is_stored_embedded_and_tagged_as_the_seed_says(kind: str) -> None:
    stored, embedded, tags = SEED[kind]
    assert (KINDS[kind].stored, KINDS[kind].embedded) == (stored, embedded)
    assert set(tags_of(kind, "t")) == tags


def test_tags_come_once_and_a_row_without_a_turn_names_none() -> None:
    assert tags_of("note", "", "a", "artifact:note", "a") == ("artifact:note", "a")
