"""Only complete files are taken in, with the hash and the key of the same bytes."""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sidecar.core import limits
from sidecar.core.inventory import FileFact
from sidecar.ports import Intake
from sidecar.stores import intake, lease
from sidecar.stores.blobs import Blobs
from sidecar.stores.intake import BUSY, CHUNK, GONE, UNSAFE, Reader
from sidecar.stores.opens import Beneath, key_of

CEILING = 5.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "out"
    root.mkdir()
    return root


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(str(tmp_path / "state"), free_disk_share=0.0)


@pytest.fixture
def reader(root: Path) -> Reader:
    return Reader(Beneath(str(root)))


@pytest.fixture
def no_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk on which a lease can never be had."""
    monkeypatch.setattr(intake, "writers", lambda _: "unknown")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def until(act: Callable[[], Intake], outcome: str) -> Intake:
    """Ask until this is the answer."""
    end = time.monotonic() + CEILING
    while (answer := act()).outcome != outcome:
        assert time.monotonic() < end, answer
    return answer


@pytest.mark.parametrize("size", [0, 1, 4096, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 17])
def test_a_complete_file_is_a_fact(root: Path, reader: Reader, blobs: Blobs, size: int) -> None:
    data = random.Random(size).randbytes(size)
    (root / "a.bin").write_bytes(data)
    key = key_of((root / "a.bin").stat())
    mime = "application/octet-stream" if size > 1 else "text/plain"
    fact = reader.take_in("a.bin", blobs).fact
    assert fact is not None
    assert (fact.path, fact.key, fact.sha256, fact.kept) == ("a.bin", key, sha256(data), True)
    assert size == 1 or fact.mime == mime
    with blobs.open(sha256(data)) as kept:
        assert kept.read() == data


def test_without_blobs_nothing_is_kept(root: Path, reader: Reader) -> None:
    (root / "a.md").write_bytes(b"# A")
    key = key_of((root / "a.md").stat())
    assert reader.take_in("a.md", None) == Intake("complete", FileFact("a.md", key, sha256(b"# A"), "text/markdown"))


def test_what_is_no_complete_file_says_what_it_is(root: Path, reader: Reader) -> None:
    (root / "folder").mkdir()
    (root / "link").symlink_to("/etc/passwd")
    os.mkfifo(root / "fifo")
    answers = {text: reader.take_in(text, None) for text in ("gone", "folder", "link", "fifo", "../up", "a\0b", "")}
    assert answers == {
        "gone": GONE,
        "folder": UNSAFE,
        "link": UNSAFE,
        "fifo": UNSAFE,
        "../up": UNSAFE,
        "a\0b": UNSAFE,
        "": UNSAFE,
    }


def test_a_file_over_the_hashing_limit_is_known_by_its_key_alone(root: Path, blobs: Blobs) -> None:
    with (root / "sparse.png").open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.truncate(8 << 40)
    started = time.monotonic()
    fact = Reader(Beneath(str(root))).take_in("sparse.png", blobs).fact
    assert fact is not None
    assert (fact.sha256, fact.kept, fact.mime, fact.key.size) == (None, False, "image/png", 8 << 40)
    assert time.monotonic() - started < CEILING


def test_a_file_over_the_keeping_limit_is_hashed_and_not_kept(
    root: Path, reader: Reader, blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "KEPT_FILE_BYTES", 10)
    (root / "a").write_bytes(b"x" * 11)
    (root / "b").write_bytes(b"x" * 10)
    facts = [reader.take_in(name, blobs).fact for name in ("a", "b")]
    assert [(fact.sha256, fact.kept) for fact in facts if fact] == [
        (sha256(b"x" * 11), False),
        (sha256(b"x" * 10), True),
    ]


def test_a_file_without_the_room_to_keep_it_is_a_fact_all_the_same(root: Path, reader: Reader, tmp_path: Path) -> None:
    full = Blobs(str(tmp_path / "state"), free_disk_share=1.1)
    (root / "a").write_bytes(b"x")
    fact = reader.take_in("a", full).fact
    assert fact is not None
    assert (fact.sha256, fact.kept, full.has(sha256(b"x"))) == (sha256(b"x"), False, False)


def test_a_file_open_for_writing_is_busy_until_it_is_closed(root: Path, reader: Reader, blobs: Blobs) -> None:
    with (root / "a").open("wb") as writing:
        writing.write(b"half")
        writing.flush()
        assert reader.take_in("a", blobs) == BUSY
    assert reader.take_in("a", blobs).outcome == "complete"
    assert blobs.sizes() == {sha256(b"half"): 4}


class Interfering:
    """A sink that lets somebody act on the file while it is read."""

    kept = False

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self.ended = ""

    def clone(self, _fd: int, /) -> bool:
        return False

    def write(self, chunk: bytes) -> None:
        self._act()

    def keep(self) -> str:
        self.ended = self.ended or "kept"
        return ""

    def discard(self) -> None:
        self.ended = self.ended or "discarded"


class OneSink:
    def __init__(self, sink: Interfering) -> None:
        self._sink = sink

    def writer(self) -> Interfering:
        return self._sink


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def rewrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"Y")


def replace(path: Path) -> None:
    path.with_name("new").write_bytes(b"another")
    path.with_name("new").rename(path)


@pytest.mark.parametrize("act", [append, rewrite, replace, Path.unlink, lambda path: os.truncate(path, 1)], ids=str)
@pytest.mark.parametrize("size", [5, 2 * CHUNK])
@pytest.mark.rule("watch.a-file-changed-while-hashed-is-not-registered")
def test_a_file_changed_while_it_is_read_is_no_fact(
    root: Path, reader: Reader, act: Callable[[Path], None], size: int
) -> None:
    path = root / "a"
    path.write_bytes(b"X" * size)
    acts = iter([act])
    sink = Interfering(lambda: next(acts, lambda _: None)(path))
    assert reader.take_in("a", OneSink(sink)) == BUSY  # type: ignore[arg-type]
    assert sink.ended == "discarded"


def test_a_writer_that_opens_while_it_is_read_makes_it_busy(root: Path, reader: Reader) -> None:
    (root / "a").write_bytes(b"x")
    opened: list[int] = []
    sink = Interfering(lambda: opened.append(os.open(root / "a", os.O_WRONLY)))
    answer = reader.take_in("a", OneSink(sink))  # type: ignore[arg-type]
    os.close(opened[0])
    assert (answer, sink.ended) == (BUSY, "discarded")


def test_a_file_that_grows_without_end_ends_the_reading(root: Path, reader: Reader) -> None:
    (root / "a").write_bytes(b"x" * CHUNK)
    writes = iter(range(1000))
    sink = Interfering(lambda: append(root / "a") if next(writes, None) is not None else None)
    assert reader.take_in("a", OneSink(sink)) == BUSY  # type: ignore[arg-type]
    assert next(writes) < 3


def test_a_disk_error_makes_a_file_busy(root: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a").write_bytes(b"x")

    def broken(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(intake.os, "read", broken)
    assert reader.take_in("a", None) == BUSY


def test_no_descriptor_stays_open(root: Path, reader: Reader, blobs: Blobs) -> None:
    (root / "a").write_bytes(b"x" * (CHUNK + 1))
    os.mkfifo(root / "fifo")
    before = len(os.listdir("/proc/self/fd"))
    for text in ("a", "fifo", "gone", "../a"):
        reader.take_in(text, blobs)
    assert len(os.listdir("/proc/self/fd")) == before


# Slow writers ----------------------------------------------------------------------------------------------------


class SlowWriter:
    """Writes parts with pauses, holding the file open all the while, as programs do."""

    def __init__(self, path: Path, parts: list[bytes], pause: float) -> None:
        self._path = path
        self._parts = parts
        self._pause = pause
        self._between = threading.Event()
        self.closing = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        with self._path.open("wb", buffering=0) as file:
            for part in self._parts:
                file.write(part)
                self._between.wait(self._pause)
            self.closing.set()

    def __enter__(self) -> SlowWriter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()


@pytest.fixture(params=[10, 120, 300, 800], ids=lambda pause: f"pause of {pause} ms")
def slow_writer(request: pytest.FixtureRequest, root: Path) -> Iterator[SlowWriter]:
    pause = request.param / 1000
    parts = [b"part" * 1000] * max(3, int(0.9 / pause))
    with SlowWriter(root / "slow", parts, pause) as writer:
        yield writer


def test_no_half_file_of_a_slow_writer_is_taken_in(slow_writer: SlowWriter, reader: Reader, blobs: Blobs) -> None:
    asked = 0

    def ask() -> Intake:
        nonlocal asked
        asked += 1
        was_closing = slow_writer.closing.is_set()
        answer = reader.take_in("slow", blobs)
        assert answer.outcome != "complete" or was_closing or slow_writer.closing.is_set()
        return answer

    fact = until(ask, "complete").fact
    assert fact is not None
    assert fact.key.size == sum(map(len, slow_writer._parts))
    assert len(blobs.sizes()) == 1
    assert asked > 10


# Where leases do not work ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_leases")
def test_without_leases_a_file_settles_first(root: Path, reader: Reader) -> None:
    (root / "a").write_bytes(b"x")
    started = time.monotonic()
    assert reader.take_in("a", None) == BUSY
    until(lambda: reader.take_in("a", None), "complete")
    assert time.monotonic() - started >= lease.SETTLE_SECONDS


@pytest.mark.usefixtures("no_leases")
def test_without_leases_a_writer_with_short_pauses_leaves_no_half_file(root: Path, reader: Reader) -> None:
    with SlowWriter(root / "slow", [b"part"] * 8, 0.12) as writer:
        fact = until(lambda: reader.take_in("slow", None), "complete").fact
        assert writer.closing.is_set()
    assert fact is not None
    assert fact.sha256 == sha256(b"part" * 8)


def test_where_times_are_coarse_a_young_file_waits_a_tick(root: Path) -> None:
    reader = Reader(Beneath(str(root)), racy_ns=200_000_000)
    (root / "a").write_bytes(b"x")
    changed = (root / "a").stat().st_ctime_ns
    assert reader.take_in("a", None) == BUSY
    until(lambda: reader.take_in("a", None), "complete")
    assert time.time_ns() - changed >= 200_000_000
