"""A turn is unsaved from the first thing that becomes of it until a save that saw all of it."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.core.blocks import Defaults, tell
from sidecar.core.conversation_kinds import CHAT_USER, TURN_LOG
from sidecar.core.entries import (
    Answered,
    BlocksHidden,
    BlocksShown,
    BlockTold,
    CallBegun,
    Embedded,
    Entry,
    FileGone,
    FileSeen,
    Hosted,
    HostingWaived,
    HostingWanted,
    Noticed,
    Remembered,
    SourceSet,
    TurnBegun,
    TurnEnded,
    TurnSaved,
)
from sidecar.core.happened import Happened
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.saved_turns import WHOLE
from sidecar.core.state import State

PATH = "turn_1/files/a.txt"
IDENTITY = {"tenant": "acme", "project": "inn", "user_id": "ann", "user_type": "paid", "conversation_id": "c1"}


def block(turn: str = "turn_1") -> BlockTold:
    return BlockTold(tell({"type": "note", "text": "x"}, Defaults(turn, 1.0)))


def seen(path: str = PATH) -> FileSeen:
    return FileSeen(FileFact(path, StatKey(1, 2, 3, 4, 5), "a" * 64, "text/plain", kept=True), 1.0, "", "external")


def saved(turn: str = "turn_1", revision: int = 1, items: tuple[dict[str, Any], ...] = ()) -> TurnSaved:
    return TurnSaved(turn, revision, 7, items)


def folded(*entries: Entry) -> State:
    state = State()
    for seq, entry in enumerate(entries, start=1):
        state.apply(seq, entry, Happened())
    return state


@pytest.mark.parametrize(
    "later",
    [
        block(),
        seen(),
        FileGone(PATH),
        Hosted(PATH, "a" * 64, "file:///a", "ef:a", "a"),
        HostingWaived(PATH, "a" * 64, "gone"),
        BlocksHidden((0,), ""),
        BlocksShown((0,)),
        TurnEnded("turn_1", 2.0, "completed"),
        Embedded("turn_1", "conv.timeline.v1", (0.5,)),
    ],
)
def test_whatever_becomes_of_a_saved_turn_makes_it_unsaved(later: Entry) -> None:
    state = folded(block(), saved())
    assert state.saved.is_saved("turn_1")
    state.apply(3, later, Happened())
    assert state.saved.unsaved == {"turn_1": 3}
    assert not state.saved.is_saved("turn_1")


@pytest.mark.parametrize(
    "later",
    [
        block("turn_2"),
        seen("logs/a.log"),
        HostingWanted(PATH, "a" * 64),
        Noticed({"code": "x"}),
        CallBegun("tc_1", "turn_1", "exec", 1.0),
        Answered("r", "", {}),
        Remembered({"holder": "me"}),
    ],
)
def test_what_is_not_told_in_the_log_of_a_turn_leaves_it_saved(later: Entry) -> None:
    assert folded(block(), saved(), later).saved.is_saved("turn_1")


@pytest.mark.parametrize("later", [SourceSet({"sid": 1, "title": "a"}), Remembered({"conversation_title": "t"})])
def test_the_pool_and_the_title_are_the_whole_conversations(later: Entry) -> None:
    assert folded(block(), saved(), later).saved.unsaved == {WHOLE: 3}


def test_a_save_that_did_not_see_everything_leaves_the_turn_unsaved() -> None:
    state = folded(block(), block(), saved(revision=1))
    assert state.saved.unsaved == {"turn_1": 2}
    assert not state.saved.is_saved("turn_1")


def test_a_turn_that_was_never_saved_is_not_saved() -> None:
    assert not folded().saved.is_saved("turn_1")


def test_a_save_is_known_by_what_it_saw_and_where_it_is_recorded() -> None:
    assert folded(block(), saved()).saved.at("turn_1") == (1, 7, 2)


def test_blocks_taken_in_at_a_start_are_unsaved_as_if_they_were_told_one_by_one() -> None:
    heads = [("note", turn, 1.0, "text/markdown", "", "", 0) for turn in ("turn_1", "turn_2", "turn_1")]
    state = State()
    state.apply_blocks([4, 5, 9], heads, Happened())
    assert state.saved.unsaved == {"turn_1": 9, "turn_2": 5}


def test_the_turn_that_ended_last_is_known() -> None:
    state = folded(
        *(TurnBegun("turn_1", 1.0, ""), TurnEnded("turn_1", 2.0, "completed")),
        *(TurnBegun("turn_2", 3.0, ""), TurnEnded("turn_2", 4.0, "failed"), TurnBegun("turn_3", 5.0, "")),
    )
    assert state.saved.last_ended == "turn_2"
    turn = state.turns.durable["turn_2"]
    assert (turn.began, turn.ended_at, turn.status) == (3.0, 4.0, "failed")


def test_a_turn_saved_where_there_was_no_store_has_no_log() -> None:
    state = folded(block(), saved(items=({"kind": CHAT_USER},)))
    assert state.saved.unlogged == {"turn_1"}
    state.apply(3, saved(revision=2, items=({"kind": CHAT_USER}, {"kind": TURN_LOG})), Happened())
    assert state.saved.unlogged == set()


def test_a_turn_that_was_taken_over_has_its_log() -> None:
    assert folded(block(), saved()).saved.unlogged == set()


def test_a_later_save_without_a_log_leaves_the_log_that_is_there() -> None:
    state = folded(block(), saved(), saved(revision=2, items=({"kind": CHAT_USER},)))
    assert state.saved.unlogged == set()


def test_under_another_name_nothing_is_saved() -> None:
    state = folded(
        Remembered({"conversation": IDENTITY}), block(), saved(revision=2), Remembered({"conversation": IDENTITY})
    )
    assert state.saved.is_saved("turn_1")
    state.apply(5, Remembered({"conversation": {**IDENTITY, "conversation_id": "c2"}}), Happened())
    assert state.saved.unsaved == {"turn_1": 5, WHOLE: 5}
    assert state.saved.at("turn_1") is None
