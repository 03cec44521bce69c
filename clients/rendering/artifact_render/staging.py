"""A private copy of exactly the files that a page uses, named by their contents.

OUT_DIR may belong to a sandbox, so files are opened beneath it folder by folder without following a link, and a copy
counts only when its bytes have the hash that the daemon named.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from artifact_render.asking import Locked
from artifact_render.failures import RenderError
from artifact_render.limits import STAGED_BYTES

_CHUNK = 1 << 20


class Changed(Exception):  # noqa: N818 - the caller asks the daemon again
    """A file is not what the daemon said a moment ago."""


def stage(out_dir: str, files: Iterable[Locked], folder: Path) -> dict[str, int]:
    """Copy the files into `folder`, each under its sha256: the size of each hash. Raises Changed and RenderError."""
    sizes: dict[str, int] = {}
    left = STAGED_BYTES
    for file in files:
        if file.sha256 not in sizes:
            sizes[file.sha256] = _copy(out_dir, file, folder / file.sha256, left)
            left -= sizes[file.sha256]
    return sizes


def _copy(out_dir: str, file: Locked, target: Path, room: int) -> int:
    source = _open(out_dir, file.path)
    digest, size = hashlib.sha256(), 0
    try:
        with target.open("xb") as copy:
            while chunk := os.read(source, _CHUNK):
                size += len(chunk)
                if size > room:
                    raise RenderError("too_large", f"the files of the page have more than {STAGED_BYTES} bytes")
                digest.update(chunk)
                copy.write(chunk)
    finally:
        os.close(source)
    if digest.hexdigest() != file.sha256:
        target.unlink()
        raise Changed(file.path)
    return size


def _open(out_dir: str, path: str) -> int:
    """Open a regular file. A link on the way, a FIFO and a name that is gone are all Changed: nothing is waited for."""
    *folders, name = path.split("/")
    try:
        here = os.open(out_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise RenderError("failed", f"OUT_DIR is not at {out_dir} ({error.strerror})") from None
    try:
        for folder in folders:
            there = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = there
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    except (OSError, ValueError):
        raise Changed(path) from None
    finally:
        os.close(here)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Changed(path)
    return file
