"""One workspace as the console sees it: where its daemon listens, how to reach it, how to end it."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from artifact_client import Client, Link, NoSidecar

from sidecar.config import Settings, read_settings
from sidecar.console.arguments import STORE
from sidecar.server import bridge, listening

if TYPE_CHECKING:
    from _socket import socket as RawSocket  # noqa: N812 - the door does without the module that wraps it

END_SECONDS = 20.0
FATE_SECONDS = 2.0
_CREDENTIALS = struct.Struct("iII")


class StillThere(Exception):  # noqa: N818 - said to a person
    """The daemon could not be ended."""


class Place:
    """The workspace that the flags name. Raises BadSettings."""

    def __init__(self, flags: Mapping[str, object]) -> None:
        names = ("out_dir", "state_dir", "socket_dir", "index", *STORE)
        self._flags = {name: flags[name] for name in names if flags.get(name)}
        self.settings: Settings = read_settings(self._flags)
        self.folder = bridge.socket_folder(self.settings.out_dir, self.settings.socket_dir)
        self._child: int | None = None  # the daemon, when it was we who started it

    @property
    def log(self) -> str:
        return os.path.join(self.settings.state_dir, "sidecar.log")

    def socket(self, role: str) -> str:
        """The path of a role's socket."""
        return os.path.join(self.folder, role, bridge.SOCKET_NAME)

    def client(self, role: str = "runtime", *, serve: tuple[str, ...] = (), **options: Any) -> Client:
        """A client of the daemon, which is started if none answers; it connects at its first call."""
        return Client(lambda: self._link(self._connect(role, serve)), **options)

    def client_of_running(self, role: str = "runtime", **options: Any) -> Client:
        """A client of the daemon that runs. Its first call raises NoSidecar when there is none."""
        return Client(lambda: self._link(self._dial(role)), **options)

    def channel(self, role: str = "exec") -> tuple[socket.socket, str]:
        """A connection for somebody else, on which nothing was said yet, and the name that the kernel has for it."""
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            stream.bind("")  # the kernel chooses a name that nobody else has
            bridge.with_address(os.path.join(self.folder, role), stream.connect)
        except OSError:
            stream.close()
            raise NoSidecar(f"no daemon serves {self.settings.out_dir}") from None
        return stream, stream.getsockname()[1:].decode()

    def start(self) -> int | None:
        """Have a daemon answer. The answer is its process id."""
        self._connect("runtime", ()).close()
        return self.daemon()

    def fate(self) -> bridge.Hopeless | None:
        """Why the daemon that we started is no more, if so: it takes connections before it knows its journal."""
        if self._child is None:
            return None
        try:
            process = os.pidfd_open(self._child)
        except ProcessLookupError:
            return None  # it was waited for already
        try:
            poll = select.poll()
            poll.register(process, select.POLLIN)
            if not poll.poll(FATE_SECONDS * 1000):
                return None
            _, status = os.waitpid(self._child, 0)
        finally:
            os.close(process)
        code = os.waitstatus_to_exitcode(status)
        return bridge.Hopeless(
            code if code > 0 else bridge.UNAVAILABLE, f"the daemon ended with {code}{self._last_words()}"
        )

    def daemon(self) -> int | None:
        """The process id of the daemon, or None when none runs."""
        try:
            with self._stream(self._dial("runtime")) as stream:
                pid, _, _ = _CREDENTIALS.unpack(
                    stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
                )
                return pid
        except NoSidecar:
            return listening.holder(self.folder)  # one that starts or ends does not answer, but holds the lock

    def end(self) -> int | None:
        """Ask the daemon to end and wait until its lock is free. The answer is its process id, None if none ran.

        Raises StillThere.
        """
        pid = self.daemon()
        if pid is None:
            return None
        if pid == 0:
            raise StillThere("the daemon runs where its process cannot be seen from here (another pid namespace)")
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return pid
        try:
            signal.pidfd_send_signal(process, signal.SIGTERM)
            poll = select.poll()
            poll.register(process, select.POLLIN)
            poll.poll(END_SECONDS * 1000)
        finally:
            os.close(process)
        until = monotonic() + 1.0
        while listening.holder(self.folder) == pid:
            if monotonic() > until:
                raise StillThere(f"the daemon, process {pid}, did not end within {END_SECONDS:g} seconds")
            sleep(0.01)
        return pid

    def _connect(self, role: str, serve: tuple[str, ...]) -> RawSocket:
        raw, self._child = bridge.connect(self.folder, role, self._serve(serve))
        return raw

    def _last_words(self) -> str:
        try:
            with open(os.path.join(self.folder, "spawn.log"), "rb") as log:
                lines = log.read(65536).decode("utf-8", "replace").split("\n")
        except OSError:
            return ""
        said = (line.strip().removeprefix("artifact-sidecar: ") for line in reversed(lines) if line.strip())
        return next((f": {line}" for line in said), "")

    def _serve(self, more: tuple[str, ...]) -> list[str]:
        words = [sys.executable, "-m", "sidecar", "serve", "--out-dir", self.settings.out_dir]
        for name in ("state_dir", "socket_dir", "index", *STORE):
            if name in self._flags:
                words += [f"--{name.replace('_', '-')}", str(getattr(self.settings, name))]
        return [*words, *more]

    def _dial(self, role: str) -> RawSocket:
        try:
            return bridge.dial(self.folder, role)
        except OSError:
            raise NoSidecar(f"no daemon serves {self.settings.out_dir}") from None

    def _stream(self, raw: RawSocket) -> socket.socket:
        return socket.socket(fileno=raw.detach())

    def _link(self, raw: RawSocket) -> Link:
        return Link(self._stream(raw), f"the daemon of {self.settings.out_dir}")
