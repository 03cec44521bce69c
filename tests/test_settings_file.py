"""The settings file is read only when nobody else can have written it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.settings_file import NAME, BadSettings, read_beside


@pytest.fixture
def out_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / NAME
    path.write_text("idle_exit = 5\n")
    return path


def test_no_file_is_no_settings(out_dir: Path) -> None:
    found = read_beside(str(out_dir))
    assert (found.values, found.ignored) == ({}, "")


def test_the_file_lies_beside_out_dir(out_dir: Path, file: Path) -> None:
    found = read_beside(str(out_dir))
    assert (found.path, found.values, found.ignored) == (str(file), {"idle_exit": 5}, "")


@pytest.mark.rule("settings.an-untrusted-file-is-not-read")
def test_a_file_inside_out_dir_is_not_looked_at(out_dir: Path) -> None:
    (out_dir / NAME).write_text("idle_exit = 5\n")
    assert read_beside(str(out_dir)).values == {}


def replace_by_link(file: Path) -> None:
    file.rename(file.with_name("real"))
    file.symlink_to("real")


def replace_by_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.rule("settings.an-untrusted-file-is-not-read")
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda file: file.chmod(0o664), "it can be written by others"),
        (lambda file: file.chmod(0o602), "it can be written by others"),
        (lambda file: file.parent.chmod(0o775), "its folder can be written by others"),
        (lambda file: file.parent.chmod(0o1777), "its folder can be written by others"),
        (replace_by_link, "it cannot be opened"),
        (replace_by_fifo, "it is no regular file"),
    ],
    ids=["group", "world", "folder", "sticky folder", "link", "fifo"],
)
def test_a_file_that_others_could_have_written_is_not_read(
    out_dir: Path, file: Path, spoil: Callable[[Path], None], why: str
) -> None:
    spoil(file)
    found = read_beside(str(out_dir))
    file.parent.chmod(0o700)
    assert found.values == {}
    assert why in found.ignored


@pytest.mark.rule("settings.an-untrusted-file-is-not-read")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("given_away", ["file", "folder"])
def test_a_file_of_another_user_is_not_read(out_dir: Path, file: Path, given_away: str) -> None:
    os.chown(file if given_away == "file" else file.parent, 12345, -1)
    assert "belongs to another user" in read_beside(str(out_dir)).ignored


@pytest.mark.rule("settings.secrets-are-refused-in-the-file")
@pytest.mark.parametrize(
    "content",
    ["api_key = 'x'", "Secret = 'x'", "auth_token = 'x'", "[store]\npassword = 'x'", "[a.b]\naws_credentials = 'x'"],
)
def test_a_secret_in_the_file_is_refused(out_dir: Path, file: Path, content: str) -> None:
    file.write_text(content)
    with pytest.raises(BadSettings, match="secrets do not belong"):
        read_beside(str(out_dir))


@pytest.mark.parametrize("content", [b"no toml at all", b"a = '\xff'", b"a = 1\n" * 20_000])
def test_a_file_that_cannot_be_read_is_said_so(out_dir: Path, file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(BadSettings, match=NAME):
        read_beside(str(out_dir))
