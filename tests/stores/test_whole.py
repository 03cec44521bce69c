"""A file appears whole or not at all, where it was meant to, whatever goes wrong on the way."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from sidecar.core.errors import NotFound, UnsafePath
from sidecar.core.inventory import StatKey
from sidecar.stores import whole
from sidecar.stores.opens import FOLDER, Beneath, held, key_of
from sidecar.stores.reflink import Reflinks
from sidecar.stores.scan import Bounds
from sidecar.stores.whole import STALE_SECONDS, sweep, write_whole

SECRET = b"what is outside"
OLD = b"the old bytes"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "out"
    (root / "a").mkdir(parents=True)
    (root / "a" / "old").write_bytes(OLD)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(SECRET)
    return root


def put(root: Path, text: str, *chunks: bytes, sha256: str | None = None) -> StatKey:
    return write_whole(Beneath(str(root)), text, chunks, sha256=sha256, reflinks=Reflinks())


def everything(root: Path) -> dict[str, bytes | str]:
    """All that is below a folder, hidden names included."""
    found: dict[str, bytes | str] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_bytes()
        else:
            found[name] = "folder" if path.is_dir() else "special"
    return found


def test_the_bytes_are_there_and_the_key_is_theirs(root: Path) -> None:
    key = put(root, "turn_1/files/deep/new.txt", b"one", b"", b"two")
    path = root / "turn_1/files/deep/new.txt"
    assert path.read_bytes() == b"onetwo"
    assert key == key_of(path.stat())
    assert path.stat().st_mode & 0o7777 == 0o644
    assert sorted(everything(root)) == [
        "a",
        "a/old",
        "turn_1",
        "turn_1/files",
        "turn_1/files/deep",
        str(path.relative_to(root)),
    ]


def test_an_older_file_is_replaced_by_another_one(root: Path) -> None:
    with (root / "a/old").open("rb") as reading:
        put(root, "a/old", b"new")
        assert reading.read() == OLD
    assert (root / "a/old").read_bytes() == b"new"


def test_no_bytes_make_an_empty_file(root: Path) -> None:
    assert put(root, "a/empty").size == 0


def test_the_right_hash_lets_the_bytes_in(root: Path) -> None:
    put(root, "b/new", b"bytes", sha256=hashlib.sha256(b"bytes").hexdigest())
    assert (root / "b/new").read_bytes() == b"bytes"


@pytest.mark.parametrize("text", ["a/old", "new", "b/c/new"])
def test_another_hash_changes_nothing(root: Path, text: str) -> None:
    before = everything(root)
    with pytest.raises(ValueError, match="sha256"):
        put(root, text, b"other", sha256=hashlib.sha256(b"bytes").hexdigest())
    assert everything(root) == before


def broken() -> Iterator[bytes]:
    yield b"a part"
    raise ConnectionResetError


@pytest.mark.parametrize("text", ["a/old", "b/c/new"])
def test_a_source_that_breaks_off_changes_nothing(root: Path, text: str) -> None:
    before = everything(root)
    with pytest.raises(ConnectionResetError):
        write_whole(Beneath(str(root)), text, broken(), sha256=None, reflinks=Reflinks())
    assert everything(root) == before


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "to_secret",
        "to_outside/new",
        "to_outside",
        "fifo",
        "fifo/new",
        "a/old/new",
        "../new",
        "/new",
        "a/../new",
        "",
        "a/",
        "a\0b",
        "\udcff",
        "x" * 256,
        ".part-" + "0" * 32,
        "a/.part-" + "0" * 32,
    ],
)
def test_a_name_that_is_no_files_name_is_refused_and_nothing_changes(root: Path, text: str) -> None:
    (root / "to_secret").symlink_to(root.parent / "outside" / "secret")
    (root / "to_outside").symlink_to(root.parent / "outside")
    os.mkfifo(root / "fifo")
    before = everything(root.parent)
    with pytest.raises(UnsafePath):
        put(root, text, b"bytes")
    assert everything(root.parent) == before


def test_a_second_name_of_an_outside_file_is_not_written_through(root: Path) -> None:
    os.link(root.parent / "outside" / "secret", root / "a" / "linked")
    put(root, "a/linked", b"new")
    assert (root.parent / "outside" / "secret").read_bytes() == SECRET
    assert (root / "a/linked").read_bytes() == b"new"


def test_without_out_dir_there_is_nowhere_to_write(root: Path) -> None:
    beneath = Beneath(str(root))
    root.rename(root.with_name("elsewhere"))
    with pytest.raises(NotFound):
        write_whole(beneath, "a/new", [b"bytes"], sha256=None, reflinks=Reflinks())
    assert not root.exists()


def test_a_key_that_somebody_spoiled_at_once_stands_for_no_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.rename

    def rename_and_write(source: bytes, target: bytes, **folders: int) -> None:
        rename(source, target, **folders)
        with (root / "a/new").open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(os, "rename", rename_and_write)
    key = put(root, "a/new", b"bytes")
    assert key != key_of((root / "a/new").stat())


def test_bytes_then_name_then_every_new_folder_reach_the_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, os.rename

    def noting_fsync(fd: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{fd}"))
        steps.append("sync bytes" if place.is_file() else f"sync {place.relative_to(root)}")
        fsync(fd)

    def noting_rename(*args: bytes, **kwargs: int) -> None:
        steps.append("rename")
        rename(*args, **kwargs)

    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(os, "rename", noting_rename)
    put(root, "a/b/c/new", b"bytes")
    assert steps == ["sync bytes", "sync a", "sync a/b", "rename", "sync a/b/c"]


# Every call of the system fails once -----------------------------------------------------------------------------


class Failing:
    """Counts the calls that change something, and fails the n-th of them."""

    NAMES = ("write", "fsync", "rename", "mkdir", "fchmod")

    def __init__(self, monkeypatch: pytest.MonkeyPatch, nth: int, number: int) -> None:
        self.calls = 0
        self._nth = nth
        self._number = number
        for name in self.NAMES:
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name)))

    def _wrapped(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: object, **kwargs: object) -> object:
            self.calls += 1
            if self.calls == self._nth:
                raise OSError(self._number, os.strerror(self._number))
            return call(*args, **kwargs)

        return counted


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_whichever_call_fails_the_name_holds_the_old_bytes_or_the_new(root: Path, number: int) -> None:
    failed = 0
    for nth in count(1):
        with pytest.MonkeyPatch.context() as monkeypatch:
            failing = Failing(monkeypatch, nth, number)
            try:
                put(root, f"a/{nth}/b/new", b"one", b"two")
                put(root, "a/old", b"new")
            except OSError:
                failed += 1
        unfinished = [name for name in everything(root) if ".part-" in name]
        assert unfinished == []
        assert everything(root)["a/old"] in (OLD, b"new")
        assert everything(root).get(f"a/{nth}/b/new", b"onetwo") == b"onetwo"
        if failing.calls < nth:
            break
    assert failed >= 10


def test_a_disk_that_takes_a_part_of_a_chunk_gets_the_rest(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    put(root, "a/new", b"0123456789", b"abc")
    assert (root / "a/new").read_bytes() == b"0123456789abc"


# From an open file -----------------------------------------------------------------------------------------------


class Cloning(Reflinks):
    """A disk that can share bytes."""

    def clone(self, source: int, target: int) -> bool:
        os.pwrite(target, os.pread(source, 1 << 24, 0), 0)
        return True


@pytest.mark.parametrize("reflinks", [Reflinks(), Cloning()], ids=["copied", "shared"])
def test_an_open_file_is_written_and_checked(root: Path, tmp_path: Path, reflinks: Reflinks) -> None:
    data = b"line\n" * 500_000
    (tmp_path / "kept").write_bytes(data)
    right = hashlib.sha256(data).hexdigest()
    for sha256 in (right, "0" * 64):
        with (tmp_path / "kept").open("rb") as kept:
            try:
                write_whole(Beneath(str(root)), f"b/{sha256}", kept, sha256=sha256, reflinks=reflinks)
            except ValueError:
                assert sha256 != right
    assert sorted(everything(root)) == ["a", "a/old", "b", f"b/{right}"]
    assert (root / "b" / right).read_bytes() == data


def test_a_file_that_was_read_into_is_written_from_there(root: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"head and rest")
    with (tmp_path / "kept").open("rb") as kept:
        kept.read(5)
        write_whole(Beneath(str(root)), "a/rest", kept, sha256=None, reflinks=Cloning())
    assert (root / "a/rest").read_bytes() == b"and rest"


def test_bytes_in_memory_are_a_source_as_well(root: Path) -> None:
    write_whole(Beneath(str(root)), "a/new", io.BytesIO(b"one\ntwo\n"), sha256=None, reflinks=Reflinks())
    assert (root / "a/new").read_bytes() == b"one\ntwo\n"


# Races -----------------------------------------------------------------------------------------------------------


def test_a_reader_never_sees_a_part(root: Path) -> None:
    bodies = [bytes([letter]) * 50_000 for letter in b"abcdefgh"]
    put(root, "a/file", bodies[0])
    done = threading.Event()
    seen: set[bytes] = set()

    def read() -> None:
        while not done.is_set():
            seen.add((root / "a/file").read_bytes())

    reading = threading.Thread(target=read)
    reading.start()
    for number in range(60):
        put(root, "a/file", bodies[number % 8][:25_000], bodies[number % 8][25_000:])
    done.set()
    reading.join()
    assert seen <= set(bodies)
    assert len(seen) > 1


def test_many_writers_of_one_file_leave_the_bytes_of_one(root: Path) -> None:
    bodies = [bytes([letter]) * 9000 for letter in b"abcd"]
    writers = [
        threading.Thread(target=lambda body=body: [put(root, "n/e/w", body) for _ in range(30)]) for body in bodies
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert (root / "n/e/w").read_bytes() in bodies
    assert sorted(everything(root)) == ["a", "a/old", "n", "n/e", "n/e/w"]


# What a killed writer leaves -------------------------------------------------------------------------------------


def test_only_old_unfinished_files_are_swept(root: Path) -> None:
    old = time.time() - STALE_SECONDS - 10
    names = {
        ".part-" + "0" * 32: old,
        "a/.part-" + "1" * 32: old,
        "a/.part-" + "2" * 32: time.time(),
        "a/.part-short": old,
        "a/kept": old,
    }
    for name, stamp in names.items():
        (root / name).write_bytes(b"")
        os.utime(root / name, (stamp, stamp))
    (root / "a" / (".part-" + "3" * 32)).symlink_to("kept")
    os.utime(root / "a" / (".part-" + "3" * 32), (old, old), follow_symlinks=False)
    (root / "to_a").symlink_to("a")
    with held(os.open(root, FOLDER)) as fd:
        assert sweep(fd, Bounds()) == 2
    assert [name for name in names if (root / name).exists()] == ["a/.part-" + "2" * 32, "a/.part-short", "a/kept"]


def test_sweeping_stops_at_the_depth_of_a_look(root: Path) -> None:
    deep = root / "1/2/3"
    deep.mkdir(parents=True)
    (deep / (".part-" + "0" * 32)).write_bytes(b"")
    os.utime(deep / (".part-" + "0" * 32), (0, 0))
    with held(os.open(root, FOLDER)) as fd:
        assert [sweep(fd, Bounds(depth=2)), sweep(fd, Bounds(depth=3))] == [0, 1]


def test_a_killed_writer_leaves_nothing_under_the_name(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(os, "rename", kill)
    monkeypatch.setattr(whole, "_remove", lambda *_: False)
    with pytest.raises(Killed):
        put(root, "a/old", b"new")
    assert (root / "a/old").read_bytes() == OLD
    assert [name for name in everything(root) if ".part-" in name]


@pytest.mark.parametrize(("lasting", "folders"), [(True, 1), (False, 0)])
def test_bytes_are_on_the_disk_before_their_name_and_the_name_where_it_is_to_last(
    root: Path, monkeypatch: pytest.MonkeyPatch, lasting: bool, folders: int
) -> None:
    done: list[str] = []
    sync, take = os.fsync, whole.take_the_name
    kinds = {True: "folder", False: "file"}
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append(kinds[stat.S_ISDIR(os.fstat(fd).st_mode)]), sync(fd))[1])
    options = {"sha256": None, "reflinks": Reflinks(), "lasting": lasting}
    write_whole(
        Beneath(str(root)), "a/new", [b"x"], take=lambda names: (done.append("name"), take(names))[1], **options
    )
    assert done == ["file", "name", *["folder"] * folders]


def test_a_folder_that_is_removed_meanwhile_is_made_again_and_what_came_is_asked_for_once(root: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"one "
        yield b"two"
        shutil.rmtree(root / "a")

    key = write_whole(Beneath(str(root)), "a/b/new", chunks(), sha256=None, reflinks=Reflinks())
    assert everything(root) == {"a": "folder", "a/b": "folder", "a/b/new": b"one two"}
    assert key == key_of((root / "a/b/new").stat())


def test_who_removes_a_folder_again_and_again_is_not_waited_for(root: Path) -> None:
    before, tries = len(os.listdir("/proc/self/fd")), count(1)

    def take(names: whole.Names) -> None:
        next(tries)
        shutil.rmtree(root / "a")
        whole.take_a_free_name(names)

    with pytest.raises(FileNotFoundError):
        write_whole(Beneath(str(root)), "a/b/new", [b"x"], sha256=None, reflinks=Reflinks(), take=take)
    assert next(tries) == whole.ROUNDS + 1
    assert (everything(root), len(os.listdir("/proc/self/fd"))) == ({}, before)


def test_chunks_that_cannot_be_found_are_no_folder_that_went(root: Path) -> None:
    before, asked = everything(root), count(1)

    def chunks() -> Iterator[bytes]:
        next(asked)
        yield b"one"
        raise FileNotFoundError("where the bytes come from")

    with pytest.raises(FileNotFoundError, match="where the bytes"):
        write_whole(Beneath(str(root)), "a/new", chunks(), sha256=None, reflinks=Reflinks())
    assert (next(asked), everything(root)) == (2, before)
