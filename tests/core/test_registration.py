"""Whose a complete file is, who may know of it, and which number it gets."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.core import limits
from sidecar.core.artifacts import Artifacts, Visibility
from sidecar.core.entries import Entry, FileGone, FileSeen, SourceSet
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.paths import FilePath, parse_physical
from sidecar.core.registration import file_row, in_order, register, settle
from sidecar.core.sources import SourcesPool, plan_merge

ELIGIBLE = ("text/*", "image/*", "application/pdf")
A = "turn_1/files/a.txt"


def fact(path: str = A, sha256: str | None = "aa", mime: str = "text/plain", **more: Any) -> FileFact:
    return FileFact(path, StatKey(1, 2, more.pop("size", 3), more.pop("mtime", 4), 5), sha256, mime, **more)


class World:
    """Artifacts and pool; what is registered is applied at once."""

    def __init__(self) -> None:
        self.artifacts = Artifacts()
        self.pool = SourcesPool()
        self.clock = 0.0

    def apply(self, entries: list[Entry]) -> list[Entry]:
        for entry in entries:
            match entry:
                case FileSeen(seen, ts, call, visibility):
                    self.artifacts.see(parse_physical(seen.path), seen, ts=ts, call=call, visibility=visibility)
                case FileGone(path):
                    self.artifacts.lose(parse_physical(path))
                case SourceSet(row):
                    self.pool.settle(row, 0)
                case _:
                    raise AssertionError(entry)
        return entries

    def register(self, *facts: FileFact, calls: tuple[str, ...] = ()) -> list[Entry]:
        self.clock += 1
        return self.apply(
            register(
                facts,
                artifacts=self.artifacts,
                pool=self.pool,
                open_calls=dict.fromkeys(calls, "turn_1"),
                eligible=ELIGIBLE,
                ts=self.clock,
            )
        )

    def settle(self, call: str, *wanted: tuple[str, Visibility]) -> list[Entry]:
        self.clock += 1
        wishes = dict(wanted)
        made = in_order(self.artifacts.at(parse_physical(path)) for path in wishes)
        produced = [(one, wishes[one.path.physical], call) for one in made]
        return self.apply(settle(produced, artifacts=self.artifacts, pool=self.pool, eligible=ELIGIBLE, ts=self.clock))

    def seen(self, path: str = A) -> tuple[str, str, str]:
        """Visibility, owner of what is pending, and call of the latest version."""
        artifact = self.artifacts.at(parse_physical(path))
        return artifact.visibility, artifact.owner, artifact.latest.call


def rows(entries: list[Entry]) -> list[tuple[int, str]]:
    return [(entry.row["sid"], entry.row["physical_path"]) for entry in entries if isinstance(entry, SourceSet)]


@pytest.mark.rule("watch.files-outside-a-call-are-external")
def test_a_file_outside_every_call_is_external_and_numbered_at_once() -> None:
    world = World()
    assert rows(world.register(fact())) == [(1, A)]
    assert world.seen() == ("external", "", "")


@pytest.mark.rule("watch.files-of-an-open-call-are-pending", "watch.a-file-belongs-to-the-one-open-call")
@pytest.mark.parametrize(
    ("calls", "seen"), [(("tc_1",), ("pending", "tc_1", "tc_1")), (("tc_1", "tc_2"), ("pending", "", ""))]
)
def test_a_file_of_an_open_call_is_pending_and_has_no_number(
    calls: tuple[str, ...], seen: tuple[str, str, str]
) -> None:
    world = World()
    assert rows(world.register(fact(), calls=calls)) == []
    assert world.seen() == seen


def test_a_pending_file_that_is_only_touched_stays_its_makers() -> None:
    world = World()
    world.register(fact(), calls=("tc_1",))
    world.register(fact(mtime=9), calls=("tc_1", "tc_2"))
    assert world.seen() == ("pending", "tc_1", "tc_1")


def test_a_pending_file_that_another_call_may_have_changed_is_nobodys() -> None:
    world = World()
    world.register(fact(), calls=("tc_1",))
    world.register(fact(sha256="bb"), calls=("tc_1", "tc_2"))
    assert world.seen() == ("pending", "", "")


@pytest.mark.rule("watch.touching-changes-nothing")
@pytest.mark.parametrize("calls", [(), ("tc_1",), ("tc_1", "tc_2")])
def test_touching_and_bringing_back_is_nobodys_work(calls: tuple[str, ...]) -> None:
    world = World()
    world.register(fact())
    world.register(fact(mtime=9), calls=calls)
    world.artifacts.lose(parse_physical(A))
    world.register(fact(mtime=10), calls=calls)
    assert world.seen() == ("external", "", "")
    assert len(world.artifacts.at(parse_physical(A)).versions) == 1


@pytest.mark.parametrize("calls", [(), ("tc_1",), ("tc_1", "tc_2")])
def test_an_internal_file_stays_internal_when_it_changes(calls: tuple[str, ...]) -> None:
    world = World()
    world.register(fact(), calls=("tc_0",))
    world.settle("tc_0", (A, "internal"))
    assert rows(world.register(fact(sha256="bb"), calls=calls)) == []
    assert world.seen()[0] == "internal"


def test_the_end_of_a_call_numbers_what_it_made_in_order_of_path() -> None:
    world = World()
    names = ["turn_1/files/é.txt", "turn_1/files/b.txt", "turn_1/files/Z.txt", "turn_1/files/data.zip"]
    world.register(
        *(fact(name, mime="application/zip" if name.endswith("zip") else "text/plain") for name in names),
        calls=("tc_1",),
    )
    entries = world.settle("tc_1", *((name, "external") for name in names))
    assert rows(entries) == [(1, "turn_1/files/Z.txt"), (2, "turn_1/files/b.txt"), (3, "turn_1/files/é.txt")]
    assert world.seen("turn_1/files/data.zip") == ("external", "", "tc_1")


@pytest.mark.rule("sources.internal-files-get-no-sid")
def test_what_a_call_made_for_nobody_to_see_gets_no_number() -> None:
    world = World()
    world.register(fact(), calls=("tc_1",))
    assert rows(world.settle("tc_1", (A, "internal"))) == []
    assert world.seen() == ("internal", "", "tc_1")


def test_a_call_may_make_more_files_than_a_merge_may_hold() -> None:
    world = World()
    names = [f"turn_1/files/{number:05}.txt" for number in range(limits.MERGE_ROWS + 5)]
    world.register(*(fact(name) for name in names), calls=("tc_1",))
    assert len(rows(world.settle("tc_1", *((name, "external") for name in names)))) == len(names)


def test_what_a_call_made_and_deleted_again_is_not_on_disk_after_it() -> None:
    world = World()
    world.register(fact(), calls=("tc_1",))
    world.artifacts.lose(parse_physical(A))
    world.settle("tc_1", (A, "external"))
    assert not world.artifacts.at(parse_physical(A)).on_disk
    assert world.seen()[0] == "external"


def test_the_end_of_a_call_makes_no_version_of_its_own() -> None:
    world = World()
    world.register(fact(sha256=None), calls=("tc_1",))
    world.settle("tc_1", (A, "external"))
    assert len(world.artifacts.at(parse_physical(A)).versions) == 1


@pytest.mark.rule("sources.one-file-one-sid")
def test_one_file_has_one_number_however_often_it_changes() -> None:
    world = World()
    world.register(fact())
    entries = world.register(fact(sha256="bb", size=99, mtime=9, mime="text/markdown"))
    assert rows(entries) == [(1, A)]
    row = world.pool.get(1) or {}
    assert (row["size_bytes"], row["mime"]) == (99, "text/markdown")


def test_a_row_that_says_the_same_is_not_told_again() -> None:
    world = World()
    world.register(fact())
    assert rows(world.register(fact(sha256="bb", mtime=9))) == []


def test_a_told_title_is_better_than_the_name_of_the_file() -> None:
    world = World()
    told = {"physical_path": A, "title": "T", "hosted_uri": "s3://b/k", "x": 1}
    world.apply([SourceSet(row) for row in plan_merge(world.pool, [told], proposals=True).changed])
    world.register(fact())
    row = world.pool.get(1) or {}
    assert (row["title"], row["hosted_uri"], row["x"], row["size_bytes"]) == ("T", "s3://b/k", 1, 3)


@pytest.mark.rule("sources.other-files-are-artifacts-without-sid")
@pytest.mark.parametrize(
    "one", [fact(mime="application/zip"), fact(mime="application/json"), fact(sha256=None, incomplete=True)]
)
def test_what_is_not_citable_or_not_complete_is_an_artifact_without_a_number(one: FileFact) -> None:
    world = World()
    assert rows(world.register(one)) == []
    assert world.artifacts.at(parse_physical(A)).versions


@pytest.mark.rule("sources.files-are-opened-by-physical-path")
@pytest.mark.parametrize(
    ("path", "source_type", "artifact_path", "title"),
    [
        ("turn_1/files/sub/a.txt", "file", "fi:turn_1.files/sub/a.txt", "a.txt"),
        ("turn_1/attachments/m.pdf", "attachment", "fi:turn_1.user.attachments/m.pdf", "m.pdf"),
    ],
)
def test_the_row_of_a_file_says_where_it_is_and_what(
    path: str, source_type: str, artifact_path: str, title: str
) -> None:
    parsed = parse_physical(path)
    assert isinstance(parsed, FilePath)
    assert file_row(parsed, fact(path, mime="a/b")) == {
        "source_type": source_type,
        "title": title,
        "physical_path": path,
        "artifact_path": artifact_path,
        "mime": "a/b",
        "size_bytes": 3,
        "turn_id": "turn_1",
    }


def test_many_files_are_numbered_in_order() -> None:
    world = World()
    paths = [f"turn_1/files/{number:04}.txt" for number in range(131)]
    world.register(*(fact(path, sha256=path) for path in paths), calls=("tc_1",))
    settled = world.settle("tc_1", *((path, "external") for path in paths))
    assert rows(settled) == [(at + 1, path) for at, path in enumerate(paths)]
