"""Another folder at OUT_DIR's path is noticed, also when it looks like the old one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sidecar.stores import standing as module
from sidecar.stores.standing import Standing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "out"
    root.mkdir()
    return root


def test_a_folder_that_stays_has_not_changed(root: Path) -> None:
    standing = Standing(str(root))
    (root / "file").write_bytes(b"")
    root.chmod(0o700)
    assert (standing.has_changed(), standing.is_lost) == (False, False)


@pytest.mark.parametrize("instead", ["nothing", "a file", "a link"])
def test_a_folder_renamed_away_is_lost_once_and_found_again(root: Path, instead: str) -> None:
    standing = Standing(str(root))
    elsewhere = root.rename(root.with_name("elsewhere"))
    if instead == "a file":
        root.write_bytes(b"")
    if instead == "a link":
        root.symlink_to(elsewhere)
    assert (standing.has_changed(), standing.is_lost) == (True, True)
    assert (standing.has_changed(), standing.is_lost) == (False, True)
    root.unlink(missing_ok=True)
    elsewhere.rename(root)
    assert (standing.has_changed(), standing.is_lost) == (True, False)


def test_a_folder_made_anew_is_another_one_whatever_its_number(root: Path) -> None:
    standing = Standing(str(root))
    for _ in range(20):
        root.rmdir()
        root.mkdir()
        assert (standing.has_changed(), standing.is_lost) == (True, False)


def test_what_was_never_there_is_lost(tmp_path: Path) -> None:
    standing = Standing(str(tmp_path / "nothing"))
    assert (standing.is_lost, standing.has_changed()) == (True, False)


def test_being_out_of_descriptors_says_nothing_about_out_dir(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standing = Standing(str(root))

    def without_descriptors(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", without_descriptors)
    assert (standing.has_changed(), standing.is_lost) == (False, False)


def test_a_disk_that_others_write_to_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Standing(str(root)).deaf == ""
    monkeypatch.setattr(module.kernel, "file_system_type", lambda _: 0x6969)
    assert Standing(str(root)).deaf == "NFS"


def test_no_descriptor_stays_open_after_closing(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    standing = Standing(str(root))
    for _ in range(3):
        root.rmdir()
        root.mkdir()
        standing.has_changed()
    standing.close()
    standing.close()
    assert len(os.listdir("/proc/self/fd")) == before
