"""Paths below a folder: made, opened, walked and removed, through no link and with nothing else touched."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.stores.folder_tree import Obstructed, make_folders, open_file, remove, walk
from sidecar.stores.opens import FOLDER, held


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    return made


@pytest.fixture
def fd(root: Path) -> Iterator[int]:
    with held(os.open(root, FOLDER)) as opened:
        yield opened


def write(path: Path, content: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def walked(fd: int, prefix: str = "", after: str = "", longest: int = 900) -> list[str]:
    return [path.decode() for path in walk(fd, prefix=prefix.encode(), after=after.encode(), longest=longest)]


def test_a_file_is_opened_to_be_read(root: Path, fd: int) -> None:
    write(root / "a/b", "bytes")
    with held(open_file(fd, b"a/b")) as opened:
        assert os.read(opened, 10) == b"bytes"
        with pytest.raises(OSError):
            os.write(opened, b"x")


@pytest.mark.parametrize("path", ["none", "a/none", "none/none"])
def test_what_is_not_there_is_a_missing_file(root: Path, fd: int, path: str) -> None:
    write(root / "a/b")
    with pytest.raises(FileNotFoundError):
        open_file(fd, path.encode())


def test_links_folders_and_pipes_are_in_the_way(root: Path, fd: int, tmp_path: Path) -> None:
    write(tmp_path / "outside/secret")
    write(root / "file")
    (root / "folder").mkdir()
    (root / "link").symlink_to(tmp_path / "outside/secret")
    (root / "way").symlink_to(tmp_path / "outside")
    os.mkfifo(root / "pipe")
    for path in ("link", "way/secret", "folder", "pipe", "file/below"):
        with pytest.raises(Obstructed):
            open_file(fd, path.encode())
    for path in ("link/x", "way/x", "file/x", "pipe/x"):
        with pytest.raises(Obstructed):
            make_folders(fd, path.encode())
    assert sorted(os.listdir(tmp_path / "outside")) == ["secret"]


def test_folders_are_made_for_us_alone(root: Path, fd: int) -> None:
    with held(make_folders(fd, b"a/b/file")) as folder, held(make_folders(fd, b"a/b/file")) as again:
        assert os.path.sameopenfile(folder, again)
        assert stat.S_IMODE(os.fstat(folder).st_mode) == 0o700
    assert [str(path.relative_to(root)) for path in sorted(root.rglob("*"))] == ["a", "a/b"]
    with held(make_folders(fd, b"file")) as top:
        assert os.path.sameopenfile(top, fd)


def test_removing_a_file_removes_the_folders_that_held_nothing_else(root: Path, fd: int) -> None:
    write(root / "a/b/c/file")
    write(root / "a/other")
    remove(fd, b"a/b/c/file")
    assert sorted(os.listdir(root / "a")) == ["other"]
    remove(fd, b"a/other")
    assert os.listdir(root) == []


def test_only_files_are_removed(root: Path, fd: int, tmp_path: Path) -> None:
    write(tmp_path / "outside/file")
    (root / "way").symlink_to(tmp_path / "outside")
    (root / "folder").mkdir()
    write(root / "file")
    for path in ("none", "folder", "way/file", "file/below", "none/none"):
        remove(fd, path.encode())
    assert sorted(os.listdir(root)) == ["file", "folder", "way"]
    assert (tmp_path / "outside/file").exists()


def test_files_are_walked_in_the_order_of_their_whole_paths(root: Path, fd: int, tmp_path: Path) -> None:
    paths = sorted(["a-b", "a/b", "a/b-c/d", "a/b.c", "a0", "b", "z/y/x"])
    for path in paths:
        write(root / path)
    write(tmp_path / "outside/file")
    (root / "link").symlink_to(tmp_path / "outside/file")
    (root / "way").symlink_to(tmp_path / "outside")
    assert walked(fd) == paths
    for after in paths:
        assert walked(fd, after=after) == [path for path in paths if path > after]
    for prefix in ("a", "a/", "a/b", "z/y", "none"):
        assert walked(fd, prefix=prefix) == [path for path in paths if path.startswith(prefix)]
    assert walked(fd, longest=3) == ["a-b", "a/b", "a0", "b"]
