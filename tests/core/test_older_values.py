"""What stands inside an older value."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.core.older_paths import OlderRefusal, Slice
from sidecar.core.older_values import descend, is_envelope, opened, rows_in, sid_of, sids_in, sliced, text_of, used_by

VALUE = {"value": {"content": '{"items": [{"name": "soup"}]}', "n": 1, "list": ["a", {"b": None}]}}


@pytest.mark.rule("context.older-paths-are-read")
@pytest.mark.parametrize(
    ("leaf", "found"),
    [
        ("value.n", 1),
        ("value.list.0", "a"),
        ("value.list.1.b", None),
        ("value.content", '{"items": [{"name": "soup"}]}'),
        ("value.content.items.0.name", "soup"),
    ],
)
def test_a_leaf_goes_through_keys_indexes_and_json_texts(leaf: str, found: Any) -> None:
    assert descend(VALUE, leaf.split(".")) == found


@pytest.mark.parametrize(
    "leaf", ["x", "value.list.2", "value.list.-1", "value.n.0", "value.list.²", ".".join(["v"] * 99)]
)
def test_a_leaf_that_is_not_there_is_not_found(leaf: str) -> None:
    with pytest.raises(OlderRefusal, match="not_found"):
        descend(VALUE, leaf.split("."))


def test_a_deep_leaf_ends() -> None:
    value: Any = {}
    for _ in range(100):
        value = {"v": value}
    with pytest.raises(OlderRefusal, match="deep"):
        descend(value, ["v"] * 65)


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ([{"sid": 1}, {"url": "u"}, 3, None], 2),
        ({"https://a": {"sid": 1}, "https://b": {"sid": 2}}, 2),
        ('[{"sid": 1}]', 1),
        ({"sid": 1, "url": "u"}, 1),
        ("no rows", 0),
        (None, 0),
    ],
)
def test_rows_are_the_objects_of_a_list_or_of_an_object(value: Any, count: int) -> None:
    assert len(rows_in(value)) == count


@pytest.mark.rule("context.search-artifacts-are-sliced-by-sid")
def test_a_row_without_a_sid_is_in_no_slice() -> None:
    rows = [{"sid": 1, "t": "a"}, {"t": "no number"}, {"sid": "3", "t": "c"}]
    assert [row["t"] for row in sliced(rows, Slice(((3, 3), (None, None))))] == ["c", "a"]


@pytest.mark.parametrize(
    ("row", "sid"), [({"sid": 4}, 4), ({"sid": "4"}, 4), (4, 4), (0, None), (True, None), ({}, None)]
)
def test_a_sid_is_a_number_from_one(row: Any, sid: int | None) -> None:
    assert sid_of(row) == sid


@pytest.mark.rule("context.slots-carry-sources-used")
@pytest.mark.parametrize(
    "record",
    [
        {"value": {"sources_used": [3, 1, 3]}},
        {"value": '{"sources_used": [{"sid": 1}, {"sid": "3"}]}'},
        {"value": "text", "sources_used": [1, 3]},
        {"value": {"sources_used": []}, "sources_used": [3, 1]},
    ],
)
def test_sources_used_stand_in_the_value_or_at_the_root(record: dict[str, Any]) -> None:
    assert used_by(record) == [1, 3]


def test_sids_ascend_each_once() -> None:
    assert sids_in([3, {"sid": 1}, 3, "x", None]) == [1, 3]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ({"content": "c", "text": "t"}, "c"),
        ({"text": "t"}, "t"),
        ({"content": {"a": 1}}, '{\n  "a": 1\n}'),
        ([1], "[\n  1\n]"),
        (None, ""),
    ],
)
def test_a_value_comes_to_a_text(value: Any, text: str) -> None:
    assert text_of(value) == text


def test_an_envelope_holds_a_content_itself_or_as_json() -> None:
    assert is_envelope({"content": "x"})
    assert is_envelope('{"content": "x"}')
    assert not is_envelope({"text": "x"})
    assert not is_envelope("content")


def test_a_text_that_only_looks_like_json_stays_a_text() -> None:
    assert opened("{ no json") == "{ no json"
    assert opened(' {"a": 1}') == {"a": 1}


@pytest.mark.parametrize("leaf", ["0.hosted_uri", "0.rn", "0.key", "key.a"])
def test_a_hosting_field_is_no_leaf(leaf: str) -> None:
    row = {"hosted_uri": "s3://b/k", "rn": "ef:1", "key": {"a": "cb/k"}}
    with pytest.raises(OlderRefusal) as refused:
        descend([row] if leaf[0] == "0" else row, leaf.split("."))
    assert refused.value.code == "not_found"


@pytest.mark.parametrize("levels", [201, 260, 400, 1000])
def test_json_that_could_not_be_written_again_stays_a_text(levels: int) -> None:
    text = "[" * levels + "]" * levels
    assert opened(text) == text
    assert text_of({"content": text}) == text
    assert rows_in(text) == []
    assert opened("[" * 100 + "]" * 100) != "[" * 100 + "]" * 100
