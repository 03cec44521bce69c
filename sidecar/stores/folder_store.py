"""Hosted files in a folder: the store that needs no service.

    <root>/cb/tenants/…/report.pdf   a key is a path below the root; folders are ours alone, files written once
    <root>/.new-3f9a0c…              what is being written; the name is longer than any segment of a key

A file appears under its key by one rename that replaces nothing, and file and folders are synced before `put` returns:
the journal's row about it comes afterwards and must not outlive it (spec section 10). Links are never followed. No
key needs another spelling on the disk: the grammar of keys already leaves out all that Linux refuses in a name.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import secrets
import stat
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal
from urllib.parse import quote, unquote

from sidecar.core.errors import Fault, NotFound, StoreUnavailable
from sidecar.ports import Abilities, Stored
from sidecar.stores import kernel
from sidecar.stores.durable import make_folder
from sidecar.stores.folder_tree import Obstructed, make_folders, open_file, remove, walk
from sidecar.stores.keys import KEY_BYTES, SEGMENT_BYTES, KeyTaken, check_key, is_key
from sidecar.stores.opens import FOLDER, held
from sidecar.stores.probing import probe_folder
from sidecar.stores.reflink import Reflinks
from sidecar.stores.whole import take_a_free_name

CHUNK = 1024 * 1024
UNFINISHED = ".new-"
STALE_SECONDS = 3600.0

_TRIES = 8  # how often a deletion may prune a folder under our hands before we give up


class FolderStore:
    """The `Store` port over a folder, made when it is first needed. `root` is an absolute path without links.

    Other bytes than those that stand under a key are refused with KeyTaken, a ValueError.
    """

    kind: Literal["folder", "s3"] = "folder"
    puts_at_once = 4  # a disk syncs one after the other, and each thread more is one more that others wait for

    def __init__(self, root: str) -> None:
        self.root = root
        self._uri = Path(root).as_uri().rstrip("/") + "/"
        self._reflinks = Reflinks()
        self._lock = threading.Lock()
        self._was_there = False

    def uri(self, key: str) -> str:
        return self._uri + quote(check_key(key))

    def key_of(self, uri: str) -> str | None:
        if not uri.startswith(self._uri):
            return None
        try:
            key = unquote(uri[len(self._uri) :], errors="strict")
        except UnicodeDecodeError:
            return None
        return key if is_key(key) else None

    def put(self, key: str, body: BinaryIO, *, size: int, sha256: str, mime: str) -> None:  # noqa: ARG002
        """See `ports.Store`. The type of a file is in the journal, not here."""
        path = check_key(key).encode()
        with self._root(key) as root:
            if _stands(root, path, size, sha256):
                return
            unfinished = f"{UNFINISHED}{secrets.token_hex(SEGMENT_BYTES // 2)}".encode()
            fd = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=root)
            try:
                with held(fd):
                    found = self._pour(body, fd, size)
                    if found != (size, sha256):
                        raise ValueError(f"{key}: the bytes are {found}, not {(size, sha256)}")
                    os.fchmod(fd, 0o400)
                    os.fsync(fd)
                _take_name(root, unfinished, path, size, sha256)
            finally:
                with suppress(FileNotFoundError):  # it has its name
                    os.unlink(unfinished, dir_fd=root)

    def copy(self, source: str, key: str, *, size: int, sha256: str, mime: str) -> bool:
        """A file of its own, sharing blocks where the disk can; a second name would be edited along with the first."""
        check_key(key)
        try:
            body = self._open(source)
        except NotFound:
            return False
        with body:
            try:
                self.put(key, body, size=size, sha256=sha256, mime=mime)
            except KeyTaken:
                raise
            except ValueError:
                return False  # the source holds other bytes
        return True

    def get(self, key: str, *, start: int = 0) -> Iterator[bytes]:
        with _faults(key), self._open(key) as body:
            left = os.fstat(body.fileno()).st_size - start
            body.seek(start)
            while left > 0:
                chunk = body.read(min(left, CHUNK))
                if not chunk:
                    raise StoreUnavailable(key, "the stored file became shorter", fault="cut_off")
                left -= len(chunk)
                yield chunk

    def head(self, key: str) -> Stored | None:
        try:
            with self._open(key) as body:
                return Stored(os.fstat(body.fileno()).st_size)
        except NotFound:
            return None

    def modified(self, key: str) -> float | None:
        """See `ports.Store`."""
        try:
            with self._open(key) as body:
                return os.fstat(body.fileno()).st_mtime
        except NotFound:
            return None

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[str]:
        found: list[str] = []
        with self._root(prefix) as root:
            for path in walk(root, prefix=prefix.encode(), after=after.encode(), longest=KEY_BYTES):
                key = path.decode("utf-8", "surrogateescape")
                if len(found) < limit and is_key(key):
                    found.append(key)
                elif len(found) >= limit:
                    break
        return found

    def delete(self, keys: Sequence[str]) -> None:
        """Folders that are empty afterwards go as well: their names say whose files they held.

        What is gone stays gone when the power fails: somebody may have been told that it was forgotten.
        """
        paths = [check_key(key).encode() for key in keys]
        with self._root(keys[0] if keys else "") as root:
            for path in paths:
                remove(root, path)
            if paths:
                kernel.syncfs(root)

    def presign(self, key: str, *, seconds: int, filename: str, mime: str) -> str | None:  # noqa: ARG002
        check_key(key)
        return None

    def probe(self) -> Abilities:
        return probe_folder(self)

    def close(self) -> None:
        """Nothing is held open."""

    @contextmanager
    def _root(self, about: str) -> Generator[int, None, None]:
        """The folder itself. One that was there and is gone is not made again: a disk was taken away, not its files."""
        with _faults(about):
            try:
                root = os.open(self.root, FOLDER)
            except FileNotFoundError:
                if self._was_there:
                    raise
                make_folder(self.root)
                root = os.open(self.root, FOLDER)
            with held(root):
                with self._lock:
                    first, self._was_there = not self._was_there, True
                if first:
                    _sweep(root)
                yield root

    def _open(self, key: str) -> io.FileIO:
        """Raises NotFound, also where a link or a folder stands: nothing of that kind was put here."""
        path = check_key(key).encode()
        with self._root(key) as root:
            try:
                return io.FileIO(open_file(root, path), "rb")
            except FileNotFoundError:
                raise NotFound(key) from None
            except Obstructed as obstacle:
                raise NotFound(key, str(obstacle)) from obstacle

    def _pour(self, body: BinaryIO, fd: int, size: int) -> tuple[int, str]:
        """Take in the body, one byte more than it should have at most; answers its size and sha256.

        Raises ValueError when the body cannot be read, and OSError when the store's disk will not take it.
        """
        is_file = isinstance(body, io.BufferedReader | io.FileIO) and body.tell() == 0
        if is_file and self._reflinks.clone(body.fileno(), fd):
            return _measured(fd)
        hashing, count = hashlib.sha256(), 0
        while chunk := _read(body, min(CHUNK, size + 1 - count)):
            hashing.update(chunk)
            count += len(chunk)
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(fd, rest) :]
        return count, hashing.hexdigest()


def _stands(root: int, path: bytes, size: int, sha256: str) -> bool:
    """Whether these very bytes stand at the path already. Raises KeyTaken when anything else does.

    Whoever put them may have died before the last sync, so that is done again.
    """
    try:
        fd = open_file(root, path)
    except FileNotFoundError:
        return False
    except Obstructed as obstacle:
        raise KeyTaken(f"{path.decode()}: {obstacle}") from obstacle
    with held(fd):
        if os.fstat(fd).st_size != size or _measured(fd) != (size, sha256):
            raise KeyTaken(f"{path.decode()}: other bytes stand under this key")
        os.fsync(fd)
    with held(make_folders(root, path)) as folder:
        os.fsync(folder)
    return True


def _take_name(root: int, unfinished: bytes, path: bytes, size: int, sha256: str) -> None:
    """Give the finished file its name, unless the same bytes stand there meanwhile. Raises KeyTaken."""
    for _ in range(_TRIES):
        try:
            with held(make_folders(root, path)) as folder:
                take_a_free_name(((root, unfinished), (folder, path.rpartition(b"/")[2])))
                os.fsync(folder)
                return
        except FileExistsError:
            if _stands(root, path, size, sha256):
                return
        except FileNotFoundError:
            continue  # a deletion pruned the folder that we were in
        except Obstructed as obstacle:
            raise KeyTaken(f"{path.decode()}: {obstacle}") from obstacle
    raise StoreUnavailable(path.decode(), "its folder keeps being removed; ask again", fault="server_error")


def _read(body: BinaryIO, count: int) -> bytes:
    try:
        return body.read(count)
    except OSError as failure:
        raise ValueError(f"the body cannot be read: {failure.strerror}") from failure


def _measured(fd: int) -> tuple[int, str]:
    os.lseek(fd, 0, os.SEEK_SET)
    hashing, count = hashlib.sha256(), 0
    while chunk := os.read(fd, CHUNK):
        hashing.update(chunk)
        count += len(chunk)
    return count, hashing.hexdigest()


def _sweep(root: int) -> None:
    """Remove what a writer that was killed left, once it is an hour old: another daemon may be writing here."""
    oldest = time.time() - STALE_SECONDS
    with os.scandir(root) as listing:
        for entry in listing:
            if entry.name.startswith(UNFINISHED) and len(entry.name) > SEGMENT_BYTES:
                with suppress(FileNotFoundError):  # it was finished meanwhile
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) and status.st_mtime < oldest:
                        os.unlink(entry.name, dir_fd=root)


@contextmanager
def _faults(about: str) -> Generator[None, None, None]:
    try:
        yield
    except OSError as failure:
        fault = _FAULTS.get(failure.errno or 0, "server_error")
        raise StoreUnavailable(about, f"{_HINTS[fault]} ({os.strerror(failure.errno or 0)})", fault=fault) from failure


_FAULTS: dict[int, Fault] = {
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EFBIG: "disk_full",
    errno.ENOENT: "unreachable",
    errno.ENOTDIR: "unreachable",
    errno.ELOOP: "unreachable",
    errno.ESTALE: "unreachable",
    errno.ENODEV: "unreachable",
    errno.ETIMEDOUT: "timed_out",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ENAMETOOLONG: "key_too_long",
}

_HINTS: dict[Fault, str] = {
    "disk_full": "the disk of the store's folder takes no more: make room there",
    "unreachable": "the store's folder is not there: bring its disk back, or set another store",
    "timed_out": "the disk of the store's folder does not answer",
    "denied": "the store's folder cannot be used by this user: change its mode or its mount",
    "key_too_long": "the disk of the store's folder takes no name of this length",
    "server_error": "the disk of the store's folder fails",
}
