"""With the bell alone, no reconciling and no sync, nothing that happens in OUT_DIR stays unseen."""

from __future__ import annotations

import asyncio
import mmap
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from sidecar.core.inventory import Survey
from sidecar.stores import bell as module
from sidecar.stores.bell import EVERYWHERE, Bell
from sidecar.stores.outdir import OutDir
from sidecar.stores.roster import Roster
from sidecar.stores.watch import Stir, Watch, WatchRefused

CEILING = 5.0


async def until(says: Callable[[], object]) -> None:
    """Wait until it is so, under a ceiling."""
    async with asyncio.timeout(CEILING):
        while not says():  # noqa: ASYNC110 - it is the disk that is waited for, and it sets no event
            await asyncio.sleep(0.005)


class Ground:
    """OUT_DIR with a bell over it, and somebody who looks where it rings."""

    def __init__(self, root: Path, roster: Roster | None = None) -> None:
        root.mkdir(exist_ok=True)
        self.root = root
        self.outdir = OutDir(str(root))
        self.rings: list[frozenset[str]] = []
        self.files: set[str] = set()
        self.folders: set[str] = {""}
        self.bell = Bell(str(root), self._ring, roster)

    def _ring(self, scopes: frozenset[str]) -> None:
        self.rings.append(scopes)
        for scope in scopes:
            self._remember(self.outdir.survey(scope))

    def _remember(self, survey: Survey) -> None:
        self.files.update(survey.files)
        below = {folder for folder in self.folders if survey.scope == "" or f"{folder}/".startswith(f"{survey.scope}/")}
        folders = (self.folders - below) | set(survey.folders)
        if folders != self.folders:
            self.folders = folders
            self.bell.set_folders(folders)

    def write(self, *names: str) -> None:
        for name in names:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_bytes(b"x")

    def write_undecodable(self, folder: str) -> None:
        os.close(os.open(os.fsencode(self.root / folder) + b"/\xff", os.O_CREAT | os.O_WRONLY))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        run = asyncio.create_task(self.bell.run())
        try:
            await until(lambda: self.bell._watches or self.bell.state == "lost" or run.done())
            yield
        finally:
            run.cancel()
            with suppress(asyncio.CancelledError):
                await run

    async def heard(self, *names: str) -> None:
        """Write files one after the other, each when the one before was seen."""
        for name in names:
            self.write(name)
            await until(lambda name=name: name in self.files)

    async def silence(self, seconds: float) -> None:
        """Until nothing has rung for this long."""
        loop = asyncio.get_running_loop()
        count, since = len(self.rings), loop.time()

        def is_silent() -> bool:
            nonlocal count, since
            if len(self.rings) != count:
                count, since = len(self.rings), loop.time()
            return loop.time() - since >= seconds

        await until(is_silent)

    async def settled(self) -> None:
        """Until everything is watched that is known."""
        await until(lambda: all(self.bell._roster.is_watched(folder) for folder in self.folders))


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """See to OUT_DIR more often than is useful, so that nobody waits for it here."""
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.3)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path / "out")


# Nothing is lost ---------------------------------------------------------------------------------------------------


def new_folders(root: Path) -> int:
    for number in range(40):
        (root / f"turn_{number}" / "files").mkdir(parents=True)
        (root / f"turn_{number}" / "files" / "a").write_bytes(b"x")
    return 40


def nested_folders(root: Path) -> int:
    for number in range(200):
        folder = root / "turn_1" / "files" / f"{number}" / "deep" / "er"
        folder.mkdir(parents=True)
        for name in "abc":
            (folder / name).write_bytes(b"x")
    return 600


def renamed_into_place(root: Path) -> int:
    aside = root.parent / "aside"
    (aside / "deep").mkdir(parents=True)
    for number in range(500):
        (aside / str(number)).write_bytes(b"x")
        (aside / "deep" / str(number)).write_bytes(b"x")
    aside.rename(root / "turn_1")
    return 1000


