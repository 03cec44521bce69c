"""Kept versions: bytes by their sha256, in a private folder of the state directory.

    kept/3f/9a0c...   one file per content, named by its hash
    kept/packs/       small ones, many to a file; see `packs`
    kept/new/         what is being written; emptied at start

A blob appears under its name by one rename, so a killed daemon leaves no half one. There is no fsync per blob: a kill
does not lose the page cache, a power cut may, and nobody takes a blob's bytes without checking their hash. `flush`
brings everything new to the disk at once, at rest.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

from sidecar.core import limits
from sidecar.core.errors import NotFound
from sidecar.stores import kernel
from sidecar.stores.opens import held
from sidecar.stores.packs import SMALL_BYTES, Packs
from sidecar.stores.reflink import Reflinks

CHUNK = 1024 * 1024
_ROOM_SECONDS = 0.05  # what may be written meanwhile is nothing beside the share that stays free


class Blobs:
    """The `Blobs` port over a folder. Safe to call from several threads at once.

    `free_disk_share` is the share of the disk that stays free: below it nothing more is kept (spec section 8). Up to
    `packed` bytes go into packs.
    """

    def __init__(
        self, state_dir: str, *, free_disk_share: float = limits.FREE_DISK_SHARE, packed: int = SMALL_BYTES
    ) -> None:
        self.folder = os.path.join(state_dir, "kept")
        self._unfinished = os.path.join(self.folder, "new")
        self._numbers = count()  # names for what is being written: nobody else writes there
        os.makedirs(self._unfinished, mode=0o700, exist_ok=True)
        for leftover in os.listdir(self._unfinished):
            os.unlink(os.path.join(self._unfinished, leftover))
        self.packed = packed
        self._packs = Packs(os.path.join(self.folder, "packs"))
        self._free_disk_share = free_disk_share
        self._room = False
        self._asked_at = -math.inf  # when the disk was last asked for its room
        self._reflinks = Reflinks()
        self._lock = threading.Lock()
        self._total: int | None = None
        self._unsynced = False
        self._sound: set[str] = set()  # what has been written or hashed since the start

    def writer(self) -> Writer:
        """A writer for bytes to keep. With too little free disk it only hashes."""
        writer = Writer(self, self._reflinks)
        if not self._has_room():
            writer.discard()
        return writer

    def has(self, sha256: str) -> bool:
        """Whether bytes are kept under this hash. They may still be damaged; see `open_verified`."""
        path = self._path(sha256)
        return path is not None and (self._packs.size(sha256) is not None or os.path.lexists(path))

    def open(self, sha256: str) -> io.BufferedReader | io.BytesIO:
        """Raises NotFound when these bytes are not kept. The reader checks the hash; when it differs, `evict` it."""
        if self._packs.size(sha256) is not None:
            return io.BytesIO(self._packs.read(sha256))
        path = self._path(sha256)
        if path is None:
            raise NotFound(sha256)
        try:
            return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")
        except FileNotFoundError:
            raise NotFound(sha256) from None

    def open_verified(self, sha256: str) -> io.BufferedReader | io.BytesIO:
        """Like `open`, for readers that do not check: the bytes are hashed first, and a damaged blob is dropped."""
        opened = self.open(sha256)
        if hashlib.file_digest(opened, "sha256").hexdigest() != sha256:
            opened.close()
            self.evict(sha256)
            raise NotFound(sha256, "the kept copy was damaged and is dropped")
        opened.seek(0)
        return opened

    def total_bytes(self) -> int:
        """How much is kept. Counted on the disk once, then carried along."""
        with self._lock:
            if self._total is None:
                self._total = sum(size for _, size in self._on_disk())
            return self._total + self._packs.total

    def sizes(self) -> dict[str, int]:
        """Every kept sha256 and its bytes, as the disk has them now."""
        return dict(self._on_disk()) | self._packs.sizes()

    def evict(self, sha256: str) -> int:
        """Drop these bytes; answers how many were freed, 0 when there were none."""
        path = self._path(sha256)
        if path is None:
            return 0
        with self._lock:
            self._sound.discard(sha256)
            if (freed := self._packs.drop(sha256)) is not None:
                return freed
            try:
                size = os.lstat(path).st_size
                os.unlink(path)
            except FileNotFoundError:
                return 0
            if self._total is not None:
                self._total -= size
            return size

    def scrub(self) -> None:
        """Overwrite what was evicted once more, whatever a power cut left of it. Raises OSError."""
        with self._lock:
            self._packs.scrub()

    def flush(self) -> None:
        """Bring what was kept since the last flush to the disk. Blocks as long as the disk takes. Raises OSError."""
        with self._lock:
            if not self._unsynced:
                return
            self._unsynced = False
        try:
            with held(os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)) as folder:
                kernel.syncfs(folder)
        except OSError:
            self._unsynced = True
            raise

    def holds(self, sha256: str, size: int) -> bool:
        """Whether these very bytes are kept: what a writer must know before it spares itself the disk.

        What was there before us is hashed once. A power cut may have left a file of the right size with other bytes,
        and whoever took it for the blob would leave the only good copy to the next program that writes over it.
        """
        place = self._place(sha256)
        # Mostly nothing is there, and Python takes its time to raise what a stat says to that.
        standing = self._packs.size(sha256)
        if standing is None and os.access(place, os.F_OK):
            standing = _size(place)
        if standing != size:
            if standing is not None:
                with suppress(OSError):
                    self.evict(sha256)  # it is damaged
            return False
        if sha256 not in self._sound:
            try:
                self.open_verified(sha256).close()
            except (NotFound, OSError):
                return False
            self._sound.add(sha256)
        return True

    def adopt(self, unfinished: str, sha256: str, size: int) -> None:
        """Move finished bytes to their name. What stands there is the same, or damaged, and gives way."""
        place = self._place(sha256)
        with self._lock:
            standing = _size(place) or 0 if os.access(place, os.F_OK) else 0
            try:
                os.rename(unfinished, place)
            except FileNotFoundError:
                os.mkdir(os.path.dirname(place), 0o700)
                os.rename(unfinished, place)
            self._unsynced = True
            self._sound.add(sha256)
            if self._total is not None:
                self._total += size - standing

    def pack(self, sha256: str, data: bytes) -> None:
        """Keep small bytes. Raises OSError when the disk does not take them."""
        with self._lock:
            self._packs.add(sha256, data)
            self._unsynced = True
            self._sound.add(sha256)

    def close(self) -> None:
        """Let go of what is open. What is kept after this is kept as well."""
        with self._lock:
            self._packs.close()

    def unfinished(self) -> str:
        """A name that nobody has, for bytes that are to be adopted."""
        return f"{self._unfinished}/{next(self._numbers)}"

    def _path(self, sha256: str) -> str | None:
        """Where this blob would be, or None for a text that is no sha256 and must come near no path."""
        return self._place(sha256) if _SHA256.fullmatch(sha256) is not None else None

    def _place(self, sha256: str) -> str:
        return f"{self.folder}/{sha256[:2]}/{sha256[2:]}"

    def _on_disk(self) -> Iterator[tuple[str, int]]:
        for shard in os.listdir(self.folder):
            if _SHARD.fullmatch(shard) is None:
                continue
            with os.scandir(os.path.join(self.folder, shard)) as blobs:
                for blob in blobs:
                    with suppress(FileNotFoundError):  # evicted meanwhile
                        yield shard + blob.name, blob.stat(follow_symlinks=False).st_size

    def _has_room(self) -> bool:
        now = time.monotonic()
        if now >= self._asked_at + _ROOM_SECONDS:
            disk = os.statvfs(self.folder)
            self._room = disk.f_bavail >= disk.f_blocks * self._free_disk_share
            self._asked_at = now
        return self._room


class Writer:
    """The `BlobWriter` port. `kept` is true once `keep` has put the bytes aside, and stays false without room."""

    def __init__(self, blobs: Blobs, reflinks: Reflinks) -> None:
        self.kept = False
        self._blobs = blobs
        self._reflinks = reflinks
        self._hash = hashlib.sha256()
        self._size = 0
        self._waiting: list[bytes] = []  # up to a chunk waits here, so that known small files never touch the disk
        self._fd = -1
        self._path = ""
        self._cloned = False
        self._gave_up = False

    def clone(self, fd: int) -> bool:
        """Before the first `write`: share the bytes of an open file where the disk can. `write` then only hashes."""
        if self._gave_up:
            return False
        try:
            self._begin()
            self._cloned = self._reflinks.clone(fd, self._fd)
        except OSError:
            self.discard()
        return self._cloned

    def write(self, chunk: bytes) -> None:
        """Take the next bytes. A disk that takes no more is no failure here: `keep` says that nothing is kept."""
        self._hash.update(chunk)
        self._size += len(chunk)
        if self._gave_up or self._cloned:
            return
        self._waiting.append(chunk)
        if self._size > CHUNK:
            self._spill()

    def keep(self) -> str:
        """Put the bytes aside under their sha256, which is the answer. A second copy of known bytes costs nothing."""
        sha256 = self._hash.hexdigest()
        if not self._gave_up and self._blobs.holds(sha256, self._size):
            self.kept = True
            self.discard()
        elif not self._gave_up and self._size <= self._blobs.packed and self._fd < 0:
            self._put(lambda: self._blobs.pack(sha256, b"".join(self._waiting)))
        elif not self._gave_up:
            self._spill()
        if not self._gave_up:
            self._put(lambda: self._adopted(sha256))
        return sha256

    def discard(self) -> None:
        """Keep nothing: what was written is forgotten, what comes is only hashed. Does nothing after `keep`."""
        self._gave_up = True
        self._waiting.clear()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._path:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            self._path = ""

    def _put(self, put: Callable[[], None]) -> None:
        try:
            put()
            self.kept = True
        except OSError:
            pass  # no room for it; `kept` says so
        self.discard()

    def _adopted(self, sha256: str) -> None:
        self._blobs.adopt(self._path, sha256, self._size)
        self._path = ""

    def _spill(self) -> None:
        try:
            self._begin()
            for chunk in self._waiting:
                rest = memoryview(chunk)
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            self._waiting.clear()
        except OSError:
            self.discard()

    def _begin(self) -> None:
        if self._fd >= 0:
            return
        path = self._blobs.unfinished()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self._path = path


_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHARD = re.compile(r"[0-9a-f]{2}")


def _size(path: str) -> int | None:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return None
