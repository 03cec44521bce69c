"""Put a file into OUT_DIR whole or not at all: a hidden name first, then one rename.

The bytes are written into the deepest folder that exists and checked there; only then are missing folders made and the
file moved to its name. So bytes of a wrong hash, a full disk or a broken download change nothing that anybody can see.
Every step goes through folder descriptors, and what stands at the name (a link, a second name of another file) is
replaced and never written through.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator

from sidecar.core.errors import UnsafePath
from sidecar.core.inventory import StatKey
from sidecar.stores import kernel
from sidecar.stores.intake import CHUNK
from sidecar.stores.lease import writers
from sidecar.stores.opens import Beneath, held, key_of, make_folders
from sidecar.stores.reflink import Reflinks
from sidecar.stores.scan import UNFINISHED, Bounds, descend, is_unfinished

STALE_SECONDS = 3600.0
ROUNDS, ROUND_REST = 4, 0.02  # of putting a file into a folder that somebody removes; seconds

Names = tuple[tuple[int, bytes], tuple[int, bytes]]


def take_the_name(names: Names) -> None:
    """Replace whatever file stands at the second name."""
    (folder, name), (other_folder, other_name) = names
    os.rename(name, other_name, src_dir_fd=folder, dst_dir_fd=other_folder)


def take_a_free_name(names: Names) -> None:
    """Raises FileExistsError when something stands at the second name."""
    try:
        kernel.rename(*names, kernel.NOREPLACE)
    except OSError as failure:
        if failure.errno != errno.EINVAL:
            raise
        (folder, name), (other_folder, other_name) = names  # a file system without that flag
        os.link(name, other_name, src_dir_fd=folder, dst_dir_fd=other_folder, follow_symlinks=False)
        os.unlink(name, dir_fd=folder)


def take_the_name_of(standing: StatKey) -> Callable[[Names], None]:
    """Replace that very file and no other. Raises FileExistsError when another stands there, or somebody writes it."""

    def take(names: Names) -> None:
        try:
            kernel.rename(*names, kernel.EXCHANGE)
        except FileNotFoundError:
            take_a_free_name(names)  # it was deleted meanwhile
            return
        if not is_that_file(names[0], standing):
            kernel.rename(*names, kernel.EXCHANGE)
            raise FileExistsError(errno.EEXIST, "another file stands at this name", os.fsdecode(names[1][1]))
        os.unlink(names[0][1], dir_fd=names[0][0])

    return take


def is_that_file(name: tuple[int, bytes], key: StatKey) -> bool:
    """Whether the file still is what it was, and nobody writes to it. Its change time moved with its name."""
    fd = os.open(name[1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=name[0])
    with held(fd):
        found = key_of(os.fstat(fd))
        return found[:4] == key[:4] and writers(fd) != "some"


def write_whole(
    beneath: Beneath,
    text: str,
    chunks: Iterable[bytes],
    *,
    sha256: str | None,
    reflinks: Reflinks,
    take: Callable[[Names], None] = take_the_name,
    lasting: bool = True,
    rounds: int = ROUNDS,
) -> StatKey:
    """See `ports.OutDir.write_whole`. `chunks` may be an open file, whose bytes are then shared where the disk can.

    `take` gives the finished file its name. Its bytes are on the disk by then, and in the end its name is too, unless
    it need not be `lasting`: then a power cut leaves the whole file or none. When a program removes the folder while
    the file is on its way into it, all begins anew with the bytes that came, at most so many `rounds`. Raises
    UnsafePath, ValueError for another hash, what `take` raises, and OSError when the disk will not (full, read-only).
    """

    def begin_anew(chunks: Iterable[bytes], gone: FileNotFoundError) -> StatKey:
        if rounds <= 1:
            raise gone
        time.sleep(ROUND_REST)
        return write_whole(
            beneath, text, chunks, sha256=sha256, reflinks=reflinks, take=take, lasting=lasting, rounds=rounds - 1
        )

    at, missing, name = beneath.nearest(text)
    with held(at):
        _require_free(at, missing, name, text)
        unfinished = f"{UNFINISHED}{secrets.token_hex(16)}".encode()
        try:
            fd = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=at)
        except FileNotFoundError as gone:
            return begin_anew(chunks, gone)
        with held(fd):
            try:
                digest = _pour(chunks, fd, reflinks)
                if sha256 is not None and digest != sha256:
                    raise ValueError(f"{text}: the bytes have the sha256 {digest}, not {sha256}")
                os.fchmod(fd, 0o644)
                os.fsync(fd)
            except BaseException:
                _remove(at, unfinished)
                raise
            try:
                with held(make_folders(os.dup(at), missing, text)) as folder:
                    return _name(fd, ((at, unfinished), (folder, name)), text, take, lasting=lasting)
            except FileNotFoundError as gone:
                _remove(at, unfinished)
                os.lseek(fd, 0, os.SEEK_SET)
                with io.FileIO(fd, closefd=False) as came:
                    return begin_anew(came, gone)
            except BaseException:
                _remove(at, unfinished)
                raise


def sweep(fd: int, bounds: Bounds) -> int:
    """Remove what a writer that was killed left below the folder `fd`, once it is an hour old. Answers how many."""
    oldest = time.time() - STALE_SECONDS
    removed = 0

    def visit(folder: int, path: str) -> list[str]:
        nonlocal removed
        inner: list[str] = []
        try:
            with os.scandir(folder) as listing:
                for entry in listing:
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(entry.name)
                    elif is_unfinished(entry.name) and _is_stale(entry, oldest):
                        removed += _remove(folder, entry.name.encode())
        except OSError:
            return inner  # nothing depends on it, and there is a next start
        return inner if path.count("/") + bool(path) < bounds.depth else []

    descend(fd, "", visit)
    return removed


def _name(fd: int, names: Names, text: str, take: Callable[[Names], None], *, lasting: bool) -> StatKey:
    before = key_of(os.fstat(fd))
    try:
        take(names)
    except (IsADirectoryError, NotADirectoryError) as failure:
        raise UnsafePath(text, "a folder stands at this name") from failure
    if lasting:
        os.fsync(names[1][0])
    after = key_of(os.fstat(fd))
    # The rename itself moves ctime. If more than that is new, somebody already wrote into the file, and the key that
    # stands for our bytes is the one that no file has any more.
    return after if (after.size, after.mtime_ns) == (before.size, before.mtime_ns) else before


def _require_free(at: int, missing: tuple[bytes, ...], name: bytes, text: str) -> None:
    if is_unfinished(name.decode()):
        raise UnsafePath(text, "names of this shape are for unfinished files")
    if missing:
        return
    try:
        standing = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(standing.st_mode):
        raise UnsafePath(text, "something that is no regular file stands at this name")


def _pour(chunks: Iterable[bytes], fd: int, reflinks: Reflinks) -> str:
    """Write everything and answer its sha256. A full disk may take a part of a chunk, so the count is what counts."""
    hashing = hashlib.sha256()
    if isinstance(chunks, io.BytesIO):
        chunks = (chunks.read(),)
    elif isinstance(chunks, io.BufferedReader | io.FileIO):
        if chunks.tell() == 0 and reflinks.clone(chunks.fileno(), fd):
            for chunk in _pieces(lambda: os.read(fd, CHUNK)):
                hashing.update(chunk)
            return hashing.hexdigest()
        source = chunks
        chunks = _pieces(lambda: source.read(CHUNK))
    waiting = 0
    for chunk in chunks:
        hashing.update(chunk)
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(fd, rest) :]
        waiting += len(chunk)
        if waiting >= CHUNK:
            kernel.start_writing(fd)
            waiting = 0
    return hashing.hexdigest()


def _pieces(read: Callable[[], bytes]) -> Iterator[bytes]:
    return iter(read, b"")


def _is_stale(entry: os.DirEntry[str], oldest: float) -> bool:
    status = entry.stat(follow_symlinks=False)
    return stat.S_ISREG(status.st_mode) and status.st_mtime < oldest


def _remove(at: int, name: bytes) -> bool:
    try:
        os.unlink(name, dir_fd=at)
    except OSError:
        return False  # already renamed, or removed by somebody else
    return True