def burst(root: Path) -> int:
    for folder in range(100):
        (root / f"turn_{folder}").mkdir()
    for number in range(10_000):
        if number == 5000:
            os.close(os.open(os.fsencode(root) + b"/turn_7/caf\xe9", os.O_CREAT | os.O_WRONLY))
        (root / f"turn_{number % 100}" / str(number)).write_bytes(b"x")
    return 10_000


def replaced_folders(root: Path) -> int:
    for number in range(60):
        shutil.rmtree(root / "turn_1", ignore_errors=True)
        (root / "turn_1" / "files").mkdir(parents=True)
        (root / "turn_1" / "files" / f"{number}").write_bytes(b"x")
    for number in range(60, 100):
        (root / "turn_1" / "files" / f"{number}").write_bytes(b"x")
    return 41


WORKLOADS = [new_folders, nested_folders, renamed_into_place, burst, replaced_folders]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.__name__)
async def test_no_file_is_lost(ground: Ground, workload: Callable[[Path], int]) -> None:
    async with ground.running():
        count = await asyncio.to_thread(workload, ground.root)
        on_disk = {str(path.relative_to(ground.root)) for path in ground.root.rglob("*") if path.is_file()}
        on_disk = {path for path in on_disk if path.isprintable()}
        assert len(on_disk) >= count
        await until(lambda: ground.files >= on_disk)
        # A queue that ran over has the watch built anew, and while that is under way the state says so.
        await until(lambda: ground.bell.state == "ok")
        await ground.heard("turn_1/last", "last")


async def test_a_change_rings_for_its_folder(ground: Ground) -> None:
    ground.write("turn_1/files/a")
    ground.bell.set_folders(ground.outdir.survey().folders)
    async with ground.running():
        await ground.settled()
        await ground.heard("turn_1/files/b")
        assert frozenset({"turn_1/files"}) in ground.rings


async def test_the_ring_comes_on_the_loop(ground: Ground) -> None:
    threads: set[int] = set()
    remember = ground._remember
    ground._remember = lambda survey: (threads.add(threading.get_ident()), remember(survey))[1]  # type: ignore[method-assign]
    async with ground.running():
        await ground.heard("a", "turn_1/b")
    assert threads == {threading.get_ident()}


async def test_a_folder_that_comes_under_watch_is_rung_for(ground: Ground) -> None:
    ground.write("turn_1/files/a")
    rings: list[frozenset[str]] = []
    ground.bell = Bell(str(ground.root), rings.append)
    async with ground.running():
        await until(lambda: rings)
        rings.clear()
        ground.bell.set_folders(["turn_1", "turn_1/files"])
        await until(lambda: rings)
        assert rings[0] == {"turn_1", "turn_1/files"}


