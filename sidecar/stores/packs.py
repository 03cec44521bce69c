"""Small kept bytes, many to a file: to make a file takes the kernel as long as to write fifty times into one.

    kept/packs/00000001    one record after the other: sha256 (32 bytes), size (4 bytes), the bytes

A pack is written at its end only, by the process that began it; another process begins one of its own. So what a kill
or a power cut leaves unfinished is the end of a pack, and ends the reading of it. Whether the bytes of a record are
those of its hash is for the reader to check. A record that was dropped is overwritten and marked at once. Its room
comes back when more than half of a pack is such: what is left of it moves to the end, and the pack goes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from sidecar.core.errors import NotFound
from sidecar.stores import kernel
from sidecar.stores.opens import held

SMALL_BYTES = 64 * 1024
PACK_BYTES = 16 * 1024 * 1024  # a pack of this size is followed by the next

_HEADER = struct.Struct(">32sI")
_DROPPED = b"\xff" * 32
_NOTHING = bytes(32)  # where a power cut took what was written


class _Place(NamedTuple):
    pack: int
    at: int  # where the bytes begin
    size: int


class Packs:
    """The packs of a folder, which is made with the first of them. One thread at a time may `add` and `drop`.

    What others add after this was made is not seen.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._places: dict[str, _Place] = {}
        self._doubles: dict[str, list[_Place]] = {}  # older copies: what was moving, or what a power cut brought back
        self._alive: dict[int, int] = {}  # pack -> bytes of the records that are not dropped
        self._written: dict[int, int] = {}  # pack -> bytes of all that ever were
        self._last = 0
        self._fd = -1  # of the pack that is being written
        self.total = 0
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(folder)):
                if name.isdecimal():
                    self._read_pack(int(name))

    def size(self, sha256: str) -> int | None:
        """How many bytes are kept under this hash, or None."""
        place = self._places.get(sha256)
        return None if place is None else place.size

    def sizes(self) -> dict[str, int]:
        return {sha256: place.size for sha256, place in self._places.copy().items()}

    def read(self, sha256: str) -> bytes:
        """What stands there for these bytes. Raises NotFound."""
        while (place := self._places.get(sha256)) is not None:
            try:
                with held(os.open(self._path(place.pack), os.O_RDONLY | os.O_NOFOLLOW)) as fd:
                    return os.pread(fd, place.size, place.at)
            except FileNotFoundError:
                if place == self._places.get(sha256):
                    break  # else it has moved meanwhile
        raise NotFound(sha256)

    def add(self, sha256: str, data: bytes) -> None:
        """Keep these bytes, unless they are known. Raises OSError, after which nothing was added."""
        if sha256 not in self._places:
            self._append(sha256, data)

    def drop(self, sha256: str) -> int | None:
        """Overwrite these bytes; how many there were, or None. Raises OSError."""
        place = self._places.get(sha256)
        if place is None:
            return None
        places = (*self._doubles.pop(sha256, ()), place)
        for one in places:
            with suppress(FileNotFoundError), held(os.open(self._path(one.pack), os.O_WRONLY | os.O_NOFOLLOW)) as fd:
                _overwrite(fd, one)
        del self._places[sha256]
        for one in places:
            self._forget(one)
        for pack in [pack for pack in self._alive if self._is_mostly_dropped(pack)]:
            with suppress(OSError, NotFound):  # both copies are known then, and the next drop tries again
                self._clear(pack)
        return place.size

    def scrub(self) -> None:
        """Overwrite once more what counts no more: a power cut may have kept the mark of a dropped record and not that
        its bytes were overwritten, and what was half written is marked by nothing. Raises OSError.
        """
        for pack in list(self._alive):
            with suppress(FileNotFoundError), held(os.open(self._path(pack), os.O_RDWR | os.O_NOFOLLOW)) as fd:
                for at, size in _left_over(fd):
                    os.pwrite(fd, bytes(size), at)

    def close(self) -> None:
        """Write no more to the pack that was begun."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _append(self, sha256: str, data: bytes) -> None:
        if self._fd < 0 or self._written[self._last] >= PACK_BYTES:
            self._begin()
        record, end = _HEADER.pack(bytes.fromhex(sha256), len(data)) + data, self._written[self._last]
        try:
            written = os.pwrite(self._fd, record, end)
        except OSError:
            self.close()
            raise
        if written < len(record):
            self.close()  # what is half written stays the end of its pack
            raise OSError("the disk took a part of a record")
        self._note(sha256, _Place(self._last, end + _HEADER.size, len(data)))

    def _begin(self) -> None:
        self.close()
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        path = self._path(self._last + 1)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self._last += 1
        self._alive[self._last] = self._written[self._last] = 0

    def _clear(self, pack: int) -> None:
        """Move what is left of a pack and remove it, once the copies are on the disk. Raises OSError."""
        for sha256 in [sha256 for sha256, place in self._places.items() if place.pack == pack]:
            self._append(sha256, self.read(sha256))
        with held(os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)) as folder:
            if self._alive[pack]:
                kernel.syncfs(folder)
            with suppress(FileNotFoundError):
                os.unlink(f"{pack:08d}", dir_fd=folder)
        for sha256, places in list(self._doubles.items()):
            self._doubles[sha256] = [one for one in places if one.pack != pack]
            for one in places:
                if one.pack == pack:
                    self._forget(one)
        del self._alive[pack], self._written[pack]

    def _is_mostly_dropped(self, pack: int) -> bool:
        is_written_to = pack == self._last and self._fd >= 0
        return not is_written_to and 2 * self._alive[pack] < self._written[pack]

    def _note(self, sha256: str, place: _Place) -> None:
        if (other := self._places.get(sha256)) is not None:
            self._doubles.setdefault(sha256, []).append(other)
        self._places[sha256] = place
        self._written[place.pack] = place.at + place.size
        self._alive[place.pack] += _HEADER.size + place.size
        self.total += place.size

    def _forget(self, place: _Place) -> None:
        self._alive[place.pack] -= _HEADER.size + place.size
        self.total -= place.size

    def _read_pack(self, pack: int) -> None:
        self._last = max(self._last, pack)
        with suppress(OSError), held(os.open(self._path(pack), os.O_RDONLY | os.O_NOFOLLOW)) as fd:
            self._alive[pack] = 0
            for sha256, at, size in _records(fd):
                self._note(sha256, _Place(pack, at, size))
            self._written[pack] = os.fstat(fd).st_size

    def _path(self, pack: int) -> str:
        return f"{self._folder}/{pack:08d}"


def _records(fd: int) -> Iterator[tuple[str, int, int]]:
    """Hash, place and size of the records that are whole and not dropped."""
    end, at = os.fstat(fd).st_size, 0
    while len(header := os.pread(fd, _HEADER.size, at)) == _HEADER.size:
        digest, size = _HEADER.unpack(header)
        at += _HEADER.size
        if digest == _NOTHING or at + size > end:
            return
        if digest != _DROPPED:
            yield digest.hex(), at, size
        at += size


def _left_over(fd: int) -> Iterator[tuple[int, int]]:
    """Place and size of the bytes of dropped records, and of what follows the last whole one."""
    end, at = os.fstat(fd).st_size, 0
    while len(header := os.pread(fd, _HEADER.size, at)) == _HEADER.size:
        digest, size = _HEADER.unpack(header)
        if digest == _NOTHING or at + _HEADER.size + size > end:
            break
        if digest == _DROPPED:
            yield at + _HEADER.size, size
        at += _HEADER.size + size
    for rest in range(at, end, SMALL_BYTES):
        yield rest, min(SMALL_BYTES, end - rest)


def _overwrite(fd: int, place: _Place) -> None:
    """The bytes first: a kill in between leaves a record that is found again, and whose bytes are not its hash's."""
    os.pwrite(fd, bytes(place.size), place.at)
    os.pwrite(fd, _DROPPED, place.at - _HEADER.size)
