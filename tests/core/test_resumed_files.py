"""The files of a saved conversation: seen again between the blocks, hosted where they were, on nobody's disk."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.core.entries import Entry, FileGone, FileSeen, Hosted
from sidecar.core.limits import HASHED_BYTES
from sidecar.core.paths import parse_physical
from sidecar.core.resumed_files import Files
from sidecar.core.state import State
from sidecar.core.storage_names import handle_for, key_for
from tests.core.saved_story import IDENTITY, Story

PATH = "turn_1/files/a.txt"
A, B = "a" * 64, "b" * 64


def version(sha256: str | None, at: int, **more: Any) -> dict[str, Any]:
    return {"before": at, "ts": 1000.0 + at, "call": "", "sha256": sha256, "size_bytes": 1, "mime": "text/plain"} | more


def hosting(sha256: str, at: int) -> dict[str, Any]:
    path = parse_physical(PATH)
    key = key_for(path, sha256, IDENTITY)
    return {"hosted_uri": f"file:///{key}", "rn": handle_for(path, sha256, IDENTITY), "key": key, "hosted_at": at}


def taken(*versions: dict[str, Any], state: State | None = None, visibility: str = "external") -> Files:
    files = Files(state or State(), IDENTITY, 10)
    log = {"files": [{"physical_path": PATH, "visibility": visibility, "versions": list(versions)}]}
    assert files.take(log) == 0
    return files


def seen(entries: list[Entry]) -> list[str | None]:
    return [entry.fact.sha256 for entry in entries if isinstance(entry, FileSeen)]


def test_a_state_is_seen_before_the_block_that_was_told_next_and_is_gone_at_once() -> None:
    files = taken(version(A, 3), version(B, 5))
    assert list(files.before(2)) == []
    first = list(files.before(3))
    assert [type(entry) for entry in first] == [FileSeen, FileGone]
    assert seen(first) == [A]
    assert list(files.before(4)) == []
    assert seen(list(files.finish())) == [B]


def test_no_two_states_have_one_key() -> None:
    files = taken(version(A, 1), version(B, 1), version(A, 1, call="tc_1"))
    keys = [entry.fact.key for entry in files.finish() if isinstance(entry, FileSeen)]
    assert len(set(keys)) == 3


def test_what_is_hosted_is_said_when_it_was() -> None:
    files = taken(version(A, 1, **hosting(A, 4)), version(B, 6))
    assert [type(entry) for entry in files.before(3)] == [FileSeen, FileGone]
    assert [type(entry) for entry in files.before(5)] == [Hosted]


def test_a_key_of_another_conversation_is_not_taken() -> None:
    stranger = hosting(A, 1) | {"key": "cb/tenants/acme/projects/inn/attachments/registered/bob/c-9/turn_1/x"}
    files = taken(version(A, 1, **stranger))
    assert not [entry for entry in files.finish() if isinstance(entry, Hosted)]


def test_a_state_without_a_hash_is_unfinished_unless_it_is_too_large_for_one() -> None:
    files = taken(version(None, 1), version(None, 2, size_bytes=HASHED_BYTES + 1))
    assert [entry.fact.incomplete for entry in files.finish() if isinstance(entry, FileSeen)] == [True, False]


@pytest.mark.parametrize("visibility", ["internal", "pending", "", None])
def test_what_was_not_external_is_shown_to_nobody(visibility: Any) -> None:
    files = taken(version(A, 1), visibility=visibility)
    assert [entry.visibility for entry in files.finish() if isinstance(entry, FileSeen)] == ["internal"]


def test_the_end_of_a_call_counts_more_than_what_a_block_says() -> None:
    files = taken(version(A, 1), visibility="internal")
    list(files.before(1))
    files.told({"at": "fi:turn_1.files/a.txt", "digest": {"visibility": "external"}})
    (again, gone) = files.finish()
    assert isinstance(again, FileSeen)
    assert again.visibility == "internal"
    assert isinstance(gone, FileGone)


def test_what_is_known_already_is_left_out() -> None:
    story = Story()
    story.begin("turn_1")
    story.see(PATH, "one")
    (known,) = story.log("turn_1")["files"]
    files = Files(story.state, IDENTITY, 10)
    assert files.take({"files": [known]}) == 0
    assert list(files.finish()) == []
    later = {**known, "versions": [*known["versions"], version(B, 7)]}
    files = Files(story.state, IDENTITY, 10)
    files.take({"files": [later]})
    assert seen(list(files.finish())) == [B]


@pytest.mark.parametrize(
    "file",
    [
        7,
        {},
        {"physical_path": "/etc/passwd", "versions": []},
        {"physical_path": "elsewhere.txt", "versions": []},
        {"physical_path": PATH, "versions": 7},
        {"physical_path": PATH, "versions": [{"ts": "x"}]},
        {"physical_path": PATH, "versions": [version(A, 1, size_bytes="big")]},
    ],
)
def test_what_cannot_be_read_is_counted(file: Any) -> None:
    files = Files(State(), IDENTITY, 10)
    assert files.take({"files": [file]}) == 1
    assert list(files.finish()) == []
