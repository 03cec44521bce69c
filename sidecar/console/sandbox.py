"""A bubblewrap sandbox that sees OUT_DIR, a folder to work in and a read-only system, and nothing else.

Whether it works is never assumed: the very sandbox that is meant is tried first, since a kernel, a container or a
policy may forbid what it needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

TRIAL_SECONDS = 10.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Of our environment, what says how to write things down and nothing about who we are.
KEPT = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "TERM", "TZ")
# A shell finds the program and has the exit codes that people know: 127 not found, 126 cannot be run.
FINDER = ("/bin/sh", "-c", 'exec "$@"', "sh")

_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "alternatives", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "pki/tls/certs", "ssl/certs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class View:
    """What a program is to see: `client` is a folder to read; `protected` is what must lie in none of the folders."""

    out_dir: str
    work_dir: str
    client: str
    protected: Sequence[str] = ()


def obstacle(view: View) -> str:
    """Why there can be no such sandbox here, or the empty text. Tries it."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed (there is no program `bwrap`)"
    seen = ("/usr", view.out_dir, view.work_dir, *_prefixes())
    for hidden in view.protected:
        for root in seen:
            if within(hidden, root):
                return f"{hidden} lies below {root}, which a program would see"
    words = [*arguments(program, view), *FINDER, "true"]
    try:
        tried = subprocess.run(
            words,
            env=environment(view),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRIAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return f"bubblewrap cannot be tried: {fault}"
    said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
    return "" if tried.returncode == 0 else f"bubblewrap does not work here: {said[-1] if said else tried.returncode}"


def arguments(program: str, view: View, *, status: int | None = None) -> list[str]:
    """The command line up to the program's own. `status` is a descriptor for what bubblewrap tells of it."""
    told = ["--json-status-fd", str(status)] if status is not None else []
    return [
        program,
        # Namespaces of its own for everything, no capability, and no way back to our terminal or past our end.
        *("--unshare-all", "--cap-drop", "ALL", "--new-session", "--die-with-parent"),
        *told,
        *_system(),
        # Without a capability root is still root, to whom the kernel's settings below /proc/sys belong.
        *("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *_each("--ro-bind", (*_prefixes(), view.client)),
        *_each("--bind", (view.out_dir, view.work_dir)),
        *("--remount-ro", "/", "--chdir", view.work_dir, "--"),
    ]


def environment(view: View) -> dict[str, str]:
    """All that the program's environment is to have beside what names its call."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    own = ":".join(os.path.join(prefix, "bin") for prefix in _prefixes())
    path = f"{own}:{PATH}" if own else PATH
    return {**kept, "PATH": path, "HOME": view.work_dir, "TMPDIR": "/tmp"}


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it. Both are real paths."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _system() -> Iterator[str]:
    """The system's own folders, and of `/etc` what programs need to run at all."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _SYSTEM:
        folder = f"/{name}"
        if os.path.islink(folder):
            yield from ("--symlink", os.readlink(folder), folder)
        elif os.path.isdir(folder):
            yield from ("--ro-bind", folder, folder)
    for name in _ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _prefixes() -> list[str]:
    """Where this Python lives, as far as that is not in the system; never a folder that holds somebody's home."""
    homes = (os.path.realpath(os.path.expanduser("~")), "/root", "/home")
    found = dict.fromkeys(map(os.path.realpath, (sys.prefix, sys.base_prefix)))
    return [one for one in found if not within(one, "/usr") and not any(within(home, one) for home in homes)]


def _each(option: str, folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        yield from (option, folder, folder)
