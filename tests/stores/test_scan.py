"""A look sees every regular file below a folder, nothing through a link, and survives whatever it meets."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.core.errors import UnsafePath
from sidecar.core.inventory import Oddity, Survey
from sidecar.core.paths import parse_physical
from sidecar.stores import scan
from sidecar.stores.opens import FOLDER, held
from sidecar.stores.scan import Bounds, decoded, is_unfinished, look, printable

LOOKS = 300


def survey(root: Path, scope: str = "", **bounds: int) -> Survey:
    with held(os.open(root / scope, FOLDER)) as fd:
        return look(fd, scope, Bounds(**bounds))


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(name.encode())


def test_every_regular_file_and_every_folder_is_seen(tmp_path: Path) -> None:
    write(tmp_path, "turn_1/files/a/b.txt", "turn_1/files/c.txt", "logs/out.log", "timeline.json")
    (tmp_path / "empty").mkdir()
    seen = survey(tmp_path)
    assert sorted(seen.files) == ["logs/out.log", "timeline.json", "turn_1/files/a/b.txt", "turn_1/files/c.txt"]
    assert sorted(seen.folders) == ["", "empty", "logs", "turn_1", "turn_1/files", "turn_1/files/a"]
    assert (seen.oddities, seen.over_limit) == ((), 0)


def test_a_key_is_what_the_disk_says(tmp_path: Path) -> None:
    write(tmp_path, "a")
    status = (tmp_path / "a").stat()
    key = survey(tmp_path).files["a"]
    assert key == (status.st_dev, status.st_ino, 1, status.st_mtime_ns, status.st_ctime_ns)


def test_a_scope_is_looked_at_alone_and_named_in_full(tmp_path: Path) -> None:
    write(tmp_path, "turn_1/files/a", "turn_2/files/b")
    seen = survey(tmp_path, "turn_1/files")
    assert (seen.scope, list(seen.files), seen.folders) == (
        "turn_1/files",
        ["turn_1/files/a"],
        ("turn_1/files",),
    )


def test_a_file_rewritten_with_the_same_size_and_time_has_another_key(tmp_path: Path) -> None:
    write(tmp_path, "a")
    before = survey(tmp_path).files["a"]
    (tmp_path / "a").write_bytes(b"b")
    os.utime(tmp_path / "a", ns=(before.mtime_ns, before.mtime_ns))
    assert survey(tmp_path).files["a"] != before


def test_links_and_special_files_are_oddities_and_never_followed(tmp_path: Path) -> None:
    root = tmp_path / "out"
    write(tmp_path, "outside/secret")
    write(root, "a/file")
    (root / "to_folder").symlink_to(tmp_path / "outside")
    (root / "to_file").symlink_to("a/file")
    (root / "to_nothing").symlink_to("nothing")
    (root / "to_root").symlink_to("/")
    os.mkfifo(root / "a" / "fifo")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(root / "socket"))
    seen = survey(root)
    assert list(seen.files) == ["a/file"]
    assert sorted(seen.folders) == ["", "a"]
    assert sorted(seen.oddities) == [
        Oddity("link", "to_file"),
        Oddity("link", "to_folder"),
        Oddity("link", "to_nothing"),
        Oddity("link", "to_root"),
        Oddity("special", "a/fifo"),
        Oddity("special", "socket"),
    ]


def test_names_that_can_be_no_path_are_oddities(tmp_path: Path) -> None:
    write(tmp_path, "good", "C:drive", "a\\b", "new\nline", "esc\x1b[31m", "c1\x85", "folder\t/inside", "zwölf", "日本")
    (tmp_path / os.fsdecode(b"latin-\xe9")).write_bytes(b"")
    (tmp_path / os.fsdecode(b"folder-\xff")).mkdir()
    (tmp_path / os.fsdecode(b"folder-\xff") / "inside").write_bytes(b"")
    seen = survey(tmp_path)
    assert sorted(seen.files) == ["good", "zwölf", "日本"]
    assert seen.folders == ("",)
    assert sorted(seen.oddities) == [
        Oddity("not_utf8", "folder-%FF"),
        Oddity("not_utf8", "latin-%E9"),
        Oddity("unsafe_name", "C:drive"),
        Oddity("unsafe_name", "a\\b"),
        Oddity("unsafe_name", "c1%C2%85"),
        Oddity("unsafe_name", "esc%1B[31m"),
        Oddity("unsafe_name", "folder%09"),
        Oddity("unsafe_name", "new%0Aline"),
    ]


def test_twins_in_another_normal_form_or_case_are_two_files(tmp_path: Path) -> None:
    write(tmp_path, "caf\u00e9", "cafe\u0301", "A", "a")
    assert len(survey(tmp_path).files) == 4


def test_our_own_unfinished_files_are_not_listed(tmp_path: Path) -> None:
    write(tmp_path, ".part-" + "0123456789abcdef" * 2, ".part-short", ".part-" + "G" * 32, ".part-" + "a" * 33)
    assert sorted(survey(tmp_path).files) == [".part-" + "G" * 32, ".part-" + "a" * 33, ".part-short"]
    assert is_unfinished(".part-" + "a" * 32)


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A folder with a tree of 1,500 levels in it, deeper than any path could say."""
    at = os.open(tmp_path, FOLDER)
    for _ in range(1500):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", FOLDER, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
    yield tmp_path
    remove_deep(tmp_path / "d")


def test_a_tree_of_any_depth_is_cut_and_counted(deep: Path) -> None:
    write(deep, "honest")
    seen = survey(deep)
    assert (list(seen.files), len(seen.folders), seen.over_limit) == (["honest"], 65, 1)
    assert len(survey(deep, depth=5000).folders) == 1501


