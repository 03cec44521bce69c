"""A watch says which folders stirred, says why it died, and ends when told."""

from __future__ import annotations

import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sidecar.stores import watch as module
from sidecar.stores.watch import FULL_BATCH, Stir, Watch, WatchRefused, culprit, watch

CEILING = 5.0


class Heard:
    """Everything that watches of one folder say."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.stirs: queue.Queue[Stir] = queue.Queue()
        self.ends: queue.Queue[str | None] = queue.Queue()
        self.watches: list[Watch] = []

    def watch(self, *folders: str) -> Watch | None:
        one = watch(self.root, folders, self.stirs.put, lambda _, reason: self.ends.put(reason))
        if one is not None:
            self.watches.append(one)
        return one

    def until(self, says: Callable[[Stir], bool]) -> Stir:
        """The first stir that says so, all before it passed over."""
        while True:
            stir = self.stirs.get(timeout=CEILING)
            if says(stir):
                return stir


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[Heard]:
    for name in ("a/b", "c"):
        (tmp_path / "out" / name).mkdir(parents=True)
    heard = Heard(tmp_path / "out")
    yield heard
    for one in heard.watches:
        one.stop()
        one.join()


def test_a_folder_stirs_when_something_in_it_changes(heard: Heard) -> None:
    heard.watch("", "a", "a/b", "c")
    for folder in ("a/b", "c", "a", ""):
        (Path(heard.root) / folder / "file").write_bytes(b"x")
        stir = heard.until(lambda stir, folder=folder: folder in stir.folders)
        assert f"{folder}/file".lstrip("/") in stir.moved


def test_where_something_happened_more_is_heard_without_a_pause(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EAGER_SECONDS", 3600.0)
    one = heard.watch("c")
    assert one is not None
    (Path(heard.root) / "c" / "first").write_bytes(b"x")
    heard.until(lambda stir: "c/first" in stir.moved)
    one.pause = 3600.0
    (Path(heard.root) / "c" / "second").write_bytes(b"x")
    assert "c/second" in heard.until(lambda stir: "c" in stir.folders).moved


def test_a_folder_that_is_not_in_the_list_does_not_stir(heard: Heard) -> None:
    heard.watch("c")
    (Path(heard.root) / "a" / "file").write_bytes(b"x")
    (Path(heard.root) / "c" / "deep").mkdir()
    (Path(heard.root) / "c" / "deep" / "file").write_bytes(b"x")
    (Path(heard.root) / "c" / "file").write_bytes(b"x")
    assert heard.until(lambda stir: "c/file" in stir.moved).folders == {"c"}


def test_coming_and_going_is_told_and_changing_is_not(heard: Heard) -> None:
    root = Path(heard.root)
    (root / "c" / "file").write_bytes(b"x")
    heard.watch("", "c")
    with (root / "c" / "file").open("ab") as file:
        file.write(b"more")
    assert heard.until(lambda stir: "c" in stir.folders).moved == frozenset()
    (root / "a").rename(root / "z")
    assert heard.until(lambda stir: "" in stir.folders).moved == {"a", "z"}


def test_out_dir_going_away_is_told_as_itself(heard: Heard, tmp_path: Path) -> None:
    heard.watch("")
    Path(heard.root).rename(tmp_path / "elsewhere")
    assert heard.until(lambda stir: "" in stir.moved)


def test_missing_folders_and_links_are_left_out(heard: Heard, tmp_path: Path) -> None:
    (Path(heard.root) / "link").symlink_to(tmp_path)
    one = heard.watch("a", "gone", "link", "a/b/gone")
    assert one is not None
    assert one.folders == {"a"}
    assert heard.watch("gone", "link") is None


def test_a_folder_that_vanishes_while_the_watch_is_built_is_left_out(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = module._notify

    def vanish_first(root: str, folders: list[str], *, ignoring: bool) -> object:
        shutil.rmtree(Path(root) / "a", ignore_errors=True)
        return build(root, folders, ignoring=ignoring)

    monkeypatch.setattr(module, "_notify", vanish_first)
    assert heard.watch("a", "c") is not None
    (Path(heard.root) / "c" / "file").write_bytes(b"x")
    assert "c" in heard.until(lambda stir: "c" in stir.folders).folders


def test_folders_that_come_and_go_all_the_time_do_not_stop_the_building(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = module._notify

    def vanished(root: str, folders: list[str], *, ignoring: bool) -> object:
        if not ignoring:
            raise FileNotFoundError
        return build(root, folders, ignoring=ignoring)

    monkeypatch.setattr(module, "_notify", vanished)
    assert heard.watch("c") is not None


def test_a_name_that_is_not_utf8_ends_the_watch_and_names_its_folder(heard: Heard) -> None:
    heard.watch("", "a", "c")
    os.close(os.open(os.fsencode(heard.root) + b"/a/\xff", os.O_CREAT | os.O_WRONLY))
    reason = heard.ends.get(timeout=CEILING)
    assert reason is not None
    assert culprit(heard.root, reason) == "a"


def test_the_same_name_standing_there_does_not_harm_a_new_watch(heard: Heard) -> None:
    os.close(os.open(os.fsencode(heard.root) + b"/a/\xff", os.O_CREAT | os.O_WRONLY))
    heard.watch("a")
    (Path(heard.root) / "a" / "honest").write_bytes(b"x")
    assert "a/honest" in heard.until(lambda stir: "a" in stir.folders).moved


@pytest.mark.parametrize(
    ("reason", "folder"),
    [
        ('Unable to decode path "/out/turn_1/files/\\xFF" to string', "turn_1/files"),
        ('Unable to decode path "/out/\\xFF" to string', ""),
        ("Too many open files (os error 24)", None),
        ("", None),
    ],
)
def test_a_reason_names_a_folder_or_none(reason: str, folder: str | None) -> None:
    assert culprit("/out", reason) == folder


def test_a_limit_of_the_system_is_said(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object) -> object:
        is_ignoring = args[-1]
        if not is_ignoring:  # told to ignore what is missing, watchfiles keeps quiet about limits too
            raise OSError("OS file watch limit reached.")
        return build(*args)  # type: ignore[arg-type]

    build = module.RustNotify
    monkeypatch.setattr(module, "RustNotify", refused)
    with pytest.raises(WatchRefused, match="limit"):
        heard.watch("a")


@pytest.mark.parametrize("pause", [0.0, 30.0])
def test_a_watch_ends_soon_after_it_is_told(heard: Heard, pause: float) -> None:
    one = heard.watch("a")
    assert one is not None
    one.pause = pause
    started = time.monotonic()
    one.stop()
    assert heard.ends.get(timeout=CEILING) is None
    one.join()
    assert (one.has_ended, one.is_set()) == (True, True)
    assert time.monotonic() - started < CEILING


def test_an_overful_batch_says_so(heard: Heard) -> None:
    batch = {(1, f"{heard.root}/a/{number}") for number in range(FULL_BATCH)}
    assert module._stir(heard.root, batch).is_full
    batch.pop()
    stir = module._stir(heard.root, batch)
    assert (stir.is_full, stir.folders, len(stir.moved)) == (False, {"a"}, FULL_BATCH - 1)


def test_a_thread_that_fails_is_noticed(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def fail(*_: object) -> Stir:
        raise ValueError("what nobody foresaw")

    heard.watch("a")
    monkeypatch.setattr(module, "_stir", fail)
    (Path(heard.root) / "a" / "file").write_bytes(b"x")
    assert heard.ends.get(timeout=CEILING) == "the watching thread failed"


def test_a_hundred_watches_leave_no_thread_behind(heard: Heard) -> None:
    before = threading.active_count()
    for _ in range(100):
        one = heard.watch("a", "c")
        assert one is not None
        one.stop()
        one.join()
    assert threading.active_count() == before
