"""A look finds what is complete, tells each oddity once, and never registers half a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sidecar.core.blocks import Defaults, tell
from sidecar.core.entries import BlockTold, CallBegun, CallEnded, Entry, FileGone, FolderAdopted, SourceSet, TurnBegun
from sidecar.core.errors import JournalUnavailable, ShuttingDown, UnsafePath
from sidecar.core.happened import Happened
from sidecar.core.inventory import Survey
from sidecar.core.paths import parse_physical
from sidecar.core.sources import plan_merge
from sidecar.looking import Looker
from sidecar.stores.blobs import Blobs
from sidecar.stores.outdir import OutDir
from sidecar.workspace import Workspace
from tests.memory_journal import MemoryJournal
from tests.server.inside import awake

ELIGIBLE = ("text/*", "image/*", "application/pdf")
CEILING = 5.0


class CountingOutDir(OutDir):
    """The real OUT_DIR, which notes where it was looked at and can be made to wait there."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.surveyed: list[str] = []
        self.before_survey: Callable[[], Any] = lambda: None

    def survey(self, scope: str = "") -> Survey:
        self.surveyed.append(scope)
        self.before_survey()
        return super().survey(scope)


class House:
    """A workspace over a real folder, with a looker that runs."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "out"
        self.root.mkdir()
        self.journal = MemoryJournal()
        self.workspace = Workspace(self.journal)
        self.outdir = CountingOutDir(str(self.root))
        self.looker = Looker(self.workspace, self.outdir, Blobs(str(folder)), eligible=ELIGIBLE)
        self.heard: list[Happened] = []
        self.workspace.listeners.append(self.heard.append)

    def write(self, path: str, text: str = "x") -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        return target

    async def sync(self) -> None:
        """Look until nobody writes to anything any more; very young files count as written to."""
        async with asyncio.timeout(CEILING):
            await self.looker.look("")
            while self.looker.busy:
                await self.looker.look("")

    async def until(self, there: Callable[[], Any]) -> None:
        async with asyncio.timeout(CEILING):
            while not there():
                await self.looker.look("nowhere")

    def seen(self, path: str) -> Any:
        artifact = self.workspace.artifact(parse_physical(path))
        return artifact if artifact is not None and artifact.versions else None

    def visibility(self, path: str) -> str:
        return self.seen(path).visibility

    def sids(self, paths: Iterable[str]) -> list[int | None]:
        return [self.seen(path).sid for path in paths]

    def notices(self) -> list[tuple[str, str]]:
        return [
            (said["code"], said.get("name") or said.get("path") or "") for one in self.heard for said in one.notices
        ]

    async def begin_call(self, call: str) -> None:
        await self.workspace.stage(CallBegun(call, "turn_1", "tool", 1.0))

    async def end_call(self, call: str) -> None:
        await self.workspace.stage(CallEnded(call, 1.0))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path)
    running = asyncio.get_running_loop().create_task(made.looker.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


A, B = "turn_1/files/a.txt", "turn_1/files/b.txt"


@pytest.mark.rule("watch.every-complete-file-is-registered", "sources.files-register-themselves")
async def test_everything_complete_before_the_look_is_registered_after_it(house: House) -> None:
    paths = [A, "turn_1/attachments/m.md", "turn_2/files/deep/er/c.md", "turn_2/files/data.zip"]
    for path in paths:
        house.write(path, "PK\x03\x04" if path.endswith("zip") else "x")
    await house.sync()
    assert sorted(house.workspace.files) == sorted(paths)
    assert all(house.seen(path).latest.sha256 for path in paths)
    assert sorted(sid or 0 for sid in house.sids(paths)) == [0, 1, 2, 3]
    assert house.seen("turn_2/files/data.zip").sid is None


async def test_files_are_numbered_in_order_of_time_then_name(house: House) -> None:
    for at, name in enumerate(["c", "a", "b"]):
        os.utime(house.write(f"turn_1/files/{name}.txt"), ns=(1000, 1000 if at < 2 else 2000))
    await house.sync()
    assert house.sids(f"turn_1/files/{name}.txt" for name in "acb") == [1, 2, 3]


async def test_looking_again_changes_nothing(house: House) -> None:
    house.write(A)
    await house.sync()
    revision = house.workspace.revision
    await house.sync()
    assert house.workspace.revision == revision


async def test_a_change_is_a_version_and_keeps_its_number(house: House) -> None:
    house.write(A, "one")
    await house.sync()
    house.write(A, "two!")
    await house.sync()
    artifact = house.seen(A)
    assert (len(artifact.versions), artifact.sid) == (2, 1)
    assert (house.workspace.pool.get(1) or {})["size_bytes"] == 4


@pytest.mark.rule("watch.deleted-files-stay-artifacts")
async def test_a_file_that_is_gone_stays_an_artifact(house: House) -> None:
    written = house.write(A)
    await house.sync()
    written.unlink()
    await house.looker.look("turn_1")
    assert (house.seen(A).on_disk, house.workspace.files) == (False, {})
    assert house.workspace.pool.get(1) is not None


async def test_a_file_in_whose_place_a_link_was_put_is_gone(house: House) -> None:
    written = house.write(A)
    await house.sync()
    written.unlink()
    written.symlink_to("/etc/hostname")
    await house.sync()
    assert not house.seen(A).on_disk


@pytest.mark.rule("watch.vanishing-entries-harm-nothing")
async def test_a_file_that_vanishes_while_it_is_read_is_gone_and_not_current(house: House) -> None:
    written = house.write(A)
    await house.sync()
    house.write(A, "changed")
    read = house.outdir.take_in_all

    def vanishing(paths: Any, blobs: Any) -> Any:
        written.unlink(missing_ok=True)
        return read(paths, blobs)

    house.outdir.take_in_all = vanishing  # type: ignore[method-assign]
    await house.sync()
    assert not house.seen(A).on_disk


async def test_a_file_that_comes_back_behind_a_look_is_not_gone(house: House) -> None:
    written = house.write(A)
    await house.sync()
    known, loop, survey = house.seen(A).fact, asyncio.get_running_loop(), house.outdir.survey
    written.unlink()

    def and_back(scope: str = "") -> Survey:
        found = survey(scope)
        house.outdir.survey = survey  # type: ignore[method-assign]
        house.write(A)
        key = house.outdir.key(A)
        assert key is not None
        asyncio.run_coroutine_threadsafe(house.looker.tell(replace(known, key=key)), loop).result(CEILING)
        return found

    house.outdir.survey = and_back  # type: ignore[method-assign]
    await house.looker.look("")
    assert (house.seen(A).on_disk, house.workspace.files[A]) == (True, house.outdir.key(A))


async def test_a_look_that_was_under_way_is_not_the_answer_to_a_later_question(house: House) -> None:
    loop = asyncio.get_running_loop()
    reached, go_on = asyncio.Event(), asyncio.Event()

    def wait_in_survey() -> None:
        house.outdir.before_survey = lambda: None
        survey = asyncio.run_coroutine_threadsafe(_meet(reached, go_on), loop)
        survey.result(CEILING)

    house.outdir.before_survey = wait_in_survey
    first = loop.create_task(house.looker.look(""))
    await asyncio.wait_for(reached.wait(), CEILING)
    later = [loop.create_task(house.looker.look("turn_1")) for _ in range(5)]
    later.append(loop.create_task(house.looker.look("turn_2")))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait_for(asyncio.gather(first, *later), CEILING)
    assert house.outdir.surveyed == ["", "turn_1", "turn_2"], "one look for all who asked meanwhile"


async def _meet(reached: asyncio.Event, go_on: asyncio.Event) -> None:
    reached.set()
    await go_on.wait()


@pytest.mark.parametrize(
    ("asked", "surveyed"),
    [
        (["", "turn_1"], [""]),
        (["turn_1/files", "turn_1", "turn_10"], ["turn_1", "turn_10"]),
        (["turn_1/files/a/b", "turn_1/files/a-b"], ["turn_1/files/a-b", "turn_1/files/a/b"]),
    ],
)
async def test_no_folder_is_surveyed_twice_in_one_look(house: House, asked: list[str], surveyed: list[str]) -> None:
    await house.looker.look(*asked)
    assert house.outdir.surveyed == surveyed


async def test_a_caller_that_leaves_does_not_stop_the_look(house: House) -> None:
    house.write(A)
    leaving = asyncio.get_running_loop().create_task(house.looker.look(""))
    await asyncio.sleep(0)
    leaving.cancel()
    await house.sync()
    assert house.seen(A)


@pytest.mark.rule("watch.no-half-file-is-registered")
async def test_a_file_that_is_written_to_is_not_registered_until_it_is_closed(house: House) -> None:
    house.write(B)
    with open(house.write(A, ""), "w", encoding="utf-8") as writer:
        writer.write("half")
        writer.flush()
        await house.looker.look("")
        await house.until(lambda: house.seen(B))
        assert list(house.looker.busy) == [A]
        assert house.seen(A) is None
        assert await house.looker.wait_closed(0.0) == (A,)
        writer.write(" and half")
    assert await house.looker.wait_closed(CEILING) == ()
    assert house.seen(A).latest.size == len("half and half")
    assert len(house.seen(A).versions) == 1


async def test_a_busy_file_is_asked_again_without_anybody_asking(house: House) -> None:
    with open(house.write(A, ""), "w", encoding="utf-8") as writer:
        writer.write("x")
        writer.flush()
        await house.looker.look("")
        assert house.seen(A) is None
    async with asyncio.timeout(CEILING):
        while house.seen(A) is None:
            await asyncio.get_running_loop().run_in_executor(None, house.outdir.key, A)  # lets the loop go on


async def test_a_busy_file_that_vanishes_is_no_longer_waited_for(house: House) -> None:
    target = house.write(A, "")
    with open(target, "w", encoding="utf-8"):
        await house.looker.look("")
        target.unlink()
    assert await house.looker.wait_closed(CEILING) == ()
    assert house.seen(A) is None


@pytest.mark.rule("paths.non-utf8-names-are-no-artifacts")
async def test_each_oddity_is_told_once(house: House) -> None:
    folder = house.root / "turn_1/files"
    folder.mkdir(parents=True)
    (folder / "link").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    (folder / "a\nb").write_text("x", "utf-8")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff")).write_text("x", "utf-8")
    house.write("turn_1.files/x")
    house.write("turn_1.files/files/x")
    house.write("t.code.tc_1")
    for _ in range(3):
        await house.sync()
    assert sorted(house.notices()) == [
        ("link_skipped", "turn_1/files/link"),
        ("name_not_utf8", "turn_1/files/%FF"),
        ("name_unsafe", "turn_1/files/a%0Ab"),
        ("path_ambiguous", "t.code.tc_1"),
        ("path_ambiguous", "turn_1.files/files/x"),
        ("path_ambiguous", "turn_1.files/x"),
        ("special_skipped", "turn_1/files/pipe"),
    ]
    assert len(house.workspace.artifacts) == 0


async def test_an_oddity_whose_notice_was_refused_is_told_by_the_next_look(house: House) -> None:
    house.write("t.code.tc_1")
    house.journal.refusing = True
    with pytest.raises(JournalUnavailable):
        await house.looker.look("")
    house.journal.refusing = False
    await house.looker.look("")
    assert house.notices() == [("path_ambiguous", "t.code.tc_1")]


async def test_what_a_refused_look_found_is_found_again(house: House) -> None:
    house.write(A)
    house.journal.refusing = True
    with pytest.raises(JournalUnavailable):
        await house.sync()
    assert house.seen(A) is None
    house.journal.refusing = False
    await house.sync()
    assert house.seen(A).sid == 1


@pytest.mark.rule("watch.others-are-generic-until-named", "watch.four-names-are-never-turns")
async def test_files_of_other_folders_are_no_artifacts_until_a_turn_is_named_so(house: House) -> None:
    for path in ("mine/files/a.txt", "logs/files/a.txt", "mine/other.txt", "loose.txt"):
        house.write(path)
    await house.sync()
    assert house.workspace.files == {}
    await house.workspace.stage(BlockTold(tell({"type": "note"}, Defaults("mine", 1.0))))
    await house.until(lambda: house.seen("mine/files/a.txt"))
    assert list(house.workspace.files) == ["mine/files/a.txt"]


async def test_a_turn_that_begins_takes_in_the_folder_that_is_there_already(house: House) -> None:
    house.write("mine/files/a.txt")
    await house.sync()
    note = BlockTold(tell({"type": "turn.header"}, Defaults("mine", 1.0)))
    await house.workspace.stage(TurnBegun("mine", 1.0, ""), note)
    await house.until(lambda: house.seen("mine/files/a.txt"))


@pytest.mark.rule("watch.turns-of-a-workspace-without-a-timeline")
async def test_folders_of_the_right_shape_can_be_adopted_as_turns(house: House) -> None:
    for path in ("old/files/a.txt", "old2/attachments/b.txt", "logs/files/x", "odd.name/files/x", "other/x.txt", A):
        house.write(path)
    turns = await house.looker.turns_there()
    assert turns == ("old", "old2"), "turn_1 is one by its name"
    await house.workspace.stage(*(FolderAdopted(turn) for turn in turns))
    await house.sync()
    assert sorted(house.workspace.files) == ["old/files/a.txt", "old2/attachments/b.txt", A]
    house.write("late/files/a.txt")
    await house.sync()
    assert "late/files/a.txt" not in house.workspace.files


async def test_outside_every_call_a_file_is_external_and_numbered(house: House) -> None:
    house.write(A)
    await house.sync()
    assert (house.visibility(A), house.seen(A).sid) == ("external", 1)


async def test_what_one_open_call_makes_is_its_own_and_pending(house: House) -> None:
    await house.begin_call("tc_1")
    house.write(A)
    await house.sync()
    artifact = house.seen(A)
    assert (artifact.visibility, artifact.owner, artifact.sid) == ("pending", "tc_1", None)
    assert artifact.latest.call == "tc_1"


async def test_what_appears_while_several_calls_are_open_is_nobodys_yet(house: House) -> None:
    await house.begin_call("tc_1")
    await house.begin_call("tc_2")
    house.write(A)
    await house.sync()
    assert (house.visibility(A), house.seen(A).owner) == ("pending", "")


async def test_a_file_registered_while_its_call_ended_is_settled_by_the_look(house: House) -> None:
    await house.begin_call("tc_1")
    house.write(A)
    await house.sync()
    await house.end_call("tc_1")
    await house.looker.look("nowhere")
    artifact = house.seen(A)
    assert (artifact.visibility, artifact.sid, artifact.latest.call) == ("external", 1, "tc_1")
    assert len(artifact.versions) == 1


async def test_a_number_given_by_the_runtime_is_the_files_number(house: House) -> None:
    planned = plan_merge(house.workspace.pool, [{"sid": 40, "physical_path": A}], proposals=True)
    await house.workspace.stage(*(SourceSet(row) for row in planned.changed))
    house.write(A)
    await house.sync()
    assert house.seen(A).sid == 40
    assert list(house.workspace.pool.sids) == [40]


async def test_one_file_can_be_looked_at_alone(house: House) -> None:
    written = house.write(A)
    path = parse_physical(A)
    async with asyncio.timeout(CEILING):
        while house.seen(A) is None:
            key = await house.looker.look_at(path)
    assert house.outdir.surveyed == []
    assert key == house.workspace.files[A]
    written.unlink()
    assert await house.looker.look_at(path) is None
    assert not house.seen(A).on_disk
    assert await house.looker.look_at(parse_physical(B)) is None


async def test_looking_at_a_file_of_no_turn_registers_nothing(house: House) -> None:
    house.write("logs/out.log")
    assert await house.looker.look_at(parse_physical("logs/out.log")) is not None
    assert len(house.workspace.artifacts) == 0


async def test_looking_at_a_link_is_refused(house: House) -> None:
    (house.root / "turn_1").symlink_to("/etc")
    with pytest.raises(UnsafePath):
        await house.looker.look_at(parse_physical(A))


async def test_only_folders_of_turns_are_watched_and_lost_ones_are_forgotten(house: House) -> None:
    told: list[frozenset[str]] = []
    house.looker.on_folders = told.append
    house.write("turn_1/files/sub/a.txt")
    house.write("logs/x")
    await house.sync()
    assert told == [frozenset({"", "turn_1", "turn_1/files", "turn_1/files/sub"})]
    (house.root / "turn_1/files/sub/a.txt").unlink()
    (house.root / "turn_1/files/sub").rmdir()
    await house.looker.look("turn_1/files")
    assert told[1:] == [frozenset({"", "turn_1", "turn_1/files"})]


async def test_the_bell_hears_what_it_overlooked_and_only_that(house: House) -> None:
    overlooked: list[set[str]] = []
    house.looker.on_overlooked = overlooked.append
    house.write(A)
    await house.sync()
    assert overlooked == []
    house.write("turn_1/files/new/b.txt")
    await house.looker.reconcile()
    assert overlooked[0] == {"turn_1/files/new"}


async def test_whoever_waits_when_the_looking_ends_is_told(tmp_path: Path) -> None:
    house = House(tmp_path)
    loop = asyncio.get_running_loop()
    running = loop.create_task(house.looker.run())
    reached, go_on = asyncio.Event(), asyncio.Event()
    house.outdir.before_survey = lambda: asyncio.run_coroutine_threadsafe(_meet(reached, go_on), loop).result(CEILING)
    under_way = loop.create_task(house.looker.look(""))
    await asyncio.wait_for(reached.wait(), CEILING)
    waiting = loop.create_task(house.looker.look(""))
    await asyncio.sleep(0)
    running.cancel()
    answers = await asyncio.wait_for(asyncio.gather(under_way, waiting, return_exceptions=True), CEILING)
    assert [type(answer) for answer in answers] == [ShuttingDown, ShuttingDown]
    go_on.set()


async def test_of_many_that_are_gone_one_that_is_back_meanwhile_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.looking.GONE_AT_ONCE", 1)
    paths = [f"turn_1/files/{name}.txt" for name in "abcd"]
    async with awake(tmp_path) as inside:
        await inside.begin()
        for path in paths:
            inside.write(path, path)
        await inside.sync()
        for path in paths:
            (inside.out / path).unlink()
        stage, told = inside.workspace.stage, list[Entry]()

        def slowly(*entries: Entry, **more: Any) -> Any:
            durable = stage(*entries, **more)
            if told or not any(isinstance(entry, FileGone) for entry in entries):
                return durable
            told.extend(entries)
            back = inside.ask("artifact/rehost", {"paths": paths[-1:]})
            return asyncio.gather(durable, asyncio.ensure_future(back))

        monkeypatch.setattr(inside.workspace, "stage", slowly)
        await inside.sync()
        resolved = await inside.ask("artifact/resolve", {"paths": paths})
        assert [one["artifact"]["on_disk"] for one in resolved["results"]] == [False, False, False, True]
