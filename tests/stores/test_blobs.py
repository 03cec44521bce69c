"""Bytes are kept under their hash once, come back as they were, and are given up when told."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sidecar.core.errors import NotFound
from sidecar.stores import blobs as module
from sidecar.stores.blobs import CHUNK, Blobs, Writer
from sidecar.stores.opens import held
from sidecar.stores.packs import SMALL_BYTES

PROJECT = Path(__file__).resolve().parents[2]
DATA = b"some bytes"
SHA = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture(params=[0, SMALL_BYTES], ids=["in-files", "small-in-packs"])
def blobs(state: Path, request: pytest.FixtureRequest) -> Blobs:
    return Blobs(str(state), free_disk_share=0.0, packed=request.param)


@pytest.fixture
def in_files(state: Path) -> Blobs:
    """Each in a file of its own, as all are that are not small, and all were before there were packs."""
    return Blobs(str(state), free_disk_share=0.0, packed=0)


def keep(blobs: Blobs, *chunks: bytes) -> Writer:
    writer = blobs.writer()
    for chunk in chunks:
        writer.write(chunk)
    writer.keep()
    return writer


def read(blobs: Blobs, sha256: str) -> bytes:
    with blobs.open(sha256) as kept:
        return kept.read()


def files(state: Path) -> list[str]:
    return sorted(str(path.relative_to(state)) for path in state.rglob("*") if path.is_file())


@pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
@pytest.mark.parametrize("cut", [1 << 30, CHUNK, 300_001])
def test_what_is_kept_comes_back(blobs: Blobs, size: int, cut: int) -> None:
    data = os.urandom(size)
    writer = blobs.writer()
    for start in range(0, size, cut):
        writer.write(data[start : start + cut])
    sha256 = writer.keep()
    assert (sha256, writer.kept) == (hashlib.sha256(data).hexdigest(), True)
    assert (read(blobs, sha256), blobs.has(sha256), blobs.total_bytes()) == (data, True, size)


def test_a_blob_is_one_private_file_named_by_its_hash(in_files: Blobs, state: Path) -> None:
    keep(in_files, DATA)
    assert files(state) == [f"kept/{SHA[:2]}/{SHA[2:]}"]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (state / "kept").rglob("*")}
    assert modes == {0o700, 0o600}


@pytest.mark.parametrize("data", [DATA, b"x" * (CHUNK + 1)])
@pytest.mark.rule("kept.by-content-once")
def test_known_bytes_are_kept_once(blobs: Blobs, state: Path, data: bytes) -> None:
    keep(blobs, data)
    (path,) = (path for path in (state / "kept").rglob("*") if path.is_file())
    before = path.stat()
    assert keep(blobs, data).kept
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert (len(files(state)), blobs.total_bytes()) == (1, len(data))


def test_known_small_bytes_do_not_touch_the_disk(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(blobs, DATA)
    opened: list[object] = []
    ordinary = os.open
    monkeypatch.setattr(os, "open", lambda *args, **kwargs: (opened.append(args), ordinary(*args, **kwargs))[1])
    assert keep(blobs, DATA).kept
    assert opened == []


@pytest.mark.parametrize("data", [DATA, b"x" * (CHUNK + 1)])
def test_what_is_discarded_leaves_nothing(blobs: Blobs, state: Path, data: bytes) -> None:
    writer = blobs.writer()
    writer.write(data)
    writer.discard()
    writer.discard()
    assert (files(state), writer.kept) == ([], False)


def test_discarding_after_keeping_changes_nothing(blobs: Blobs) -> None:
    writer = keep(blobs, DATA)
    writer.discard()
    assert (writer.kept, read(blobs, SHA)) == (True, DATA)


@pytest.mark.parametrize("text", ["", "0" * 64, SHA.upper(), SHA[:-1], f"../{SHA}", "/etc/passwd", "a\0b", "new"])
def test_what_is_not_kept_is_not_found(blobs: Blobs, text: str) -> None:
    keep(blobs, b"other bytes")
    assert (blobs.has(text), blobs.evict(text)) == (False, 0)
    with pytest.raises(NotFound):
        blobs.open(text)


def test_a_blob_given_up_is_gone(blobs: Blobs, state: Path) -> None:
    keep(blobs, DATA)
    keep(blobs, b"others")
    assert blobs.total_bytes() == 16
    assert [blobs.evict(SHA), blobs.evict(SHA)] == [10, 0]
    assert (blobs.has(SHA), blobs.total_bytes(), len(files(state))) == (False, 6, 1)
    assert keep(blobs, DATA).kept
    assert blobs.total_bytes() == 16


def test_sizes_tells_every_blob(blobs: Blobs) -> None:
    for data in (DATA, b"", b"x" * 100):
        keep(blobs, data)
    assert blobs.sizes() == {hashlib.sha256(data).hexdigest(): len(data) for data in (DATA, b"", b"x" * 100)}


def test_the_total_is_counted_from_the_disk_at_a_start(blobs: Blobs, state: Path) -> None:
    keep(blobs, DATA)
    keep(blobs, b"x" * 100)
    assert Blobs(str(state)).total_bytes() == 110


@pytest.mark.rule("kept.nothing-on-a-full-disk")
def test_without_free_disk_bytes_are_hashed_and_not_kept(state: Path) -> None:
    blobs = Blobs(str(state), free_disk_share=1.1)
    writer = keep(blobs, DATA)
    assert (writer.keep(), writer.kept, files(state)) == (SHA, False, [])


@pytest.mark.parametrize("data", [DATA, b"x" * (2 * CHUNK)])
@pytest.mark.parametrize("call", ["write", "rename", "open", "mkdir"])
def test_a_disk_that_takes_no_more_keeps_nothing_and_leaves_nothing(
    in_files: Blobs, state: Path, monkeypatch: pytest.MonkeyPatch, call: str, data: bytes
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        writer = keep(in_files, data[:100], data[100:])
        assert (writer.keep(), writer.kept) == (hashlib.sha256(data).hexdigest(), False)
    assert files(state) == []
    assert keep(in_files, data).kept


def test_a_damaged_blob_is_dropped_when_it_is_verified(in_files: Blobs, state: Path) -> None:
    keep(in_files, DATA)
    with in_files.open_verified(SHA) as kept:
        assert kept.read() == DATA
    (state / "kept" / SHA[:2] / SHA[2:]).write_bytes(b"some bytez")
    with pytest.raises(NotFound):
        in_files.open_verified(SHA)
    assert not in_files.has(SHA)
    assert keep(in_files, DATA).kept


def test_a_blob_cut_short_by_a_power_cut_is_written_anew(in_files: Blobs, state: Path) -> None:
    keep(in_files, DATA)
    os.truncate(state / "kept" / SHA[:2] / SHA[2:], 0)
    assert keep(in_files, DATA).kept
    assert (read(in_files, SHA), in_files.total_bytes()) == (DATA, 10)


def test_a_blob_that_a_power_cut_left_with_other_bytes_is_written_anew(in_files: Blobs, state: Path) -> None:
    keep(in_files, DATA)
    (state / "kept" / SHA[:2] / SHA[2:]).write_bytes(bytes(len(DATA)))
    awake = Blobs(str(state))
    assert keep(awake, DATA).kept
    assert (read(awake, SHA), awake.total_bytes()) == (DATA, len(DATA))


def test_a_link_in_the_place_of_a_blob_is_not_followed(in_files: Blobs, state: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(DATA)
    keep(in_files, DATA)
    in_files.evict(SHA)
    (state / "kept" / SHA[:2] / SHA[2:]).symlink_to(tmp_path / "other")
    with pytest.raises(OSError):
        in_files.open(SHA)


# Sharing ---------------------------------------------------------------------------------------------------------


def test_a_shared_file_is_kept_without_its_bytes_being_written(
    blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(2 * CHUNK)
    (tmp_path / "source").write_bytes(data)

    def share(target: int, request: int, source: int) -> int:
        return os.pwrite(target, os.pread(source, 4 * CHUNK, 0), 0)

    def forbidden(*_: object) -> int:
        raise AssertionError("bytes were written that the disk already shares")

    monkeypatch.setattr("sidecar.stores.reflink.fcntl.ioctl", share)
    monkeypatch.setattr(os, "write", forbidden)
    writer = blobs.writer()
    with held(os.open(tmp_path / "source", os.O_RDONLY)) as fd:
        assert writer.clone(fd)
        writer.write(data)
        sha256 = writer.keep()
    assert (writer.kept, read(blobs, sha256)) == (True, data)


def test_a_disk_that_does_not_share_has_the_bytes_written(blobs: Blobs, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(DATA)
    writer = blobs.writer()
    with held(os.open(tmp_path / "source", os.O_RDONLY)) as fd:
        writer.clone(fd)
    writer.write(DATA)
    writer.keep()
    assert read(blobs, SHA) == DATA


# Ends ------------------------------------------------------------------------------------------------------------


KILLED = """
import os, sys
from sidecar.stores.blobs import CHUNK, Blobs
blobs = Blobs(sys.argv[1], free_disk_share=0.0, packed=0)
whole = blobs.writer()
whole.write(b"some bytes")
whole.keep()
half = blobs.writer()
half.write(b"x" * (CHUNK + 1))
print(len(os.listdir(blobs.folder + "/new")), flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_kill_leaves_whole_blobs_and_a_start_clears_the_rest(state: Path) -> None:
    dying = [sys.executable, "-c", KILLED, str(state)]
    ended = subprocess.run(dying, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (-9, "1\n")
    assert len(files(state)) == 2
    blobs = Blobs(str(state))
    assert (files(state), read(blobs, SHA)) == ([f"kept/{SHA[:2]}/{SHA[2:]}"], DATA)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    monkeypatch.setattr(module.kernel, "syncfs", calls.append)
    return calls


def test_a_flush_reaches_the_disk_only_when_something_is_new(blobs: Blobs, synced: list[int]) -> None:
    counts = []
    for data in (None, DATA, None, DATA, b"new"):
        if data is not None:
            keep(blobs, data)
        blobs.flush()
        counts.append(len(synced))
    assert counts == [0, 1, 1, 1, 2]


def test_a_flush_that_failed_is_owed(blobs: Blobs, synced: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    keep(blobs, DATA)
    with monkeypatch.context() as patched:
        patched.setattr(module.kernel, "syncfs", broken)
        with pytest.raises(OSError):
            blobs.flush()
    blobs.flush()
    assert len(synced) == 1


def test_a_real_flush_returns(blobs: Blobs) -> None:
    keep(blobs, DATA)
    blobs.flush()


def test_many_threads_keep_the_same_bytes_once(in_files: Blobs, state: Path) -> None:
    bodies = [bytes([letter]) * size for letter in b"abc" for size in (10, CHUNK + 1)]
    kept: list[bool] = []

    def work() -> None:
        for body in bodies:
            kept.append(keep(in_files, body).kept)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert kept == [True] * 24
    assert in_files.total_bytes() == sum(map(len, bodies)) == sum(in_files.sizes().values())
    assert len(files(state)) == 6


def test_small_bytes_go_into_packs_and_others_into_files(state: Path) -> None:
    blobs = Blobs(str(state), free_disk_share=0.0)
    small, large = bytes(SMALL_BYTES), bytes(SMALL_BYTES + 1)
    keep(blobs, DATA)
    keep(blobs, small)
    keep(blobs, large)
    name = hashlib.sha256(large).hexdigest()
    assert files(state) == [f"kept/{name[:2]}/{name[2:]}", "kept/packs/00000001"]
    for one in (blobs, Blobs(str(state))):
        assert {read(one, sha256) for sha256 in one.sizes()} == {DATA, small, large}
        assert one.total_bytes() == sum(one.sizes().values()) == 10 + len(small) + len(large)


def test_what_older_daemons_kept_in_files_is_kept(in_files: Blobs, state: Path) -> None:
    keep(in_files, DATA)
    blobs = Blobs(str(state), free_disk_share=0.0)
    assert keep(blobs, DATA).kept
    assert files(state) == [f"kept/{SHA[:2]}/{SHA[2:]}"], "and not kept twice"
    assert (read(blobs, SHA), blobs.evict(SHA), files(state)) == (DATA, 10, [])


@pytest.mark.parametrize("left", [b"", b"other byte", b"some"])
def test_a_damaged_file_gives_way_to_a_pack(in_files: Blobs, state: Path, left: bytes) -> None:
    keep(in_files, DATA)
    (state / "kept" / SHA[:2] / SHA[2:]).write_bytes(left)
    blobs = Blobs(str(state), free_disk_share=0.0)
    assert keep(blobs, DATA).kept
    assert (read(blobs, SHA), blobs.sizes(), blobs.total_bytes()) == (DATA, {SHA: 10}, 10)
    assert files(state) == ["kept/packs/00000001"]


def test_a_damaged_record_is_written_anew(state: Path) -> None:
    keep(Blobs(str(state), free_disk_share=0.0), DATA)
    pack = state / "kept" / "packs" / "00000001"
    pack.write_bytes(pack.read_bytes().replace(DATA, b"some bytez"))
    blobs = Blobs(str(state), free_disk_share=0.0)
    assert keep(blobs, DATA).kept
    assert (read(blobs, SHA), blobs.sizes()) == (DATA, {SHA: 10})
    with Blobs(str(state)).open_verified(SHA) as kept:
        assert kept.read() == DATA


def test_a_disk_that_takes_no_record_keeps_nothing(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = Blobs(str(state), free_disk_share=0.0)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module.os, "pwrite", full)
        assert not keep(blobs, DATA).kept
    assert not blobs.has(SHA)
    assert keep(blobs, DATA).kept
    assert read(blobs, SHA) == DATA
