"""Runs one program to its end: passes signals on, ends it when its time is up, and leaves nothing of it running."""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sidecar.console import sandbox
from sidecar.console.sandbox import View

GRACE_SECONDS = 5.0  # between asking a program to end and ending it
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
ROUNDS = 100  # of ending what a program left behind, which may go on leaving more
STEP_SECONDS = 0.005  # between two looks at a sandbox that is being set up

# As shells and timeout(1) have them.
TIMED_OUT, NO_START, CANNOT_RUN, NOT_FOUND = 124, 125, 126, 127

_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36  # prctl(2)
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to run, and how. `view` is what it may see, or None for everything; `timeout` is in seconds.

    `channel` is an open descriptor that it inherits; `stdout` is where its output goes, ours unless named.
    """

    words: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    channel: int
    view: View | None = None
    timeout: float | None = None
    stdout: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of it. `code` is what a shell would say; `problem` is why it was not started, if so."""

    code: int
    timed_out: bool = False
    problem: str = ""


def run(order: Order, started: Callable[[], None]) -> Ended:
    """Run it. `started` is called once it has its own copy of the channel."""
    status, told = os.pipe()
    try:
        words = _words(order, told)
        before = _children(os.getpid())
        with _adopting(), _Signals() as signals:
            try:
                process = _start(order, words, told)
            except FileNotFoundError as fault:
                return Ended(NOT_FOUND, problem=f"{fault.filename or order.words[0]}: {fault.strerror}")
            except OSError as fault:
                return Ended(CANNOT_RUN, problem=f"{order.words[0]}: {fault.strerror}")
            try:
                os.close(told)
                told = -1
                started()
                return _see_out(order, process, signals, status)
            finally:
                _end_what_is_left(process, before)
    finally:
        os.close(status)
        if told >= 0:
            os.close(told)


def _words(order: Order, told: int) -> list[str]:
    if order.view is None:
        return list(order.words)
    program = shutil.which("bwrap")
    assert program is not None, "it was tried a moment ago"
    return [*sandbox.arguments(program, order.view, status=told), *sandbox.FINDER, *order.words]


def _start(order: Order, words: list[str], told: int) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def die_with_parent() -> None:
        """In the program's process, before it is one: when we are killed, it is not left behind."""
        _libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # we were killed a moment ago, and of that it is not told
            os.kill(os.getpid(), signal.SIGKILL)

    return subprocess.Popen(
        words,
        env=dict(order.environment),
        cwd=order.folder,
        stdout=order.stdout,
        pass_fds=(order.channel,) if order.view is None else (order.channel, told),
        start_new_session=True,  # a signal of the terminal comes to us alone, and we pass it on
        preexec_fn=die_with_parent,
    )


def _see_out(order: Order, process: subprocess.Popen[bytes], signals: _Signals, status: int) -> Ended:
    """Wait for the end of it, or bring that about."""
    until = None if order.timeout is None else time.monotonic() + order.timeout
    inside = _Status(status) if order.view is not None else None
    leader = process.pid if inside is None else _set_up(process, inside, signals, until)
    if leader is None:
        _kill(process)
        return _too_early(signals.early[0]) if signals.early else Ended(TIMED_OUT, timed_out=True)
    signals.pass_on_to(leader)
    timed_out = not signals.wait_for(process, until)
    if timed_out:
        _tell_group(leader, signal.SIGTERM)
        if not signals.wait_for(process, time.monotonic() + GRACE_SECONDS):
            _tell_group(leader, signal.SIGKILL)
            _kill(process)
    code = process.returncode
    if timed_out:
        return Ended(TIMED_OUT, timed_out=True)
    if inside is not None and code != 0 and not inside.ran():
        if code - 128 in signals.came:  # it was there already, and not yet the program
            return _too_early(code - 128)
        return Ended(NO_START, problem=f"the sandbox ended with {code} before the program began")
    return Ended(128 - code if code < 0 else code)


def _too_early(number: int) -> Ended:
    return Ended(128 + number, problem=f"{signal.Signals(number).name} came before it began")


