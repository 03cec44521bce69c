"""Starts real daemons for tests: a private workspace, its sockets and its clients, ended by process id.

The daemon is `python -m sidecar serve` as a user would start it; nothing is imported from it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

from tests.rpc_client import CEILING, AsyncClient, Client

PROJECT = Path(__file__).resolve().parent.parent
START_CEILING = 30.0  # a cold start imports a second's worth of modules, and the machine may be busy
ROLES = ("runtime", "renderer", "exec", "editor")

T = TypeVar("T")


def eventually(look: Callable[[], T], *, ceiling: float = CEILING) -> T:
    """Ask again until the answer is true, at most `ceiling` seconds; the answer. For what has no event to wait for."""
    deadline = monotonic() + ceiling
    while not (found := look()):
        assert monotonic() < deadline, f"was not so within {ceiling} s: {look}"
        sleep(0.01)
    return found


def environment(**extra: str) -> dict[str, str]:
    """Our own environment without anything that would configure a daemon, its modules found in this checkout."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ARTIFACT_SIDECAR_") and k != "OUT_DIR"}
    here = os.pathsep.join(filter(None, [str(PROJECT), kept.get("PYTHONPATH")]))
    return {**kept, "PYTHONPATH": here, "PYTHONUNBUFFERED": "1", **extra}


def short_folder() -> Path:
    """A folder whose path leaves room for a socket: they end at 108 bytes, and pytest's folders are long."""
    return Path(tempfile.mkdtemp(prefix="as-"))


class Workspace:
    """One OUT_DIR with a private state folder, and the daemon that serves it.

    `options` are further flags of `serve`; `settings` become `ARTIFACT_SIDECAR_*` variables.
    """

    def __init__(self, folder: Path, *, options: Sequence[str] = (), settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.out_dir = folder / "out"
        self.state_dir = folder / "state"
        self.socket_dir = short_folder()
        self.log = folder / "daemon.log"
        self.options = ("--idle-exit", "600", *options)
        self.settings = {f"ARTIFACT_SIDECAR_{k.upper()}": v for k, v in (settings or {}).items()}
        self.daemon: subprocess.Popen[bytes] | None = None
        self.incidents_expected = 0
        self._clients: list[Client] = []
        self.out_dir.mkdir(parents=True, exist_ok=True)

    # The daemon's life

    @property
    def arguments(self) -> list[str]:
        """The flags that name this workspace, for any command."""
        return [
            *("--out-dir", str(self.out_dir)),
            *("--state-dir", str(self.state_dir)),
            *("--socket-dir", str(self.socket_dir)),
        ]

    def serve(self, *, options: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start one `serve` and do not wait for it; the caller ends it."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "sidecar", "serve", *self.arguments, *self.options, *options],
                cwd=PROJECT,
                env=environment(**self.settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def start(self) -> Workspace:
        """Start the daemon and wait until it takes connections."""
        assert self.daemon is None, "the daemon runs already"
        self.daemon = self.serve()
        deadline = monotonic() + START_CEILING
        while not self.answers():
            try:
                code = self.daemon.wait(0.01)
            except subprocess.TimeoutExpired:
                assert monotonic() < deadline, f"the daemon did not listen within {START_CEILING} s\n{self.tail()}"
                continue
            self.daemon = None
            raise AssertionError(f"the daemon ended with {code} at its start\n{self.tail()}")
        return self

    def answers(self) -> bool:
        """Whether somebody listens on the runtime socket."""
        with socket.socket(socket.AF_UNIX) as link:
            return link.connect_ex(str(self.socket("runtime"))) == 0

    def stop(self) -> int:
        """SIGTERM, and the exit code. The clients that are left must have read everything."""
        for client in self._clients:
            client.close()
        self._clients.clear()
        return self._end(signal.SIGTERM)

    def kill9(self) -> None:
        """SIGKILL, in the middle of whatever it does. Clients lose their connection."""
        self._end(signal.SIGKILL)
        for client in self._clients:
            client.drop()
        self._clients.clear()

    def restart(self) -> Workspace:
        """kill -9 and start again on the same folders."""
        self.kill9()
        return self.start()

    def _end(self, number: signal.Signals) -> int:
        assert self.daemon is not None, "the daemon does not run"
        self.daemon.send_signal(number)
        try:
            return self.daemon.wait(START_CEILING)  # it writes what it owes, on a machine that may be busy
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
            raise AssertionError(f"the daemon did not end on {number.name}\n{self.tail()}") from None
        finally:
            self.daemon = None

    def __enter__(self) -> Workspace:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.clean_up(failed=kind is not None)

    def clean_up(self, *, failed: bool) -> None:
        """End what still runs. After a test that passed, unread messages and incidents of the daemon are failures."""
        try:
            if self.daemon is not None and failed:
                self.kill9()
            elif self.daemon is not None:
                self.stop()
        finally:
            shutil.rmtree(self.socket_dir, ignore_errors=True)
        if not failed:
            self._no_incidents()

    def _no_incidents(self) -> None:
        text = self.log.read_text("utf-8", "replace") if self.log.exists() else ""
        found = text.count("Traceback (most recent call last)")
        assert found == self.incidents_expected, f"{found} tracebacks in the daemon's log\n{self.tail()}"

    def tail(self) -> str:
        """The end of the daemon's log, for messages of failed tests."""
        return self.log.read_text("utf-8", "replace")[-4000:] if self.log.exists() else "(no log)"

    # Its clients

    def socket(self, role: str) -> Path:
        name = hashlib.sha256(os.fsencode(os.path.realpath(self.out_dir))).hexdigest()[:16]
        return self.socket_dir / name / role / "s.sock"

    def dial(self, role: str) -> Client:
        """Connect without a handshake. The client is closed, and checked for unread messages, with the daemon."""
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(self.socket(role)))
        client = Client.over(link)
        self._clients.append(client)
        return client

    def connect(self, role: str, *, ceiling: float = CEILING, **options: Any) -> Client:
        """Connect and shake hands; `options` are the `initializationOptions`.

        A longer `ceiling` is for a daemon that loads a conversation first, or starts beside several others.
        """
        client = self.dial(role)
        client.ceiling = ceiling
        client.initialize(**options)
        return client

    async def connect_async(self, role: str, **options: Any) -> AsyncClient:
        """The same for asyncio; the caller closes it."""
        client = await AsyncClient.to(str(self.socket(role)))
        await client.initialize(**options)
        return client

    # Its files

    def write(self, path: str, content: str | bytes = "") -> Path:
        """A file below OUT_DIR, complete when this returns."""
        target = self.out_dir / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target
