"""Read a file that nobody writes to, once: its hash, its kind, and its bytes put aside.

No half file is ever registered (spec section 5). Two things prove a state complete: nobody has the file open for
writing, before the reading and after it; and the file's key is the same at both ends, taken from the descriptor that
was read, so that another file put in its place cannot lend its key.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from sidecar.core import limits
from sidecar.core.errors import NotFound, UnsafePath
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.mime import HEAD_BYTES, mime_of
from sidecar.ports import Blobs, Intake
from sidecar.stores.lease import Settling, writers
from sidecar.stores.opens import Beneath, key_of

CHUNK = 1024 * 1024

BUSY = Intake("busy")
GONE = Intake("gone")
UNSAFE = Intake("unsafe")


class Reader:
    """Takes in complete files below a folder.

    `racy_ns` is how young a state may not be (see `lease.racy_ns`); `hashed_bytes` is the size beyond which a file is
    registered by its key alone.
    """

    def __init__(self, beneath: Beneath, *, racy_ns: int = 0, hashed_bytes: int = limits.HASHED_BYTES) -> None:
        self._beneath = beneath
        self._racy_ns = racy_ns
        self._hashed_bytes = hashed_bytes
        self._settling = Settling()

    def take_in(self, path: str, blobs: Blobs | None) -> Intake:
        """See `ports.OutDir.take_in`. An error of the disk answers busy: it is worth asking again."""
        return self._take_in(self._beneath.file, path, blobs)

    def take_in_all(self, paths: Iterable[str], blobs: Blobs | None) -> Iterator[Intake]:
        """The same for one file after the other, when it is asked for; best those of one folder in a row."""
        with self._beneath.by_folder() as file:
            for path in paths:
                yield self._take_in(file, path, blobs)

    def _take_in(self, file: Callable[[str], int], path: str, blobs: Blobs | None) -> Intake:
        try:
            fd = file(path)
        except NotFound:
            self._settling.forget(path)
            return GONE
        except UnsafePath:
            return UNSAFE
        except OSError:
            return BUSY
        try:
            return self._read_complete(fd, path, blobs)
        except OSError:
            return BUSY
        finally:
            os.close(fd)

    def _read_complete(self, fd: int, path: str, blobs: Blobs | None) -> Intake:
        key = key_of(os.fstat(fd))
        if self._is_racy(key) or not self._is_let_go(fd, path, key):
            return BUSY
        if key.size > self._hashed_bytes:
            return Intake("complete", FileFact(path, key, None, mime_of(path, os.pread(fd, HEAD_BYTES, 0))))
        sink = blobs.writer() if blobs is not None and key.size <= limits.KEPT_FILE_BYTES else _HashOnly()
        try:
            head = _pour(fd, key.size, sink)
            if head is None or key_of(os.fstat(fd)) != key or writers(fd) == "some":
                return BUSY
            sha256 = sink.keep()
        finally:
            sink.discard()
        self._settling.forget(path)
        return Intake("complete", FileFact(path, key, sha256, mime_of(path, head), kept=sink.kept))

    def _is_let_go(self, fd: int, path: str, key: StatKey) -> bool:
        match writers(fd):
            case "none":
                return True
            case "some":
                return False
            case "unknown":
                return self._settling.has_settled(path, key)

    def _is_racy(self, key: StatKey) -> bool:
        return self._racy_ns > 0 and 0 <= time.time_ns() - key.ctime_ns < self._racy_ns


class _Sink(Protocol):
    """Where the bytes of a file go; `ports.BlobWriter` is one."""

    @property
    def kept(self) -> bool: ...

    def clone(self, fd: int, /) -> bool: ...

    def write(self, chunk: bytes) -> None: ...

    def keep(self) -> str: ...

    def discard(self) -> None: ...


class _HashOnly:
    """A sink that keeps nothing."""

    kept = False

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def clone(self, _fd: int, /) -> bool:
        return False

    def write(self, chunk: bytes) -> None:
        self._hash.update(chunk)

    def keep(self) -> str:
        return self._hash.hexdigest()

    def discard(self) -> None:
        pass


def _pour(fd: int, size: int, sink: _Sink) -> bytes | None:
    """Read the whole file into the sink; answer its head, or None when it has not the size it should have.

    One byte more than that is asked for and no more, so that a file that grows without end is found out and not read.
    """
    if size > CHUNK:
        sink.clone(fd)
    head = b""
    read = 0
    while chunk := os.read(fd, min(size - read + 1, CHUNK)):
        head = head or chunk[:HEAD_BYTES]
        read += len(chunk)
        sink.write(chunk)
        if read == size < CHUNK:
            break  # it was asked for more and gave no more; a state that grew since has another key
    return head if read == size else None
