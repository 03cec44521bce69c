"""Lists of sources as params: merged, numbered as the pool, cut so that every source keeps a share."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.source_lists import capped, merged, need_of, shares
from sidecar.core.sources import SourcesPool


def pool_of(*rows: dict[str, Any]) -> SourcesPool:
    pool = SourcesPool()
    for mark, row in enumerate(rows, start=1):
        pool.stage(row, mark)
        pool.settle(row, mark)
    return pool


POOL = pool_of(
    {"sid": 1, "source_type": "web", "url": "https://a.example/x", "title": "A", "text": "long text"},
    {"sid": 2, "source_type": "web", "url": "https://b.example", "title": "B"},
)


@pytest.mark.rule("context.source-lists-are-merged-by-url")
def test_rows_are_merged_by_url_in_the_order_asked() -> None:
    rows = [
        {"url": "https://new.example", "title": "N"},
        {"url": "https://A.example/x/#top", "text": "short"},
        {"sid": 2, "url": "https://b.example"},
        {"url": "https://a.example/x?utm_source=y", "title": "a longer title"},
        {"url": "https://NEW.example/"},
    ]
    assert merged(rows, POOL) == [
        {"url": "https://new.example", "title": "N", "source_type": "web"},
        {"sid": 1, "source_type": "web", "url": "https://a.example/x", "title": "a longer title", "text": "long text"},
        {"sid": 2, "source_type": "web", "url": "https://b.example", "title": "B"},
    ]


def test_a_number_that_the_pool_gave_to_another_source_is_not_believed() -> None:
    (row,) = merged([{"sid": 1, "url": "https://c.example"}], POOL)
    assert "sid" not in row


def test_a_row_alone_by_its_number_is_the_pool_s_row() -> None:
    assert merged([{"sid": 2}], POOL) == [{"sid": 2, "source_type": "web", "url": "https://b.example", "title": "B"}]


def test_rows_that_no_pool_would_take_are_still_sources() -> None:
    rows = [{"source_type": "odd", "text": "x"}, {"text": "y"}, {"text": "z"}]
    assert [row["text"] for row in merged(rows, POOL)] == ["x", "y", "z"]


@pytest.mark.rule("context.multimodal-sources-carry-mime-and-bytes")
def test_a_picture_in_a_row_has_a_size() -> None:
    (row,) = merged([{"title": "p", "mime": "image/png", "base64": "QUJD"}], POOL)
    assert row == {"title": "p", "mime": "image/png", "base64": "QUJD", "size_bytes": 3, "source_type": "manual"}


@pytest.mark.rule("context.generator-sources-are-capped-and-balanced")
@given(st.lists(st.integers(0, 1000), max_size=20), st.integers(0, 5000))
def test_shares_never_exceed_the_budget_and_nobody_gets_less_than_an_equal_part(needs: list[int], budget: int) -> None:
    given_out = shares(needs, budget)
    assert sum(given_out) <= budget
    assert all(share <= need for share, need in zip(given_out, needs, strict=True))
    assert all(share >= min(need, budget // len(needs)) for share, need in zip(given_out, needs, strict=True))
    if sum(needs) <= budget:
        assert given_out == needs


rows = st.fixed_dictionaries(
    {"title": st.text(max_size=5)},
    optional={"text": st.text(max_size=200), "content": st.text(max_size=400), "base64": st.just("QUJD" * 40)},
)


@pytest.mark.rule("context.generator-sources-are-capped-and-balanced")
@given(st.lists(rows, max_size=8), st.integers(0, 400))
def test_every_source_stays_and_all_of_them_fit(given_rows: list[dict[str, Any]], budget: int) -> None:
    fitting = capped(given_rows, budget)
    assert [row["title"] for row in fitting.rows] == [row["title"] for row in given_rows]
    assert sum(map(need_of, fitting.rows)) <= budget
    assert all(fitting.rows[at] == row for at, row in enumerate(given_rows) if at not in fitting.cut)


@pytest.mark.rule("context.generator-sources-are-capped-and-balanced")
def test_short_sources_stay_whole_and_long_ones_are_cut_alike() -> None:
    given_rows = [{"text": "x" * 4000}, {"text": "short"}, {"content": "y" * 8000, "text": "y" * 100}]
    fitting = capped(given_rows, 202)
    assert fitting.rows == ({"text": "x" * 400}, {"text": "short"}, {"content": "y" * 400})
    assert fitting.cut == (0, 2)


def test_bytes_that_do_not_fit_go_and_the_file_stays() -> None:
    row = {"physical_path": "t/files/a.png", "mime": "image/png", "base64": "QUJD" * 400}
    assert capped([row], 10).rows == ({"physical_path": "t/files/a.png", "mime": "image/png"},)


def test_long_lists_are_merged_in_no_time() -> None:
    rows = [{"title": "x", "url": f"https://x/{n}"} for n in range(5000)]
    began = time.thread_time()
    assert len(merged([*rows, *rows], pool_of())) == 5000
    assert time.thread_time() - began < 5


def test_a_twin_is_known_by_what_was_merged_into_the_first() -> None:
    one, two, three = {"sid": 7, "text": "a"}, {"sid": 7, "url": "https://x"}, {"url": "https://x/", "text": "longer"}
    (row,) = merged([one, two, three], pool_of())
    assert (row["sid"], row["text"]) == (7, "longer")