async def test_a_folder_replaced_by_another_of_its_name_is_watched_without_being_told(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK_SECONDS", 60.0)
    async with ground.running():
        await ground.heard("turn_1/files/a")
        await ground.settled()
        ground.bell.set_folders = lambda _: None  # type: ignore[method-assign]
        shutil.rmtree(ground.root / "turn_1")
        await ground.heard("turn_1/files/b")
        await ground.silence(0.2)
        await ground.heard("turn_1/files/c")


async def test_a_folder_no_longer_wanted_is_not_watched(ground: Ground) -> None:
    async with ground.running():
        await ground.heard("turn_1/a")
        await ground.settled()
        ground.bell.set_folders([])
        assert not ground.bell._roster.is_watched("turn_1")


# Watches that die ----------------------------------------------------------------------------------------------------


async def test_a_name_that_is_not_utf8_costs_one_watch(ground: Ground) -> None:
    async with ground.running():
        await ground.heard("turn_1/a", "turn_2/a")
        await ground.settled()
        ground.write_undecodable("turn_1")
        await until(lambda: ground.bell.rebuilds)
        await ground.heard("turn_1/b", "turn_2/b", "turn_3/a")
        assert ground.bell.state == "ok"


async def test_a_folder_with_such_names_all_the_time_is_left_alone_for_the_others(ground: Ground) -> None:
    async with ground.running():
        await ground.heard("turn_1/a", "turn_2/a")
        await ground.settled()

        def dies() -> bool:
            ground.write_undecodable("turn_1")
            return bool(ground.bell._roster.resting)

        await until(dies)
        assert ground.bell.state == "degraded"
        assert "turn_1" in ground.bell.reason
        rebuilds = ground.bell.rebuilds
        for _ in range(20):
            ground.write_undecodable("turn_1")
        await ground.heard("turn_2/b", "turn_3/c")
        assert ground.bell.rebuilds == rebuilds


async def test_a_bell_that_dies_again_and_again_polls_and_then_tries_anew(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "culprit", lambda *_: None)
    monkeypatch.setattr(module, "MINUTE", 0.5)
    async with ground.running():

        def dies() -> bool:
            ground.write_undecodable("")
            return ground.bell.state == "polling"

        await until(dies)
        assert "decode" in ground.bell.reason
        assert ground.bell.rebuilds == 6
        assert ground.rings[-1] == EVERYWHERE
        await until(lambda: ground.bell.state == "ok")
        await ground.heard("turn_1/a", "turn_1/b")


@pytest.mark.rule("watch.a-dead-watch-is-restarted")
async def test_a_watch_that_dies_at_its_birth_is_replaced(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    build, born = module.watch, 0

    def stillborn(root: str, folders: tuple[str, ...], on_stir: object, on_end: Callable[[Watch, str], None]) -> object:
        nonlocal born
        one = build(root, folders, on_stir, on_end)  # type: ignore[arg-type]
        born += 1
        if one is not None and born == 1:
            one.stop()
            one.join()
            on_end(one, "died young")
        return one

    monkeypatch.setattr(module, "watch", stillborn)
    async with ground.running():
        await ground.heard("a", "turn_1/b")
    assert born >= 2


@pytest.mark.rule("watch.overflow-loses-nothing")
async def test_lost_events_ring_for_everything_and_renew_the_watches(ground: Ground) -> None:
    async with ground.running():
        await ground.heard("turn_1/a")
        await ground.settled()
        await until(lambda: len(ground.bell._watches) == 1)  # one alone is not folded any more
        before = set(ground.bell._watches)
        ground.rings.clear()
        ground.bell._renewed_at = -100.0
        ground.bell._hear(Stir(frozenset({"turn_1"}), frozenset(), is_full=True))
        assert ground.rings == [EVERYWHERE]
        await until(lambda: not before & ground.bell._watches and ground.bell._watches)
        await ground.settled()
        await ground.heard("turn_1/b")


async def test_a_system_that_refuses_watches_is_polled(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    build, refusing = module.watch, True

    def limited(*args: object) -> object:
        if refusing:
            raise WatchRefused("OS file watch limit reached.")
        return build(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "watch", limited)
    monkeypatch.setattr(module, "MINUTE", 0.2)
    run = asyncio.create_task(ground.bell.run())
    await until(lambda: "limit" in ground.bell.reason)
    assert ground.bell.state == "polling"
    refusing = False
    await until(lambda: ground.bell.state == "ok")
    await ground.heard("turn_1/a")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


# OUT_DIR itself ------------------------------------------------------------------------------------------------------


async def test_out_dir_renamed_away_is_lost_until_a_folder_stands_there(ground: Ground) -> None:
    async with ground.running():
        await ground.heard("turn_1/a")
        elsewhere = ground.root.rename(ground.root.with_name("elsewhere"))
        await until(lambda: ground.bell.state == "lost")
        assert ground.bell.reason
        assert ground.rings[-1] == EVERYWHERE
        (elsewhere / "unseen").write_bytes(b"x")
        ground.root.mkdir()
        await until(lambda: ground.bell.state == "ok")
        await ground.heard("turn_2/a", "turn_2/b")
        assert "unseen" not in ground.files


async def test_out_dir_removed_and_made_again_is_watched_anew(ground: Ground) -> None:
    async with ground.running():
        await ground.heard("turn_1/a")
        await ground.settled()
        shutil.rmtree(ground.root)
        ground.write("turn_1/b")
        await until(lambda: "turn_1/b" in ground.files)
        await ground.heard("turn_1/c", "turn_2/d")


async def test_out_dir_exchanged_for_another_folder_is_watched_at_once(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK_SECONDS", 60.0)
    async with ground.running():
        await ground.heard("turn_1/a")
        await ground.settled()
        (ground.root.parent / "fresh" / "turn_1").mkdir(parents=True)
        ground.root.rename(ground.root.with_name("elsewhere"))
        (ground.root.parent / "fresh").rename(ground.root)
        await ground.silence(0.2)
        await ground.heard("turn_1/b", "turn_2/c")


async def test_a_bell_without_out_dir_begins_when_it_comes(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "out")
    ground.root.rmdir()
    ground.bell = Bell(str(ground.root), ground._ring)
    async with ground.running():
        assert ground.bell.state == "lost"
        ground.root.mkdir()
        await until(lambda: ground.bell.state == "ok")
        await ground.heard("turn_1/a")


@pytest.mark.rule("watch.polls-where-inotify-cannot-see")
async def test_a_disk_that_others_write_to_is_polled_and_still_rings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.stores.kernel.file_system_type", lambda _: 0x6969)
    ground = Ground(tmp_path / "out")
    async with ground.running():
        assert (ground.bell.state, "NFS" in ground.bell.reason) == ("polling", True)
        await ground.heard("turn_1/a", "turn_1/b")


async def test_a_link_in_out_dir_is_not_watched_through(ground: Ground, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    async with ground.running():
        (ground.root / "link").symlink_to(tmp_path / "outside")
        ground.bell.set_folders(["link"])
        await ground.heard("a")
        (tmp_path / "outside" / "file").write_bytes(b"x")
        await ground.heard("b")
        assert not ground.bell._roster.is_watched("link")


# How much, how fast, how well -------------------------------------------------------------------------------------


async def test_folders_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "out", Roster(limit=5))
    async with ground.running():
        ground.write(*(f"turn_{number}/a" for number in range(10)))
        await until(lambda: ground.bell.over_limit == 6)
        await until(lambda: len(ground.bell._roster._watched) == 5)
        assert (ground.bell.state, "6 folders" in ground.bell.reason) == ("degraded", True)


async def test_many_folders_make_few_watches_once_it_is_quiet(ground: Ground) -> None:
    async with ground.running():
        for number in range(8):
            await ground.heard(f"turn_{number}/a")
            await ground.settled()
        await until(lambda: len(ground.bell._watches) == 1)
        await ground.settled()
        await ground.heard(*(f"turn_{number}/b" for number in range(8)))


async def test_a_flood_of_new_folders_builds_few_watches(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    build, built = module.watch, 0

    def counting(*args: object) -> object:
        nonlocal built
        built += 1
        return build(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "watch", counting)
    async with ground.running():
        started = asyncio.get_running_loop().time()
        for number in range(200):
            ground.bell.set_folders([f"turn_{n}" for n in range(number)])
            (ground.root / f"turn_{number}").mkdir()
            await asyncio.sleep(0)
        await ground.heard("turn_199/last")
        took = asyncio.get_running_loop().time() - started
    # Each round may refold as well as add.
    assert built <= 2 * (took / module.CHANGES_APART + 2)


async def test_a_relaxed_bell_rings_later_and_hurries_when_told(ground: Ground) -> None:
    async with ground.running():
        ground.bell.relax()
        assert {one.pause for one in ground.bell._watches} == {module.RELAXED_PAUSE}
        await ground.heard("turn_1/a", "turn_1/b")
        await ground.settled()
        assert {one.pause for one in ground.bell._watches} == {module.RELAXED_PAUSE}
        ground.bell.hurry()
        assert {one.pause for one in ground.bell._watches} == {module.CALM_PAUSE}
        await ground.heard("turn_1/c")
        ground.bell.attend(True)
        assert {one.pause for one in ground.bell._watches} == {0.0}
        await ground.heard("turn_1/d")
        ground.bell.attend(False)
        assert {one.pause for one in ground.bell._watches} == {module.CALM_PAUSE}


async def test_changes_that_no_event_tells_are_counted_as_missed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecar.stores.hearing.GRACE", 0.1)
    async with ground.running():
        await ground.heard("turn_1/a", "turn_2/a", "turn_3/a")
        await ground.settled()
        with (ground.root / "turn_1" / "a").open("r+b") as file, mmap.mmap(file.fileno(), 1) as mapped:
            await ground.silence(0.2)
            mapped[:] = b"y"
            mapped.flush()
            ground.bell.overlooked(["turn_1", "turn_2", "turn_3", "nowhere"])
            await until(lambda: ground.bell.missed)
        assert ground.bell.missed == 3
        assert (ground.bell.state, "3 changes" in ground.bell.reason) == ("degraded", True)


async def test_changes_that_were_rung_for_are_not_missed(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.stores.hearing.GRACE", 0.5)
    judged: list[tuple[str, ...]] = []
    judge = ground.bell._hearing._judge
    ground.bell._hearing._judge = lambda folders, since: (judged.append(folders), judge(folders, since))[1]  # type: ignore[method-assign]
    async with ground.running():
        await ground.heard("turn_1/a")
        await ground.settled()
        ground.bell.overlooked(["turn_1"])
        ground.write("turn_1/b")
        await until(lambda: judged)
        assert (judged, ground.bell.missed, ground.bell.state) == ([("turn_1",)], 0, "ok")


@pytest.mark.parametrize(
    ("folders", "scopes"),
    [
        ({"a", "b/c"}, {"a", "b/c"}),
        ({"a", ""}, {""}),
        ({f"a/{number}" for number in range(64)}, {f"a/{number}" for number in range(64)}),
        ({f"a/{number}" for number in range(65)}, {"a"}),
        ({f"{number}/a" for number in range(65)}, {""}),
    ],
)
def test_many_folders_are_rung_for_as_few_scopes(folders: set[str], scopes: set[str]) -> None:
    assert module._scopes(frozenset(folders)) == scopes


# The end ----------------------------------------------------------------------------------------------------------


async def test_a_cancelled_bell_leaves_no_thread_and_no_descriptor(ground: Ground) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        ground.bell = Bell(str(ground.root), ground._ring)
        async with ground.running():
            await ground.heard("turn_1/a")
    # watchfiles closes its descriptors in a thread of its own, a moment later.
    await until(lambda: threading.active_count() <= threads and len(os.listdir("/proc/self/fd")) <= descriptors)


async def test_a_bell_cancelled_while_it_builds_leaves_no_thread(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = threading.active_count()
    build, building, go_on = module.watch, threading.Event(), threading.Event()

    def slowly(*args: object) -> object:
        building.set()
        assert go_on.wait(CEILING)
        return build(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "watch", slowly)
    run = asyncio.create_task(ground.bell.run())
    await until(building.is_set)
    run.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await run
    await until(lambda: threading.active_count() <= threads)
    assert ground.rings == []


def test_a_bell_outlived_by_its_watches_stays_silent(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "out")

    async def a_short_life() -> None:
        async with ground.running():
            await ground.heard("a")

    asyncio.run(a_short_life())
    rings = len(ground.rings)
    ground.write("b")
    ground.bell._post(ground.bell._hear, Stir(EVERYWHERE, frozenset()))
    assert len(ground.rings) == rings
