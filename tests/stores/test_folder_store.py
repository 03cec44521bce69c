"""What only a folder of hosted files does: its modes, its disk, and what others put in its way."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from sidecar.core.errors import NotFound, StoreUnavailable
from sidecar.stores.folder_store import FolderStore
from sidecar.stores.keys import KeyTaken
from tests.daemon_process import PROJECT
from tests.faults.confined import _MOUNTS, why_no_mount

BODY = b"some bytes"
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(root: Path) -> FolderStore:
    return FolderStore(str(root))


def put(store: FolderStore, key: str, body: bytes = BODY) -> None:
    store.put(key, io.BytesIO(body), size=len(body), sha256=hashlib.sha256(body).hexdigest(), mime="text/plain")


def fault_of(store: FolderStore, key: str = "a/b") -> str:
    with pytest.raises(StoreUnavailable) as refused:
        put(store, key)
    assert refused.value.hint
    return refused.value.fault


def test_files_and_folders_are_ours_alone_and_not_written_to(store: FolderStore, root: Path) -> None:
    put(store, "a/b/c")
    modes = {path.relative_to(root).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}
    assert modes == {"a": 0o700, "a/b": 0o700, "a/b/c": 0o400}
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_key_is_a_path_and_its_uri_opens_it(store: FolderStore, root: Path) -> None:
    put(store, "a b/ü%20.txt")
    assert (root / "a b" / "ü%20.txt").read_bytes() == BODY
    assert store.uri("a b/ü%20.txt") == (root / "a b" / "ü%20.txt").as_uri()


def test_a_key_is_not_a_file_and_a_folder(store: FolderStore) -> None:
    put(store, "a/b")
    for key in ("a", "a/b/c"):
        with pytest.raises(KeyTaken):
            put(store, key)
    assert store.list("") == ["a/b"]
    assert [name for name in os.listdir(store.root) if name != "a"] == []


def test_a_link_is_neither_read_nor_written_through(store: FolderStore, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(BODY)
    put(store, "x")
    (root / "way").symlink_to(tmp_path / "outside")
    (root / "link").symlink_to(tmp_path / "outside/secret")
    for key in ("way/secret", "link"):
        assert store.head(key) is None
        assert not store.copy(key, "copy", size=len(BODY), sha256=SHA, mime="text/plain")
        with pytest.raises(NotFound):
            list(store.get(key))
        with pytest.raises(KeyTaken):
            put(store, key)
    with pytest.raises(KeyTaken):
        put(store, "way/new")
    store.delete(["way/secret", "link"])
    assert (tmp_path / "outside/secret").read_bytes() == BODY
    assert store.list("") == ["x"]


def test_a_copy_is_a_file_of_its_own(store: FolderStore, root: Path) -> None:
    put(store, "a")
    assert store.copy("a", "b", size=len(BODY), sha256=SHA, mime="text/plain")
    assert (root / "a").stat().st_ino != (root / "b").stat().st_ino
    assert (root / "b").stat().st_nlink == 1


def test_a_body_from_a_file_is_shared_where_the_disk_can(
    store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "body").write_bytes(BODY)
    shared: list[int] = []

    def share(target: int, request: int, source: int) -> int:
        shared.append(source)
        return os.pwrite(target, os.pread(source, 1000, 0), 0)

    monkeypatch.setattr("sidecar.stores.reflink.fcntl.ioctl", share)
    with open(tmp_path / "body", "rb") as body:
        store.put("a", body, size=len(BODY), sha256=SHA, mime="text/plain")
    assert (len(shared), b"".join(store.get("a"))) == (1, BODY)
    with open(tmp_path / "body", "rb") as body, pytest.raises(ValueError):
        store.put("b", body, size=len(BODY), sha256="0" * 64, mime="text/plain")
    assert store.list("") == ["a"]


def test_files_and_all_their_folders_are_synced_before_a_put_returns(
    store: FolderStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "x")
    synced: list[str] = []
    ordinary = os.fsync

    def sync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}").removeprefix(str(root)))
        ordinary(fd)

    monkeypatch.setattr(os, "fsync", sync)
    put(store, "a/b/c")
    first = [("the file" if path.startswith("/.new-") else path) for path in synced]
    assert first == ["the file", "", "/a", "/a/b"]
    synced.clear()
    put(store, "a/b/c")  # whoever put it first may have died before it synced
    assert synced == ["/a/b/c", "", "/a", "/a/b"]


def test_a_file_that_is_cut_while_it_is_read_is_cut_off(store: FolderStore, root: Path) -> None:
    put(store, "a", bytes(3 * 1024 * 1024))
    stream = store.get("a")
    next(stream)
    (root / "a").chmod(0o600)
    os.truncate(root / "a", 1024 * 1024)
    with pytest.raises(StoreUnavailable) as refused:
        list(stream)
    assert refused.value.fault == "cut_off"


# Disks that say no ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (errno.ENOSPC, "disk_full"),
        (errno.EDQUOT, "disk_full"),
        (errno.EIO, "server_error"),
        (errno.EROFS, "denied"),
        (errno.EACCES, "denied"),
        (errno.ESTALE, "unreachable"),
        (errno.ETIMEDOUT, "timed_out"),
    ],
)
@pytest.mark.parametrize("call", ["write", "fsync", "mkdir"])
def test_a_disk_that_says_no_is_named_and_nothing_is_left(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch, number: int, fault: str, call: str
) -> None:
    put(store, "x")

    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        assert fault_of(store) == fault
    assert [name for name in os.listdir(store.root) if name.startswith(".new-")] == []
    assert store.list("") == ["x"]
    put(store, "a/b")
    assert b"".join(store.get("a/b")) == BODY


ON_A_TINY_DISK = """
import hashlib, io, os, subprocess, sys
from sidecar.core.errors import StoreUnavailable
from sidecar.stores.folder_store import FolderStore
disk = sys.argv[1]
store = FolderStore(disk + "/store")
def put(key, size):
    body = bytes(size)
    try:
        store.put(key, io.BytesIO(body), size=size, sha256=hashlib.sha256(body).hexdigest(), mime="text/plain")
        print("put", end=" ")
    except StoreUnavailable as refusal:
        print(refusal.fault, end=" ")
