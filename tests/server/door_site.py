"""Doors and the fake daemons behind them, for tests of the door."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sidecar.server import bridge
from tests.rpc_client import Client, frame, unframe

ROOT = Path(bridge.__file__).parents[2]
CEILING = 10.0  # a machine that is busy starts ten interpreters slowly

JOIN = """
import sys
from sidecar.server import bridge
try:
    bridge.join(sys.argv[1], "exec", sys.argv[2:])
except bridge.Hopeless as error:
    print(error, file=sys.stderr)
    sys.exit(error.code)
"""


class Door:
    """A door as a process, and a client at its stdin and stdout."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.client = Client(process.stdout.fileno(), process.stdin.fileno(), hang_up=self._close, ceiling=CEILING)

    def greet(self, **options: Any) -> int:
        """Shake hands; the process id of the daemon that answered."""
        answer = self.client.call("initialize", {"initializationOptions": options})
        self.client.notify("initialized", {})
        assert self.client.event("heard")["method"] == "initialized"
        daemon: int = answer["daemon"]
        return daemon

    def end(self, last: bytes = b"") -> tuple[int, bytes, str]:
        """Say something last and close stdin: the exit code, what still came, and what stood on stderr."""
        heard, errors = self.process.communicate(last, timeout=CEILING)
        return self.process.returncode, heard, errors.decode().strip()

    def close(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._close()

    def _close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class Site:
    """A workspace's socket folder, the diary of the fake daemons started there, and the doors to it."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = str(tmp_path / "sockets" / "0123456789abcdef")
        self.diary = tmp_path / "diary"
        self._doors: list[Door] = []

    def serve(self, how: str = "answers") -> list[str]:
        return [sys.executable, "-m", "tests.server.fake_daemon", self.folder, str(self.diary), how]

    def door(self, how: str = "answers") -> Door:
        return self.door_of([sys.executable, "-S", "-E", "-c", JOIN, self.folder, *self.serve(how)])

    def door_of(self, command: Sequence[str], *, cwd: Path = ROOT) -> Door:
        pipe = subprocess.PIPE
        self._doors.append(Door(subprocess.Popen(command, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)))
        return self._doors[-1]

    def daemons(self) -> list[int]:
        """The process ids of all that have been the daemon, in order."""
        return [int(line) for line in self.diary.read_text("utf-8").split()] if self.diary.exists() else []

    def request(self, number: int | str, method: str, params: object = None) -> bytes:
        return frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def read(self, heard: bytes) -> dict[str, Any]:
        """The one message in these bytes."""
        buffer = bytearray(heard)
        message = unframe(buffer)
        assert message is not None
        assert buffer == b""
        return message

    def close(self) -> None:
        for door in self._doors:
            door.close()
        for daemon in self.daemons():
            try:
                os.kill(daemon, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended by itself
