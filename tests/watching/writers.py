"""Programs that take their time over one file. Each knows every state in which it had let go of the file."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from time import sleep

# What a pause of a writer is made of: long enough for several looks, so that a settle timer would be fooled.
PIECES = (b"first piece\n" * 50, b"second piece\n" * 50, b"third piece\n" * 50)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def in_pieces(path: Path, pause: float) -> set[str]:
    """Writes a piece, rests, writes the next, all through one descriptor."""
    with path.open("wb") as file:
        for piece in PIECES:
            file.write(piece)
            file.flush()
            sleep(pause)
    return {sha256(b"".join(PIECES))}


def over_an_older_one(path: Path, pause: float) -> set[str]:
    """Empties a file that was complete and writes it anew."""
    before = path.read_bytes()
    return {sha256(before)} | in_pieces(path, pause)


def two_at_once(path: Path, pause: float) -> set[str]:
    """Two programs have it open; the file is complete when the second lets go, not when the first does."""
    first = os.open(path, os.O_WRONLY | os.O_CREAT)
    second = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(first, PIECES[0])
    sleep(pause)
    os.write(second, PIECES[1])
    os.close(first)
    sleep(pause)
    os.write(second, PIECES[2])
    sleep(pause)
    os.close(second)
    return {sha256(b"".join(PIECES))}


def by_a_map(path: Path, pause: float) -> set[str]:
    """Writes through shared memory after the descriptor is closed: no event of any kind tells of it."""
    size = sum(map(len, PIECES))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(descriptor, size)
    with mmap.mmap(descriptor, size) as memory:
        os.close(descriptor)
        for piece in PIECES:
            memory.write(piece)
            sleep(pause)
    return {sha256(b"".join(PIECES))}


def by_renaming(path: Path, pause: float) -> set[str]:
    """The careful way: another name first. The other name is a file like any other."""
    aside = path.with_name(f"{path.name}.new")
    whole = in_pieces(aside, pause)
    aside.rename(path)
    return whole


def opened_and_closed_often(path: Path, pause: float) -> set[str]:
    """Appends in three sittings; every closed state may be registered, and nothing between."""
    states: list[bytes] = []
    for at, piece in enumerate(PIECES):
        with path.open("ab") as file:
            file.write(piece[:100])
            file.flush()
            sleep(pause)
            file.write(piece[100:])
        states.append(b"".join(PIECES[: at + 1]))
    return {sha256(state) for state in states}


Writer = Callable[[Path, float], set[str]]
WRITERS: tuple[Writer, ...] = (
    in_pieces, over_an_older_one, two_at_once, by_a_map, by_renaming, opened_and_closed_often,
)  # fmt: skip
