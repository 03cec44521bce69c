"""OUT_DIR keeps the promises of its port, over both ways of opening and whatever it is asked."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar import ports
from sidecar.core.errors import NotFound, Refusal, UnsafePath
from sidecar.core.inventory import Survey, news
from sidecar.stores import kernel
from sidecar.stores.blobs import Blobs
from sidecar.stores.opens import Beneath, best_opener, by_kernel, by_walking, held, key_of
from sidecar.stores.outdir import OutDir
from sidecar.stores.scan import Bounds

SECRET = b"what is outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(SECRET)
    root = tmp_path / "out"
    (root / "turn_1" / "files").mkdir(parents=True)
    (root / "turn_1" / "files" / "a.txt").write_bytes(b"a")
    (root / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(root / "fifo")
    return root


@pytest.fixture(params=[by_kernel, by_walking])
def outdir(request: pytest.FixtureRequest, root: Path) -> OutDir:
    if request.param is by_kernel and best_opener(str(root)) is not by_kernel:
        pytest.skip("openat2 is not allowed here")
    return OutDir(str(root), opener=request.param)


def outcome(act: Callable[[], object]) -> object:
    try:
        return act()
    except Refusal as refusal:
        return refusal.kind


def read(outdir: OutDir, text: str) -> bytes:
    with outdir.open(text) as file:
        return file.read()


def test_the_class_is_the_port(outdir: OutDir, tmp_path: Path) -> None:
    port: ports.OutDir = outdir
    blobs: ports.Blobs = Blobs(str(tmp_path / "state"))
    assert port.take_in("turn_1/files/a.txt", blobs).outcome == "complete"


def test_the_root_is_made_real_once(root: Path) -> None:
    alias = root.with_name("alias")
    alias.symlink_to(root)
    outdir = OutDir(str(alias))
    assert (outdir.root, read(outdir, "turn_1/files/a.txt")) == (str(root), b"a")


def test_what_is_written_is_surveyed_read_and_taken_in_under_one_key(outdir: OutDir) -> None:
    key = outdir.write_whole("turn_2/files/b.md", [b"# B"])
    intake = outdir.take_in("turn_2/files/b.md", None)
    assert intake.fact is not None
    assert outdir.survey("turn_2").files == {"turn_2/files/b.md": key}
    assert (outdir.key("turn_2/files/b.md"), intake.fact.key) == (key, key)
    assert (read(outdir, "turn_2/files/b.md"), intake.fact.sha256) == (b"# B", hashlib.sha256(b"# B").hexdigest())
    assert news(outdir.survey(), {**outdir.survey().files}).changed == ()


@pytest.mark.parametrize(
    ("text", "key", "opened"),
    [
        ("turn_1/files/gone", None, "not_found"),
        ("turn_1/files/a.txt/below", None, "not_found"),
        ("turn_1", "unsafe_path", "unsafe_path"),
        ("fifo", "unsafe_path", "unsafe_path"),
        ("link", "unsafe_path", "unsafe_path"),
        ("link/secret", "unsafe_path", "unsafe_path"),
        ("../outside/secret", "unsafe_path", "unsafe_path"),
        ("", "unsafe_path", "unsafe_path"),
    ],
)
def test_what_is_no_regular_file_has_no_key_and_is_not_opened(
    outdir: OutDir, text: str, key: object, opened: object
) -> None:
    assert (outcome(lambda: outdir.key(text)), outcome(lambda: read(outdir, text))) == (key, opened)


def test_the_bytes_of_a_state_are_those_of_no_other(outdir: OutDir, root: Path) -> None:
    path = "turn_1/files/a.txt"
    key = outdir.key(path)
    assert key is not None
    assert outdir.bytes_of(path, key) == b"a"
    assert outdir.bytes_now(path, key) in (b"a", None)
    (root / path).write_bytes(b"bb")
    assert (outdir.bytes_of(path, key), outdir.bytes_now(path, key)) == (None, None)
    (root / path).unlink()
    assert (outdir.bytes_of(path, key), outdir.bytes_now(path, key)) == (None, None)


@pytest.mark.parametrize("text", ["turn_1", "fifo", "link", "link/secret", "../outside/secret", "", "fifo\0b"])
def test_what_is_no_regular_file_has_no_bytes(outdir: OutDir, root: Path, text: str) -> None:
    status = (root / text.partition("\0")[0]).stat()
    assert outdir.bytes_of(text, key_of(status)) is None
    assert outdir.bytes_now(text, key_of(status)) is None


@pytest.mark.usefixtures("memory_is_known")
def test_what_is_in_memory_is_read_at_once_and_what_is_on_the_disk_alone_is_not(root: Path) -> None:
    outdir = OutDir(str(root))
    path = "turn_1/files/a.txt"
    key = outdir.key(path)
    assert key is not None
    assert outdir.bytes_of(path, key) == b"a"
    assert outdir.bytes_now(path, key) == b"a"
    with held(os.open(root / path, os.O_RDONLY)) as fd:
        if kernel.file_system_type(fd) == 0x01021994:
            return  # tmpfs is memory
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    assert outdir.bytes_now(path, key) is None
    assert outdir.bytes_of(path, key) == b"a"
    assert outdir.bytes_now(path, key) == b"a"


def test_nothing_is_read_at_once_from_a_disk_mounted_below(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outdir = OutDir(str(root))
    key = outdir.key("turn_1/files/a.txt")
    assert key is not None
    monkeypatch.setattr(outdir, "_dev", key.dev + 1)
    monkeypatch.setattr(Beneath, "file_at_once", lambda *_: pytest.fail("it was opened"))
    assert outdir.bytes_now("turn_1/files/a.txt", key) is None
    assert outdir.bytes_of("turn_1/files/a.txt", key) == b"a"


@pytest.mark.parametrize("scope", ["gone", "turn_1/files/a.txt", "link", "fifo", "../outside", "/", "a\0b", "\udcff"])
def test_a_scope_that_is_no_folder_is_an_empty_survey(outdir: OutDir, scope: str) -> None:
    assert outdir.survey(scope) == Survey(scope, {}, ())


def test_without_out_dir_everything_is_gone_until_a_folder_stands_there_again(outdir: OutDir, root: Path) -> None:
    known = outdir.survey().files
    root.rename(root.with_name("elsewhere"))
    assert news(outdir.survey(), known).gone == ("turn_1/files/a.txt",)
    assert (outdir.key("turn_1/files/a.txt"), outdir.take_in("turn_1/files/a.txt", None).outcome) == (None, "gone")
    root.mkdir()
    assert outdir.survey().folders == ("",)
    assert outdir.write_whole("turn_1/files/a.txt", [b"a"]).size == 1


def test_a_root_that_cannot_be_looked_at_proves_no_absence(outdir: OutDir, monkeypatch: pytest.MonkeyPatch) -> None:
    known = outdir.survey().files

    def without_descriptors(*_: object, **__: object) -> int:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", without_descriptors)
        survey = outdir.survey()
    assert news(survey, known).gone == ()


def test_the_bounds_of_a_look_can_be_set(root: Path) -> None:
    survey = OutDir(str(root), bounds=Bounds(depth=1)).survey()
    assert (dict(survey.files), survey.over_limit) == ({}, 1)


def test_hashing_stops_at_its_limit(root: Path) -> None:
    fact = OutDir(str(root), hashed_bytes=0).take_in("turn_1/files/a.txt", None).fact
    assert fact is not None
    assert fact.sha256 is None


def test_a_start_sweeps_what_a_killed_daemon_left(outdir: OutDir, root: Path) -> None:
    left = root / "turn_1" / "files" / (".part-" + "0" * 32)
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    assert [outdir.sweep(), outdir.sweep()] == [1, 0]
    assert not left.exists()


def test_kept_bytes_come_back_as_the_file_that_was_deleted(outdir: OutDir, root: Path, tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "state"), free_disk_share=0.0)
    fact = outdir.take_in("turn_1/files/a.txt", blobs).fact
    assert fact is not None
    assert fact.sha256 is not None
    (root / "turn_1" / "files" / "a.txt").unlink()
    with blobs.open(fact.sha256) as kept:
        outdir.write_whole("turn_1/files/a.txt", kept, sha256=fact.sha256)
    assert read(outdir, "turn_1/files/a.txt") == b"a"
    assert os.stat(root / "turn_1/files/a.txt").st_nlink == 1


def test_several_threads_may_ask_at_once(outdir: OutDir, root: Path, tmp_path: Path) -> None:
    blobs = Blobs(str(tmp_path / "state"), free_disk_share=0.0)
    wrong: list[object] = []

    def work(name: str) -> None:
        for number in range(40):
            text = f"turn_1/files/{name}/{number % 4}"
            body = f"{name} {number}".encode()
            outdir.write_whole(text, [body])
            fact = outdir.take_in(text, blobs).fact
            if fact is None or fact.sha256 != hashlib.sha256(body).hexdigest() or text not in outdir.survey().files:
                wrong.append((text, fact))

    workers = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


_parts = st.sampled_from(["turn_1", "files", "a.txt", "link", "secret", "fifo", "..", ".", "", "outside", "\0"])


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.lists(_parts | st.text(max_size=6), max_size=5).map("/".join) | st.text(max_size=12))
def test_any_text_is_answered_or_refused_by_name(outdir: OutDir, root: Path, text: str) -> None:
    for ask in (outdir.key, lambda asked: read(outdir, asked), lambda asked: outdir.write_whole(asked, [b"written"])):
        try:
            answer = ask(text)
        except (NotFound, UnsafePath):
            continue
        assert answer != SECRET
    assert outdir.survey(text).scope == text
    assert outdir.take_in(text, None).outcome in {"complete", "gone", "unsafe"}
    assert os.listdir(root.parent / "outside") == ["secret"]
    assert (root.parent / "outside" / "secret").read_bytes() == SECRET
    assert sorted(os.listdir(root.parent)) == ["out", "outside"]
