"""The daemon's sockets, one per role, and the lock that makes it the only daemon of its workspace.

The lock is the authority, never a socket file or a process id: only its holder removes a stale socket and binds. All of
this happens before the heavy imports, so that early clients wait in the backlog and need not ask again. Nothing here
needs a loop.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sidecar.server import bridge

LOCK_NAME = "daemon.lock"
BACKLOG = 512


class AlreadyServed(Exception):  # noqa: N818 - an answer: another daemon does the work
    """Another daemon holds this workspace. Its exit code is `bridge.ALREADY_SERVED`."""


class Stdio(NamedTuple):
    """Private duplicates of what were descriptors 0 and 1."""

    source: int
    sink: int


def take_lock(folder: str) -> int:
    """Become the daemon of this folder's workspace: an open descriptor to hold for life.

    The file has our process id in it, for people. Raises AlreadyServed, or bridge.Hopeless when there is no folder.
    """
    bridge.make_folder(folder)
    path = os.path.join(folder, LOCK_NAME)
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        os.close(lock)
        raise AlreadyServed(f"this workspace is served already, by process {holder or 'unknown'}") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    return lock


def holder(folder: str) -> int | None:
    """The process id of the daemon that serves this folder's workspace, or None when there is none."""
    try:
        lock = os.open(os.path.join(folder, LOCK_NAME), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        text = os.pread(lock, 32, 0).strip()
        return int(text) if text.isdigit() else None
    finally:
        os.close(lock)
    return None


def bind(
    folder: str, roles: Iterable[str], *, allowed: Mapping[str, Iterable[int]] | None = None
) -> dict[str, socket.socket]:
    """Bind and listen on `<folder>/<role>/s.sock` for each role. Call it with the lock held and no thread started.

    Folders are 0700 and sockets 0600. A role that `allowed` opens to other uids has 0711 and 0666 instead: the folder
    above keeps strangers out, so they come by a mount of that role's folder, and each peer's uid is checked as well.
    They are bound in reverse, so that whoever reaches the first role reaches all.
    """
    others = allowed or {}
    roles = [*roles][::-1]
    return {role: _bind(os.path.join(folder, role), shared=bool(tuple(others.get(role, ())))) for role in roles}


def unbind(folder: str, sockets: Mapping[str, socket.socket]) -> None:
    """Stop listening and take the socket files away. The lock must still be held."""
    for role, listener in sockets.items():
        _remove(os.path.join(folder, role, bridge.SOCKET_NAME))
        listener.close()


def claim_stdio() -> Stdio:
    """Keep stdin and stdout for the protocol alone: a stray `print` goes to stderr, and nobody else reads our input."""
    claimed = Stdio(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3), fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3))
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return claimed


def _bind(folder: str, *, shared: bool) -> socket.socket:
    folder_mode, socket_mode = (0o711, 0o666) if shared else (0o700, 0o600)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, folder_mode)
    finally:
        os.close(descriptor)
    _remove(os.path.join(folder, bridge.SOCKET_NAME))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The mode must be right from the first moment, and chmod would come after it.
    mask = os.umask(0o777 & ~socket_mode)
    try:
        bridge.with_address(folder, listener.bind)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(mask)
    listener.setblocking(False)
    return listener


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
