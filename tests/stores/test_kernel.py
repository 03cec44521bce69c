"""The system calls do what their names say."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from sidecar.stores import kernel
from sidecar.stores.opens import best_opener, by_kernel, held


def test_openat2_stays_beneath_and_follows_no_link(tmp_path: Path) -> None:
    if best_opener(str(tmp_path)) is not by_kernel:
        pytest.skip("openat2 is not allowed here")
    (tmp_path / "a").mkdir()
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    numbers = {}
    with held(os.open(tmp_path / "a", os.O_PATH)) as inner, held(os.open(tmp_path, os.O_PATH)) as outer:
        for folder, below in ((outer, b"file"), (outer, b"link"), (outer, b"gone"), (inner, b"../file"), (outer, b"/")):
            try:
                os.close(kernel.openat2(folder, below, os.O_RDONLY))
                numbers[below] = 0
            except OSError as failure:
                numbers[below] = failure.errno or -1
    assert numbers == {
        b"file": 0,
        b"link": errno.ELOOP,
        b"gone": errno.ENOENT,
        b"../file": errno.EXDEV,
        b"/": errno.EXDEV,
    }


def test_what_openat2_opens_is_not_inherited(tmp_path: Path) -> None:
    if best_opener(str(tmp_path)) is not by_kernel:
        pytest.skip("openat2 is not allowed here")
    with held(os.open(tmp_path, os.O_PATH)) as folder, held(kernel.openat2(folder, b".", os.O_RDONLY)) as opened:
        assert not os.get_inheritable(opened)


def test_syncfs_answers_for_a_real_descriptor_and_refuses_another(tmp_path: Path) -> None:
    with held(os.open(tmp_path, os.O_RDONLY)) as fd:
        kernel.syncfs(fd)
    with pytest.raises(OSError):
        kernel.syncfs(-1)


def test_the_type_of_a_file_system_is_its_magic_number() -> None:
    with held(os.open("/proc/self", os.O_PATH)) as fd:
        assert kernel.file_system_type(fd) == 0x9FA0
    with pytest.raises(OSError):
        kernel.file_system_type(-1)
