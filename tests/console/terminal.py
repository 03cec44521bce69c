"""A real terminal for a command: a pseudo terminal, and what stands on its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from time import monotonic

import pyte

from tests.daemon_process import PROJECT, environment

CEILING = 60.0


class _Screen(pyte.HistoryScreen):
    """Knows of the other screen, which programs that fill the whole terminal switch to."""

    other = False

    def set_mode(self, *modes: int, **options: bool) -> None:
        if options.get("private") and 1049 in modes:
            self.other = True
            self.erase_in_display(2)
        super().set_mode(*modes, **options)

    def reset_mode(self, *modes: int, **options: bool) -> None:
        if options.get("private") and 1049 in modes:
            self.other = False
            self.erase_in_display(2)
        super().reset_mode(*modes, **options)


class Terminal:
    """One `artifact-sidecar` command in a terminal of its own."""

    def __init__(self, *words: str, columns: int = 120, rows: int = 30, **variables: str) -> None:
        self.screen = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._ours, theirs = pty.openpty()
        self._resized(columns, rows)
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sidecar", *words],
            cwd=PROJECT,
            env=environment(TERM="xterm-256color", TZ="UTC", **variables),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        self._theirs = theirs

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def until(self, so: Callable[[], object]) -> None:
        """Read what is printed until it is so."""
        deadline = monotonic() + CEILING
        while not so():
            assert monotonic() < deadline, f"was not so within {CEILING} s:\n{self.text}"
            self.read(0.1)

    def shows(self, text: str) -> None:
        self.until(lambda: text in self.text)

    def read(self, seconds: float) -> bool:
        """Take what comes within these seconds; whether the terminal is still open."""
        if not select.select([self._ours], [], [], seconds)[0]:
            return True
        try:
            came = os.read(self._ours, 65536)
        except OSError:
            return False
        self._stream.feed(came)
        return bool(came)

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        self.screen.erase_in_display(2)
        self._resized(columns, rows)

    def interrupt(self) -> int:
        """Ctrl-C, and the exit code."""
        return self.signal(signal.SIGINT)

    def signal(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        self.until(lambda: self.process.poll() is not None)
        while select.select([self._ours], [], [], 0)[0] and self.read(0):
            pass
        return self.process.wait()

    def as_before(self) -> bool:
        """Whether the terminal is as it was before the command."""
        shown = not self.screen.other and not self.screen.cursor.hidden
        return shown and termios.tcgetattr(self._theirs) == self.before

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._theirs)
        os.close(self._ours)

    def _resized(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
