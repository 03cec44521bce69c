"""A key is what a folder and S3 both take; everything else is refused with a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.stores.keys import KEY_BYTES, PREFIX_BYTES, SEGMENT_BYTES, KeyTaken, check_key, check_prefix, is_key


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a/b/c",
        "cb/tenants/t%20x/report (1).pdf",
        "a:b|c",
        "...",
        ".hidden",
        "ü" * 100,
        "s" * SEGMENT_BYTES,
        "/".join(["x" * 179] * 5),
    ],
)
def test_a_key_is_given_back(text: str) -> None:
    assert check_key(text) == text
    assert is_key(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no empty segment"),
        ("/a", "no empty segment"),
        ("a/", "no empty segment"),
        ("a//b", "no empty segment"),
        (".", "no `.`"),
        ("a/./b", "no `.`"),
        ("..", "no `..`"),
        ("a/../b", "no `..`"),
        ("a\0", "control characters"),
        ("a\nb", "control characters"),
        ("a\x7f", "control characters"),
        ("a\x85b", "control characters"),
        ("s" * (SEGMENT_BYTES + 1), "at most 200 bytes"),
        ("ü" * 101, "at most 200 bytes"),
        ("/".join(["x" * 180] * 5), "at most 900 bytes"),
        ("\ud800", "UTF-8"),
    ],
)
def test_what_is_no_key_is_told_why(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check_key(text)
    assert not is_key(text)


@given(st.text(max_size=950))
def test_every_key_is_safe_as_a_path_and_fits(text: str) -> None:
    if is_key(text):
        parts = text.encode().split(b"/")
        assert len(text.encode()) <= KEY_BYTES
        assert all(0 < len(part) <= SEGMENT_BYTES and part not in (b".", b"..") for part in parts)
        assert b"\0" not in text.encode()


def test_a_prefix_may_be_empty_and_leaves_room_for_a_key() -> None:
    assert check_prefix("") == ""
    assert check_prefix("a/b") == "a/b"
    assert PREFIX_BYTES + 1 + KEY_BYTES <= 1024
    for text in ("/a", "a/", "..", "x" * (PREFIX_BYTES + 1)):
        with pytest.raises(ValueError, match="a prefix"):
            check_prefix(text)


def test_a_key_that_is_taken_is_a_value_error() -> None:
    assert issubclass(KeyTaken, ValueError)
