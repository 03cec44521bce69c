"""Tokens are a quarter of the bytes."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.counting import binary_tokens, count_tokens, packed_size, text_tokens


@pytest.mark.rule("render.tokens-are-a-quarter-of-the-bytes")
@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("ä" * 4, 2), ("😀", 1)])
def test_a_text_counts_its_utf8_bytes_rounded_up(text: str, tokens: int) -> None:
    assert count_tokens(text) == text_tokens(len(text.encode())) == tokens


@pytest.mark.rule("render.tokens-are-a-quarter-of-the-bytes")
@pytest.mark.parametrize(("size", "tokens"), [(0, 0), (3, 0), (4, 1), (183_942, 45_985)])
def test_bytes_that_are_no_text_are_rounded_down(size: int, tokens: int) -> None:
    assert binary_tokens(size) == tokens


@given(st.binary(max_size=64))
def test_the_size_of_packed_bytes_is_known_without_unpacking(raw: bytes) -> None:
    assert packed_size(base64.b64encode(raw).decode()) == len(raw)
