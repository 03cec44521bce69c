"""Any server, seen from outside: a command that speaks on its stdio, a folder, and nothing else.

The command is a template. `{role}` is the role of one connection, `{out_dir}`, `{state_dir}` and `{socket_dir}` are the
folders of the case. It is started once per connection; whether it is the server itself or a door to one is its affair.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.daemon_process import PROJECT, environment, eventually, short_folder
from tests.rpc_client import Client

# How a user reaches the daemon, with the folders of the case.
DOOR = (
    f"{shlex.quote(sys.executable)} -m sidecar connect --role {{role}}"
    " --out-dir {out_dir} --state-dir {state_dir} --socket-dir {socket_dir}"
)
CEILING = 20.0  # a door may have to start a daemon first


class Server:
    """The server of one case. Everything it started is found again by the case's own folder in its command line."""

    def __init__(self, folder: Path, command: str, *, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.out_dir = folder / "out"
        self.out_dir.mkdir(parents=True, exist_ok=True)
        self.socket_dir = short_folder()
        self._command = command
        self._settings = {f"ARTIFACT_SIDECAR_{name.upper()}": value for name, value in settings.items()}
        self._doors: list[subprocess.Popen[bytes]] = []
        self._log = folder / "server.log"

    def connect(self, role: str) -> Client:
        """One more connection of this role, before its handshake."""
        folders = {"out_dir": self.out_dir, "state_dir": self.folder / "state", "socket_dir": self.socket_dir}
        words = [word.format(role=role, **folders) for word in shlex.split(self._command)]
        named = {"OUT_DIR": str(self.out_dir), **{f"ARTIFACT_SIDECAR_{k.upper()}": str(v) for k, v in folders.items()}}
        with self._log.open("ab") as log:
            door = subprocess.Popen(
                words,
                cwd=PROJECT,
                env=environment(**self._settings, **named),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._doors.append(door)
        assert door.stdin is not None
        assert door.stdout is not None
        return Client(door.stdout.fileno(), door.stdin.fileno(), hang_up=lambda: _hang_up(door), ceiling=CEILING)

    def kill(self) -> None:
        """SIGKILL to everything that serves this case."""
        for process in self._serving():
            process.kill()
        self._gone()

    def end(self) -> None:
        """SIGTERM, so that what was started ends in order, and away with the folder of the sockets."""
        for process in self._serving():
            process.terminate()
        self._gone()
        shutil.rmtree(self.socket_dir, ignore_errors=True)

    def tail(self) -> str:
        """The end of what it logged, here or in its state folder."""
        logs = [self._log, *sorted((self.folder / "state").glob("*.log"))]
        return "".join(path.read_text("utf-8", "replace")[-3000:] for path in logs if path.exists())

    def _serving(self) -> list[psutil.Process]:
        """Our doors, and whatever names the case's folder in its command line or environment."""
        mine = {door.pid for door in self._doors if door.poll() is None}
        others = (process for process in psutil.process_iter() if process.pid != os.getpid())
        return [process for process in others if process.pid in mine or self._names_us(process)]

    def _names_us(self, process: psutil.Process) -> bool:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return False  # it has ended, and whoever inherited it has not looked yet
            if str(self.folder) in " ".join(process.cmdline()):
                return True
            return str(self.out_dir) == process.environ().get("OUT_DIR")
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            return False

    def _gone(self) -> None:
        """Wait until nothing serves any more; what stays is killed and told."""
        try:
            eventually(lambda: not self._serving(), ceiling=CEILING)
        finally:
            for process in self._serving():
                process.kill()
            for door in self._doors:
                door.wait(CEILING)
            self._doors.clear()


def _hang_up(door: subprocess.Popen[bytes]) -> None:
    assert door.stdin is not None
    assert door.stdout is not None
    try:
        door.stdin.close()
    except BrokenPipeError:
        pass  # it hung up first
    door.stdout.close()
