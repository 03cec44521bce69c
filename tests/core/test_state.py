"""State is the fold of its entries: decided first, durable later, forgotten when refused."""

from __future__ import annotations

import pytest

from sidecar.core.blocks import Defaults, tell
from sidecar.core.entries import (
    BlockTold,
    CallBegun,
    CallEnded,
    Entry,
    FileGone,
    FileSeen,
    Noticed,
    SourceSet,
    TurnBegun,
)
from sidecar.core.happened import Happened
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.notices import notice
from sidecar.core.state import State

PATH = "turn_1/files/a.txt"


def seen(sha256: str = "a" * 64) -> FileSeen:
    return FileSeen(FileFact(PATH, StatKey(1, 2, 3, 4, 5), sha256, "text/plain", kept=True), 1.0, "", "external")


def folded(*entries: Entry) -> State:
    state = State()
    for seq, entry in enumerate(entries, start=1):
        state.apply(seq, entry, Happened())
    state.recall()
    return state


def test_what_is_decided_is_not_seen_before_it_is_durable() -> None:
    state = State()
    state.decide(TurnBegun("turn_1", 1.0, ""), 1)
    state.decide(SourceSet({"sid": 1, "title": "a"}), 2)
    assert (state.turn_id, state.pool.highest) == ("turn_1", 1)
    assert (state.durable_turn_id, len(state.pool)) == ("", 0)


def test_what_was_refused_was_never_decided() -> None:
    state = State()
    for mark, entry in enumerate([TurnBegun("turn_1", 1.0, ""), CallBegun("tc_1", "turn_1", "exec", 1.0), seen()]):
        state.decide(entry, mark)
    state.drop()
    assert (state.turn_id, state.open_calls, state.arriving([PATH])) == ("", (), False)


def test_a_state_of_a_file_is_on_its_way_until_it_is_applied() -> None:
    state = State()
    for mark in (1, 2):
        state.decide(seen(), mark)
    state.apply(1, seen(), Happened())
    assert state.arriving([PATH])
    state.apply(2, seen(), Happened())
    assert not state.arriving([PATH])


def test_a_call_that_began_and_did_not_end_is_open_again() -> None:
    begun = [CallBegun(name, "turn_1", "exec", 1.0) for name in ("tc_1", "tc_2")]
    state = folded(*begun, CallEnded("tc_1", 2.0))
    assert [call.tool_call_id for call in state.open_calls] == ["tc_2"]


def test_what_nobody_claims_is_the_only_open_calls_until_it_ends() -> None:
    first, second = (CallBegun(name, "turn_1", "exec", 1.0) for name in ("tc_1", "tc_2"))
    said = Noticed(notice("attribution_ambiguous", path=PATH))
    assert folded(first, said, second).unclaimed == {"tc_1": {PATH: None}}
    assert folded(first, said, CallEnded("tc_1", 2.0), second).unclaimed == {}
    # As older versions wrote it: the end first.
    assert folded(first, CallEnded("tc_1", 2.0), said, second).unclaimed == {}


def test_blocks_are_numbered_in_order() -> None:
    told = [BlockTold(tell({"type": "x", "text": text}, Defaults("turn_1", 1.0))) for text in "ab"]
    state = State()
    assert [state.apply(seq, entry, Happened()) for seq, entry in enumerate(told, start=1)] == [0, 1]


@pytest.mark.parametrize("entry", [seen(), FileGone(PATH)])
def test_a_change_of_a_file_is_a_change_of_its_artifact(entry: Entry) -> None:
    state = folded(seen("b" * 64))
    happened = Happened()
    state.apply(2, entry, happened)
    assert list(happened.artifacts) == ["fi:turn_1.files/a.txt"]
    assert [change.revision for change in state.log.since(1, state.timeline)] == [2]


def test_a_run_of_blocks_is_applied_as_one_block_after_the_other() -> None:
    path = "fi:turn_1.files/a.md"
    told = [
        tell({"type": "react.tool.result", "text": f"{at}", **({"path": path} if at % 2 else {})}, Defaults(turn, 1.0))
        for at, turn in enumerate(("turn_1", "turn_1", "turn_2", "turn_2"))
    ]
    alone, together = State(), State()
    apart, at_once = Happened(), Happened()
    for seq, one in enumerate(told, start=1):
        alone.apply(seq, BlockTold(one), apart)
    together.apply_told(range(1, 5), told, at_once)
    assert (at_once.blocks, at_once.turns) == (apart.blocks, apart.turns) == ([0, 1, 2, 3], {"turn_1", "turn_2"})
    assert list(at_once.artifacts) == list(apart.artifacts) == [path]
    assert [*together.timeline.heads] == [*alone.timeline.heads]
    assert (together.revision, len(together.artifacts.get(path).versions)) == (4, 2)  # type: ignore[union-attr]
