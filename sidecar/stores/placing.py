"""Put a file in place so that it can be taken back, for as long as it is not known whether it counts.

The former file stands aside under a hidden name meanwhile, so that taking the new one back needs no room on the disk
and no copy of the old bytes. Nothing unknown is ever replaced or removed, neither on the way there nor on the way back.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress

from sidecar.core.inventory import StatKey
from sidecar.stores import kernel
from sidecar.stores.opens import Beneath, key_of
from sidecar.stores.reflink import Reflinks
from sidecar.stores.scan import UNFINISHED
from sidecar.stores.whole import Names, is_that_file, take_a_free_name, write_whole

Name = tuple[int, bytes]


class Placed:
    """A file that stands at its name, and what stood there before. End it with `keep` or `take_back`, once."""

    def __init__(self, key: StatKey, way: _Way) -> None:
        self.key = key
        self._way = way

    def keep(self) -> None:
        """It counts: what stood there before goes."""
        self._way.drop_former()

    def take_back(self) -> bool:
        """It does not count: what stood there before stands there again.

        False when a program changed the file meanwhile, or writes to it: then what is there stays.
        """
        return self._way.back()


def place(beneath: Beneath, text: str, chunks: Iterable[bytes], *, over: StatKey | None, reflinks: Reflinks) -> Placed:
    """See `ports.OutDir.place`. Raises what `whole.write_whole` raises, and FileExistsError."""
    way = _Way(over)
    try:
        key = write_whole(beneath, text, chunks, sha256=None, reflinks=reflinks, take=way.there)
    except BaseException:
        way.back()
        raise
    return Placed(key, way)


def take_away(beneath: Beneath, text: str, key: StatKey) -> bool:
    """See `ports.OutDir.take_away`."""
    at, missing, name = beneath.nearest(text)
    if missing:
        os.close(at)
        return False
    return _Way.of_a_placed((at, name), key).back()


class _Way:
    """The way of a file to its name and back. Its folders are held open from one to the other.

    Names are exchanged, so that there is no moment without a file; on disks that cannot do that the former file steps
    aside first.
    """

    def __init__(self, over: StatKey | None) -> None:
        self._over = over
        self._ours: StatKey | None = None  # the file, once it has its name
        self._at: Name = (-1, b"")
        self._folder = -1  # where the former file waits, and
        self._former = b""  # under which name, if one does

    @classmethod
    def of_a_placed(cls, at: Name, ours: StatKey) -> _Way:
        """The way back of a file that stands where nothing stood before. Closes its folder at the end."""
        way = cls(None)
        way._at, way._folder, way._ours = at, os.dup(at[0]), ours
        return way

    def there(self, names: Names) -> None:
        """Give a finished file its name, over that very file or where nothing stands. Raises FileExistsError.

        It may be tried again with another file; what was done before is taken back first.
        """
        self.back()
        (folder, unfinished), (other_folder, name) = names
        self._at, self._folder = (os.dup(other_folder), name), os.dup(folder)
        finished = (self._folder, _hidden_name())
        _move((folder, unfinished), finished)  # the old name is removed by whoever gave it, whatever stands there
        try:
            ours = key_of(os.stat(finished[1], dir_fd=folder, follow_symlinks=False))
            if self._over is None or not self._set_aside(finished, ours):
                take_a_free_name((finished, self._at))
        except BaseException:
            if self._ours is None:
                _remove(finished)
            raise
        self._ours = ours
        if self._former and self._over is not None and not is_that_file((folder, self._former), self._over):
            raise FileExistsError(errno.EEXIST, "another file stands at this name", os.fsdecode(name))

    def back(self) -> bool:
        """Take the file away, if it has its name, and let the former one return; False when it is ours no more."""
        try:
            return self._back()
        finally:
            self._let_go()

    def _back(self) -> bool:
        if self._ours is None:
            return self._return_former()
        away, exchanged = (self._folder, self._former), False
        with suppress(FileNotFoundError):  # one of the two was deleted meanwhile
            exchanged = bool(self._former) and _exchange(away, self._at)
        if not exchanged:
            away = (self._folder, _hidden_name())
            try:
                _move(self._at, away)
            except FileNotFoundError:
                return self._return_former()
        ours = is_that_file(away, self._ours)
        if exchanged:
            if not ours:
                _exchange(away, self._at)
            self.drop_former()  # whichever of the two is not at the name
            return ours
        if not ours:
            _returned(away, self._at)
            self.drop_former()
            return False
        _remove(away)
        return self._return_former()

    def drop_former(self) -> None:
        """Forget the file that waits, if one does."""
        former, self._former = self._former, b""
        try:
            if former:
                _remove((self._folder, former))
        finally:
            self._let_go()

    def _let_go(self) -> None:
        for fd in (self._at[0], self._folder):
            if fd >= 0:
                os.close(fd)
        self._at, self._folder, self._former, self._ours = (-1, b""), -1, b"", None

    def _set_aside(self, finished: Name, ours: StatKey) -> bool:
        """Let what stands at the name wait aside; answers whether the finished file has the name by that."""
        aside = (self._folder, _hidden_name())
        try:
            if _exchange(finished, self._at):
                self._ours, self._former = ours, finished[1]
                return True
            _move(self._at, aside)
        except FileNotFoundError:
            return False  # it was deleted meanwhile
        self._former = aside[1]
        return False

    def _return_former(self) -> bool:
        """Let the file that waits have its name again; False when another has it by now, or nobody ever will."""
        returned = not self._former or _returned((self._folder, self._former), self._at)
        if returned:
            self._former = b""
        self.drop_former()
        return returned


def _hidden_name() -> bytes:
    return f"{UNFINISHED}{secrets.token_hex(16)}".encode()


def _exchange(one: Name, other: Name) -> bool:
    """Let two files exchange their names; False on a file system that cannot. Raises FileNotFoundError."""
    try:
        kernel.rename(one, other, kernel.EXCHANGE)
    except OSError as failure:
        if failure.errno != errno.EINVAL:
            raise
        return False
    return True


def _move(source: Name, target: Name) -> None:
    os.rename(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0])


def _remove(name: Name) -> None:
    """Remove a file, unless somebody did already, with its folder perhaps."""
    with suppress(FileNotFoundError):
        os.unlink(name[1], dir_fd=name[0])


def _returned(source: Name, target: Name) -> bool:
    """Move a file back to its name, unless another has that name by now, or somebody removed it meanwhile."""
    try:
        take_a_free_name((source, target))
    except (FileExistsError, FileNotFoundError):
        return False
    return True