@pytest.mark.rule("watch.a-look-yields-the-loop")
def test_a_long_look_lets_the_loop_have_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, *(f"d{number % 9}/f{number}" for number in range(1100)))
    breaths: list[float] = []
    monkeypatch.setattr(scan.time, "sleep", breaths.append)
    survey(tmp_path)
    assert breaths == [0] * (1109 // 256)


def remove_deep(folder: Path) -> None:
    """shutil.rmtree is recursive; moving each level up is not."""
    for number in count():
        below = folder / "d"
        if not below.exists():
            break
        aside = folder.parent / f"aside{number}"
        below.rename(aside)
        shutil.rmtree(folder)
        folder = aside
    shutil.rmtree(folder)


def test_a_scope_counts_into_the_depth(tmp_path: Path) -> None:
    write(tmp_path, "1/2/3/file", "1/2/file")
    assert sorted(survey(tmp_path, "1", depth=2).files) == ["1/2/file"]
    assert survey(tmp_path, "1", depth=2).over_limit == 1


def test_files_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    write(tmp_path, *(f"f{number}" for number in range(30)))
    seen = survey(tmp_path, files=20)
    assert (len(seen.files), seen.over_limit) == (20, 10)


def test_a_million_links_end_the_look_before_it_gets_long(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"link{number}").symlink_to("nothing")
    seen = survey(tmp_path, entries=20, oddities=5)
    assert len(seen.oddities) == 5
    assert seen.over_limit > 0


def test_a_folder_that_cannot_be_looked_at_proves_no_absence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a/file", "b/file")
    ordinary = os.open

    def without_descriptors(path: str, *args: object, **kwargs: object) -> int:
        if path == "a":
            raise OSError(24, "Too many open files")
        return ordinary(path, *args, **kwargs)  # type: ignore[arg-type]

    with held(os.open(tmp_path, FOLDER)) as fd:
        monkeypatch.setattr(os, "open", without_descriptors)
        seen = look(fd, "", Bounds())
    assert (list(seen.files), seen.over_limit) == (["b/file"], 1)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    write(tmp_path, "a/b/c/d", "a/e/f", "g/h")
    before = len(os.listdir("/proc/self/fd"))
    survey(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


# While somebody changes everything -------------------------------------------------------------------------------


class Meanwhile:
    """Does something over and over in a thread until the block ends."""

    def __init__(self, act: Callable[[int], None]) -> None:
        self._act = act
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.times = 0

    def _run(self) -> None:
        while not self._done.is_set():
            self._act(self.times)
            self.times += 1

    def __enter__(self) -> Meanwhile:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def test_entries_that_vanish_during_the_look_are_simply_not_there(tmp_path: Path) -> None:
    write(tmp_path, *(f"honest/{number}" for number in range(50)))
    busy = tmp_path / "busy"
    busy.mkdir()

    def come_and_go(number: int) -> None:
        write(busy, f"d{number % 7}/f{number % 11}", f"f{number % 13}")
        shutil.rmtree(busy / f"d{(number + 3) % 7}", ignore_errors=True)
        (busy / f"f{(number + 5) % 13}").unlink(missing_ok=True)

    looks: list[Survey] = []
    with Meanwhile(come_and_go) as meanwhile:
        while len(looks) < LOOKS or meanwhile.times < LOOKS:
            looks.append(survey(tmp_path))
    for seen in looks:
        assert len([path for path in seen.files if path.startswith("honest/")]) == 50
        assert seen.over_limit == 0


def test_nothing_outside_is_listed_while_a_folder_and_a_link_change_places(tmp_path: Path) -> None:
    write(tmp_path, "outside/secret", "out/inside/file", "out/other/file")
    (tmp_path / "out" / "link").symlink_to(tmp_path / "outside")
    names = [tmp_path / "out" / name for name in ("inside", "link", "aside")]

    def exchange(_: int) -> None:
        names[0].rename(names[2])
        names[1].rename(names[0])
        names[2].rename(names[1])

    looks: list[Survey] = []
    with Meanwhile(exchange) as meanwhile:
        while len(looks) < LOOKS or meanwhile.times < LOOKS or not any(seen.oddities for seen in looks):
            looks.append(survey(tmp_path / "out"))
    assert {path for seen in looks for path in seen.files} <= {"inside/file", "link/file", "aside/file", "other/file"}
    assert any("inside/file" in seen.files or "link/file" in seen.files for seen in looks)


# Names -----------------------------------------------------------------------------------------------------------


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    name=st.binary(min_size=1, max_size=20).filter(lambda name: not set(name) & {0, 47} and name not in {b".", b".."})
)
def test_a_name_is_listed_exactly_when_the_grammar_of_paths_takes_it(tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / str(len(os.listdir(tmp_path)))
    folder.mkdir()
    os.close(os.open(os.fsencode(folder) + b"/" + name, os.O_CREAT | os.O_WRONLY))
    seen = survey(folder)
    try:
        parse_physical(name.decode())
    except (UnicodeDecodeError, UnsafePath):
        assert (len(seen.files), len(seen.oddities)) == (0, 1)
        assert seen.oddities[0].name.isprintable() or not name.isascii()
    else:
        assert list(seen.files) == [name.decode()]


@given(st.binary(max_size=30))
def test_a_printable_name_can_be_printed_anywhere(name: bytes) -> None:
    shown = printable(decoded(os.fsdecode(name)))
    assert len(shown.encode()) >= len(name)
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown)
