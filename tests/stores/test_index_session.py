"""Both engines keep the port's promise about reading, and answer alike whatever was written before."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sidecar.core.index_rows import (
    Commit,
    Fence,
    Filters,
    IndexRow,
    LeaseLost,
    RowChanged,
    Scope,
    Scored,
    Written,
    WrongDimension,
)
from sidecar.core.ranking import words_of
from sidecar.ports import Index
from sidecar.stores.indexes import open_index
from tests.stores.index_contract import EVERYTHING, NOON, OTHER, SCOPE, names, put, put_vectors, reaction, row

pytestmark = pytest.mark.rule("store.sqlite-and-postgresql-answer-alike")


# Filters and order ------------------------------------------------------------------------------------------------


@pytest.fixture
def mixed(index: Index) -> Index:
    """Four rows, the later the number, the later the moment."""
    put(
        index,
        row("m1", kind="a", turn_id="t1", ts=NOON + 1, tags=("x",)),
        row("m2", kind="b", turn_id="t1", ts=NOON + 2, tags=("x", "y")),
        row("m3", kind="a", turn_id="t2", ts=NOON + 3, tags=("y",)),
        row("m4", kind="c", turn_id="", ts=NOON + 4),
    )
    put(index, row("m5", kind="a", turn_id="t1", ts=NOON, tags=("x", "y")), scope=OTHER)
    return index


FILTERS: list[tuple[Filters, list[str]]] = [
    (Filters(), ["m4", "m3", "m2", "m1"]),
    (Filters(kinds=("a",)), ["m3", "m1"]),
    (Filters(kinds=("a", "c", "a", "nothing")), ["m4", "m3", "m1"]),
    (Filters(tags=("x",)), ["m2", "m1"]),
    (Filters(tags=("x", "y")), ["m2"]),
    (Filters(tags=("y", "y")), ["m3", "m2"]),
    (Filters(tags=("x", "nothing")), []),
    (Filters(tags=("X",)), []),
    (Filters(turn_ids=("t2", "t1")), ["m3", "m2", "m1"]),
    (Filters(turn_ids=("",)), ["m4"]),
    (Filters(since=NOON + 3), ["m4", "m3"]),
    (Filters(until=NOON + 2), ["m2", "m1"]),
    (Filters(since=NOON + 2, until=NOON + 3), ["m3", "m2"]),
    (Filters(since=NOON + 3.000001), ["m4"]),
    (Filters(until=NOON + 0.999999), []),
    (Filters(since=float("-inf"), until=float("inf")), ["m4", "m3", "m2", "m1"]),
    (Filters(since=1e300), []),
    (Filters(but_kinds=("a", "nothing")), ["m4", "m2"]),
    (Filters(kinds=("a", "b"), but_kinds=("a",)), ["m2"]),
    (Filters(kinds=("a",), tags=("x",), turn_ids=("t1",), since=NOON, until=NOON + 9), ["m1"]),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERS, ids=str)
def test_rows_pass_when_all_that_is_asked_holds(mixed: Index, filters: Filters, expected: list[str]) -> None:
    assert names(mixed.rows(SCOPE, filters)) == expected


def test_the_end_of_a_range_is_a_number(index: Index) -> None:
    with pytest.raises(ValueError, match="is a number"):
        index.rows(SCOPE, Filters(since=float("nan")))


@pytest.mark.parametrize(
    ("limit", "expected"), [(0, []), (1, ["m4"]), (3, ["m4", "m3", "m2"]), (99, ["m4", "m3", "m2", "m1"])]
)
def test_a_limit_leaves_the_newest(mixed: Index, limit: int, expected: list[str]) -> None:
    assert names(mixed.rows(SCOPE, EVERYTHING, limit=limit)) == expected


def test_rows_of_one_moment_come_by_change_and_then_by_id(index: Index) -> None:
    put(
        index,
        row("b"),
        row("c"),
        row("a"),
        row("Z"),
        row("é"),
        row("\uffff"),
        row("\U00010000"),
        row("B-1"),
        row("B_1"),
    )
    put(index, row("d"))
    put(index, row("c"))
    expected = ["c", "d", "\U00010000", "\uffff", "é", "b", "a", "Z", "B_1", "B-1"]
    assert names(index.rows(SCOPE, EVERYTHING)) == expected


# The latest reactions ---------------------------------------------------------------------------------------------

latest_rule = pytest.mark.rule("store.latest-reaction-per-turn")


@latest_rule
def test_the_latest_reaction_of_each_turn_is_by_time(index: Index) -> None:
    put(
        index,
        reaction("late", turn="t1", ts=NOON + 5),
        reaction("only", turn="t2", ts=NOON + 9),
        row("log", ts=NOON + 99),
    )
    put(index, reaction("early", turn="t1", ts=NOON))
    put(index, reaction("elsewhere", turn="t3"), scope=OTHER)
    assert names(index.latest_reactions(SCOPE)) == ["only", "late"]


@latest_rule
def test_of_reactions_of_one_moment_the_last_to_arrive_is_the_latest(index: Index) -> None:
    for name in ("b", "c", "a"):
        index.react(SCOPE, reaction(name), alone=False)
    assert names(index.latest_reactions(SCOPE)) == ["a"]


@latest_rule
def test_of_reactions_that_arrived_together_the_greatest_id_is_the_latest(index: Index) -> None:
    put(index, reaction("b"), reaction("c"), reaction("a"))
    assert names(index.latest_reactions(SCOPE)) == ["c"]


@latest_rule
def test_latest_reactions_may_be_asked_of_some_turns(index: Index) -> None:
    put(index, *(reaction(f"r{n}", turn=f"t{n}", ts=NOON + n) for n in range(4)))
    assert names(index.latest_reactions(SCOPE, turn_ids=["t3", "t0", "t9"])) == ["r3", "r0"]


@latest_rule
def test_what_a_reader_has_seen_is_no_news(index: Index) -> None:
    put(
        index,
        reaction("r1", turn="t1", ts=NOON + 1),
        reaction("r2", turn="t2", ts=NOON + 2),
        reaction("r0", turn="t2", ts=NOON),
    )
    seen = [names(index.latest_reactions(SCOPE, since=NOON + known)) for known in (0, 1, 1.000001, 2)]
    assert seen == [["r2", "r1"], ["r2"], ["r2"], []]


# Words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("The Ärger of ﬁles", "arger"),
        ("The Ärger of ﬁles", "FILES"),
        ("snake_case_name x-ray", "snake_case_name"),
        ("snake_case_name x-ray", "ray"),
        ("12.5e3 at 2026-11-21", "5e3 2026"),
        ("mail me@example.org/a?b=c", "example org"),
        ("日本語 テキスト 한국어", "日本語"),
        ("naïve СТРАЖА", "naive стража"),
        ('it\'s "quoted" AND (not) NEAR:near*', "and near not"),
        ("w" * 300, "w" * 200),
        ("\U0001d400 ½ ١٢٣ a\u0301b", "a 1⁄2 áb"),
    ],
)
def test_words_are_found_whatever_their_dress(index: Index, text: str, asked: str) -> None:
    put(index, row("m1", text=text), row("m2", text="something else"))
    put(index, row("m3", text=text), scope=OTHER)
    assert names(index.matching(SCOPE, words_of(asked), EVERYTHING, limit=9)) == ["m1"]


@pytest.mark.parametrize("words", [[], [""], ["absent"], ["two words"], ['"'], ["a' | 'b"], ["*"], ["some"]])
def test_what_is_no_word_of_a_text_finds_nothing(index: Index, words: list[str]) -> None:
    put(index, row(text="something in here"))
    assert index.matching(SCOPE, words, EVERYTHING, limit=9) == []


def test_rows_with_all_words_are_preferred_to_any_with_some(index: Index) -> None:
    put(
        index,
        row("m1", text="budget"),
        row("m2", text="mars"),
        row("m3", text="the mars budget"),
        row("m4", text="else"),
    )
    found = names(index.matching(SCOPE, ["mars", "budget"], EVERYTHING, limit=9))
    some = names(index.matching(SCOPE, ["mars", "budget", "absent"], EVERYTHING, limit=9))
    assert (found, some[0], sorted(some)) == (["m3"], "m3", ["m1", "m2", "m3"])


def test_a_rare_word_counts_more_than_a_common_one(index: Index) -> None:
    put(index, *(row(f"m{n}", text=f"the common {n}") for n in range(9)), row("rare", text="a unicorn again"))
    found = index.matching(SCOPE, ["the", "unicorn"], EVERYTHING, limit=2)
    assert found[0].row.message_id == "rare"
    assert found[0].score > found[1].score


def test_a_short_row_counts_more_than_a_long_one(index: Index) -> None:
    filler = " ".join(f"w{n}" for n in range(500))
    put(index, row("long", text=f"needle {filler}", ts=NOON + 1), row("short", text="a needle"))
    assert names(index.matching(SCOPE, ["needle"], EVERYTHING, limit=9)) == ["short", "long"]


def test_equal_matches_come_newest_first_within_the_limit(index: Index) -> None:
    put(index, *(row(f"m{n}", text="word", ts=NOON + n) for n in range(5)))
    assert names(index.matching(SCOPE, ["word"], EVERYTHING, limit=2)) == ["m4", "m3"]
    assert index.matching(SCOPE, ["word"], EVERYTHING, limit=0) == []


@pytest.mark.parametrize(("filters", "expected"), FILTERS, ids=str)
def test_matching_and_nearest_look_at_rows_that_pass(index: Index, filters: Filters, expected: list[str]) -> None:
    rows = [
        row("m1", kind="a", turn_id="t1", ts=NOON + 1, tags=("x",), text="word"),
        row("m2", kind="b", turn_id="t1", ts=NOON + 2, tags=("x", "y"), text="word"),
        row("m3", kind="a", turn_id="t2", ts=NOON + 3, tags=("y",), text="word"),
        row("m4", kind="c", turn_id="", ts=NOON + 4, text="word"),
    ]
    index.commit(SCOPE, Commit(rows=[Written(one, [1.0]) for one in rows]))
    index.commit(OTHER, Commit(rows=[Written(one, [1.0]) for one in rows]))
    assert names(index.matching(SCOPE, ["word"], filters, limit=9)) == expected
    assert names(index.nearest(SCOPE, [1.0], filters, limit=9)) == expected


# Vectors ----------------------------------------------------------------------------------------------------------


def test_the_nearest_are_those_of_brute_force(index: Index) -> None:
    numbers = np.random.default_rng(5)
    vectors = numbers.normal(size=(300, 48))
    put_vectors(index, {f"m{n:03}": vector.tolist() for n, vector in enumerate(vectors)})
    put_vectors(index, {"m": [1.0] * 48}, scope=OTHER)
    for query in numbers.normal(size=(10, 48)):
        cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
        expected = [f"m{n:03}" for n in np.argsort(-cosines)[:20]]
        found = index.nearest(SCOPE, query.tolist(), EVERYTHING, limit=20)
        assert names(found) == expected
        assert [score for _, score in found] == pytest.approx(np.sort(cosines)[::-1][:20], abs=2e-6)


def test_more_vectors_than_are_read_at_once_are_compared(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.stores.sqlite_session.VECTORS_AT_ONCE", 7)
    put_vectors(index, {f"m{n:02}": [float(n), 30.0] for n in range(30)})
    assert names(index.nearest(SCOPE, [1.0, 0.0], EVERYTHING, limit=3)) == ["m29", "m28", "m27"]


def test_the_length_of_a_vector_makes_no_difference(index: Index) -> None:
    put_vectors(index, {"m1": [3.0, 4.0], "m2": [0.003, 0.004], "m3": [-300.0, -400.0], "m4": [4.0, -3.0]})
    found = index.nearest(SCOPE, [6.0, 8.0], EVERYTHING, limit=9)
    assert [(one.row.message_id, one.score) for one in found] == [("m2", 1.0), ("m1", 1.0), ("m4", 0.0), ("m3", -1.0)]


def test_equal_vectors_come_newest_first_within_the_limit(index: Index) -> None:
    vector = [0.1, 0.7, -0.3]
    rows = [Written(row(f"m{n}", ts=NOON + n % 3), vector) for n in range(9)]
    index.commit(SCOPE, Commit(rows=rows))
    assert names(index.nearest(SCOPE, vector, EVERYTHING, limit=4)) == ["m8", "m5", "m2", "m7"]
    assert index.nearest(SCOPE, vector, EVERYTHING, limit=0) == []


def test_without_vectors_nothing_is_near(index: Index) -> None:
    put(index, row())
    assert index.nearest(SCOPE, [1.0, 2.0], EVERYTHING, limit=9) == []


def test_a_vector_of_the_greatest_length_is_kept(index: Index) -> None:
    vector = [random.Random(n).random() for n in range(16_000)]
    put_vectors(index, {"m1": vector})
    assert [score for _, score in index.nearest(SCOPE, vector, EVERYTHING, limit=1)] == [1.0]


# Alike ------------------------------------------------------------------------------------------------------------

ids = st.sampled_from(["m1", "m2", "m3", "ü", "Z"])
turns = st.sampled_from(["t1", "t2", ""])
texts = st.lists(st.sampled_from(["Äpfel", "und", "birnen", "x_y", "don't", "\0", "日本", "⅓"]), max_size=5).map(
    " ".join
)
anything = st.one_of(texts, st.text(max_size=12))
kinds = st.sampled_from(["turn.log", "turn.log.reaction"])
moments = st.sampled_from([NOON, NOON + 0.000001, NOON + 1, -3.25])
tags = st.lists(st.sampled_from(["x", "y", "ä'\""]), max_size=3).map(tuple)
vectors = st.one_of(st.none(), st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=2, max_size=3))
holders = st.sampled_from(["one", "two"])
index_rows = st.builds(
    IndexRow, message_id=ids, kind=kinds, turn_id=turns, ts=moments, text=anything, tags=tags,
    origin=st.sampled_from(["user", "machine"]), key=st.sampled_from(["", "k1", "k2"]),
)  # fmt: skip
written = st.builds(Written, index_rows, vectors, st.one_of(st.none(), st.integers(0, 6)))
commits = st.builds(
    Commit,
    rows=st.lists(written, max_size=3),
    remove=st.lists(ids, max_size=2),
    next_block=st.one_of(st.none(), st.integers(0, 9)),
    facts=st.dictionaries(st.sampled_from(["a", "b"]), anything, max_size=2),
)
fences = st.one_of(st.none(), st.builds(Fence, holders, st.integers(0, 3)))
filters = st.builds(
    Filters,
    kinds=st.lists(kinds, max_size=2).map(tuple),
    tags=tags,
    turn_ids=st.lists(turns, max_size=2).map(tuple),
    since=st.one_of(st.none(), moments),
    until=st.one_of(st.none(), moments),
    but_kinds=st.lists(kinds, max_size=1).map(tuple),
)
steps = st.one_of(
    st.tuples(st.just("commit"), commits, fences),
    st.tuples(st.just("react"), index_rows, st.booleans()),
    st.tuples(st.just("embed"), ids, vectors.filter(bool)),
    st.tuples(st.just("claim"), holders, st.sampled_from([0, 600])),
    st.tuples(st.just("release"), holders),
    st.tuples(st.just("forget"), st.one_of(st.none(), turns)),
    st.tuples(st.just("look"), filters, st.lists(st.sampled_from(["apfel", "und", "x_y", "3"]), max_size=3), vectors),
)


@pytest.fixture(scope="module")
def both(postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Index, Index]]:
    database = postgres.database()
    opened = (open_index(str(tmp_path_factory.mktemp("alike") / "index.db")), open_index(postgres.url(database)))
    yield opened
    for index in opened:
        index.close()
    postgres.drop(database)


def outcome(index: Index, step: tuple[Any, ...]) -> Any:
    """What a step answers, or what it is refused with."""
    try:
        match step:
            case ("commit", commit, fence):
                return index.commit(SCOPE, commit, fence=fence)
            case ("react", one, alone):
                return index.react(SCOPE, one, alone=alone)
            case ("embed", name, vector):
                return index.embed(SCOPE, name, vector)
            case ("claim", holder, seconds):
                return replace(index.claim(SCOPE, holder, holder, seconds=seconds), expires_in=0)
            case ("release", holder):
                return index.release(SCOPE, holder)
            case ("forget", turn_id):
                return index.forget(SCOPE, turn_id=turn_id)
            case ("look", passing, words, vector):
                near = index.nearest(SCOPE, vector, passing, limit=3) if vector else []
                return [index.rows(SCOPE, passing, limit=4), near, index.matching(SCOPE, words, passing, limit=3)]
    except (LeaseLost, RowChanged, WrongDimension, ValueError) as refusal:
        return repr(refusal)


def everything(index: Index) -> list[Any]:
    known = [index.rows(SCOPE, EVERYTHING), index.facts(SCOPE), replace(index.standing(SCOPE), expires_in=0)]
    return [*known, index.latest_reactions(SCOPE), index.latest_reactions(SCOPE, turn_ids=["t1", ""], since=NOON)]


@settings(
    max_examples=200,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(story=st.lists(steps, min_size=1, max_size=10))
def test_whatever_is_done_both_engines_answer_alike(
    both: tuple[Index, Index], story: Sequence[tuple[Any, ...]]
) -> None:
    for index in both:
        index.forget(SCOPE)
    for step in story:
        one, other = (outcome(index, step) for index in both)
        assert one == other
    one, other = (everything(index) for index in both)
    assert one == other


ALONE = Scope("alone", "p", "u", "c")  # nothing but the one row of an example is in it


@settings(max_examples=200, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(text=st.text(max_size=60), asked=st.text(max_size=10))
def test_both_engines_find_the_words_that_are_there(both: tuple[Index, Index], text: str, asked: str) -> None:
    there = bool(set(words_of(asked)) & set(words_of(text.replace("\0", "\ufffd"))))
    for index in both:
        put(index, row("m1", text=text), scope=ALONE)
        found: list[Scored] = index.matching(ALONE, words_of(asked), EVERYTHING, limit=1)
        assert bool(found) == there
        own = words_of(text)
        assert names(index.matching(ALONE, own, EVERYTHING, limit=1)) == (["m1"] if own else [])
