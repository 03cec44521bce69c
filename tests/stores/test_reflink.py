"""Bytes are shared where the disk can, and where it cannot that is found out once."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.stores import reflink
from sidecar.stores.opens import held
from sidecar.stores.reflink import Reflinks


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[int, int]]:
    (tmp_path / "source").write_bytes(b"bytes" * 10_000)
    source = os.open(tmp_path / "source", os.O_RDONLY)
    target = os.open(tmp_path / "target", os.O_RDWR | os.O_CREAT)
    with held(source), held(target):
        yield source, target


class Disk:
    """Stands for the ioctl: answers with an error number, or does what a disk that can would do."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.asked = 0

    def __call__(self, target: int, request: int, source: int) -> int:
        self.asked += 1
        if self.number:
            raise OSError(self.number, os.strerror(self.number))
        os.pwrite(target, os.pread(source, 1 << 20, 0), 0)
        return 0


def test_the_answer_and_the_bytes_agree_on_this_disk(files: tuple[int, int]) -> None:
    source, target = files
    assert Reflinks().clone(source, target) is (os.fstat(target).st_size == 50_000)


def test_a_clone_has_the_bytes(files: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflink.fcntl, "ioctl", Disk(0))
    assert Reflinks().clone(*files)
    assert os.pread(files[1], 1 << 20, 0) == b"bytes" * 10_000


@pytest.mark.parametrize(
    ("number", "asked"), [(errno.EOPNOTSUPP, 1), (errno.EXDEV, 1), (errno.ENOTTY, 1), (errno.ENOSPC, 3), (errno.EIO, 3)]
)
def test_a_disk_that_never_can_is_asked_once(
    files: tuple[int, int], monkeypatch: pytest.MonkeyPatch, number: int, asked: int
) -> None:
    disk = Disk(number)
    monkeypatch.setattr(reflink.fcntl, "ioctl", disk)
    reflinks = Reflinks()
    assert [reflinks.clone(*files) for _ in range(3)] == [False, False, False]
    assert disk.asked == asked
