"""A glance may be wrong in one way only: it never overlooks anything."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.blocks import HOSTING_FIELDS, holds_hosting, is_shallow
from sidecar.core.glances import may_hold_hosting, may_nest

JSON = st.recursive(
    st.none() | st.integers(0, 9) | st.text('ab"\\{[\n', max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "artifact_path", *sorted(HOSTING_FIELDS)]), inner, max_size=3)
        | inner.map(lambda value: orjson.dumps(value).decode())
    ),
    max_leaves=8,
)


@given(JSON)
def test_no_hosting_field_is_overlooked_at_any_depth(value: Any) -> None:
    assert may_hold_hosting(orjson.dumps(value)) or not holds_hosting(value)


@pytest.mark.parametrize(
    "text",
    [
        r'{"artifact_path": "fi:a", "key": "cb/x"}',
        r'{"artifact_path": "fi:a", "\u006bey": "cb/x"}',
        r'{"artifact_path": "fi:a", "r\u006e": "ef:x"}',
        r'{"\u0061rtifact_path": "fi:a", "hosted_ur\u0069": "x"}',
    ],
)
def test_no_spelling_of_one_in_a_text_is_overlooked(text: str) -> None:
    assert holds_hosting({"text": text})
    assert may_hold_hosting(orjson.dumps({"text": text}))


def test_what_holds_none_is_mostly_seen_to_hold_none() -> None:
    assert not may_hold_hosting(orjson.dumps({"type": "note", "text": 'a "word" and\na line', "meta": {"x": 1}}))


@given(st.integers(1, 30), st.integers(0, 30))
def test_what_nests_so_deep_is_not_overlooked(levels: int, more: int) -> None:
    assert may_nest(b"[" * (levels + more) + b"]" * (levels + more), levels)
    assert not may_nest(b"[" * (levels - 1) + b"]" * (levels - 1), levels)
    assert is_shallow([])
