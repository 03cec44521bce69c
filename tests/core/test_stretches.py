"""Stretches find what one search finds, and where it finds it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core import stretches
from sidecar.core.stretches import first_match

PATTERN = re.compile(r"(?<!a)b{1,3}(?=c)")
REACH = 4


@pytest.fixture(autouse=True, scope="module")
def stretches_are_short() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stretches, "SEARCHED_AT_ONCE", 5)
        yield


@given(st.text("abc", max_size=60), st.integers(0, 61))
def test_a_search_in_stretches_finds_the_same(text: str, at: int) -> None:
    whole, found = PATTERN.search(text, at), first_match(PATTERN, text, at, reach=REACH)
    assert (whole and whole.span()) == (found and found.span())
