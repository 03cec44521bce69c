"""Both engines keep the port's promise about writing: who may, what is expected, how changes are numbered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from sidecar.core.index_rows import (
    Commit,
    Fence,
    Filters,
    LeaseLost,
    RowChanged,
    Scope,
    Standing,
    Written,
    WrongDimension,
)  # fmt: skip
from sidecar.ports import Index
from sidecar.stores.indexes import open_index
from tests.daemon_process import eventually
from tests.stores.index_contract import (
    EVERYTHING,
    NOON,
    OTHER,
    SCOPE,
    Together,
    increment,
    names,
    put,
    put_vectors,
    reaction,
    row,
    run_together,
)  # fmt: skip

pytestmark = pytest.mark.rule("store.sqlite-and-postgresql-answer-alike")

FULL = row(
    "artifact-1",
    kind="conv:sources_pool",
    turn_id="turn_7",
    ts=1_700_000_000.123457,
    text='{"a":"ü 🙂\\n"}',
    tags=("b", "a", "turn:turn_7", "with blank", "quote\"'{},\\", "ü"),
    role="artifact",
    hosted_uri="s3://bucket/key",
    key="cb/key",
    rn="ef:a:b",
    origin="machine",
    user_type="paid",
    bundle_id="bundle",
    ttl_days=30,
)


# Rows -------------------------------------------------------------------------------------------------------------


def test_a_row_comes_back_as_it_was_put(index: Index) -> None:
    put(index, FULL)
    assert index.row(SCOPE, "artifact-1") == replace(FULL, change=1)


def test_a_row_that_is_not_there_is_none(index: Index) -> None:
    put(index, row())
    assert (index.row(SCOPE, "m2"), index.row(OTHER, "m1")) == (None, None)


def test_a_row_put_again_replaces_the_former(index: Index) -> None:
    put(index, row(text="old words", tags=("old", "both")), row("m2"))
    put(index, row(text="new", tags=("both", "new"), kind="other", ts=NOON + 1))
    assert index.row(SCOPE, "m1") == row(text="new", tags=("both", "new"), kind="other", ts=NOON + 1, change=2)
    assert names(index.rows(SCOPE, EVERYTHING)) == ["m1", "m2"]
    found = [names(index.rows(SCOPE, Filters(tags=(tag,)))) for tag in ("old", "both", "new")]
    words = [names(index.matching(SCOPE, [word], EVERYTHING, limit=9)) for word in ("old", "new")]
    assert (found, words) == ([[], ["m1"], ["m1"]], [[], ["m1"]])


def test_a_row_put_twice_in_one_commit_is_the_later_one(index: Index) -> None:
    assert put(index, row(text="a"), row(text="b")) == 1
    assert [one.text for one in index.rows(SCOPE, EVERYTHING)] == ["b"]


def test_one_id_in_two_conversations_are_two_rows(index: Index) -> None:
    put(index, row(text="here"))
    put(index, row(text="there"), scope=OTHER)
    put(index, row(text="elsewhere"), scope=SCOPE._replace(user_id="somebody"))
    read = [index.row(scope, "m1") for scope in (SCOPE, OTHER, SCOPE._replace(user_id="somebody"))]
    assert [one.text for one in read if one] == ["here", "there", "elsewhere"]


def test_rows_are_removed_by_id(index: Index) -> None:
    put(index, *(row(f"m{n}", text="word", tags=("t",)) for n in range(4)))
    assert index.commit(SCOPE, Commit(remove=["m1", "m3", "unknown"])) == 2
    tagged = names(index.rows(SCOPE, Filters(tags=("t",))))
    found = names(index.matching(SCOPE, ["word"], EVERYTHING, limit=9))
    assert (tagged, found) == (["m2", "m0"], ["m2", "m0"])


def test_a_row_may_be_removed_and_put_in_one_commit(index: Index) -> None:
    put(index, row(text="old"))
    index.commit(SCOPE, Commit(rows=[Written(row(text="new"))], remove=["m1"]))
    assert [one.text for one in index.rows(SCOPE, EVERYTHING)] == ["new"]


def test_its_change_and_whether_it_has_a_vector_are_not_for_the_giver_to_say(index: Index) -> None:
    put(index, row(change=77, has_embedding=True))
    assert index.row(SCOPE, "m1") == row(change=1)


def test_tags_are_without_duplicates(index: Index) -> None:
    put(index, row(tags=("b", "a", "b")))
    found = index.row(SCOPE, "m1")
    assert found is not None
    assert found.tags == ("b", "a")


@pytest.mark.parametrize("ts", [0.0, -1.5, 0.000001, 1_700_000_000.999999, 4_102_444_800.000001, 253_402_300_799.0])
def test_moments_are_exact_to_the_microsecond(index: Index, ts: float) -> None:
    put(index, row(ts=ts))
    assert [one.ts for one in index.rows(SCOPE, Filters(since=ts, until=ts))] == [ts]


@pytest.mark.parametrize("ts", [float("nan"), float("inf"), float("-inf"), 1e12, -1e12])
def test_moments_that_cannot_be_are_refused(index: Index, ts: float) -> None:
    with pytest.raises(ValueError, match="years 1 to 9999"):
        put(index, row(ts=ts))


TEXTS = [
    "",
    " ",
    "ü 🙂 \U0010ffff \u200d",
    "a\r\n\tb\x01\x7f",
    "%s ? :a $1 {}",
    "'; DROP TABLE conv_messages; --",
    "\\",
    "\ufffd",
]


@pytest.mark.parametrize("text", [*TEXTS, "x" * 300_000])
def test_any_text_is_kept(index: Index, text: str) -> None:
    put(index, row(text=text))
    assert [one.text for one in index.rows(SCOPE, EVERYTHING)] == [text]


@pytest.mark.parametrize(
    ("given", "kept"), [("a\0b", "a\ufffdb"), ("a\ud800b", "a\ufffdb"), ("\ud83d\ude42", "🙂"), ("\udc00", "\ufffd")]
)
def test_what_an_engine_cannot_hold_is_replaced_in_a_text(index: Index, given: str, kept: str) -> None:
    put(index, row(text=given), facts={"f": given})
    assert ([one.text for one in index.rows(SCOPE, EVERYTHING)], index.facts(SCOPE)) == ([kept], {"f": kept})


@pytest.mark.parametrize("bad", ["a\0b", "\ud800"])
@pytest.mark.parametrize("field", ["message_id", "kind", "turn_id", "key", "rn", "hosted_uri", "origin", "bundle_id"])
def test_what_an_engine_cannot_hold_is_refused_in_a_name(index: Index, field: str, bad: str) -> None:
    with pytest.raises(ValueError, match="neither U\\+0000 nor half"):
        put(index, replace(row(), **{field: bad}))
    assert index.standing(SCOPE) == Standing()


@pytest.mark.parametrize("bad", ["a\0b", "\ud800"])
def test_a_question_about_an_impossible_name_finds_nothing(index: Index, bad: str) -> None:
    put(index, row())
    asked = [
        index.row(SCOPE, bad),
        index.rows(SCOPE, Filters(tags=(bad,))),
        index.rows(SCOPE, Filters(kinds=(bad,))),
        index.rows(SCOPE, Filters(turn_ids=(bad,))),
        index.latest_reactions(SCOPE, turn_ids=[bad]),
        index.matching(SCOPE, [bad], EVERYTHING, limit=9),
        index.forget(SCOPE, turn_id=bad),
        index.embed(SCOPE, bad, [1.0]),
    ]
    assert not any(asked)
    assert names(index.rows(SCOPE, Filters(turn_ids=(bad, "turn_1")))) == ["m1"]
    index.commit(SCOPE, Commit(remove=[bad]))
    index.release(SCOPE, bad)


@pytest.mark.parametrize("field", Scope._fields)
def test_a_conversation_with_an_impossible_name_is_refused(index: Index, field: str) -> None:
    scope = SCOPE._replace(**{field: "a\0b"})
    asked: list[Callable[[], Any]] = [
        lambda: index.standing(scope),
        lambda: index.rows(scope, EVERYTHING),
        lambda: index.facts(scope),
        lambda: put(index, row(), scope=scope),
        lambda: index.claim(scope, "a", "a", seconds=1),
        lambda: index.changed(scope, 0, seconds=0),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match="neither U\\+0000 nor half"):
            ask()


# Changes ----------------------------------------------------------------------------------------------------------


def test_a_conversation_that_nobody_knows_stands_at_zero(index: Index) -> None:
    assert (index.standing(SCOPE), index.facts(SCOPE), index.rows(SCOPE, EVERYTHING)) == (Standing(), {}, [])


def test_changes_are_numbered_from_one_and_by_conversation(index: Index) -> None:
    numbers = [put(index, row()), put(index, row("m2")), put(index, row(), scope=OTHER), put(index)]
    numbers += [index.react(SCOPE, reaction("r1"), alone=False)[0]]
    assert numbers == [1, 2, 1, 3, 4]
    assert (index.standing(SCOPE).change, index.standing(OTHER).change) == (4, 1)


def test_rows_after_a_change_are_those_that_it_or_later_ones_wrote(index: Index) -> None:
    put(index, row("m1"), row("m2"))
    put(index, row("m3"))
    put(index, row("m1"))
    seen = [sorted(names(index.rows(SCOPE, EVERYTHING, after_change=known))) for known in range(4)]
    assert seen == [["m1", "m2", "m3"], ["m1", "m3"], ["m1"], []]


def test_next_block_never_goes_back(index: Index) -> None:
    stands = []
    for given in (5, 3, None, 7, 0):
        put(index, next_block=given)
        stands.append(index.standing(SCOPE).next_block)
    assert stands == [5, 5, 5, 7, 7]


def test_facts_are_kept_by_name(index: Index) -> None:
    put(index, facts={"a": "1", "b": "2"})
    put(index, facts={"b": "ü", "": ""})
    put(index, scope=OTHER, facts={"c": "3"})
    assert index.facts(SCOPE) == {"a": "1", "b": "ü", "": ""}


def test_a_row_that_is_not_as_expected_refuses_the_whole_commit(index: Index) -> None:
    put(index, row("m1"))
    put(index, row("m1", text="later"))
    commit = Commit(rows=[Written(row("m2")), Written(row("m1"), expected=1)], next_block=9, facts={"a": "b"})
    with pytest.raises(RowChanged) as refusal:
        index.commit(SCOPE, commit)
    assert refusal.value.message_id == "m1"
    assert (names(index.rows(SCOPE, EVERYTHING)), index.facts(SCOPE)) == (["m1"], {})
    assert index.standing(SCOPE) == Standing(change=2)


def test_a_row_as_expected_is_put(index: Index) -> None:
    index.commit(SCOPE, Commit(rows=[Written(row(text="a"), expected=0)]))
    index.commit(SCOPE, Commit(rows=[Written(row(text="b"), expected=1)]))
    assert [(one.text, one.change) for one in index.rows(SCOPE, EVERYTHING)] == [("b", 2)]


@pytest.mark.parametrize("expected", [0, 2, 7])
def test_what_is_not_expected_is_refused(index: Index, expected: int) -> None:
    put(index, row())
    with pytest.raises(RowChanged):
        index.commit(SCOPE, Commit(rows=[Written(row(text="b"), expected=expected)]))


def test_a_row_that_is_gone_is_not_as_expected(index: Index) -> None:
    put(index, row())
    put(index, remove=["m1"])
    with pytest.raises(RowChanged):
        index.commit(SCOPE, Commit(rows=[Written(row(), expected=1)]))


def test_changes_have_no_gap_under_eight_threads(index: Index) -> None:
    with ThreadPoolExecutor(8) as threads:
        numbers = list(threads.map(lambda n: put(index, row(f"m{n}")), range(80)))
    assert sorted(numbers) == list(range(1, 81))
    assert {f"m{n}": number for n, number in enumerate(numbers)} == {
        one.message_id: one.change for one in index.rows(SCOPE, EVERYTHING)
    }


def test_compare_and_set_loses_nothing_under_eight_threads(index: Index) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: increment(index, "counter"), range(40)))
    assert [one.text for one in index.rows(SCOPE, EVERYTHING)] == ["40"]


def test_changes_have_no_gap_under_four_processes(location: str) -> None:
    answers = run_together(location, "commit", number=25)
    assert sorted(chain(*answers)) == list(range(1, 101))


def test_compare_and_set_loses_nothing_under_four_processes(index: Index, location: str) -> None:
    run_together(location, "increment", number=10)
    assert [one.text for one in index.rows(SCOPE, EVERYTHING)] == ["40"]


# The lease --------------------------------------------------------------------------------------------------------


def test_a_free_lease_is_taken(index: Index) -> None:
    standing = index.claim(SCOPE, "one", "daemon one", seconds=60)
    assert (standing.holder, standing.label, standing.generation) == ("one", "daemon one", 1)
    assert 50 < standing.expires_in <= 60
    assert replace(index.standing(SCOPE), expires_in=0) == replace(standing, expires_in=0)


def test_a_held_lease_stays_with_its_holder(index: Index) -> None:
    index.claim(SCOPE, "one", "daemon one", seconds=60)
    standing = index.claim(SCOPE, "two", "daemon two", seconds=60)
    assert (standing.holder, standing.label, standing.generation) == ("one", "daemon one", 1)


def test_a_holder_goes_on_holding(index: Index) -> None:
    index.claim(SCOPE, "one", "old label", seconds=10)
    standing = index.claim(SCOPE, "one", "new label", seconds=1000)
    assert (standing.label, standing.generation, standing.expires_in > 900) == ("new label", 1, True)


def test_an_expired_lease_is_free_and_a_new_holder_is_a_new_generation(index: Index) -> None:
    index.claim(SCOPE, "one", "", seconds=0)
    free = index.standing(SCOPE)
    taken = index.claim(SCOPE, "two", "", seconds=60)
    assert (free.holder, free.expires_in, free.generation) == ("", 0.0, 1)
    assert (taken.holder, taken.generation) == ("two", 2)


def test_a_lease_from_before_the_clock_was_set_back_is_cut_to_its_length(index: Index) -> None:
    index.claim(SCOPE, "dead", "a", seconds=86400.0)
    standing = index.claim(SCOPE, "next", "b", seconds=0.05)
    assert standing.holder == "dead"
    assert 0 < standing.expires_in <= 0.05
    eventually(lambda: index.claim(SCOPE, "next", "b", seconds=30.0).holder == "next")


def test_the_same_holder_after_its_lease_expired_is_no_new_generation(index: Index) -> None:
    index.claim(SCOPE, "one", "", seconds=0)
    assert index.claim(SCOPE, "one", "", seconds=60).generation == 1


def test_a_released_lease_is_free(index: Index) -> None:
    index.claim(SCOPE, "one", "", seconds=60)
    index.release(SCOPE, "one")
    assert index.standing(SCOPE).holder == ""
    assert index.claim(SCOPE, "two", "", seconds=60).generation == 2


def test_nobody_releases_the_lease_of_another(index: Index) -> None:
    index.claim(SCOPE, "one", "", seconds=60)
    index.release(SCOPE, "two")
    index.release(OTHER, "one")
    assert index.standing(SCOPE).holder == "one"


def test_taking_a_lease_is_no_change(index: Index) -> None:
    put(index, row())
    index.claim(SCOPE, "one", "", seconds=60)
    index.release(SCOPE, "one")
    assert index.standing(SCOPE).change == 1


def test_somebody_holds_a_lease(index: Index) -> None:
    with pytest.raises(ValueError, match="somebody"):
        index.claim(SCOPE, "", "", seconds=60)


def test_the_holder_writes(index: Index) -> None:
    index.claim(SCOPE, "one", "", seconds=60)
    assert index.commit(SCOPE, Commit(rows=[Written(row())]), fence=Fence("one", 1)) == 1


def test_the_holder_writes_as_long_as_nobody_else_has_taken_an_expired_lease(index: Index) -> None:
    index.claim(SCOPE, "one", "", seconds=0)
    assert index.commit(SCOPE, Commit(), fence=Fence("one", 1)) == 1


@pytest.mark.parametrize("fence", [Fence("one", 1), Fence("two", 1), Fence("three", 2), Fence("two", 3), Fence("", 0)])
def test_a_fence_keeps_everybody_else_out(index: Index, fence: Fence) -> None:
    index.claim(SCOPE, "one", "", seconds=0)
    index.claim(SCOPE, "two", "", seconds=60)
    with pytest.raises(LeaseLost):
        index.commit(SCOPE, Commit(rows=[Written(row(), expected=5)], next_block=3), fence=fence)
    assert (index.standing(SCOPE).change, index.rows(SCOPE, EVERYTHING)) == (0, [])


def test_a_released_lease_keeps_its_former_holder_out(index: Index) -> None:
    index.claim(SCOPE, "one", "", seconds=60)
    index.release(SCOPE, "one")
    with pytest.raises(LeaseLost):
        index.commit(SCOPE, Commit(), fence=Fence("one", 1))


def test_who_takes_a_lease_again_that_he_gave_up_was_not_followed_by_anybody(index: Index) -> None:
    index.claim(SCOPE, "one", "", seconds=60)
    index.release(SCOPE, "one")
    assert index.standing(SCOPE).holder == ""
    assert index.claim(SCOPE, "one", "", seconds=60).generation == 1
    assert index.commit(SCOPE, Commit(), fence=Fence("one", 1)) == 1
    index.release(SCOPE, "one")
    assert index.claim(SCOPE, "two", "", seconds=60).generation == 2


def test_one_of_four_processes_takes_the_lease(index: Index, location: str) -> None:
    holders = run_together(location, "claim")
    assert len(set(holders)) == 1
    standing = index.standing(SCOPE)
    assert (standing.holder, standing.generation) == (holders[0], 1)


# Reactions --------------------------------------------------------------------------------------------------------


def test_a_reaction_alone_takes_the_place_of_the_others_of_its_origin(index: Index) -> None:
    put(index, reaction("m", origin="machine"), reaction("elsewhere", turn="turn_2", origin="user"), row("log"))
    index.react(SCOPE, reaction("u1", origin="user", key="k1"), alone=True)
    change, gone = index.react(SCOPE, reaction("u2", origin="user", ts=NOON + 1), alone=True)
    assert (change, gone) == (3, [reaction("u1", origin="user", key="k1", change=2)])
    assert sorted(names(index.rows(SCOPE, EVERYTHING))) == ["elsewhere", "log", "m", "u2"]


def test_reactions_that_are_not_alone_accumulate(index: Index) -> None:
    for n in range(3):
        assert index.react(SCOPE, reaction(f"m{n}"), alone=False) == (n + 1, [])
    assert len(index.rows(SCOPE, EVERYTHING)) == 3


def test_the_same_reaction_again_changes_nothing_but_the_number(index: Index) -> None:
    index.react(SCOPE, reaction("u", origin="user", key="k"), alone=True)
    assert index.react(SCOPE, reaction("u", origin="user", key="k"), alone=True) == (2, [])
    assert names(index.rows(SCOPE, EVERYTHING)) == ["u"]


@pytest.mark.rule("store.concurrent-feedback-loses-nothing")
def test_reactions_of_four_processes_are_all_there(index: Index, location: str) -> None:
    answers = run_together(location, "react", number=15)
    assert sorted(chain(*answers)) == list(range(1, 61))
    assert len(index.rows(SCOPE, EVERYTHING)) == 60


@pytest.mark.rule("store.concurrent-feedback-loses-nothing")
def test_of_lone_reactions_of_four_processes_each_goes_once_and_one_stays(index: Index, location: str) -> None:
    gone = list(chain(*chain(*run_together(location, "react alone", number=10))))
    left = names(index.rows(SCOPE, EVERYTHING))
    assert (len(left), sorted([*gone, *left])) == (1, sorted(f"{who}-{n}" for who in range(4) for n in range(10)))


# Vectors ----------------------------------------------------------------------------------------------------------


def test_a_row_says_whether_it_has_a_vector(index: Index) -> None:
    index.commit(SCOPE, Commit(rows=[Written(row("m1"), [1.0, 0.0]), Written(row("m2"))]))
    assert {one.message_id: one.has_embedding for one in index.rows(SCOPE, EVERYTHING)} == {"m1": True, "m2": False}


def test_a_row_put_without_a_vector_keeps_the_one_it_has(index: Index) -> None:
    put_vectors(index, {"m1": [1.0, 0.0]})
    put(index, row(text="new"))
    ((found, score),) = index.nearest(SCOPE, [1.0, 0.0], EVERYTHING, limit=9)
    assert (found.text, score) == ("new", 1.0)


def test_a_new_vector_replaces_the_former(index: Index) -> None:
    put_vectors(index, {"m1": [1.0, 0.0]})
    put_vectors(index, {"m1": [0.0, 1.0]})
    assert [score for _, score in index.nearest(SCOPE, [1.0, 0.0], EVERYTHING, limit=9)] == [0.0]


def test_the_vector_of_a_removed_row_is_gone(index: Index) -> None:
    put_vectors(index, {"m1": [1.0, 0.0], "m2": [1.0, 0.0]})
    put(index, remove=["m1"])
    put(index, row("m1"))
    assert names(index.nearest(SCOPE, [1.0, 0.0], EVERYTHING, limit=9)) == ["m2"]


def test_a_vector_is_given_to_a_row_that_is_there(index: Index) -> None:
    put(index, row("m1"), row("m2"))
    assert (index.embed(SCOPE, "m1", [3.0, 4.0]), index.embed(SCOPE, "nobody", [3.0, 4.0])) == (True, False)
    assert index.embed(OTHER, "m1", [3.0, 4.0]) is False
    assert names(index.nearest(SCOPE, [3.0, 4.0], EVERYTHING, limit=9)) == ["m1"]


def test_giving_a_vector_is_a_change_of_the_row(index: Index) -> None:
    put(index, row())
    index.embed(SCOPE, "m1", [1.0])
    assert index.row(SCOPE, "m1") == row(change=2, has_embedding=True)
    assert index.standing(SCOPE).change == 2


@pytest.mark.rule("store.wrong-vector-dimension-is-refused")
def test_a_vector_of_another_length_is_refused(index: Index) -> None:
    put_vectors(index, {"m1": [1.0, 2.0, 3.0]})
    put(index, row(), scope=OTHER)
    asked: list[Callable[[], Any]] = [
        lambda: put_vectors(index, {"m2": [1.0, 2.0]}),
        lambda: put_vectors(index, {"m2": [1.0, 2.0]}, scope=OTHER),
        lambda: index.embed(SCOPE, "m1", [1.0]),
        lambda: index.nearest(SCOPE, [1.0, 2.0, 3.0, 4.0], EVERYTHING, limit=1),
        lambda: index.nearest(OTHER, [1.0], EVERYTHING, limit=1),
    ]
    for ask in asked:
        with pytest.raises(WrongDimension) as refusal:
            ask()
        assert refusal.value.expected == 3
    assert (index.standing(SCOPE).change, index.standing(OTHER).change) == (1, 1)


def test_vectors_of_two_lengths_do_not_come_in_together(index: Index) -> None:
    with pytest.raises(WrongDimension):
        put_vectors(index, {"m1": [1.0, 2.0], "m2": [1.0]})
    assert index.standing(SCOPE) == Standing()


def test_when_the_last_vector_is_gone_another_length_may_come(index: Index) -> None:
    put_vectors(index, {"m1": [1.0, 2.0]})
    index.forget(SCOPE)
    put_vectors(index, {"m1": [1.0, 2.0, 3.0]})
    assert names(index.nearest(SCOPE, [1.0, 2.0, 3.0], EVERYTHING, limit=1)) == ["m1"]


@pytest.mark.parametrize("vector", [[], [0.0, 0.0], [1.0, float("nan")], [1.0, float("inf")], [1.0] * 16_001])
def test_a_vector_without_a_direction_is_refused(index: Index, vector: list[float]) -> None:
    put(index, row())
    asked: list[Callable[[], Any]] = [
        lambda: put_vectors(index, {"m1": vector}),
        lambda: index.embed(SCOPE, "m1", vector),
        lambda: index.nearest(SCOPE, vector, EVERYTHING, limit=1),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match="a vector "):
            ask()
    assert index.standing(SCOPE).change == 1


@pytest.mark.parametrize("vector", [[1e-300, 2e-300], [1e300, 2e300], [-5e-324, -1e-323]])
def test_vectors_near_the_ends_of_numbers_have_a_direction(index: Index, vector: list[float]) -> None:
    put_vectors(index, {"m1": vector})
    assert [score for _, score in index.nearest(SCOPE, vector, EVERYTHING, limit=1)] == [1.0]


def test_of_first_vectors_of_two_lengths_at_once_one_length_wins(index: Index) -> None:
    both = threading.Barrier(2)

    def write(length: int) -> bool:
        both.wait()
        try:
            put_vectors(index, {f"m{length}": [1.0] * length}, scope=SCOPE._replace(conversation_id=str(length)))
        except WrongDimension:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(write, (2, 3))) == [False, True]


# Forgetting -------------------------------------------------------------------------------------------------------


def three_turns(index: Index) -> None:
    rows = [row(f"m{n}", turn_id=f"turn_{n % 3}", key=f"key{n}" if n < 4 else "", text="word") for n in range(6)]
    index.claim(SCOPE, "one", "", seconds=60)
    put(index, *rows, next_block=9, facts={"a": "b"})


def test_a_turn_is_forgotten_and_its_keys_are_told(index: Index) -> None:
    three_turns(index)
    assert index.forget(SCOPE, turn_id="turn_0") == ["key0", "key3"]
    assert sorted(names(index.rows(SCOPE, EVERYTHING))) == ["m1", "m2", "m4", "m5"]
    assert len(index.matching(SCOPE, ["word"], EVERYTHING, limit=9)) == 4
    standing = index.standing(SCOPE)
    assert (standing.change, standing.next_block, standing.holder, index.facts(SCOPE)) == (2, 9, "one", {"a": "b"})


def test_forgetting_a_turn_that_nobody_knows_is_no_change(index: Index) -> None:
    three_turns(index)
    assert (index.forget(SCOPE, turn_id="nobody"), index.standing(SCOPE).change) == ([], 1)


def test_a_conversation_is_forgotten_with_its_standing(index: Index) -> None:
    three_turns(index)
    put(index, row(), scope=OTHER)
    assert index.forget(SCOPE) == ["key0", "key1", "key2", "key3"]
    assert (index.standing(SCOPE), index.facts(SCOPE), index.rows(SCOPE, EVERYTHING)) == (Standing(), {}, [])
    assert names(index.rows(OTHER, EVERYTHING)) == ["m1"]
    assert (index.forget(SCOPE), put(index, row())) == ([], 1)


# Waiting ----------------------------------------------------------------------------------------------------------


def test_what_has_changed_already_is_told_at_once(index: Index) -> None:
    put(index, row())
    assert (index.changed(SCOPE, 0, seconds=60), index.changed(SCOPE, 1, seconds=0)) == (True, False)


def test_nothing_has_changed_when_the_time_is_over(index: Index) -> None:
    put(index, row(), scope=OTHER)
    assert (index.changed(SCOPE, 0, seconds=0.05), index.changed(OTHER, 1, seconds=0.05)) == (False, False)


@pytest.mark.parametrize("what", ["commit", "react", "embed", "forget"])
def test_every_change_wakes_who_waits(index: Index, location: str, what: str) -> None:
    other = open_index(location)
    put(index, row("m1"))
    with ThreadPoolExecutor(1) as waiter:
        waiting = waiter.submit(index.changed, SCOPE, 1, seconds=60)
        match what:
            case "commit":
                put(other, row("m2"))
            case "react":
                other.react(SCOPE, reaction("r"), alone=True)
            case "embed":
                other.embed(SCOPE, "m1", [1.0])
            case _:
                other.forget(SCOPE, turn_id="turn_1")
        assert waiting.result(30) is True
    other.close()


def test_who_waits_in_another_process_is_woken(index: Index, location: str) -> None:
    together = Together(location, "wait", programs=2, number=1)
    put(index, row())
    together.go()
    put(index, row())
    assert together.answers() == [True, True]


def test_changes_of_others_do_not_end_the_waiting(index: Index) -> None:
    with ThreadPoolExecutor(1) as waiter:
        waiting = waiter.submit(index.changed, SCOPE, 0, seconds=60)
        for _ in range(20):
            put(index, row(), scope=OTHER)
        assert not waiting.done()
        put(index, row())
        assert waiting.result(30) is True


def test_one_change_after_the_other_is_told(index: Index) -> None:
    """Whoever waits again and again misses none, however they fall."""
    seen: list[int] = []

    def follow() -> None:
        known = 0
        while known < 50:
            assert index.changed(SCOPE, known, seconds=60)
            known = index.standing(SCOPE).change
            seen.append(known)

    with ThreadPoolExecutor(1) as waiter:
        following = waiter.submit(follow)
        for _ in range(50):
            put(index, row())
        following.result(60)
    assert (seen[-1], seen) == (50, sorted(set(seen)))


def test_closing_ends_the_waiting(index: Index) -> None:
    put(index, row())
    with ThreadPoolExecutor(1) as waiter:
        waiting = waiter.submit(index.changed, SCOPE, 1, seconds=600)
        index.close()
        assert waiting.result(30) is False
