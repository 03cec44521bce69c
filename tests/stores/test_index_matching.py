"""How rows are ranked by the words that they hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidecar.stores.index_matching import WORDS, Candidate, asked, ranked


def candidate(number: int, *hits: int, words: int = 10, ts: float = 0.0) -> Candidate:
    return Candidate(number, ts, 1, f"m{number}", words, hits)


def order(candidates: list[Candidate], count: int, limit: int = 99) -> list[int]:
    return [number for number, _ in ranked(candidates, count, limit=limit)]


def test_only_rows_with_all_words_when_there_are_any() -> None:
    assert order([candidate(1, 0), candidate(2, 0, 1), candidate(3, 1)], 2) == [2]


def test_else_more_words_are_better() -> None:
    assert order([candidate(1, 0), candidate(2, 0, 1), candidate(3, 2)], 3)[0] == 2


def test_rare_words_are_better() -> None:
    common = [candidate(number, 0) for number in range(5)]
    assert order([*common, candidate(9, 1)], 3)[0] == 9


def test_short_rows_are_better() -> None:
    assert order([candidate(1, 0, words=900), candidate(2, 0, words=9)], 1) == [2, 1]


def test_equal_rows_come_newest_first() -> None:
    assert order([candidate(1, 0, ts=1), candidate(2, 0, ts=3), candidate(3, 0, ts=2)], 1, limit=2) == [2, 3]


def test_nothing_found_is_nothing_ranked() -> None:
    assert ranked([], 3, limit=9) == []


rows = st.lists(st.tuples(st.sets(st.integers(0, 3), min_size=1), st.integers(1, 2000), st.floats(0, 9)), max_size=12)


@given(rows=rows)
def test_scores_are_positive_and_fall(rows: list[tuple[set[int], int, float]]) -> None:
    found = [
        candidate(n, *sorted(hits), words=max(words, len(hits)), ts=ts) for n, (hits, words, ts) in enumerate(rows)
    ]
    scores = [score for _, score in ranked(found, 4, limit=99)]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def test_a_question_is_its_different_words() -> None:
    assert asked(["b", "a", "b", "", "two words", "x" * 100, '"', "a-b"]) == ["b", "a", "x" * 64]
    assert len(asked(map(str, range(500)))) == WORDS
