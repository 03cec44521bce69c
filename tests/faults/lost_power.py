"""A disk that forgets: what may be found on it when the power was lost, by what was synced and what was not.

What was synced is there. Of the rest any part is: every sector of a write by itself, every name by itself, whatever
order they were made in, the last one torn. A name belongs to its folder and is as durable as the folder's last sync,
however often the file was synced: that is all that POSIX promises, and more than real disks lose.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import disk_shim
from tests.faults.disk_shim import Change


@dataclass(slots=True, eq=False)
class File:
    """`sure` survives; `waiting` are writes `(when, offset, bytes)` and cuts `(when, length, None)`, in order."""

    sure: bytearray = field(default_factory=bytearray)
    waiting: list[tuple[int, int, bytes | None]] = field(default_factory=list)

    def settle(self, before: int) -> None:
        for when, offset, data in self.waiting:
            if when < before:
                _write(self.sure, offset, data)
        self.waiting = [change for change in self.waiting if change[0] >= before]


@dataclass(slots=True, eq=False)
class Folder:
    """`now` is what programs see, `sure` what survives; a step that waits has a number that its other end shares."""

    now: dict[bytes, File | Folder] = field(default_factory=dict)
    sure: dict[bytes, File | Folder] = field(default_factory=dict)
    waiting: list[tuple[int, Step]] = field(default_factory=list)

    def take(self, when: int, step: Step) -> None:
        step(self.now)
        self.waiting.append((when, step))

    def settle(self, before: int) -> None:
        for when, step in self.waiting:
            if when < before:
                step(self.sure)
        self.waiting = [one for one in self.waiting if one[0] >= before]


Step = Callable[[dict[bytes, File | Folder]], None]


class Disk:
    """A folder and its files, as a log tells of them. `advance` through the log; `image` at any point of it."""

    def __init__(self, root: Path) -> None:
        self._nodes: dict[int, File | Folder] = {}
        self._when = 0
        self._syncs: dict[int, tuple[int, bool]] = {}
        self._last: tuple[File, int] | None = None
        self.root = self._known(root)

    def _known(self, path: Path) -> Folder:
        """What was there before the log begins, all of it durable."""
        folder = Folder()
        for entry in path.iterdir():
            inner = self._known(entry) if entry.is_dir() else File(bytearray(entry.read_bytes()))
            folder.now[entry.name.encode()] = folder.sure[entry.name.encode()] = inner
            self._nodes[entry.stat().st_ino] = inner
        self._nodes[path.stat().st_ino] = folder
        return folder

    def advance(self, change: Change) -> None:
        self._when += 1
        when, what = self._when, change.what
        node = self._nodes.get(change.node)
        if what in (disk_shim.WRITTEN, disk_shim.CUT):
            if isinstance(node, File):
                node.waiting.append((when, change.offset, change.data if what == disk_shim.WRITTEN else None))
                self._last = (node, when)
        elif what in (disk_shim.SYNC, disk_shim.ALL):
            self._syncs[change.number] = (when, what == disk_shim.ALL)
        elif what == disk_shim.SYNCED:
            before, everything = self._syncs.pop(change.number)
            for one in self._nodes.values() if everything else filter(None, [node]):
                one.settle(before)
        else:
            self._rename(when, change)

    def _rename(self, when: int, change: Change) -> None:
        folder = self._nodes[change.folder]
        assert isinstance(folder, Folder)
        name, other_name = change.name, change.other_name
        match change.what:
            case disk_shim.MADE | disk_shim.FOLDER:
                made = File() if change.what == disk_shim.MADE else Folder()
                self._nodes[change.node] = made
                folder.take(when, _gives(name, made))
            case disk_shim.LINKED:
                folder.take(when, _gives(name, self._nodes[change.node]))
            case disk_shim.REMOVED:
                folder.take(when, _takes(name, folder.now.get(name)))
            case disk_shim.RENAMED | disk_shim.EXCHANGED:
                other = self._nodes[change.other]
                assert isinstance(other, Folder)
                one, standing = folder.now[name], other.now.get(other_name)
                back = standing if change.what == disk_shim.EXCHANGED else None
                if other is folder:
                    folder.take(when, _moves(name, other_name, one, back))
                else:
                    other.take(when, _gives(other_name, one))
                    folder.take(when, _gives(name, back) if back is not None else _takes(name, one))
            case _:
                raise AssertionError(f"unknown: {change}")

    def put(self, path: str, data: bytes, nodes: dict[str, int]) -> None:
        """A file that somebody else wrote and synced, with the inode numbers of it and the folders above it."""
        folder, above = self.root, ""
        *parents, name = path.split("/")
        for part in parents:
            above = f"{above}/{part}".strip("/")
            inner = folder.now.get(part.encode())
            if not isinstance(inner, Folder):
                inner = self._nodes[nodes[above]] = Folder()
            folder.now[part.encode()] = folder.sure[part.encode()] = inner
            folder = inner
        file = self._nodes[nodes[path]] = File(bytearray(data))
        folder.now[name.encode()] = folder.sure[name.encode()] = file

    def image(self, target: Path, chance: random.Random) -> None:
        """Write below `target` what a disk may hold if the power is lost now."""
        _Image(chance, self._last).folder(self.root, target)


class _Image:
    def __init__(self, chance: random.Random, last: tuple[File, int] | None) -> None:
        self._chance = chance
        self._last = last if chance.random() < 0.5 else None
        self._sector = chance.choice((512, 4096))
        self._kept = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        self._named = chance.choice((0.0, 0.3, 0.7, 1.0))
        self._is_garbage = chance.random() < 0.3
        self._coins: dict[int, bool] = {}

    def folder(self, folder: Folder, target: Path) -> None:
        target.mkdir(mode=0o700)
        names = dict(folder.sure)
        for when, step in folder.waiting:
            # Both ends of a rename from one folder into another share their fate, unless one of them was synced.
            if self._coins.setdefault(when, self._chance.random() < self._named):
                step(names)
        for name, inner in names.items():
            place = target / name.decode()
            if isinstance(inner, Folder):
                self.folder(inner, place)
            else:
                place.write_bytes(self._bytes(inner))
                place.chmod(0o600)

    def _bytes(self, file: File) -> bytes:
        found = bytearray(file.sure)
        for when, offset, data in file.waiting:
            if data is None:
                if self._chance.random() < self._kept:
                    _write(found, offset, None)
                continue
            if self._last == (file, when):  # the very last one, torn
                data = data[: self._chance.randrange(len(data) + 1)]
            self._write_some(found, offset, data)
        return bytes(found)

    def _write_some(self, found: bytearray, offset: int, data: bytes) -> None:
        at = 0
        while at < len(data):
            size = min(self._sector - (offset + at) % self._sector, len(data) - at)
            if self._chance.random() < self._kept:
                if self._is_garbage and offset + at > len(found):
                    found += self._chance.randbytes(offset + at - len(found))
                _write(found, offset + at, data[at : at + size])
            at += size


def _write(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data or b"")] = data or b""


def _gives(name: bytes, node: File | Folder) -> Step:
    def step(names: dict[bytes, File | Folder]) -> None:
        names[name] = node

    return step


def _takes(name: bytes, node: File | Folder | None) -> Step:
    def step(names: dict[bytes, File | Folder]) -> None:
        if names.get(name) is node:
            names.pop(name, None)

    return step


def _moves(name: bytes, other: bytes, node: File | Folder, back: File | Folder | None) -> Step:
    def step(names: dict[bytes, File | Folder]) -> None:
        names[other] = node
        if back is not None:
            names[name] = back
        elif name != other and names.get(name) is node:
            del names[name]

    return step


def cuts(changes: Iterable[Change], count: int, chance: random.Random) -> list[int]:
    """After how many changes the power is lost, in order: half of them anywhere, half right before or after a sync."""
    whats = [change.what for change in changes]
    syncs = [at for at, what in enumerate(whats) if what in (disk_shim.SYNC, disk_shim.SYNCED)]
    near = [chance.choice(syncs) + chance.randrange(2) for _ in range(count // 2)] if syncs else []
    return sorted([*near, *(chance.randrange(len(whats) + 1) for _ in range(count - len(near)))])
