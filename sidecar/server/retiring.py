"""A newer door asks an older daemon to make room, and the daemon does so once nothing is in flight (spec section 13).

The daemon writes its version beside its lock. A door that is newer signals the lock's holder and waits a while; a
daemon that is busy for longer keeps its workspace, and the door attaches to it as it is.
"""

from __future__ import annotations

import os
import signal
import time

from sidecar.server.listening import holder

VERSION_NAME = "version"
SIGNAL = signal.SIGUSR1
PATIENCE = 5.0
STEP = 0.02


def tell_version(folder: str, version: str) -> None:
    """Write which version serves this folder's workspace. Called with the daemon's lock held."""
    unfinished = os.path.join(folder, f"{VERSION_NAME}.new")
    with open(unfinished, "w", encoding="ascii") as file:
        file.write(version)
    os.replace(unfinished, os.path.join(folder, VERSION_NAME))


def ask_older(folder: str, version: str) -> bool:
    """Ask a daemon older than `version` to retire. Answers whether one did."""
    told = told_version(folder)
    if not told or not is_newer(version, told):
        return False
    daemon = holder(folder)
    if daemon is None:
        return False
    try:
        os.kill(daemon, SIGNAL)
    except OSError:
        return False  # it has just ended by itself, or belongs to somebody else
    until = time.monotonic() + PATIENCE
    while holder(folder) == daemon:
        if time.monotonic() > until:
            return False
        time.sleep(STEP)
    return True


def told_version(folder: str) -> str:
    """The version that serves this folder's workspace, or served it last; empty when none ever said."""
    try:
        with open(os.path.join(folder, VERSION_NAME), encoding="ascii", errors="replace") as file:
            return file.read(64).strip()
    except OSError:
        return ""


def is_newer(one: str, other: str) -> bool:
    return _parts(one) > _parts(other)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))
