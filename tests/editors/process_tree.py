"""Programs that start programs: each is ended with all that it started, by their ids, also when we die ourselves."""

from __future__ import annotations

import ctypes
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def start(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path, pipes: bool = False
) -> subprocess.Popen[Any]:
    """Start a program in a session of its own, which gets SIGTERM when we die.

    What it says goes to the end of `log`; with `pipes`, its stdin and stdout are text pipes of ours instead.
    """
    with log.open("ab") as said:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
            stdout=subprocess.PIPE if pipes else said,
            stderr=said,
            text=pipes or None,
            start_new_session=True,
            preexec_fn=_die_with_us,
        )


def stop(process: subprocess.Popen[Any], *, patience: float = 10.0) -> None:
    """SIGTERM for the program, and after `patience` seconds SIGKILL for it and all that it ever started and is left."""
    try:
        root = psutil.Process(process.pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        process.wait()
        return
    process.terminate()
    _, left = psutil.wait_procs(tree, timeout=patience)
    end(left)
    process.wait()


def end(processes: Sequence[psutil.Process]) -> None:
    """SIGKILL; psutil looks whether an id still is the process that it was."""
    for one in processes:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(processes, timeout=30)


def naming(text: str) -> list[psutil.Process]:
    """Our user's processes whose command line or environment names this text, a folder of one test for example."""
    found = []
    for one in psutil.process_iter():
        try:
            words = [*one.cmdline(), *one.environ().values()]
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        if any(text in word for word in words):
            found.append(one)
    return found


def outliving(text: str, *, patience: float = 10.0) -> list[psutil.Process]:
    """Those naming this text that are still there after `patience` seconds; daemons may be."""
    ended = [one for one in naming(text) if not _serves(one)]
    return psutil.wait_procs(ended, timeout=patience)[1]


def daemons(text: str, *, but: subprocess.Popen[bytes] | None) -> list[psutil.Process]:
    """The daemons naming this text, except one."""
    return [one for one in naming(text) if _serves(one) and (but is None or one.pid != but.pid)]


def _serves(process: psutil.Process) -> bool:
    try:
        return "serve" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def _die_with_us() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
