"""Nothing outside the folder is ever opened, and nothing in it but folders and regular files."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import random
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.core.errors import NotFound, Refusal, UnsafePath
from sidecar.stores import kernel, opens
from sidecar.stores.opens import Beneath, Opener, best_opener, by_kernel, by_walking, held, make_folders

SWAPS = 3000
SECRET = b"what is outside"


@pytest.fixture(params=[by_kernel, by_walking])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Both ways of opening keep the same promises."""
    if request.param is by_kernel and best_opener(str(tmp_path)) is not by_kernel:
        pytest.skip("openat2 is not allowed here")
    return request.param


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one of everything, beside a folder that must never be reached."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(SECRET)
    root = tmp_path / "out"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_bytes(b"inside")
    (root / "file").write_bytes(b"top")
    (root / "empty").write_bytes(b"")
    (root / "to_file").symlink_to("file")
    (root / "to_folder").symlink_to("a")
    (root / "to_secret").symlink_to(outside / "secret")
    (root / "to_outside").symlink_to(outside)
    (root / "to_root").symlink_to("/")
    (root / "to_itself").symlink_to("to_itself")
    (root / "to_nothing").symlink_to("nothing")
    (root / "a" / "up").symlink_to("..")
    (root / "a" / "proc").symlink_to("/proc/self/root")
    os.mkfifo(root / "fifo")
    os.link(root / "file", root / "second_name")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(root / "socket"))
    return root


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    before = os.listdir("/proc/self/fd")
    yield
    assert len(os.listdir("/proc/self/fd")) == len(before)


def outcome(act: Callable[[], object]) -> object:
    """What came of it: the bytes or the value, or the kind of refusal."""
    try:
        return act()
    except Refusal as refusal:
        return refusal.kind


def content(beneath: Beneath, text: str) -> bytes:
    with held(beneath.file(text)) as fd:
        return os.read(fd, 100)


def names(beneath: Beneath, text: str) -> list[str]:
    with held(beneath.folder(text)) as fd:
        return sorted(os.listdir(fd))


REFUSED = [
    ("/etc/passwd", "unsafe_path"),
    ("..", "unsafe_path"),
    ("../outside/secret", "unsafe_path"),
    ("a/../file", "unsafe_path"),
    ("a/./b/file", "unsafe_path"),
    ("a//b", "unsafe_path"),
    ("a/b/", "unsafe_path"),
    (".", "unsafe_path"),
    ("file\0.txt", "unsafe_path"),
    ("a\nb", "unsafe_path"),
    ("a\\b", "unsafe_path"),
    ("C:/file", "unsafe_path"),
    ("\udcff", "unsafe_path"),
    ("\ud800", "unsafe_path"),
    ("x" * 256, "unsafe_path"),
    ("x/" * 2048 + "x", "unsafe_path"),
    ("to_secret", "unsafe_path"),
    ("to_file", "unsafe_path"),
    ("to_itself", "unsafe_path"),
    ("to_nothing", "unsafe_path"),
    ("to_nothing/file", "unsafe_path"),
    ("to_folder/b/file", "unsafe_path"),
    ("to_outside/secret", "unsafe_path"),
    ("to_root/etc/passwd", "unsafe_path"),
    ("a/up/file", "unsafe_path"),
    ("a/proc/etc/passwd", "unsafe_path"),
    ("nothing", "not_found"),
    ("nothing/file", "not_found"),
    ("a/b/nothing", "not_found"),
    ("file/below", "not_found"),
    ("a/b/file/below/it", "not_found"),
    ("fifo/below", "not_found"),
]


@pytest.mark.parametrize(("text", "kind"), REFUSED)
def test_what_is_no_path_to_a_file_is_refused(root: Path, opener: Opener, text: str, kind: str) -> None:
    beneath = Beneath(str(root), opener)
    with no_descriptor_left():
        assert outcome(lambda: content(beneath, text)) == kind
        assert outcome(lambda: beneath.status(text)) == kind
        assert outcome(lambda: names(beneath, text)) == kind


@pytest.mark.parametrize("text", ["fifo", "socket", "a", "a/b"])
def test_only_regular_files_are_opened_as_files(root: Path, opener: Opener, text: str) -> None:
    beneath = Beneath(str(root), opener)
    with no_descriptor_left():
        assert outcome(lambda: content(beneath, text)) == "unsafe_path"
        assert outcome(lambda: beneath.status(text)) == "unsafe_path"


