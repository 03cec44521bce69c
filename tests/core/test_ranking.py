"""Words, fusion and snippets of a search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.index_rows import IndexRow, Scored
from sidecar.core.ranking import (
    SNIPPET_CHARS,
    STRETCH_CHARS,
    WORD_CHARS,
    WORDS,
    best_per_turn,
    fused,
    place_of,
    readable,
    snippet,
    words_of,
)


def row(message_id: str, turn_id: str = "", ts: float = 0.0) -> IndexRow:
    return IndexRow(message_id=message_id, kind="note", turn_id=turn_id, ts=ts, text="", tags=())


def ids(ranking: list[Scored]) -> list[str]:
    return [hit.row.message_id for hit in ranking]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("  …!? ", []),
        ("one two ONE", ["one", "two"]),
        ("Ärger in der Straße", ["arger", "in", "der", "strasse"]),
        ("ﬁle №5 ²", ["file", "no5", "2"]),
        ("İstanbul", ["istanbul"]),
        ("हिन्दी", ["हनद"]),
        ("turn_1.files/a-b", ["turn_1", "files", "a", "b"]),
        ("x" * 100, ["x" * WORD_CHARS]),
    ],
)
def test_words_are_the_same_to_a_reader_whatever_their_case_and_accents(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_only_so_many_words_are_told() -> None:
    assert words_of(" ".join(f"w{n}" for n in range(WORDS + 10))) == [f"w{n}" for n in range(WORDS)]


@given(st.text())
def test_the_words_of_words_are_these_words(text: str) -> None:
    words = words_of(text)
    assert words_of(" ".join(words)) == words


def test_a_row_that_both_searches_found_stands_before_the_firsts_of_each() -> None:
    a, b, c = row("a"), row("b"), row("c")
    near = [Scored(a, 0.9), Scored(c, 0.8)]
    said = [Scored(b, 12.0), Scored(c, 3.0)]
    ranking = fused(near, said)
    assert ids(ranking) == ["c", "a", "b"]
    assert ranking[0].score == pytest.approx(2 / 62)


def test_what_fits_equally_well_is_ranked_by_time_and_then_by_name() -> None:
    old, new, other = row("z", ts=1.0), row("y", ts=2.0), row("x", ts=2.0)
    assert ids(fused([Scored(old, 1.0), Scored(new, 1.0), Scored(other, 1.0)])) == ["x", "y", "z"]
    assert ids(fused([Scored(row("m"), 1.0)], [Scored(row("k"), 5.0)])) == ["k", "m"]


@given(st.permutations([Scored(row(name, ts=float(n % 2)), float(n % 3)) for n, name in enumerate("abcdefg")]))
def test_the_order_in_which_an_engine_answers_equals_makes_no_difference(ranking: list[Scored]) -> None:
    assert fused(ranking) == fused(sorted(ranking, key=lambda hit: hit.row.message_id))


def test_a_turn_is_found_once_and_rows_of_no_turn_each() -> None:
    ranking = [
        Scored(row(name, turn), 1.0) for name, turn in [("a", "t1"), ("b", "t1"), ("c", ""), ("d", ""), ("t1", "")]
    ]
    assert ids(best_per_turn(ranking)) == ["a", "c", "d", "t1"]


def test_a_snippet_shows_the_first_word_found_and_says_what_was_cut() -> None:
    text = "lorem ipsum " * 50 + "the Nádel in the hay " + "dolor sit " * 50
    shown = snippet(text, ["nadel"])
    assert "Nádel in the hay" in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) <= SNIPPET_CHARS + 4


def test_a_short_text_is_its_own_snippet_on_one_line() -> None:
    assert snippet("one\n  two\tthree", ["two"]) == "one two three"


def test_without_words_a_snippet_is_the_beginning() -> None:
    assert snippet("first " * 100, []).startswith("first first")


@pytest.mark.parametrize("lead", [0, 1, STRETCH_CHARS - 3, STRETCH_CHARS, 5 * STRETCH_CHARS])
def test_a_word_is_found_wherever_it_stands_in_a_long_text(lead: int) -> None:
    text = "ö " * (lead // 2) + "Größe №5 " + "é " * STRETCH_CHARS
    at = lead // 2 * 2
    assert place_of(text, frozenset({"große", "grosse"})) == at
    assert place_of(text, frozenset({"no5"})) is not None
    assert place_of(text, frozenset({"nowhere"})) is None
    assert "Größe" in snippet(text, ["grosse"])


@given(st.text(), st.integers(0, 9))
def test_every_word_of_a_text_has_a_place_in_it(text: str, pick: int) -> None:
    words = words_of(text)
    for word in words[pick : pick + 1]:
        assert place_of(text, frozenset({word})) is not None
    assert place_of(text, frozenset()) is None


def test_blanks_around_a_word_do_not_hide_that_the_text_goes_on() -> None:
    shown = snippet("first" + " " * 5000 + "needle" + " " * 5000 + "last", ["needle"])
    assert shown == "… needle …"


@given(st.text(), st.lists(st.text(max_size=5), max_size=3))
def test_any_text_has_a_snippet_of_bounded_length(text: str, words: list[str]) -> None:
    assert len(snippet(text, words)) <= SNIPPET_CHARS + 4


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("{no json", "{no json"),
        ('{"turn_id":"t","text":"bad","reaction":"ok","origin":"user"}', "bad"),
        ('{"a":["x",{"b":"y"}],"hosted_uri":"s3://secret","c":3}', "x · y"),
        ('{"count":3}', '{"count":3}'),
        ('{"key":"cb/secret"}', "{}"),
        ('{"text":"{\\"artifact_path\\":\\"a\\",\\"hosted_uri\\":\\"s3://secret\\"}"}', '{"artifact_path":"a"}'),
    ],
)
def test_of_json_a_person_reads_the_texts(text: str, shown: str) -> None:
    assert readable(text) == shown


@pytest.mark.parametrize(("levels", "shown"), [(150, True), (900, False)])
def test_json_may_nest_as_deep_as_anybody_may_write(levels: int, shown: bool) -> None:
    assert ("x" in readable("[" * levels + '"x"' + "]" * levels)) is shown
