"""No file name gets out of the header it stands in, and clients old and new find the name."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.stores.disposition import attachment, media_type


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("report.pdf", "attachment; filename=\"report.pdf\"; filename*=UTF-8''report.pdf"),
        ("a b (1).txt", "attachment; filename=\"a b (1).txt\"; filename*=UTF-8''a%20b%20%281%29.txt"),
        ("grün.txt", "attachment; filename=\"gr_n.txt\"; filename*=UTF-8''gr%C3%BCn.txt"),
        ('a"b\\c%41.txt', "attachment; filename=\"a_b_c_41.txt\"; filename*=UTF-8''a%22b%5Cc%2541.txt"),
        ("folder/x", "attachment; filename=\"x\"; filename*=UTF-8''x"),
        ("", "attachment; filename=\"file\"; filename*=UTF-8''file"),
    ],
)
def test_a_download_is_named_twice(name: str, header: str) -> None:
    assert attachment(name) == header


@given(st.text(max_size=300))
def test_no_name_leaves_its_header(name: str) -> None:
    told = attachment(name)
    assert told.isascii()
    assert told.isprintable()
    assert told.count('"') == 2
    plain, _, exact = told.removeprefix('attachment; filename="').partition("\"; filename*=UTF-8''")
    assert "%" not in plain
    assert set(exact) <= set("%!#$&+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    kept = name.rpartition("/")[2] or "file"
    assert unquote(exact) == kept.encode("utf-8", "replace").decode()


@pytest.mark.parametrize(
    "mime", ["text/plain", "text/plain; charset=utf-8", "application/vnd.ms-excel", "image/svg+xml"]
)
def test_a_type_stays_what_it_is(mime: str) -> None:
    assert media_type(mime) == mime


@pytest.mark.parametrize(
    "mime", ["", "text", "text/", "a/b/c", "text/html\r\nX: y", "text/ü", "a/b; c", "a/" + "b" * 200]
)
def test_what_is_no_type_is_plain_bytes(mime: str) -> None:
    assert media_type(mime) == "application/octet-stream"