def test_a_device_is_not_opened(tmp_path: Path, opener: Opener) -> None:
    try:
        os.mknod(tmp_path / "null", 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    assert outcome(lambda: content(Beneath(str(tmp_path), opener), "null")) == "unsafe_path"


@pytest.mark.parametrize(
    ("text", "data"), [("file", b"top"), ("a/b/file", b"inside"), ("./file", b"top"), ("empty", b"")]
)
def test_regular_files_are_read(root: Path, opener: Opener, text: str, data: bytes) -> None:
    beneath = Beneath(str(root), opener)
    with no_descriptor_left():
        assert content(beneath, text) == data
        assert beneath.status(text).st_size == len(data)


def test_a_second_name_of_a_file_is_a_file(root: Path, opener: Opener) -> None:
    assert content(Beneath(str(root), opener), "second_name") == b"top"


def test_folders_are_listed_and_files_are_not(root: Path, opener: Opener) -> None:
    beneath = Beneath(str(root), opener)
    with no_descriptor_left():
        assert names(beneath, "a/b") == ["file"]
        assert "fifo" in names(beneath, "")
        assert outcome(lambda: names(beneath, "file")) == "not_found"
        assert outcome(lambda: names(beneath, "to_folder")) == "unsafe_path"


def test_a_fifo_without_a_writer_does_not_hold_us(root: Path, opener: Opener) -> None:
    answered: list[object] = []
    asking = threading.Thread(target=lambda: answered.append(outcome(lambda: Beneath(str(root), opener).file("fifo"))))
    asking.start()
    asking.join(5.0)
    assert answered == ["unsafe_path"]


def test_a_file_without_the_right_to_read_is_refused(opener: Opener) -> None:
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        (Path(root) / "file").write_bytes(b"secret")
        (Path(root) / "file").chmod(0)
        with dropped_rights():
            assert outcome(lambda: content(Beneath(root, opener), "file")) == "unsafe_path"


@contextmanager
def dropped_rights() -> Iterator[None]:
    """Root reads everything; leave its rights aside for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("standing", ["nothing", "a file", "a link"])
def test_a_root_that_is_no_folder_any_more_holds_nothing(root: Path, opener: Opener, standing: str) -> None:
    beneath = Beneath(str(root), opener)
    elsewhere = root.rename(root.with_name("elsewhere"))
    if standing == "a file":
        root.write_bytes(b"")
    if standing == "a link":
        root.symlink_to(elsewhere)
    assert outcome(lambda: content(beneath, "file")) == "not_found"
    assert outcome(lambda: names(beneath, "")) == "not_found"


def test_another_folder_at_the_same_path_is_the_root_from_then_on(root: Path, opener: Opener) -> None:
    beneath = Beneath(str(root), opener)
    root.rename(root.with_name("elsewhere"))
    root.mkdir()
    (root / "fresh").write_bytes(b"new")
    assert content(beneath, "fresh") == b"new"
    assert outcome(lambda: content(beneath, "file")) == "not_found"


def test_a_nul_is_refused_before_the_kernel_could_cut_there(root: Path) -> None:
    with held(os.open(root, os.O_PATH)) as folder, pytest.raises(ValueError):
        kernel.openat2(folder, b"file\0.txt", os.O_RDONLY)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM, errno.EACCES])
def test_a_kernel_or_container_without_openat2_is_walked(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(folder: int, below: bytes, flags: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(kernel, "openat2", refused)
    assert best_opener(str(root)) is by_walking
    assert content(Beneath(str(root)), "a/b/file") == b"inside"


# Making folders for a file ---------------------------------------------------------------------------------------


def made(root: Path, text: str) -> object:
    """Where a file would be put once its folders are made, relative to the root."""

    def act() -> str:
        at, missing, name = Beneath(str(root)).nearest(text)
        with held(make_folders(at, missing, text)) as folder:
            return os.path.relpath(os.readlink(f"/proc/self/fd/{folder}"), root) + "/" + name.decode()

    return outcome(act)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("new", "./new"),
        ("a/b/new", "a/b/new"),
        ("a/c/d/new", "a/c/d/new"),
        ("x/y/z/new", "x/y/z/new"),
        ("to_outside/new", "unsafe_path"),
        ("to_nothing/new", "unsafe_path"),
        ("a/up/new", "unsafe_path"),
        ("file/new", "unsafe_path"),
        ("fifo/x/new", "unsafe_path"),
        ("../new", "unsafe_path"),
        ("/new", "unsafe_path"),
        ("x\0/new", "unsafe_path"),
    ],
)
def test_folders_are_made_below_the_root_only(root: Path, text: str, place: str) -> None:
    with no_descriptor_left():
        assert made(root, text) == place
    assert sorted(os.listdir(root.parent / "outside")) == ["secret"]


def test_made_folders_are_open_to_the_programs_that_work_there(root: Path) -> None:
    tight = os.umask(0o077)
    try:
        assert made(root, "x/y/new") == "x/y/new"
    finally:
        os.umask(tight)
    assert [(root / folder).stat().st_mode & 0o777 for folder in ("x", "x/y")] == [0o755, 0o755]


# Races -----------------------------------------------------------------------------------------------------------

_renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
_EXCHANGE = 2


class Swapper:
    """Exchanges a folder and a link to the outside as fast as it can, until the block ends."""

    def __init__(self, one: Path, other: Path) -> None:
        self._names = (os.fsencode(one), os.fsencode(other))
        self._done = threading.Event()
        self.swaps = 0
        self._thread = threading.Thread(target=self._swap)

    def _swap(self) -> None:
        while not self._done.is_set():
            # ctypes lets go of the interpreter for the call, so the two sides really interleave.
            assert _renameat2(-100, self._names[0], -100, self._names[1], _EXCHANGE) == 0
            self.swaps += 1

    def __enter__(self) -> Swapper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


@pytest.fixture
def swapper(root: Path) -> Iterator[Swapper]:
    (root.parent / "outside" / "b").mkdir()
    (root.parent / "outside" / "b" / "file").write_bytes(SECRET)
    with Swapper(root / "a", root / "to_outside") as swapping:
        yield swapping


@pytest.mark.rule("refusals.swapping-a-folder-for-a-link-gains-nothing")
def test_a_folder_swapped_for_a_link_never_leads_outside(root: Path, opener: Opener, swapper: Swapper) -> None:
    beneath = Beneath(str(root), opener)
    seen: list[object] = []
    # A test in which everything is refused, or in which nothing is swapped, would prove nothing.
    while len(seen) < SWAPS or swapper.swaps < SWAPS or not {b"inside", "unsafe_path"} <= set(seen[-SWAPS:]):
        seen.append(outcome(lambda: content(beneath, "a/b/file")))
    assert set(seen) == {b"inside", "unsafe_path"}


def test_a_folder_swapped_for_a_link_is_never_written_into(root: Path, swapper: Swapper) -> None:
    for number in range(SWAPS // 3):
        made(root, f"a/b/{number}/x")
        made(root, f"a/{number}/x")
    swapper.__exit__()
    outside = root.parent / "outside"
    below = outside if (outside / "secret").exists() else root / "a"
    assert sorted(os.listdir(below)) == ["b", "secret"]
    assert os.listdir(below / "b") == ["file"]


# Any text --------------------------------------------------------------------------------------------------------

_honest = st.sampled_from(["a", "b", "file", "up", "proc", "etc", "passwd", "self", "é"])
_crooked = st.sampled_from(["to_outside", "to_root", "to_file", "..", ".", "", "\0"])
_parts = _honest | _crooked | st.text(max_size=8)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(parts=st.lists(_parts, min_size=1, max_size=6))
def test_any_text_opens_what_is_inside_or_is_refused(root: Path, opener: Opener, parts: list[str]) -> None:
    text = "/".join(parts)
    try:
        fd = Beneath(str(root), opener).file(text)
    except (NotFound, UnsafePath):
        return
    with held(fd):
        assert os.readlink(f"/proc/self/fd/{fd}").startswith(f"{os.path.realpath(root)}/")


def test_both_openers_answer_alike(root: Path, tmp_path: Path) -> None:
    if best_opener(str(tmp_path)) is not by_kernel:
        pytest.skip("openat2 is not allowed here")
    kernel_way, walking_way = Beneath(str(root), by_kernel), Beneath(str(root), by_walking)
    rng = random.Random(7)
    pool = ["a", "b", "file", "up", "to_outside", "to_folder", "to_nothing", "to_itself", "fifo", "nothing", "empty"]
    opened = 0
    for _ in range(3000):
        text = "/".join(rng.choices(pool, k=rng.randint(1, 3)))
        answer = outcome(functools.partial(content, kernel_way, text))
        assert answer == outcome(functools.partial(content, walking_way, text)), text
        opened += isinstance(answer, bytes)
    assert opened > 100


def test_the_walker_is_as_careful_with_a_descriptor_as_with_a_path(root: Path) -> None:
    with held(os.open(root, os.O_PATH)) as folder, suppress(OSError):
        fd = opens.by_walking(folder, b"to_secret", os.O_RDONLY)
        os.close(fd)
        pytest.fail("a link was followed")


def said_of(open_it: Callable[[str], int], text: str) -> object:
    """What opening answers: the file's bytes, or the class of the refusal."""
    try:
        with held(open_it(text)) as fd:
            return os.read(fd, 100)
    except Refusal as refusal:
        return type(refusal)


def test_files_opened_from_their_folders_are_the_files_at_their_paths(root: Path, opener: Opener) -> None:
    beneath = Beneath(str(root), opener)
    texts = [str(path.relative_to(root)) for path in sorted(root.rglob("*"))]
    texts += ["gone", "a/gone", "gone/file", "file/file", "to_folder/b/file", "to_outside/secret", "../out/file", ""]
    before = len(os.listdir("/proc/self/fd"))
    with beneath.by_folder() as file:
        assert [said_of(file, text) for text in texts] == [said_of(beneath.file, text) for text in texts]
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.usefixtures("memory_is_known")
def test_files_opened_at_once_are_the_files_at_their_paths_or_none(root: Path, opener: Opener) -> None:
    beneath = Beneath(str(root), opener)
    texts = [str(path.relative_to(root)) for path in sorted(root.rglob("*"))]
    texts += ["gone", "a/gone", "gone/file", "file/file", "to_folder/b/file", "to_outside/secret", "../out/file", ""]
    opened = 0
    with no_descriptor_left():
        for text in texts:
            said = said_of(beneath.file, text)  # and with it its name is in memory
            try:
                assert said_of(beneath.file_at_once, text) == said
                opened += isinstance(said, bytes)
            except OSError:
                assert not isinstance(said, bytes) or opener is by_walking
    assert opened == (0 if opener is by_walking else 4)


@pytest.mark.usefixtures("memory_is_known")
def test_a_folder_swapped_for_a_link_never_leads_outside_at_once(root: Path, swapper: Swapper) -> None:
    beneath = Beneath(str(root))
    seen: list[object] = []
    while len(seen) < SWAPS or swapper.swaps < SWAPS:
        try:
            with held(beneath.file_at_once("a/b/file")) as fd:
                seen.append(os.read(fd, 100))
        except OSError as failure:
            seen.append(failure.errno)
    assert b"inside" in seen
    assert set(seen) <= {b"inside", errno.ELOOP, errno.EAGAIN}


def test_only_so_many_folders_are_held_open(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opens, "_FOLDERS_HELD", 3)
    for number in range(10):
        (root / f"many_{number}").mkdir()
        (root / f"many_{number}" / "file").write_bytes(b"%d" % number)
    before = len(os.listdir("/proc/self/fd"))
    with Beneath(str(root)).by_folder() as file:
        for number in [*range(10), *range(10)]:
            assert said_of(file, f"many_{number}/file") == b"%d" % number
            assert len(os.listdir("/proc/self/fd")) <= before + 3


def test_a_folder_swapped_for_a_link_never_leads_outside_from_a_folder_held(
    root: Path, opener: Opener, swapper: Swapper
) -> None:
    beneath = Beneath(str(root), opener)
    seen: set[object] = set()
    while not {b"inside", UnsafePath} <= seen or swapper.swaps < SWAPS:
        with beneath.by_folder() as file:
            seen.update(said_of(file, "a/b/file") for _ in range(10))
    assert seen == {b"inside", UnsafePath}
