"""The commands about the daemon itself: end it, start it anew, read its log."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from sidecar.console.output import complain, say
from sidecar.console.place import Place

OK, NO_INPUT = 0, 66
_CHUNK = 65536
_PAUSE = 0.2


def stop(place: Place, _: argparse.Namespace) -> int:
    """End the daemon and wait until it is gone. None running is fine."""
    pid = place.end()
    say("no daemon was running" if pid is None else f"ended the daemon, process {pid}")
    return OK


def restart(place: Place, _: argparse.Namespace) -> int:
    """End the daemon if there is one, and start another."""
    before = place.end()
    say(f"started the daemon, process {place.start()}" + ("" if before is None else f", in place of {before}"))
    return OK


def logs(place: Place, asked: argparse.Namespace) -> int:
    """The last lines of the log, and with `-f` what follows."""
    path = Path(place.log)
    try:
        log = path.open("rb")
    except FileNotFoundError:
        complain(f"there is no log yet at {path}")
        return NO_INPUT
    with log:
        sys.stdout.buffer.write(b"".join(last_lines(log, asked.lines)))
        sys.stdout.flush()
        if asked.follow:
            for chunk in follow(log, path):
                sys.stdout.buffer.write(chunk)
                sys.stdout.flush()
    return OK


def last_lines(log: BinaryIO, count: int) -> list[bytes]:
    """The last lines of a file, read from its end. The file stands at its end afterwards."""
    end = at = log.seek(0, os.SEEK_END)
    tail = b""
    while at > 0 and tail.count(b"\n") <= count:
        start = max(0, at - _CHUNK)
        log.seek(start)
        tail = log.read(at - start) + tail
        at = start
    log.seek(end)
    return tail.splitlines(keepends=True)[-count:] if count else []


def _rest() -> None:
    time.sleep(_PAUSE)


def follow(log: BinaryIO, path: Path, *, rest: Callable[[], None] = _rest) -> Iterator[bytes]:
    """What is appended to a file, and to its successor when it is put aside; for ever, resting between two looks."""
    while True:
        replaced = _replaced(log, path)  # before reading, so that nothing is written to it after its end was read
        while chunk := log.read(_CHUNK):
            yield chunk
        if replaced:
            log.close()
            log = path.open("rb")
        else:
            rest()


def _replaced(log: BinaryIO, path: Path) -> bool:
    try:
        return not os.path.samestat(os.fstat(log.fileno()), path.stat())
    except FileNotFoundError:
        return False  # its successor comes with the next line
