"""The staged copy is exactly the lock list: the bytes that were named, from regular files below OUT_DIR."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from artifact_render import staging
from artifact_render.asking import Locked
from artifact_render.failures import RenderError
from artifact_render.staging import Changed, stage


def locked(path: str, content: bytes) -> Locked:
    return Locked(path, hashlib.sha256(content).hexdigest())


@pytest.fixture
def out_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "out/turn_1/files"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"one")
    (folder / "b.txt").write_bytes(b"one")
    (folder / "other.txt").write_bytes(b"other")
    (tmp_path / "staged").mkdir()
    return tmp_path / "out"


def test_files_of_equal_bytes_are_copied_once(out_dir: Path, tmp_path: Path) -> None:
    files = [locked("turn_1/files/a.txt", b"one"), locked("turn_1/files/b.txt", b"one")]
    sizes = stage(str(out_dir), files, tmp_path / "staged")
    assert sizes == {files[0].sha256: 3}
    assert [path.read_bytes() for path in (tmp_path / "staged").iterdir()] == [b"one"]


def link_the_file(files: Path) -> None:
    (files / "a.txt").unlink()
    (files / "a.txt").symlink_to("b.txt")


def link_the_folder(files: Path) -> None:
    files.rename(files.with_name("moved"))
    files.symlink_to("moved")


def make_a_fifo(files: Path) -> None:
    (files / "a.txt").unlink()
    os.mkfifo(files / "a.txt")


def write_other_bytes(files: Path) -> None:
    (files / "a.txt").write_bytes(b"two")


def take_it_away(files: Path) -> None:
    (files / "a.txt").unlink()


@pytest.mark.parametrize("deed", [link_the_file, link_the_folder, make_a_fifo, write_other_bytes, take_it_away])
def test_what_is_not_what_the_daemon_named_is_not_staged(
    out_dir: Path, tmp_path: Path, deed: Callable[[Path], None]
) -> None:
    deed(out_dir / "turn_1/files")
    with pytest.raises(Changed):
        stage(str(out_dir), [locked("turn_1/files/a.txt", b"one")], tmp_path / "staged")
    assert list((tmp_path / "staged").iterdir()) == []


def test_all_files_together_have_a_limit(out_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "STAGED_BYTES", 7)
    files = [locked("turn_1/files/a.txt", b"one"), locked("turn_1/files/other.txt", b"other")]
    with pytest.raises(RenderError) as failed:
        stage(str(out_dir), files, tmp_path / "staged")
    assert failed.value.kind == "too_large"


def test_an_out_dir_that_is_elsewhere_is_said(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="OUT_DIR is not at"):
        stage(str(tmp_path / "none"), [locked("a", b"")], tmp_path)
