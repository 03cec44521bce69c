"""A file is put in place for now: it can be kept, or taken back as if it had never been there."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.core.inventory import StatKey
from sidecar.stores import kernel, placing
from sidecar.stores.opens import Beneath, key_of
from sidecar.stores.placing import Placed, place, take_away
from sidecar.stores.reflink import Reflinks

NAME = "a/old"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "out"
    (root / "a").mkdir(parents=True)
    (root / NAME).write_bytes(b"the old bytes")
    return root


@pytest.fixture(params=["exchange", "no exchange"])
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A disk that can exchange two names, and one that cannot."""
    if request.param == "no exchange":
        rename = kernel.rename

        def refusing(source: Any, target: Any, flags: int) -> None:
            if flags == kernel.EXCHANGE:
                raise OSError(errno.EINVAL, "the file system knows no exchange")
            rename(source, target, flags)

        monkeypatch.setattr(kernel, "rename", refusing)
    return str(request.param)


def put(root: Path, text: str = NAME, *, over: StatKey | None) -> Placed:
    return place(Beneath(str(root)), text, [b"the ", b"new bytes"], over=over, reflinks=Reflinks())


def standing(root: Path) -> StatKey:
    return key_of((root / NAME).stat())


def files(root: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones included."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.usefixtures("disk")
def test_what_is_kept_is_all_that_is_left(root: Path) -> None:
    before = open_files()
    placed = put(root, over=standing(root))
    assert placed.key == standing(root)
    placed.keep()
    assert files(root) == {NAME: b"the new bytes"}
    assert open_files() == before


@pytest.mark.usefixtures("disk")
def test_taken_back_the_very_former_file_stands_there_again(root: Path) -> None:
    before, inode = open_files(), (root / NAME).stat().st_ino
    placed = put(root, over=standing(root))
    assert (root / NAME).read_bytes() == b"the new bytes"
    assert placed.take_back()
    assert files(root) == {NAME: b"the old bytes"}
    assert (root / NAME).stat().st_ino == inode
    assert open_files() == before


def test_a_new_file_is_taken_back_to_nothing(root: Path) -> None:
    placed = put(root, "a/new", over=None)
    assert files(root)["a/new"] == b"the new bytes"
    assert placed.take_back()
    assert files(root) == {NAME: b"the old bytes"}


@pytest.mark.usefixtures("disk")
def test_a_file_that_was_deleted_meanwhile_is_no_hindrance(root: Path) -> None:
    key = standing(root)
    (root / NAME).unlink()
    put(root, over=key).keep()
    assert files(root) == {NAME: b"the new bytes"}


@pytest.mark.usefixtures("disk")
def test_another_file_than_the_one_meant_is_never_replaced(root: Path) -> None:
    before, key = open_files(), standing(root)
    (root / NAME).write_bytes(b"a program's own")
    with pytest.raises(FileExistsError):
        put(root, over=key)
    with pytest.raises(FileExistsError):
        put(root, over=None)
    assert files(root) == {NAME: b"a program's own"}
    assert open_files() == before


@pytest.mark.usefixtures("disk")
def test_a_file_that_somebody_writes_to_is_not_replaced(root: Path) -> None:
    with (root / NAME).open("ab") as writing:
        with pytest.raises(FileExistsError):
            put(root, over=standing(root))
        writing.write(b" and more")
    assert files(root) == {NAME: b"the old bytes and more"}


@pytest.mark.usefixtures("disk")
@pytest.mark.parametrize("over_former", [True, False])
def test_what_a_program_made_of_it_meanwhile_is_not_taken_back(root: Path, *, over_former: bool) -> None:
    name = NAME if over_former else "a/new"
    placed = put(root, name, over=standing(root) if over_former else None)
    (root / name).write_bytes(b"a program's own")
    assert not placed.take_back()
    assert files(root)[name] == b"a program's own"
    assert not [path for path in files(root) if ".part-" in path]


@pytest.mark.usefixtures("disk")
def test_what_was_deleted_meanwhile_gives_way_to_the_former(root: Path) -> None:
    placed = put(root, over=standing(root))
    (root / NAME).unlink()
    assert placed.take_back()
    assert files(root) == {NAME: b"the old bytes"}


@pytest.mark.usefixtures("disk")
@pytest.mark.parametrize("counts", [True, False])
def test_a_folder_that_went_meanwhile_costs_no_descriptor(root: Path, *, counts: bool) -> None:
    """With it went the file and what waited aside, so that nothing is left to remove or to bring back."""
    before = open_files()
    placed = put(root, over=standing(root))
    shutil.rmtree(root / "a")
    if counts:
        placed.keep()
    else:
        assert not placed.take_back()
    assert open_files() == before
    assert files(root) == {}


@pytest.mark.usefixtures("disk")
def test_a_former_file_that_somebody_removed_while_it_waited_is_no_failure(root: Path) -> None:
    before = open_files()
    placed = put(root, over=standing(root))
    for waits in (root / "a").glob(".part-*"):
        waits.unlink()
    assert not placed.take_back()
    assert (files(root), open_files()) == ({}, before)


@pytest.mark.usefixtures("disk")
def test_a_folder_that_goes_while_a_file_is_placed_is_made_again(root: Path) -> None:
    before, over = open_files(), standing(root)

    def chunks() -> Iterator[bytes]:
        yield b"the new bytes"
        shutil.rmtree(root / "a")

    placed = place(Beneath(str(root)), NAME, chunks(), over=over, reflinks=Reflinks())
    assert files(root) == {NAME: b"the new bytes"}
    assert placed.take_back()
    assert (files(root), open_files()) == ({}, before)


@pytest.mark.usefixtures("disk")
def test_a_disk_that_fails_at_the_last_step_leaves_the_former_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, look = open_files(), placing.is_that_file
    answers = iter([_broken, look])
    monkeypatch.setattr(placing, "is_that_file", lambda *asked: next(answers)(*asked))
    with pytest.raises(OSError, match="broken"):
        put(root, over=standing(root))
    assert files(root) == {NAME: b"the old bytes"}
    assert open_files() == before


def _broken(*_: object) -> bool:
    raise OSError(errno.EIO, "broken")


def test_a_file_that_was_laid_down_is_taken_away_unless_it_changed(root: Path) -> None:
    beneath = Beneath(str(root))
    before = open_files()
    for text, gone in (("ours", True), ("theirs", False)):
        (root / "a/new").write_text("ours")
        key = key_of((root / "a/new").stat())
        (root / "a/new").write_text(text)
        assert take_away(beneath, "a/new", key if text == "theirs" else key_of((root / "a/new").stat())) is gone
        assert (root / "a/new").exists() is not gone
    assert take_away(beneath, "no/where", key) is False
    assert open_files() == before