def _set_up(process: subprocess.Popen[bytes], inside: _Status, signals: _Signals, until: float | None) -> int | None:
    """The leader of the program's group once the program is in it; None when all is to end before that.

    Bubblewrap tells of the leader before it leads a group. It then is the first process of its namespace, to whom no
    signal means anything: one that comes before its child is there would be lost.
    """
    leader: int | None = None
    while process.poll() is None:
        leader = leader or inside.leader()
        if leader is not None and _children(leader):
            return leader
        if signals.early or (until is not None and time.monotonic() >= until):
            return None
        time.sleep(STEP_SECONDS)
    return leader or process.pid


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process that we started, whatever group there is, and wait for it."""
    with suppress(PermissionError):  # it became another user's: it ends when it likes
        process.kill()
    process.wait()


class _Status:
    """What bubblewrap tells of its program, line by line."""

    def __init__(self, descriptor: int) -> None:
        self._stream = os.fdopen(os.dup(descriptor), "rb")

    def leader(self) -> int | None:
        """The first process of the sandbox, which is to lead the group that its program begins in; None until told."""
        ready, _, _ = select.select([self._stream], [], [], 0)
        return self._next().get("child-pid") if ready else None

    def ran(self) -> bool:
        """Whether the program ran. To be asked when it is over."""
        with self._stream:
            while told := self._next():
                if "exit-code" in told:
                    return True
        return False

    def _next(self) -> dict[str, Any]:
        line = self._stream.readline()
        return json.loads(line) if line.strip() else {}


class _Signals:
    """While it lasts, what would end us goes to the program instead."""

    def __init__(self) -> None:
        self._leader: int | None = None
        self.came = set[int]()
        self.early: list[int] = []  # what came while there was nobody to tell
        self._former: dict[int, Any] = {}
        self._woken, self._waker = socket.socketpair()
        self._former_waker = -1

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            self._woken.setblocking(False)
            self._waker.setblocking(False)
            self._former_waker = signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
            self._former = {number: signal.signal(number, self._pass_on) for number in PASSED_ON}
        return self

    def __exit__(self, *_: object) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)
        if self._former:
            signal.set_wakeup_fd(self._former_waker)
        self._woken.close()
        self._waker.close()

    def wait_for(self, process: subprocess.Popen[bytes], until: float | None) -> bool:
        """Wait until it has ended, passing on what comes meanwhile; false when it is `until` first.

        One that comes just before `waitpid` sleeps would be handled only when that wakes, which is when all is over: so
        we sleep on a descriptor that every signal makes readable.
        """
        try:
            ended = os.pidfd_open(process.pid)
        except ProcessLookupError:  # it is over, and we have asked for its code already
            ended = -1
        try:
            while process.poll() is None:
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return False
                if select.select([ended, self._woken], [], [], left)[0] == [self._woken]:
                    self._woken.recv(4096)
        finally:
            if ended >= 0:
                os.close(ended)
        return True

    def pass_on_to(self, leader: int) -> None:
        """From now on they go to this group; those that came before, at once."""
        self._leader = leader
        for number in self.early:
            _tell_group(leader, number)

    def _pass_on(self, number: int, _: object) -> None:
        self.came.add(number)
        if self._leader is None:
            self.early.append(number)
        else:
            _tell_group(self._leader, number)


def _tell_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        pass  # it is over


@contextmanager
def _adopting() -> Generator[None]:
    """Whatever outlives its parent in the program's family becomes our child, and can be found."""
    _libc.prctl(_SET_SUBREAPER, 1)
    try:
        yield
    finally:
        _libc.prctl(_SET_SUBREAPER, 0)


def _end_what_is_left(process: subprocess.Popen[bytes], before: set[int]) -> None:
    """What a program leaves running would go on writing into OUT_DIR, and nobody's call would be open for it."""
    if process.returncode is None:  # something of ours failed
        _kill(process)
    _tell_group(process.pid, signal.SIGKILL)
    for _ in range(ROUNDS):
        left = _children(os.getpid()) - before
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError, PermissionError):
                pass  # it ended by itself, or is another user's by now


def end_all_with(folder: str) -> None:
    """End every process of ours that was started with this folder in its environment."""
    mark, own = os.fsencode(folder) + b"/", os.getpid()
    for pid in _processes():
        try:
            with open(f"/proc/{pid}/environ", "rb") as told:
                if pid != own and mark in told.read():
                    os.kill(pid, signal.SIGKILL)
        except OSError:
            continue  # another user's, or over


def _children(parent: int) -> set[int]:
    """The children of a process, as the kernel lists them."""
    found = set[int]()
    for pid in _processes():
        try:
            with open(f"/proc/{pid}/stat", "rb") as told:
                # The name of a program may hold anything, so what follows it is counted from its end.
                fields = told.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields and int(fields[1]) == parent:
            found.add(pid)
    return found


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
