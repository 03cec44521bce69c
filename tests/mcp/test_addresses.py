"""URIs of resources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.mcp.addresses import BEGINNING, address, written


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_path_comes_back_as_it_was(path: str) -> None:
    assert written(address(path)) == path
    assert address(path).isascii()
    assert not set(" #?[]\n") & set(address(path))


@pytest.mark.parametrize("uri", ["", BEGINNING, "file:///x", "artifact-sidecar://other/x", f"{BEGINNING}%ff"])
def test_what_is_no_address_of_ours_leads_nowhere(uri: str) -> None:
    assert written(uri) is None
