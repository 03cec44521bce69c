"""Paths below an open folder, level by level and through no link: what a folder of hosted files is made of.

Paths are bytes without a leading slash; `root` is the descriptor of the folder.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from sidecar.stores.opens import FOLDER, by_walking, held


class Obstructed(Exception):  # noqa: N818 - says what stands in the way
    """A file where a folder is needed, a folder where a file is, a link, or worse. The message says which."""


def open_file(root: int, path: bytes) -> int:
    """A descriptor to read a regular file. Raises FileNotFoundError, Obstructed, or what the disk says.

    What is there is located first, so that no FIFO or device is ever opened for a look.
    """
    try:
        located = by_walking(root, path, os.O_PATH | os.O_CLOEXEC)
    except NotADirectoryError as failure:
        raise Obstructed("a file stands where a folder is needed") from failure
    except OSError as failure:
        if failure.errno == errno.ELOOP:
            raise Obstructed("links are not followed") from failure
        raise
    with held(located):
        if not stat.S_ISREG(os.fstat(located).st_mode):
            raise Obstructed("something that is no regular file stands there")
        return os.open(f"/proc/self/fd/{located}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def make_folders(root: int, path: bytes) -> int:
    """Make the folders above a path, for us alone, and answer the descriptor of the innermost.

    Each level is synced, made by us or not: whoever made it may not have come to that. Raises Obstructed.
    """
    at = os.dup(root)
    try:
        for part in path.split(b"/")[:-1]:
            try:
                os.mkdir(part, 0o700, dir_fd=at)
            except FileExistsError:
                pass  # by somebody else, which is as good
            try:
                above, at = at, os.open(part, FOLDER, dir_fd=at)
            except OSError as failure:
                if failure.errno in (errno.ENOTDIR, errno.ELOOP):
                    raise Obstructed("something that is no folder stands where one is needed") from failure
                raise
            with held(above):
                os.fsync(above)
    except BaseException:
        os.close(at)
        raise
    return at


def remove(root: int, path: bytes) -> None:
    """Remove a file and the folders above it that are empty then. What is not there, or is no file, is left alone."""
    *parents, name = path.split(b"/")
    chain = [os.dup(root)]
    try:
        for part in parents:
            chain.append(os.open(part, FOLDER, dir_fd=chain[-1]))
        os.unlink(name, dir_fd=chain[-1])
        while parents:
            os.close(chain.pop())
            os.rmdir(parents.pop(), dir_fd=chain[-1])
    except OSError as failure:
        if failure.errno not in _LEFT_ALONE:
            raise
    finally:
        for fd in chain:
            os.close(fd)


def walk(root: int, *, prefix: bytes, after: bytes, longest: int) -> Iterator[bytes]:
    """The paths of regular files that start with `prefix` and come after `after`, in the order of their bytes.

    Nothing longer than `longest` is looked at. What vanishes meanwhile is not there.
    """

    def below(folder: int, above: bytes) -> Iterator[bytes]:
        for name, is_folder in _entries(folder):
            path = above + name
            if len(path) > longest or not _is_wanted(path, prefix, after, is_folder=is_folder):
                continue
            if not is_folder:
                yield path
                continue
            try:
                inner = os.open(name, FOLDER, dir_fd=folder)
            except OSError:
                continue  # removed, or made something else of, since it was listed
            with held(inner):
                yield from below(inner, path)

    yield from below(root, b"")


def _entries(folder: int) -> list[tuple[bytes, bool]]:
    """Files and folders, these with their slash, by name; links and the like are left out."""
    found: list[tuple[bytes, bool]] = []
    with os.scandir(folder) as listing:
        for entry in listing:
            name = os.fsencode(entry.name)
            if entry.is_dir(follow_symlinks=False):
                found.append((name + b"/", True))
            elif entry.is_file(follow_symlinks=False):
                found.append((name, False))
    return sorted(found)


def _is_wanted(path: bytes, prefix: bytes, after: bytes, *, is_folder: bool) -> bool:
    if not is_folder:
        return path.startswith(prefix) and path > after
    leads_there = path.startswith(prefix) or prefix.startswith(path)
    return leads_there and (path > after or after.startswith(path))


_LEFT_ALONE = (
    errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY, errno.EPERM,
)  # fmt: skip
