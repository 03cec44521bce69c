"""Every use once, in the strongest way it is known, and what is on its way counts as known."""

from __future__ import annotations

import pytest

from sidecar.core import limits
from sidecar.core.entries import CallBegun, Entry, FileSeen, Used, decode
from sidecar.core.happened import Happened
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.state import State
from sidecar.core.uses import Uses

A, B = "fi:turn_1.files/a.txt", "fi:turn_1.files/b.txt"


def settled(uses: Uses, *nodes: str, call: str = "tc_1", by: str = "") -> Uses:
    uses.settle(call, nodes, "observed", by=by)
    return uses


def test_a_use_that_is_known_is_not_written_down_again() -> None:
    uses = settled(Uses(), A)
    assert uses.fresh("tc_1", [A, B, B], "observed") == (B,)
    assert uses.fresh("tc_2", [A], "observed") == (A,)


def test_a_use_on_its_way_to_the_journal_is_known() -> None:
    uses = Uses()
    uses.stage("tc_1", [A], "observed")
    assert uses.fresh("tc_1", [A, B], "observed") == (B,)
    assert uses.of == {}


def test_a_use_that_the_journal_refused_is_written_down_the_next_time() -> None:
    uses = Uses()
    uses.stage("tc_1", [A], "observed")
    uses.drop()
    assert uses.fresh("tc_1", [A], "observed") == (A,)


@pytest.mark.parametrize(
    ("first", "then", "news", "kept"),
    [
        ("declared", "observed", (A,), "observed"),
        ("observed", "declared", (), "observed"),
        ("declared", "declared", (), "declared"),
    ],
)
def test_what_was_seen_is_worth_more_than_what_was_said(
    first: str, then: str, news: tuple[str, ...], kept: str
) -> None:
    uses = Uses()
    uses.settle("tc_1", [A], first, by="")  # type: ignore[arg-type]
    assert uses.fresh("tc_1", [A], then) == news  # type: ignore[arg-type]
    uses.settle("tc_1", [A], then, by="")  # type: ignore[arg-type]
    assert uses.of["tc_1"] == {A: kept}


def test_only_so_many_uses_of_one_call_are_kept() -> None:
    uses = settled(Uses(), *(f"fi:turn_1.files/{at}" for at in range(limits.USES_PER_CALL - 1)))
    assert not uses.is_full("tc_1")
    assert uses.fresh("tc_1", [A, B], "observed") == (A,)
    settled(uses, A)
    assert uses.is_full("tc_1")
    assert uses.fresh("tc_1", [B], "observed") == ()
    assert uses.fresh("tc_2", [B], "observed") == (B,)


def test_what_says_itself_what_it_was_made_of_is_a_user_of_its_own() -> None:
    uses = settled(Uses(), A, by=B)
    assert (uses.of, uses.users) == ({B: {A: "observed"}}, {A: {B: None}})
    assert (uses.told_in, uses.made) == ({B: "tc_1"}, {"tc_1": (B,)})


def seen(path: str, call: str) -> FileSeen:
    fact = FileFact(path, StatKey(1, 2, 3, 4, 5), "a" * 64, "text/plain", kept=True)
    return FileSeen(fact, 1.0, call, "external")


def test_a_state_knows_its_uses_by_its_entries_alone() -> None:
    entries: list[Entry] = [
        CallBegun("tc_1", "turn_1", "exec", 1.0, watched=True),
        Used("tc_1", (A,), "observed"),
        seen("turn_1/files/b.txt", "tc_1"),
        seen("turn_1/files/c.txt", ""),
    ]
    state = State()
    for seq, entry in enumerate(entries, start=1):
        state.decide(entry, seq)
        state.apply(seq, entry, Happened())
    assert state.uses.of == {"tc_1": {A: "observed"}}
    assert state.uses.made == {"tc_1": (B,)}
    assert state.calls.durable["tc_1"].watched


def test_a_call_of_an_older_journal_was_not_watched() -> None:
    assert decode("call_begun", b'["tc_1","turn_1","exec",1.0]', b"") == CallBegun("tc_1", "turn_1", "exec", 1.0)
