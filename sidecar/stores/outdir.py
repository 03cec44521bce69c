"""OUT_DIR on a disk: survey it, read what is complete in it, write into it whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from sidecar.core import limits
from sidecar.core.errors import NotFound, UnsafePath
from sidecar.core.inventory import StatKey, Survey
from sidecar.ports import Blobs, Intake
from sidecar.stores import kernel, scan, whole
from sidecar.stores.intake import Reader
from sidecar.stores.lease import racy_ns
from sidecar.stores.opens import Beneath, Opener, held, key_of
from sidecar.stores.placing import Placed, place, take_away
from sidecar.stores.reflink import Reflinks

# With which flags a read of these disks never waits: of ext4, xfs and btrfs what is in memory, and tmpfs is nowhere
# else, unless it was swapped out. Others cannot say what is in memory, or answer from another machine.
_READS_NOW = {0xEF53: os.RWF_NOWAIT, 0x58465342: os.RWF_NOWAIT, 0x9123683E: os.RWF_NOWAIT, 0x01021994: 0}


class OutDir:
    """The `OutDir` port over a real folder. Safe to call from several threads at once.

    `root` is made real once, at the start; what later stands at that path is OUT_DIR, be it another folder than before.
    `opener` is for tests: both ways of opening keep the same promises.
    """

    def __init__(
        self,
        root: str,
        *,
        opener: Opener | None = None,
        bounds: scan.Bounds | None = None,
        hashed_bytes: int = limits.HASHED_BYTES,
    ) -> None:
        self.root = os.path.realpath(root)
        self._beneath = Beneath(self.root, opener)
        self._bounds = bounds or scan.Bounds()
        self._reader = Reader(self._beneath, racy_ns=racy_ns(self.root), hashed_bytes=hashed_bytes)
        self._reflinks = Reflinks()
        with held(os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)) as fd:
            self._dev = os.fstat(fd).st_dev
            self._reads_now = _READS_NOW.get(kernel.file_system_type(fd))

    def survey(self, scope: str = "") -> Survey:
        """One look at everything below `scope`; an empty one when that is no folder (any more).

        Own unfinished files are not listed. A part of the disk that does not let itself be looked at is over the limit.
        """
        try:
            fd = self._beneath.folder(scope)
        except (NotFound, UnsafePath):
            return Survey(scope, {}, ())
        except OSError:
            return Survey(scope, {}, (), over_limit=1)
        with held(fd):
            return scan.look(fd, scope, self._bounds)

    def key(self, path: str) -> StatKey | None:
        """The key of a regular file, or None when nothing is there. Raises UnsafePath for anything else."""
        try:
            return key_of(self._beneath.status(path))
        except NotFound:
            return None

    def take_in(self, path: str, blobs: Blobs | None) -> Intake:
        """Read a complete file: hash it, tell its mime and, with `blobs`, keep its bytes.

        `busy` is worth asking again in 20 to 250 ms. Never raises for what the disk holds.
        """
        return self._reader.take_in(path, blobs)

    def take_in_all(self, paths: Iterable[str], blobs: Blobs | None) -> Iterator[Intake]:
        """The same for one file after the other, when it is asked for; best those of one folder in a row."""
        return self._reader.take_in_all(paths, blobs)

    def open(self, path: str) -> BinaryIO:
        """Open for reading. Raises NotFound, or UnsafePath for links, FIFOs, devices, sockets and folders."""
        return os.fdopen(self._beneath.file(path), "rb")

    def bytes_of(self, path: str, key: StatKey) -> bytes | None:
        """All that one state of a file holds; None when it is in another by now, or is no such file any more."""
        try:
            with held(self._beneath.file(path)) as fd:
                return _bytes_of(fd, key)
        except (NotFound, UnsafePath, OSError):
            return None

    def bytes_now(self, path: str, key: StatKey) -> bytes | None:
        """The same, also None where a name or a byte has to come from a disk first. Does not block."""
        if self._reads_now is None or key.dev != self._dev:
            return None
        try:
            with held(self._beneath.file_at_once(path)) as fd:
                return _bytes_of(fd, key, self._reads_now)
        except (NotFound, UnsafePath, OSError):
            return None

    def write_whole(self, path: str, chunks: Iterable[bytes], *, sha256: str | None = None) -> StatKey:
        """Write under a temporary name, sync, then rename; missing folders are made. The file gets mode 0644.

        With `sha256`, bytes of another hash change nothing. An open file as `chunks` is shared where the disk can.
        Raises UnsafePath, NotFound when OUT_DIR itself is away, ValueError when the hash differs, OSError when the disk
        is full or read-only.
        """
        return whole.write_whole(self._beneath, path, chunks, sha256=sha256, reflinks=self._reflinks)

    def put_back(self, path: str, chunks: Iterable[bytes], *, sha256: str | None, over: StatKey | None) -> StatKey:
        """Like `write_whole`, over that very file, or with None where nothing stands. Nothing else is ever replaced.

        What can be put back can be put back once more, so that a power cut may take the name, and with it the file.
        Raises FileExistsError when something else stands there by now, or somebody writes to it.
        """
        take = whole.take_a_free_name if over is None else whole.take_the_name_of(over)
        return whole.write_whole(
            self._beneath, path, chunks, sha256=sha256, reflinks=self._reflinks, take=take, lasting=False
        )

    def place(self, path: str, chunks: Iterable[bytes], *, over: StatKey | None) -> Placed:
        """Like `put_back`, and it can be taken back: the former file stays aside until `keep` or `take_back`."""
        return place(self._beneath, path, chunks, over=over, reflinks=self._reflinks)

    def take_away(self, path: str, key: StatKey) -> bool:
        """Remove that very file. False when it is another by now, or somebody writes to it: then it stays."""
        return take_away(self._beneath, path, key)

    def sweep(self) -> int:
        """Remove unfinished files older than an hour, left by a daemon that was killed. Answers how many."""
        with held(self._beneath.folder("")) as fd:
            return whole.sweep(fd, self._bounds)


def _bytes_of(fd: int, key: StatKey, flags: int = 0) -> bytes | None:
    """Read in one go; looked at afterwards, so that a state that changes meanwhile is not taken for the one before."""
    buffer = bytearray(key.size + 1)
    count = os.preadv(fd, [buffer], 0, flags)
    return bytes(buffer[:count]) if count == key.size and key_of(os.fstat(fd)) == key else None
