"""What is decided is found by the next decision, and forgotten when it was refused."""

from __future__ import annotations

import pytest

from sidecar.core.deciding import Deciding, path_of
from sidecar.core.entries import CallBegun, CallEnded, FileGone, FileSeen, Remembered, SourceSet, TurnBegun, TurnEnded
from sidecar.core.inventory import FileFact, StatKey

FACT = FileFact("turn_1/files/a.txt", StatKey(1, 2, 3, 4, 5), "0" * 64, "text/plain")


def decided(*entries: object) -> Deciding:
    state = Deciding()
    for mark, entry in enumerate(entries, start=1):
        state.decide(entry, mark)  # type: ignore[arg-type]
    return state


def test_a_turn_that_is_about_to_begin_is_the_open_one_for_the_next_decision_and_for_no_reader() -> None:
    state = decided(TurnBegun("turn_1", 1.0, ""))
    assert (state.turn_id, state.durable_turn_id) == ("turn_1", "")
    state.decide(TurnEnded("turn_1", 2.0, "completed"), 2)
    assert state.turn_id == ""
    assert state.has_turn("turn_1")


def test_a_call_is_open_until_its_end_is_decided_and_settling_until_that_is_durable() -> None:
    state = decided(CallBegun("tc_1", "turn_1", "exec", 1.0))
    assert [call.tool_call_id for call in state.open_calls] == ["tc_1"]
    state.decide(CallEnded("tc_1", 2.0), 2)
    assert (state.open_calls, state.settling) == ((), True)


@pytest.mark.rule("journal.a-refused-batch-changes-nothing")
def test_what_was_refused_was_never_decided() -> None:
    state = decided(
        TurnBegun("turn_1", 1.0, ""),
        CallBegun("tc_1", "turn_1", "exec", 1.0),
        SourceSet({"sid": 7, "source_type": "manual", "title": "a note"}),
        FileSeen(FACT, 1.0, "", "external"),
        Remembered({"title": "Hello"}),
    )
    assert state.arriving([FACT.path])
    assert state.pool.highest == 7
    state.drop()
    assert (state.turn_id, state.open_calls, state.pool.highest, state.latest_facts) == ("", (), 0, {})
    assert not state.arriving([FACT.path])
    assert not state.has_turn("turn_1")


def test_an_entry_about_a_file_names_it() -> None:
    assert path_of(FileGone(FACT.path)) == path_of(FileSeen(FACT, 1.0, "", "external")) == FACT.path
