"""What the journal is given, it gives back: encoding and decoding are inverse for every kind of entry."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.core.artifacts import Visibility
from sidecar.core.blocks import Defaults, tell
from sidecar.core.entries import (
    Answered,
    BlocksHidden,
    BlocksShown,
    BlockTold,
    CallBegun,
    CallEnded,
    Embedded,
    Entry,
    FileGone,
    FileSeen,
    FolderAdopted,
    Hosted,
    HostingWaived,
    HostingWanted,
    Noticed,
    Promised,
    Remembered,
    SourceSet,
    TurnBegun,
    TurnEnded,
    TurnSaved,
    Used,
    decode,
    encode,
)
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.uses import How

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
TIME = st.floats(0, 1e11)
OBJECT = st.dictionaries(TEXT, st.none() | st.integers(-9, 9) | TEXT | st.lists(TEXT, max_size=2), max_size=4)
KEY = st.builds(
    StatKey, *(st.integers(0, 2**63) for _ in range(3)), st.integers(-(2**62), 2**62), st.integers(0, 2**62)
)
FACT = st.builds(FileFact, TEXT, KEY, st.none() | TEXT, TEXT, st.booleans(), st.booleans())

NUMBERS = st.lists(st.integers(0, 2**40), max_size=4).map(tuple)

ENTRIES: dict[type[Any], st.SearchStrategy[Any]] = {
    SourceSet: st.builds(SourceSet, OBJECT),
    FileSeen: st.builds(FileSeen, FACT, TIME, TEXT, st.sampled_from(get_args(Visibility))),
    FileGone: st.builds(FileGone, TEXT),
    TurnBegun: st.builds(TurnBegun, TEXT, TIME, TEXT),
    TurnEnded: st.builds(TurnEnded, TEXT, TIME, TEXT),
    CallBegun: st.builds(CallBegun, TEXT, TEXT, TEXT, TIME, st.booleans()),
    CallEnded: st.builds(CallEnded, TEXT, TIME),
    Noticed: st.builds(Noticed, OBJECT),
    FolderAdopted: st.builds(FolderAdopted, TEXT),
    Remembered: st.builds(Remembered, OBJECT),
    Promised: st.builds(Promised, TEXT, TEXT, st.sampled_from(["external", "internal"])),
    Answered: st.builds(Answered, TEXT, TEXT, OBJECT),
    HostingWanted: st.builds(HostingWanted, TEXT, TEXT),
    Hosted: st.builds(Hosted, TEXT, TEXT, TEXT, TEXT, TEXT),
    HostingWaived: st.builds(HostingWaived, TEXT, TEXT, TEXT),
    BlocksHidden: st.builds(BlocksHidden, NUMBERS, TEXT),
    BlocksShown: st.builds(BlocksShown, NUMBERS),
    Used: st.builds(Used, TEXT, st.lists(TEXT, max_size=4).map(tuple), st.sampled_from(get_args(How)), TEXT),
    Embedded: st.builds(Embedded, TEXT, TEXT, st.lists(st.floats(-1, 1), max_size=4).map(tuple)),
    TurnSaved: st.builds(
        TurnSaved, TEXT, st.integers(0, 2**40), st.integers(0, 2**40), st.lists(OBJECT, max_size=3).map(tuple)
    ),
}


@given(st.one_of(*ENTRIES.values()))
def test_what_is_encoded_is_decoded_to_the_same(entry: Entry) -> None:
    stored = encode(entry)
    again = decode(*stored)
    assert again == entry
    assert type(again) is type(entry)
    if isinstance(entry, FileSeen) and isinstance(again, FileSeen):
        assert type(again.fact.key) is StatKey


def test_every_kind_of_entry_is_tried() -> None:
    assert {*ENTRIES, BlockTold} == set(get_args(Entry))
    assert all(dataclasses.is_dataclass(kind) for kind in ENTRIES)


def test_every_kind_has_a_name_of_its_own() -> None:
    told = BlockTold(tell({"type": "note"}, Defaults("turn_1", 0.0)))
    key = StatKey(1, 2, 3, 4, 5)
    entries: list[Entry] = [
        told,
        SourceSet({}),
        FileSeen(FileFact("a", key, None, "a/b"), 0.0, "", "external"),
        FileGone("a"),
        HostingWanted("a", "b"),
        Hosted("a", "b", "c", "d", "e"),
        HostingWaived("a", "b", "c"),
        BlocksHidden((1,), "a"),
        BlocksShown((1,)),
        Embedded("a", "b", (0.5,)),
        TurnSaved("t", 1, 1, ()),
        TurnBegun("t", 0.0, ""),
        TurnEnded("t", 0.0, ""),
        CallBegun("c", "t", "tool", 0.0),
        CallEnded("c", 0.0),
        Noticed({}),
        FolderAdopted("t"),
        Promised("t/files/a", "tc_1", "internal"),
        Remembered({}),
        Answered("r", "", {}),
        Used("c", ("fi:a",), "observed"),
    ]
    assert {type(entry) for entry in entries} == set(get_args(Entry))
    assert len({encode(entry).kind for entry in entries}) == len(entries)


def test_a_block_is_stored_as_its_head_and_its_json() -> None:
    told = tell({"type": "note", "text": "x"}, Defaults("turn_1", 0.0))
    assert encode(BlockTold(told))[::2] == ("block", told.body)


@pytest.mark.parametrize("kind", ["", "block", "tomorrow"])
def test_a_kind_that_this_version_does_not_know_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="kind"):
        decode(kind, b"[]", b"")
