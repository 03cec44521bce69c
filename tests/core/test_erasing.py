"""A journal without a turn holds none of its words, and a workspace made from it has the same numbers as before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from sidecar.core.blocks import Defaults, tell
from sidecar.core.conversation_names import blob_key
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
    Hosted,
    HostingWanted,
    Noticed,
    Promised,
    Remembered,
    SourceSet,
    TurnBegun,
    TurnEnded,
    TurnSaved,
    encode,
)
from sidecar.core.erasing import in_roles, read_turn, role_in, whose, without_anything, without_turn
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.notices import notice
from sidecar.core.storage_names import Identity, key_prefix
from sidecar.ports import Record
from sidecar.workspace import Workspace
from tests.memory_journal import MemoryJournal

pytestmark = pytest.mark.rule("cli.erase-forgets-a-turn-or-conversation")

ONE, TWO, BOTH = "1" * 64, "2" * 64, "3" * 64
IDENTITY = {"tenant": "t", "project": "p", "user_id": "u", "user_type": "registered", "conversation_id": "c"}


def told(turn: str, **block: Any) -> BlockTold:
    return BlockTold(tell({"type": "assistant", **block}, Defaults(turn, 5.0)))


def seen(path: str, sha256: str) -> FileSeen:
    return FileSeen(FileFact(path, StatKey(1, 2, 3, 4, 5), sha256, "text/plain", True), 5.0, "", "external")


def hosted(path: str, sha256: str) -> Hosted:
    return Hosted(path, sha256, "s3://b/secret", "ef:secret", "cb/secret")


ENTRIES: tuple[Entry, ...] = (
    Remembered({"conversation": IDENTITY, "named": True, "holder": "h"}),
    TurnBegun("turn_1", 1.0, "hash-of-secret"),
    told("turn_1", type="user.prompt", text="secret prompt", path="ar:turn_1.user.prompt"),
    CallBegun("tc_1", "turn_1", "secret.tool", 1.0),
    seen("turn_1/files/secret.txt", ONE),
    seen("turn_1/files/both.txt", BOTH),
    SourceSet({"sid": 1, "source_type": "file", "physical_path": "turn_1/files/secret.txt", "text": "secret"}),
    SourceSet({"sid": 2, "source_type": "web", "url": "https://secret", "text": "secret"}),
    SourceSet({"sid": 3, "source_type": "web", "url": "https://shared", "text": "cited later"}),
    CallEnded("tc_1", 2.0),
    Answered("request", "hash-of-secret", {"said": "secret"}),
    Noticed(notice("store_unavailable", reason="secret")),
    HostingWanted("turn_1/files/secret.txt", ONE),
    Embedded("turn_1", "chat:user", (0.5, 0.5)),
    TurnEnded("turn_1", 3.0, "completed"),
    hosted("turn_1/files/secret.txt", ONE),
    SourceSet({"sid": 1, "source_type": "file", "physical_path": "turn_1/files/secret.txt", "key": "cb/secret"}),
    TurnSaved("turn_1", 5, 7, ({"kind": "turn.log", "message_id": "secret", "hosted_uri": "secret"},)),
    TurnBegun("turn_2", 4.0, "other"),
    told("turn_2", text="Kept, see [[S:3]].", path="ar:turn_2.assistant.completion"),
    told("turn_2", text="secret again", path="fi:turn_1.files/secret.txt", meta={"rel": "read"}),
    told("turn_2", type="conv.range.summary", text="secret summary", path="su:turn_2.conv.range.summary"),
    seen("turn_2/files/kept.txt", TWO),
    seen("turn_2/files/both.txt", BOTH),
    SourceSet({"sid": 4, "source_type": "web", "url": "https://kept", "text": "kept"}),
    BlocksHidden((0, 1), "kept words"),
    BlocksShown((1,)),
    Promised("turn_1/files/secret.bin", "tc_1", "external"),
    FileGone("turn_1/files/secret.txt"),
    TurnEnded("turn_2", 6.0, "completed"),
)


def journal(entries: Iterable[Entry] = ENTRIES) -> list[Record]:
    return [Record(seq, *encode(entry)) for seq, entry in enumerate(entries, start=1)]


def erased(records: list[Record], turn_id: str = "turn_1") -> list[Record]:
    after = {record.seq: record for record in records}
    for seq, stored in without_turn(records, read_turn(records, turn_id), ts=9.0):
        if stored is None:
            del after[seq]
        else:
            after[seq] = Record(seq, *stored)
    return [after[seq] for seq in sorted(after)]


def opened(records: list[Record]) -> Workspace:
    workspace = Workspace(MemoryJournal(records))
    workspace.load()
    return workspace


def test_nothing_of_the_turn_is_left() -> None:
    whole = b"".join(bytes(part) for record in erased(journal()) for part in (record.head, record.body))
    assert b"secret" not in whole
    for kept in (b"Kept, see", b"cited later", b"https://kept", b"kept words"):
        assert kept in whole


def test_a_second_time_changes_nothing() -> None:
    once = erased(journal())
    assert list(without_turn(once, read_turn(once, "turn_1"), ts=10.0)) == []


def test_numbers_stay_given() -> None:
    async def play() -> None:
        before, after = opened(journal()), opened(erased(journal()))
        assert len(after.timeline) == len(before.timeline)
        assert list(after.pool.sids) == list(before.pool.sids)
        assert [after.pool.get(sid).get("erased", False) for sid in after.pool.sids] == [True, True, False, False]
        assert after.revision > before.revision
        assert after.turns.durable["turn_1"].ended
        assert after.calls.durable["tc_1"].tool_id == ""
        assert {one.path.physical for one in after.artifacts} == {"turn_2/files/both.txt", "turn_2/files/kept.txt"}
        assert after.saved.is_saved("turn_1")

    asyncio.run(play())


def test_contents_that_others_name_stay_named() -> None:
    found = read_turn(journal(), "turn_1")
    assert {TWO, BOTH} <= found.contents
    assert ONE not in found.contents


def test_a_summary_of_later_turns_alone_is_kept() -> None:
    records = journal(
        [
            told("turn_1", text="one"),
            told("turn_2", type="conv.range.summary", text="of one", path="su:turn_2.conv.range.summary"),
            told("turn_3", text="three"),
        ]
    )
    assert read_turn(records, "turn_3").blocks == {2}
    assert read_turn(records, "turn_1").blocks == {0, 1}
    assert read_turn(records, "turn_1").doomed.summaries == {"turn_2"}


def test_a_turn_that_nobody_told_of_is_unknown() -> None:
    assert not read_turn(journal(), "turn_9").is_known
    assert read_turn(journal(), "turn_1").is_known


def test_a_whole_conversation_leaves_whose_it_was_and_its_highest_sid() -> None:
    records = journal()
    changes = dict(without_anything(records, ts=9.0))
    left = [Record(seq, *stored) for seq, stored in changes.items() if stored is not None]
    assert changes.keys() == {*range(1, len(records) + 2)}
    assert [record.seq for record in left] == [len(records) + 1]
    workspace = opened(left)
    assert workspace.facts["conversation"] == IDENTITY
    assert workspace.facts["named"] is True
    assert workspace.pool.highest == 4
    assert whose(left) == (IDENTITY, "", "", "", {"registered"})
    again = dict(without_anything(left, ts=10.0))
    assert opened([Record(seq, *stored) for seq, stored in again.items() if stored]).pool.highest == 4


def test_a_whole_conversation_leaves_where_it_was_saved() -> None:
    records = journal([*ENTRIES, Remembered({"archived_in": "/index.db file:///store/cb"})])
    left = [Record(seq, *stored) for seq, stored in without_anything(records, ts=9.0) if stored is not None]
    assert whose(left).archived_in == "/index.db file:///store/cb"
    assert whose(left).identity == IDENTITY


def test_every_user_type_that_keys_may_hold_is_known() -> None:
    """That of an earlier name of the same conversation and that of a hosted file, of no other conversation."""
    ours, theirs = Identity.of(IDENTITY), Identity.of({**IDENTITY, "user_id": "v"})
    records = journal(
        [
            Remembered({"conversation": {**IDENTITY, "user_type": "first", "conversation_id": "unnamed"}}),
            Remembered({"conversation": {**IDENTITY, "user_type": "second"}}),
            Remembered({"conversation": IDENTITY}),
            *(
                Hosted("turn_1/files/a", ONE, "file:///s", "ef:a", f"{key_prefix(one)}turn_1/a")
                for one in (*in_roles(ours, ["third"]), *in_roles(theirs, ["fourth"]))
            ),
        ]
    )
    assert whose(records).roles == {"registered", "second", "third"}


@pytest.mark.parametrize(("role", "told"), [("paid", "paid"), ("a/b ~", "a/b ~"), ("..", ""), ("", "")])
def test_a_key_tells_its_user_type(role: str, told: str) -> None:
    ours = Identity.of(IDENTITY)
    key = blob_key(Identity.of({**IDENTITY, "user_type": role}), "turn_1", "x")
    assert role_in(key, ours) == told
    assert role_in(key, Identity.of({**IDENTITY, "conversation_id": "d"})) == ""
    assert [one.user_type for one in in_roles(ours, [role, "registered"])] == ["registered", *filter(None, [told])]
