"""Keys and handles: the fixed layout, nothing that could leave its place, no two files under one key."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.errors import Refusal
from sidecar.core.paths import FilePath
from sidecar.core.storage_names import Identity, encoded, handle_for, is_ours, key_for, key_prefix

ME = Identity("acme", "sales", "ann@acme.com", "registered", "c-1")
REPORT = FilePath("turn_1", "files", "a/report.md")
SHA = "ab" * 32

parts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40)


@pytest.mark.rule("hosting.key-has-the-fixed-layout")
def test_a_key_has_the_fixed_layout() -> None:
    key = key_for(REPORT, SHA, ME)
    place, _, name = key.rpartition("/")
    assert place == "cb/tenants/acme/projects/sales/attachments/registered/ann@acme.com/c-1/turn_1"
    assert re.fullmatch(r"[0-9a-f]{16}-report\.md", name)


def test_a_handle_names_everything_but_the_folder() -> None:
    handle = handle_for(REPORT, SHA, ME)
    assert re.fullmatch(r"ef:acme:sales:chatbot:file:ann@acme\.com:c-1:turn_1:artifact:[0-9a-f]{16}-report\.md", handle)
    attached = handle_for(FilePath("turn_1", "attachments", "menu.pdf"), SHA, ME)
    assert ":chatbot:attachment:" in attached
    assert ":user:" in attached


@pytest.mark.rule("hosting.equal-basenames-never-collide")
def test_two_files_of_one_name_and_two_versions_of_one_file_have_keys_of_their_own() -> None:
    other = FilePath("turn_1", "files", "b/report.md")
    keys = {key_for(REPORT, SHA, ME), key_for(other, SHA, ME), key_for(REPORT, "cd" * 32, ME)}
    assert len(keys) == 3


@pytest.mark.rule("identity.parts-are-bounded-and-encoded")
@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("plain-1_2.3@x", "plain-1_2.3@x"),
        ("a/b", "a%2Fb"),
        ("a:b", "a%3Ab"),
        ("a b", "a%20b"),
        ("~", "%7E"),
        ("ü", "%C3%BC"),
        ("%2F", "%252F"),
    ],
)
def test_parts_are_encoded(part: str, code: str) -> None:
    assert encoded(part) == code


@given(st.lists(parts, min_size=5, max_size=5), st.lists(parts, min_size=5, max_size=5))
def test_different_identities_never_share_a_prefix(some: list[str], others: list[str]) -> None:
    one, other = key_prefix(Identity(*some)), key_prefix(Identity(*others))
    assert (one == other) == (some == others)
    assert some == others or not one.startswith(other)


@pytest.mark.rule("hosting.a-strangers-key-stays-inside")
@pytest.mark.parametrize(
    "key",
    [
        "cb/tenants/acme/projects/sales/attachments/registered/ann@acme.com/c-2/turn_1/x",
        "cb/tenants/acme/projects/sales/attachments/registered/ann@acme.com/c-1",
        "cb/tenants/acme/projects/sales/attachments/registered/ann@acme.com/c-1/",
        "cb/tenants/acme/projects/sales/attachments/registered/ann@acme.com/c-1/../c-2/turn_1/x",
        "cb/tenants/acme/projects/sales/attachments/registered/ann@acme.com/c-1/turn_1//x",
        "/cb/tenants/acme/projects/sales/attachments/registered/ann@acme.com/c-1/turn_1/x",
        "turn_1/x",
        "",
    ],
)
def test_a_key_outside_the_conversation_is_not_ours(key: str) -> None:
    assert not is_ours(key, ME)


@given(st.text(min_size=1, max_size=300), st.lists(parts, min_size=5, max_size=5))
def test_every_key_is_plain_ours_and_of_bounded_length(rel: str, identity: list[str]) -> None:
    try:
        path = FilePath("turn_1", "files", rel)
    except Refusal:
        return
    key = key_for(path, SHA, Identity(*identity))
    assert is_ours(key, Identity(*identity))
    assert re.fullmatch(r"[A-Za-z0-9._@%/-]+", key)
    assert len(key.rpartition("/")[2]) <= 200


@pytest.mark.parametrize("letter", ["Ö", ",", "😀", "a"])
@pytest.mark.parametrize("shift", range(4))
def test_of_a_long_name_whole_characters_stay(letter: str, shift: int) -> None:
    """Found by fuzzing: a code that was cut in two became letters that the name does not have."""
    name = letter * (240 // len(letter.encode())) + "x" * shift + ".md"
    kept = unquote(key_for(FilePath("turn_1", "files", name), SHA, ME).partition("-1/turn_1/")[2][17:], errors="strict")
    assert len(kept) > 40 // len(letter.encode())
    assert name.endswith(kept)