put("a/small", 1000); put("a/large", 4 << 20); put("a/next", 1000)
print(sorted(os.listdir(disk + "/store")), store.list(""), end=" ")
subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
put("b", 10); print(b"".join(store.get("a/small")) == bytes(1000))
"""


@pytest.mark.skipif(bool(why_no_mount()), reason=why_no_mount())
def test_a_full_disk_and_a_read_only_one_are_told_apart(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" -c "$3" "$1"'
    words = [*_MOUNTS, "sh", "-c", mount, "sh", str(disk), sys.executable, ON_A_TINY_DISK]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.stdout == "put disk_full put ['a'] ['a/next', 'a/small'] denied True\n", done.stderr


def test_a_folder_that_was_taken_away_is_unreachable_and_not_made_again(store: FolderStore, root: Path) -> None:
    put(store, "a")
    root.rename(root.with_name("elsewhere"))
    for ask in (lambda: put(store, "b"), lambda: list(store.get("a")), lambda: store.head("a"), lambda: store.list("")):
        with pytest.raises(StoreUnavailable) as refused:
            ask()
        assert refused.value.fault == "unreachable"
    assert not root.exists()
    root.with_name("elsewhere").rename(root)
    assert b"".join(store.get("a")) == BODY


def test_a_file_where_the_folder_should_be_is_unreachable(store: FolderStore, root: Path) -> None:
    root.write_bytes(b"")
    assert fault_of(store) == "unreachable"


# Ends -------------------------------------------------------------------------------------------------------------

KILLED = """
import hashlib, io, os, sys
from sidecar.stores.folder_store import FolderStore
class Body(io.BytesIO):
    def read(self, size=-1):
        if self.tell():
            print(len(os.listdir(sys.argv[1])), flush=True)
            os.kill(os.getpid(), 9)
        return super().read(10)
store = FolderStore(sys.argv[1])
store.put("a/b", Body(bytes(100)), size=100, sha256=hashlib.sha256(bytes(100)).hexdigest(), mime="text/plain")
"""


def test_what_is_finished_while_leftovers_are_looked_for_is_no_fault(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.mkdir()
    unfinished = root / f".new-{'a' * 240}"
    unfinished.touch()
    listed = os.scandir

    def finished_meanwhile(folder: int) -> Any:
        monkeypatch.undo()
        entries = [*listed(folder)]
        unfinished.unlink()
        return nullcontext(entries)

    monkeypatch.setattr(os, "scandir", finished_meanwhile)
    assert FolderStore(str(root)).head("a") is None


def test_a_kill_leaves_no_file_and_what_it_left_is_swept_after_an_hour(root: Path) -> None:
    dying = subprocess.run([sys.executable, "-c", KILLED, str(root)], cwd=PROJECT, capture_output=True, check=False)
    assert (dying.returncode, dying.stdout) == (-signal.SIGKILL, b"1\n")
    assert FolderStore(str(root)).list("") == []
    (unfinished,) = root.iterdir()  # it is young, and another daemon may be writing it
    long_ago = time.time() - 4000
    os.utime(unfinished, (long_ago, long_ago))
    put(FolderStore(str(root)), "a/b")
    assert [path.name for path in root.iterdir()] == ["a"]


def test_two_stores_on_one_folder_see_each_other(store: FolderStore, root: Path) -> None:
    put(store, "a/b")
    other = FolderStore(str(root))
    assert b"".join(other.get("a/b")) == BODY
    with pytest.raises(KeyTaken):
        put(other, "a/b", b"other")
