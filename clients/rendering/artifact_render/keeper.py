"""Holds a browser: it ends with its caller, in time, within its memory, and nothing of it is left behind.

`python -I keeper.py SECONDS BYTES FOLDER READ WRITE COMMAND…` gives the command the descriptors READ and WRITE as its 3
and 4. A browser is a tree of processes, some of which leave their parents and their process group; the keeper is the
subreaper of all of them and kills them by their ids. It runs until the command ends or its own stdin does, and at last
removes FOLDER. Standard library only, so that it starts at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import shutil
import signal
import sys
import time

TIMED_OUT, TOO_LARGE = 124, 137
_LOOK_SECONDS = 0.2
_ENDING_SECONDS = 5.0
_PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    seconds, memory, folder, reading, writing, *command = arguments
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        browser = _start(command, int(reading), int(writing))
        return _watch(browser, time.monotonic() + float(seconds), int(memory))
    finally:
        _end_all()
        shutil.rmtree(folder, ignore_errors=True)


def _start(command: list[str], reading: int, writing: int) -> int:
    # Out of the way first: one of them may itself be 3 or 4.
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD, 64) for number in (reading, writing)]
    process = os.fork()
    if process == 0:
        try:
            os.dup2(moved[0], 3)
            os.dup2(moved[1], 4)
            os.closerange(5, 256)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.execv(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)
    os.closerange(3, 256)
    return process


def _watch(browser: int, deadline: float, memory: int) -> int:
    poll = select.poll()
    poll.register(0, select.POLLIN)
    while time.monotonic() < deadline:
        if poll.poll(_LOOK_SECONDS * 1000) and not os.read(0, 1):
            return 0
        if browser in _reaped():
            return 0
        if sum(map(_memory_of, _descendants())) > memory:
            return TOO_LARGE
    return TIMED_OUT


def _reaped() -> set[int]:
    """Take leave of every child that has ended."""
    ended: set[int] = set()
    while True:
        try:
            process, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if process == 0:
            return ended
        ended.add(process)


def _end_all() -> None:
    """Kill until nobody is left: a process that forks between two looks is found by the next one."""
    until = time.monotonic() + _ENDING_SECONDS
    while (left := _descendants()) and time.monotonic() < until:
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        _reaped()
        select.select([], [], [], 0.005)


def _descendants() -> set[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (parent := _parent_of(name)):
            children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            found.add(child)
            waiting.append(child)
    return found


def _parent_of(process: str) -> int:
    """0 when it is gone."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _memory_of(process: int) -> int:
    """Bytes that are its own: anonymous memory and shared memory, without the program itself."""
    total = 0
    try:
        with open(f"/proc/{process}/status", "rb") as file:
            for line in file:
                if line.startswith((b"RssAnon:", b"RssShmem:")):
                    total += int(line.split()[1]) * 1024
    except OSError:
        return 0
    return total


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
