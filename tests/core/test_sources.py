"""The pool: numbers that are given once, rows that lose nothing, one line per row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core import limits
from sidecar.core.errors import BadPath, Refusal, TooLarge, UnsafePath
from sidecar.core.sources import (
    Merge,
    SourcesPool,
    canonical_url,
    complete,
    dedupe_key,
    is_citable,
    merge_row,
    plan_merge,
    render,
    render_row,
)

Row = dict[str, Any]


def pool_of(*rows: Row) -> SourcesPool:
    pool = SourcesPool()
    for mark, row in enumerate(rows):
        pool.settle(complete(row), mark)
    return pool


def merge(pool: SourcesPool, *rows: Row, proposals: bool = False) -> Merge:
    """Merge and make it durable, as the workspace would."""
    planned = plan_merge(pool, rows, proposals=proposals)
    for row in planned.changed:
        pool.settle(row, 0)
    return planned


MENU: Row = {
    "sid": 5,
    "source_type": "attachment",
    "title": "menu.pdf",
    "physical_path": "turn_123/attachments/menu.pdf",
    "artifact_path": "fi:turn_123.user.attachments/menu.pdf",
    "mime": "application/pdf",
    "size_bytes": 183942,
    "rn": "ef:x",
    "hosted_uri": "s3://b/k/menu.pdf",
    "key": "cb/menu.pdf",
}
REFERENCE: tuple[Row, ...] = (
    {"sid": 1, "source_type": "web", "url": "https://example.com/article", "title": "Article", "text": "short"},
    {"sid": 2, "source_type": "web", "url": "https://example.com:8443/b", "title": "B"},
    MENU,
    {"sid": 7, "source_type": "manual", "title": "note", "text": "from the user"},
)


@pytest.mark.rule("sources.rows-keep-every-key", "sources.prior-sid-stays", "sources.the-row-keeps-its-url-as-given")
def test_the_merge_of_the_reference_loses_nothing() -> None:
    pool = pool_of(*REFERENCE)
    planned = merge(pool, {"url": "https://example.com:8443/b#frag", "title": "BB"}, {"url": "https://new.io"})
    assert list(pool.sids) == [1, 2, 5, 7, 8]
    assert pool.get(2) == {**REFERENCE[1], "title": "BB"}
    assert pool.get(5) == MENU
    assert pool.get(7) == REFERENCE[3]
    assert (planned.order, planned.added) == ((2, 8), (8,))


@pytest.mark.rule("sources.canonical-url-drops-noise-only", "sources.only-the-default-port-is-dropped")
@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("HTTPS://Example.COM/a/?utm_source=x&b=2#f", "https://example.com/a?b=2"),
        ("https://e.com", "https://e.com/"),
        ("https://e.com/", "https://e.com/"),
        ("https://e.com/a//", "https://e.com/a/"),
        ("example.com/x", "https://example.com/x"),
        ("localhost:8080/x", "https://localhost:8080/x"),
        ("https://e.com/p?b=2&a=1", "https://e.com/p?b=2&a=1"),
        ("https://e.com/?GCLID=1&fbclid=2&UTM_x=3&gclidx=4&a=", "https://e.com/?gclidx=4&a="),
        ("https://e.com/a%2Fb?q=%20", "https://e.com/a%2Fb?q=%20"),
        ("https://example.com:8080/x", "https://example.com:8080/x"),
        ("https://ex.com:8443", "https://ex.com:8443/"),
        ("https://ex.com:443/", "https://ex.com/"),
        ("http://ex.com:80/", "http://ex.com/"),
        ("http://ex.com:443/", "http://ex.com:443/"),
        ("https://ex.com:80/", "https://ex.com:80/"),
        ("http://10.0.0.8/x", "http://10.0.0.8/x"),
        ("http://10.0.0.80/x", "http://10.0.0.80/x"),
        ("https://user:pw@e.com/x", "https://e.com/x"),
        ("http://[::1]:80/x", "http://[::1]/x"),
        ("http://[2001:DB8::1]:81/x", "http://[2001:db8::1]:81/x"),
        ("  https://e.com/x  ", "https://e.com/x"),
        ("e.com/to?u=https://x.com/", "https://e.com/to?u=https://x.com/"),
        ("s3://Bucket/Key", "s3://bucket/Key"),
        ("file:///A/b", "file:///A/b"),
        # What is no URL is its own key.
        ("mailto:me@example.com", "mailto:me@example.com"),
        ("urn:isbn:123", "urn:isbn:123"),
        ("two words", "two words"),
        ("https://e.com:port/", "https://e.com:port/"),
        ("turn_1/files/A.txt", "turn_1/files/A.txt"),
    ],
)
def test_the_canonical_url_drops_noise_only(url: str, canonical: str) -> None:
    assert canonical_url(url) == canonical


@given(st.text())
def test_any_text_has_a_canonical_form(url: str) -> None:
    assert isinstance(canonical_url(url), str)


@pytest.mark.rule("sources.deduplicated-by-physical-path", "sources.deduplicated-by-canonical-url")
@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"physical_path": "turn_1/files/a", "url": "https://e.com"}, "file:turn_1/files/a"),
        ({"local_path": "turn_1/files/a", "url": "https://e.com"}, "file:turn_1/files/a"),
        ({"url": "https://E.com"}, "url:https://e.com/"),
        ({"url": "  "}, None),
        ({"title": "note"}, None),
    ],
)
def test_a_row_is_known_by_its_file_else_its_url_else_not_at_all(row: Row, key: str | None) -> None:
    assert dedupe_key(row) == key


@pytest.mark.rule("sources.type-is-told-or-derived", "sources.file-rows-carry-both-paths-type-and-mime")
@pytest.mark.parametrize(
    ("row", "derived"),
    [
        ({"url": "https://e.com"}, {"source_type": "web"}),
        ({"title": "note"}, {"source_type": "manual"}),
        (
            {"physical_path": "./turn_1/files/a.csv"},
            {
                "source_type": "file",
                "physical_path": "turn_1/files/a.csv",
                "artifact_path": "fi:turn_1.files/a.csv",
                "mime": "text/csv",
            },
        ),
        (
            {"source_type": "attachment", "artifact_path": "fi:turn_1.attachments/x.png"},
            {
                "physical_path": "turn_1/attachments/x.png",
                "artifact_path": "fi:turn_1.user.attachments/x.png",
                "mime": "image/png",
            },
        ),
        (
            {"source_type": "file", "local_path": "turn_1/files/a.csv", "mime": ""},
            {"physical_path": "turn_1/files/a.csv", "artifact_path": "fi:turn_1.files/a.csv", "mime": "text/csv"},
        ),
        ({"url": "https://e.com", "local_path": "/tmp/cache/x"}, {"source_type": "web", "local_path": "/tmp/cache/x"}),
        (
            {"url": "https://e.com", "physical_path": "./turn_1/files/a"},
            {"source_type": "web", "physical_path": "turn_1/files/a"},
        ),
        ({"source_type": "search", "url": "https://e.com"}, {"source_type": "search"}),
    ],
)
def test_what_a_row_leaves_unsaid_is_derived(row: Row, derived: Row) -> None:
    whole = complete(row)
    assert {key: whole.get(key) for key in derived} == derived


@pytest.mark.rule("sources.a-file-row-without-path-is-refused", "sources.merge-is-bounded")
@pytest.mark.parametrize(
    ("row", "refusal"),
    [
        ({"source_type": "file"}, BadPath),
        ({"source_type": "file", "local_path": "/tmp/x"}, BadPath),
        ({"source_type": "attachment", "artifact_path": "ar:turn_1.user.prompt"}, BadPath),
        ({"source_type": "book"}, BadPath),
        ({"physical_path": "turn_1/files/a", "artifact_path": "fi:turn_1.files/b"}, BadPath),
        ({"physical_path": "turn_1.files/a"}, BadPath),
        ({"physical_path": "../a"}, UnsafePath),
        ({"text": "x" * limits.ROW_BYTES}, TooLarge),
        ({"sid": [1]}, BadPath),
        ({"sid": True}, BadPath),
        ({"sid": "one"}, BadPath),
    ],
)
def test_a_row_that_cannot_be_kept_is_refused(row: Row, refusal: type[Refusal]) -> None:
    with pytest.raises(refusal):
        plan_merge(SourcesPool(), [row], proposals=True)


def test_a_row_that_nests_without_end_is_refused() -> None:
    deep: Any = 1
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(TooLarge):
        complete({"title": "t", "x": deep})


@pytest.mark.rule("sources.merge-is-bounded")
def test_a_merge_holds_a_thousand_rows_and_no_more() -> None:
    rows = [{"title": str(number)} for number in range(limits.MERGE_ROWS + 1)]
    assert len(plan_merge(SourcesPool(), rows[1:], proposals=False).added) == limits.MERGE_ROWS
    with pytest.raises(TooLarge):
        plan_merge(SourcesPool(), rows, proposals=False)


@pytest.mark.rule("sources.long-inline-base64-is-dropped")
def test_long_inline_base64_does_not_enter_the_pool() -> None:
    fits = "A" * limits.ROW_BASE64_CHARS
    assert complete({"title": "t", "base64": fits})["base64"] == fits
    assert "base64" not in complete({"title": "t", "base64": fits + "A"})


@pytest.mark.rule("sources.longer-text-wins-and-blanks-are-filled")
@pytest.mark.parametrize(
    ("prior", "row", "merged"),
    [
        ({"title": "A"}, {"title": "Article"}, {"title": "Article"}),
        ({"title": "Article"}, {"title": "A"}, {"title": "Article"}),
        ({"title": "same"}, {"title": "mass"}, {"title": "same"}),
        ({"mime": ""}, {"mime": "text/html"}, {"mime": "text/html"}),
        ({"mime": "a/b"}, {"mime": "c/d"}, {"mime": "a/b"}),
        ({"url": "https://e.com"}, {"url": "https://e.com/"}, {"url": "https://e.com"}),
        ({"url": ""}, {"url": "https://e.com"}, {"url": "https://e.com"}),
        ({"sid": 3}, {"sid": 4}, {"sid": 3}),
        ({}, {"content": {"own": "shape"}}, {"content": {"own": "shape"}}),
        ({"score": 0}, {"score": 5}, {"score": 0}),
        ({"key": "k", "x": 1}, {"rn": "ef:x", "y": 2}, {"key": "k", "x": 1, "rn": "ef:x", "y": 2}),
    ],
)  # fmt: skip
def test_merging_takes_the_longer_words_and_fills_blanks(prior: Row, row: Row, merged: Row) -> None:
    assert merge_row(prior, row) == merged


@pytest.mark.rule("sources.runtime-may-propose-a-free-sid", "sources.others-get-the-next-number")
@pytest.mark.parametrize(
    ("proposed", "runtime", "given"),
    [
        (3, True, 3),
        (1007, True, 1007),
        (1008, True, 8),
        (5, True, 8),
        (0, True, 8),
        (-3, True, 8),
        ("4", True, 4),
        (3, False, 8),
        (None, True, 8),
    ],
)
def test_only_the_runtime_proposes_free_numbers_near_the_others(proposed: Any, runtime: bool, given: int) -> None:
    pool = pool_of({"sid": 5, "url": "https://e.com"}, {"sid": 7, "title": "n"})
    planned = merge(pool, {"sid": proposed, "url": "https://new.io"}, proposals=runtime)
    assert planned.added == (given,)
    assert dict(planned.sid_map) == ({} if proposed is None else {int(proposed): given})


@pytest.mark.rule("sources.merge-answers-in-request-order")
def test_within_one_merge_equal_rows_are_one_and_the_answer_is_in_request_order() -> None:
    pool = pool_of({"sid": 4, "url": "https://e.com/x"})
    planned = merge(pool, {"url": "https://new.io"}, {"url": "https://e.com/x/"}, {"url": "https://NEW.io/#top"})
    assert planned.order == (5, 4, 5)
    assert planned.added == (5,)
    assert [row["sid"] for row in planned.changed] == [5, 4]


@pytest.mark.rule("sources.manual-rows-are-never-merged-away")
def test_a_manual_row_is_only_ever_itself() -> None:
    pool = pool_of({"sid": 7, "title": "note", "text": "a"}, {"sid": 8, "text": "only text"})
    same = merge(pool, {"sid": 7, "title": "note", "text": "a longer one"}, {"sid": 8, "text": "only text"})
    assert same.order == (7, 8)
    assert (pool.get(7) or {})["text"] == "a longer one"
    others = merge(pool, {"sid": 7, "title": "other"}, {"sid": 8, "text": "another text"}, {"title": "note"})
    assert others.order == (9, 10, 11)


@pytest.mark.rule("sources.deduplicated-by-physical-path")
def test_an_older_local_path_and_a_physical_path_are_one_file() -> None:
    pool = pool_of({"sid": 1, "source_type": "web", "url": "https://e.com", "local_path": "turn_1/files/a"})
    assert merge(pool, {"physical_path": "turn_1/files/a"}).order == (1,)


def test_what_is_staged_counts_before_it_is_durable() -> None:
    pool = pool_of({"sid": 1, "url": "https://e.com"})
    first = plan_merge(pool, [{"url": "https://a.io"}], proposals=False)
    for row in first.changed:
        pool.stage(row, 10)
    assert plan_merge(pool, [{"url": "https://a.io"}, {"url": "https://b.io"}], proposals=False).order == (2, 3)
    assert list(pool.sids) == [1]
    assert pool.get(2) is None
    pool.drop()
    assert plan_merge(pool, [{"url": "https://b.io"}], proposals=False).order == (2,)


def test_a_file_is_found_by_its_path() -> None:
    pool = pool_of(MENU)
    assert pool.by_path("turn_123/attachments/menu.pdf") == 5
    assert pool.by_path("turn_123/attachments/other.pdf") is None


URLS = st.sampled_from(["https://a.io", "https://a.io/", "https://A.io/x", "https://b.io", ""])
PATHS = st.sampled_from(["", "turn_1/files/a.txt", "turn_1/files/b.txt"])
ROWS = st.fixed_dictionaries(
    {"url": URLS, "physical_path": PATHS, "title": st.sampled_from(["", "t", "longer"])},
    optional={"sid": st.integers(-2, 2000), "x": st.integers(0, 9), "hosted_uri": st.text(min_size=1, max_size=3)},
)


@pytest.mark.rule("sources.sids-never-change", "sources.sids-are-never-reused", "sources.rows-keep-every-key")
@given(st.lists(st.tuples(st.booleans(), st.lists(ROWS, max_size=6)), max_size=6))
def test_numbers_never_move_and_rows_never_lose_a_key(merges: list[tuple[bool, list[Row]]]) -> None:
    pool = SourcesPool()
    for runtime, rows in merges:
        before = {sid: dict(pool.get(sid) or {}) for sid in pool.sids}
        highest = pool.highest
        planned = merge(pool, *rows, proposals=runtime)
        assert len(planned.order) == len(rows)
        assert not set(planned.added) & before.keys()
        assert set(planned.order) <= set(pool.sids)
        assert list(pool.sids) == sorted({*before, *planned.added})
        if not runtime:
            assert list(planned.added) == list(range(highest + 1, highest + 1 + len(planned.added)))
        for sid, old in before.items():
            now = pool.get(sid) or {}
            assert now.keys() >= old.keys()
            assert dedupe_key(now) == dedupe_key(old)
            assert all(now[key] == old[key] for key in ("sid", "url", "hosted_uri") if old.get(key))
        for sid, row in zip(planned.order, rows, strict=True):
            assert (pool.get(sid) or {}).keys() >= row.keys() - {"sid"}


@given(st.lists(ROWS, max_size=8))
def test_merging_the_pool_into_itself_changes_nothing(rows: list[Row]) -> None:
    pool = SourcesPool()
    merge(pool, *rows)
    before = pool.all_rows()
    assert merge(pool, *before, proposals=True).added == ()
    assert pool.all_rows() == before


@pytest.mark.rule("sources.text-image-and-pdf-files-are-eligible")
@pytest.mark.parametrize(
    ("mime", "citable"),
    [
        ("text/plain", True),
        ("text/x-python", True),
        ("image/png", True),
        ("application/pdf", True),
        ("application/json", False),
        ("application/zip", False),
        ("texty/plain", False),
    ],
)
def test_texts_pictures_and_pdf_are_citable(mime: str, citable: bool) -> None:
    assert is_citable(mime, ("text/*", "image/*", "application/pdf")) is citable


PNG = {"sid": 2, "source_type": "file", "artifact_path": "fi:turn_1.files/a.png", "mime": "image/png", "title": "A"}


@pytest.mark.rule("render.pool-first-column", "render.pool-second-column")
@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"sid": 1, "domain": "example.com", "title": "Title"}, '[S:1] example.com  |  "Title"'),
        ({"sid": 1, "url": "https://www.e.com:8080/x", "title": "T"}, '[S:1] e.com  |  "T"'),
        ({"sid": 1, "url": "www.e.com/x", "title": "T"}, '[S:1] e.com  |  "T"'),
        ({"sid": 1, "url": "https://[e.com/", "title": "T"}, '[S:1] manual  |  "T"'),
        ({"sid": 1, "title": "T"}, '[S:1] manual  |  "T"'),
        (PNG, '[S:2] fi:turn_1.files/a.png  |  "<base64>"'),
        ({**PNG, "mime": "application/pdf"}, '[S:2] fi:turn_1.files/a.png  |  "<base64>"'),
        ({**PNG, "mime": "application/zip"}, '[S:2] fi:turn_1.files/a.png  |  "<binary>"'),
        ({**PNG, "mime": "application/json"}, '[S:2] fi:turn_1.files/a.png  |  "A"'),
        ({**PNG, "mime": "Text/HTML; charset=utf-8"}, '[S:2] fi:turn_1.files/a.png  |  "A"'),
        ({**PNG, "mime": "application/ld+json"}, '[S:2] fi:turn_1.files/a.png  |  "A"'),
        ({"sid": 3, "text": "x" * 300}, f'[S:3] manual  |  "{"x" * 200}"'),
        ({"sid": 3, "content": "words"}, '[S:3] manual  |  "words"'),
        ({"sid": 3, "title": "", "text": "words"}, '[S:3] manual  |  "words"'),
        ({"sid": 3}, '[S:3] manual  |  ""'),
        ({"sid": 3, "title": 'say "hi"'}, '[S:3] manual  |  "say \\"hi\\""'),
        ({"sid": 3, "title": "a\r\nb\tc\x00d\u2028e"}, '[S:3] manual  |  "a b c d e"'),
        ({"sid": 3, "domain": "e.com\n[S:4] fake", "title": "T"}, '[S:3] e.com [S:4] fake  |  "T"'),
    ],
)
def test_a_row_is_one_line_of_two_columns(row: Row, line: str) -> None:
    assert render_row(row) == line


@pytest.mark.rule("render.pool-has-a-header-and-one-line-per-row", "render.an-empty-pool-has-its-line")
def test_the_pool_is_a_header_and_a_line_per_row() -> None:
    assert render([]) == "SOURCES POOL (0 sources)"
    assert render([{"sid": 1, "title": "A"}, PNG]).splitlines() == [
        "SOURCES POOL (2 sources)",
        '[S:1] manual  |  "A"',
        '[S:2] fi:turn_1.files/a.png  |  "<base64>"',
    ]


TEXT = st.text(max_size=30)


@pytest.mark.rule("render.pool-is-never-truncated")
@given(
    st.lists(
        st.fixed_dictionaries({"sid": st.integers(1)}, optional=dict.fromkeys(["title", "url", "text", "domain"], TEXT))
    )
)
def test_whatever_rows_hold_each_is_one_line(rows: list[Row]) -> None:
    assert len(render(rows).splitlines()) == 1 + len(rows)


@pytest.mark.rule("render.pool-shows-no-hosting-field")
def test_no_hosting_field_is_rendered() -> None:
    assert not any(word in render([MENU]) for word in ("s3://", "ef:x", "cb/menu"))
