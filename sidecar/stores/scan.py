"""One look at a part of OUT_DIR: every level opened by the descriptor of the level above, and never a link.

The truth about the disk is what this finds, whatever the bell said or did not say (spec section 5). Anything may vanish
or change its kind while we look; what is gone when we reach it is simply not there. What is there but cannot be looked
at counts as over the limit, since a look that is not complete proves no absence.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from sidecar.core import limits
from sidecar.core.errors import UnsafePath
from sidecar.core.inventory import Oddity, StatKey, Survey
from sidecar.core.paths import parse_physical
from sidecar.stores.opens import FOLDER, key_of

# The first characters of our own unfinished files; 32 hexadecimal digits follow.
UNFINISHED = ".part-"
_UNFINISHED = re.compile(r"\.part-[0-9a-f]{32}")

_ENTRIES_BETWEEN_BREATHS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much one look takes in. Entries include folders, links and whatever a program makes by the million."""

    files: int = limits.FILES_REGISTERED
    depth: int = limits.FOLDER_DEPTH
    entries: int = 4 * limits.FILES_REGISTERED
    oddities: int = 1000


def look(fd: int, scope: str, bounds: Bounds) -> Survey:
    """Survey the folder with descriptor `fd`, whose OUT_DIR-relative path is `scope`. `fd` stays open."""
    looking = _Look(scope, bounds)
    unseen = descend(fd, scope, looking.visit)
    return Survey(
        scope,
        looking.files,
        tuple(looking.folders),
        tuple(looking.oddities),
        over_limit=looking.over_limit + unseen,
    )


def descend(fd: int, path: str, visit: Callable[[int, str], Iterable[str]]) -> int:
    """Visit a folder and all below it, parents first. `visit` gets descriptor and path and names the folders to enter.

    Not recursive, so that no tree is too deep for it. Answers how many folders were there and could not be entered.
    """
    unseen = 0
    under_way = [(fd, path, _names(fd, path, visit))]
    try:
        while under_way:
            at, above, names = under_way[-1]
            name = next(names, None)
            if name is None:
                under_way.pop()
                if under_way:
                    os.close(at)
                continue
            try:
                inner = os.open(name, FOLDER, dir_fd=at)
            except OSError as failure:
                unseen += not _is_absence(failure)
                continue
            inner_path = f"{above}/{decoded(name)}" if above else decoded(name)
            under_way.append((inner, inner_path, _names(inner, inner_path, visit)))
    finally:
        for at, _, _ in under_way[1:]:
            os.close(at)
    return unseen


def is_unfinished(name: str) -> bool:
    """Whether this is the name of a file that we, or one of us before us, had not finished writing."""
    return name.startswith(UNFINISHED) and _UNFINISHED.fullmatch(name) is not None


def decoded(name: str) -> str:
    """A name as Python's listing gives it, read as UTF-8 whatever the locale; undecodable bytes become surrogates."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "surrogateescape")


def printable(name: str) -> str:
    """A name for people: undecodable bytes and control characters as `%XX`."""
    return _UNPRINTABLE.sub(lambda match: _percent(match[0]), name)


@dataclass(slots=True)
class _Look:
    scope: str
    bounds: Bounds
    files: dict[str, StatKey] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    oddities: list[Oddity] = field(default_factory=list)
    over_limit: int = 0
    entries: int = 0

    def visit(self, fd: int, path: str) -> list[str]:
        """Take in one folder; answer the names of the folders in it."""
        self.folders.append(path)
        inner: list[str] = []
        prefix = f"{path}/" if path else ""
        try:
            with os.scandir(fd) as listing:
                for entry in listing:
                    self.entries += 1
                    if not self.entries % _ENTRIES_BETWEEN_BREATHS:
                        time.sleep(0)  # lets a waiting event loop have the interpreter
                    if self.entries > self.bounds.entries:
                        self.over_limit += 1
                        return []
                    self._take(entry, prefix, inner)
        except OSError as failure:
            self.over_limit += not _is_absence(failure)
        if inner and path.count("/") + bool(path) >= self.bounds.depth:
            self.over_limit += len(inner)
            return []
        return inner

    def _take(self, entry: os.DirEntry[str], prefix: str, inner: list[str]) -> None:
        try:
            if entry.is_file(follow_symlinks=False):
                self._take_file(entry, prefix)
            elif entry.is_dir(follow_symlinks=False):
                if self._is_nameable(prefix, entry.name):
                    inner.append(entry.name)
            else:
                self._note("link" if entry.is_symlink() else "special", prefix, entry.name)
        except OSError as failure:
            self.over_limit += not _is_absence(failure)

    def _take_file(self, entry: os.DirEntry[str], prefix: str) -> None:
        name = entry.name
        if name.startswith(UNFINISHED) and is_unfinished(name):
            return
        if not self._is_nameable(prefix, name):
            return
        if len(self.files) >= self.bounds.files:
            self.over_limit += 1
            return
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            self.files[prefix + decoded(name)] = key_of(status)

    def _is_nameable(self, prefix: str, name: str) -> bool:
        """Whether a path can name this entry; if not, it is noted as an oddity."""
        if _PLAIN.fullmatch(name) is not None and len(prefix) <= _SHORT:
            return True
        text = decoded(name)
        if _UNDECODABLE.search(text) is not None:
            self._note("not_utf8", prefix, name)
            return False
        try:
            parse_physical(prefix + text)
        except UnsafePath:
            self._note("unsafe_name", prefix, name)
            return False
        return True

    def _note(self, kind: Literal["not_utf8", "link", "special", "unsafe_name"], prefix: str, name: str) -> None:
        if len(self.oddities) < self.bounds.oddities:
            self.oddities.append(Oddity(kind, printable(prefix + decoded(name))))


def _names(fd: int, path: str, visit: Callable[[int, str], Iterable[str]]) -> Iterator[str]:
    # A generator, so that a folder is visited once its descriptor stands in the list of those to be closed.
    yield from visit(fd, path)


def _is_absence(failure: OSError) -> bool:
    """Gone, or no folder any more. Anything else (no right, no descriptors left, a bad disk) hides what is there."""
    return failure.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


# Names that every rule of the grammar allows in a short path: most of them, and this is asked once per file.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. +=@,()~-]*")
_SHORT = 900
_UNDECODABLE = re.compile(r"[\udc80-\udcff]")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\udc80-\udcff]")
