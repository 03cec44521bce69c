"""Daemons in surroundings of their own: a namespace with a tiny disk, or one in which few folders can be watched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.daemon_process import PROJECT, Workspace, environment
from tests.faults.disk_shim import require_shim

WATCH_LIMIT, INSTANCE_LIMIT = "/proc/sys/user/max_inotify_watches", "/proc/sys/user/max_inotify_instances"
CLOCK = Path(__file__).with_name("clock_shim.c")
# Root needs no user namespace to mount something; everybody else becomes root of one of their own.
_MOUNTS = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-U", "-r", "-m"]


@cache
def why_no_watch_limit() -> str:
    """Why no namespace with a watch limit of its own can be had here, or the empty text."""
    return _refusal(["unshare", "-U", "-r", "sh", "-c", f"echo 20 > {WATCH_LIMIT}"])


@cache
def why_no_mount() -> str:
    """Why nothing can be mounted here, or the empty text."""
    return _refusal([*_MOUNTS, "sh", "-c", "mount -t tmpfs -o size=1m none /mnt"])


def _refusal(words: list[str]) -> str:
    try:
        tried = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        return str(missing)
    return "" if tried.returncode == 0 else f"{words[0]} was refused: {tried.stderr.strip()}"


class ConfinedWorkspace(Workspace):
    """A workspace whose daemon runs behind `before`: words that end in `"$@"`, for a shell in a namespace."""

    def __init__(self, folder: Path, *, namespace: Sequence[str], before: str, **arguments: Any) -> None:
        super().__init__(folder, **arguments)
        self._within = [*namespace, "sh", "-c", before, "sh"]

    def unconfine(self) -> None:
        """The next daemon runs in the world as it is."""
        self._within = ["env"]

    def serve(self, *, options: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "sidecar", "serve", *self.arguments, *self.options, *options]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*self._within, *words],
                cwd=PROJECT,
                env=environment(**self.settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


def with_few_watches(folder: Path, *, watches: int) -> ConfinedWorkspace:
    """Its daemon may watch `watches` folders, one more is refused by the kernel."""
    before = f'echo {watches} > {WATCH_LIMIT} && exec "$@"'
    return ConfinedWorkspace(folder, namespace=["unshare", "-U", "-r"], before=before)


def with_few_inotifies(folder: Path, *, instances: int) -> ConfinedWorkspace:
    """Its daemon may have so many watchers at once, whatever they watch."""
    before = f'echo {instances} > {INSTANCE_LIMIT} && exec "$@"'
    return ConfinedWorkspace(folder, namespace=["unshare", "-U", "-r"], before=before)


def with_a_clock(folder: Path, **arguments: Any) -> ConfinedWorkspace:
    """Its daemon's clock on the wall is what `set_clock` says."""
    folder.mkdir(parents=True)
    (folder / "clock").write_bytes(bytes(8))
    namespace = ["env", f"LD_PRELOAD={require_shim(CLOCK)}", f"CLOCK_FILE={folder / 'clock'}"]
    return ConfinedWorkspace(folder, namespace=namespace, before='exec "$@"', **arguments)


def set_clock(workspace: Workspace, seconds: int) -> None:
    """By how much its clock is wrong from now on."""
    with (workspace.folder / "clock").open("r+b") as file:
        file.write(seconds.to_bytes(8, "little", signed=True))


def with_tiny_state(folder: Path, *, size: str) -> ConfinedWorkspace:
    """Its state folder is a disk of `size`, as mount(8) writes it; see `resize`."""
    state = folder / "state"
    state.mkdir(parents=True, mode=0o700)
    before = f'mount -t tmpfs -o size={size},mode=700 none "{state}" && exec "$@"'
    return ConfinedWorkspace(folder, namespace=_MOUNTS, before=before)


def with_tiny_out_dir(folder: Path, *, size: str) -> ConfinedWorkspace:
    """Its OUT_DIR is a disk of `size` in the daemon's own eyes: see `seen_by_the_daemon`."""
    out = folder / "out"
    out.mkdir(parents=True)
    before = f'mount -t tmpfs -o size={size} none "{out}" && exec "$@"'
    return ConfinedWorkspace(folder, namespace=_MOUNTS, before=before)


def seen_by_the_daemon(workspace: Workspace) -> dict[str, int]:
    """Every file in OUT_DIR as the daemon has it mounted, hidden ones included, with its size."""
    assert workspace.daemon is not None
    root = Path(f"/proc/{workspace.daemon.pid}/root{workspace.out_dir}")
    return {str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()}


def resize(workspace: Workspace, size: str) -> None:
    """Give the disk of the state folder another size while the daemon runs."""
    remount(workspace, workspace.state_dir, f"size={size}")


def remount(workspace: Workspace, place: Path, how: str) -> None:
    """Change how the daemon that runs has a disk mounted, as mount(8) writes it: `ro`, `rw`, `size=1m`."""
    assert workspace.daemon is not None
    inside = ["nsenter", "-t", str(workspace.daemon.pid), "-m", *([] if os.geteuid() == 0 else ["-U"])]
    subprocess.run([*inside, "mount", "-o", f"remount,{how}", str(place)], check=True)
