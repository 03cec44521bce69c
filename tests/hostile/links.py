"""Attacks by what stands where a file should: links of every kind, and what is no file; also while they change."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from tests.daemon_process import PROJECT, environment
from tests.hostile.arena import Arena
from tests.hostile.talker import Asked

FILES = "turn_9/files"


def reads(path: str) -> list[Asked]:
    """Everything by which the bytes at a path may come out, for a program."""
    page = f"![x]({path}) <img src='{path}'> [y](/{path}) [[S:1]]"
    return [
        ("artifact/resolve", {"paths": [path]}),
        ("artifact/read", {"paths": [path]}),
        ("artifact/read", {"items": [{"path": path, "line_start": 1, "line_count": 9}]}),
        ("artifact/fetch", {"path": path}),
        ("artifact/versions", {"path": path}),
        ("artifact/lineage", {"path": path, "direction": "up"}),
        ("artifact/search", {"root": path.rpartition("/")[0], "content_regex": "."}),
        ("artifact/search", {"root": path, "name_regex": "."}),
        ("assets/pull", {"content": page, "mime": "text/markdown"}),
        ("assets/pull", {"path": path}),
        ("artifact/rehost", {"paths": [path]}),
        ("context/fetch", {"path": path}),
        ("context/show_artifacts", {"paths": [path]}),
        ("workspace/executeCommand", {"command": "artifact-sidecar.open", "arguments": [{"path": path}]}),
        ("workspace/executeCommand", {"command": "artifact-sidecar.rehost", "arguments": [{"paths": [path]}]}),
    ]


def changes(path: str, *, turn: str, serial: int) -> list[Asked]:
    """Everything by which bytes may go there, or be hosted from there."""
    name = f"late_{serial}"
    return [
        ("artifact/write", {"path": path, "kind": "file", "content": f"written {serial}"}),
        ("artifact/write", {"path": f"{path}/{name}", "kind": "file", "content": "below"}),
        ("artifact/patch", {"path": path, "patch": f"patched {serial}\n"}),
        ("artifact/patch", {"path": path, "patch": "@@ -1 +1 @@\n-written\n+other\n"}),
        ("artifact/link", {"path": path}),
        ("sources/merge", {"rows": [{"source_type": "file", "physical_path": path, "title": "x"}]}),
        ("call/begin", {"tool_call_id": f"c_{turn}_{serial}", "tool_id": "exec", "params": {"path": path}}),
        ("call/end", {"tool_call_id": f"c_{turn}_{serial}", "expect": [path, {"path": f"{path}/{name}"}]}),
        ("artifact/hide", {"paths": [path], "replacement": "hidden"}),
        ("timeline/flush", {}),
        ("workspace/sync", {}),
    ]


def plant_link(arena: Arena, chance: Random, at: Path) -> str:
    """A link at this place, perhaps over others; the path by which one would get through it."""
    secret = chance.choice(arena.guard.aims(arena.workspace))
    secret = chance.choice((secret, str(arena.guard.outside / "secret.txt"), str(arena.guard.outside / "page.html")))
    way = chance.choice(("absolute", "relative", "chain", "folder", "deep folder", "loop", "self", "odd", "below"))
    outside = str(arena.guard.outside)
    match way:
        case "absolute":
            at.symlink_to(secret)
        case "relative":
            at.symlink_to(os.path.relpath(secret, at.parent))
        case "chain":
            last = secret
            for number in range(chance.choice((2, 10, 39, 45))):
                link = at.with_name(f"{at.name}.{number}")
                link.symlink_to(last)
                last = link.name
            at.symlink_to(last)
        case "folder":
            at.symlink_to(
                chance.choice((outside, "/", str(arena.workspace.state_dir), str(arena.workspace.socket_dir)))
            )
            return f"{at.name}/{chance.choice(('secret.txt', 'etc/passwd', 'journal.db', 'files/secret.txt'))}"
        case "deep folder":
            (at / "a/b/c").mkdir(parents=True)
            (at / "a/b/c/d").symlink_to(os.path.relpath(outside, at / "a/b/c"))
            return f"{at.name}/a/b/c/d/secret.txt"
        case "loop":
            at.symlink_to(at.name)
        case "self":
            at.symlink_to(
                chance.choice(("/proc/self/cwd", "/proc/self/root", "/proc/self/fd", "/dev/fd", str(arena.out)))
            )
            return f"{at.name}/{chance.choice(('etc/passwd', '0', '3', '10', HONEST_FILE, 'pyproject.toml'))}"
        case "odd":
            at.symlink_to(
                chance.choice(
                    ("/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/self/environ", "/dev/full", "/proc/kmsg")
                )
            )
        case _:
            at.symlink_to("../../turn_0/files/honest.txt")
    return at.name


HONEST_FILE = "turn_0/files/honest.txt"


def standing(arena: Arena, chance: Random) -> None:
    """A link where a file, a folder, a turn or a view should stand; every way to read it, every way to change it."""
    turn = arena.begin()
    folder = arena.out / turn / chance.choice(("files", "attachments", "files/sub"))
    folder.mkdir(parents=True, exist_ok=True)
    name = chance.choice(
        ("a.txt", "a.png", "a.html", "a.md", "a.css", "a.json", "a.pdf", "a", ".part-0123456789abcdef.tmp")
    )
    through = f"{folder.relative_to(arena.out)}/{plant_link(arena, chance, folder / name)}"
    if chance.random() < 0.2:
        other = arena.out / f"{turn}x"
        other.symlink_to(arena.guard.outside)
        through = f"{turn}x/files/secret.txt"
    if chance.random() < 0.2:
        view = arena.out / chance.choice(("timeline.json", "context.json", "sources_pool.json"))
        view.unlink(missing_ok=True)
        view.symlink_to(arena.guard.outside / "timeline.json")
    _ask_all(arena, chance, through, turn)


def special(arena: Arena, chance: Random) -> None:
    """What is no file stands where one should: pipes, sockets, devices, folders, files that nobody may read."""
    turn = arena.begin()
    folder = arena.out / turn / "files"
    folder.mkdir(parents=True, exist_ok=True)
    at = folder / chance.choice(("a.txt", "a.png", "a.html", "a.md", "timeline.json"))
    match chance.choice(("fifo", "socket", "null", "zero", "block", "folder", "mode", "sticky", "fifo that is read")):
        case "fifo" | "fifo that is read":
            os.mkfifo(at)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener, _inside(folder) as here:
                listener.bind(f"/proc/self/fd/{here}/{at.name}")
        case "folder":
            (at / "inner").mkdir(parents=True)
        case "mode" | "sticky" as way:
            at.write_text("x")
            at.chmod(0 if way == "mode" else 0o7777)
        case kind:
            numbers = {"null": (1, 3), "zero": (1, 5), "block": (7, 0)}[kind]
            mode = stat.S_IFBLK if kind == "block" else stat.S_IFCHR
            with suppress(PermissionError):  # they are made by root alone
                os.mknod(at, mode | 0o666, os.makedev(*numbers))
    _ask_all(arena, chance, f"{turn}/files/{at.name}", turn)


def hard(arena: Arena, chance: Random) -> None:
    """One more name of a file outside: it may be read, for it stands in OUT_DIR, but never be written through."""
    turn = arena.begin()
    folder = arena.out / turn / "files"
    folder.mkdir(parents=True, exist_ok=True)
    victim = arena.folder / "victim"
    before = victim.read_bytes() if victim.exists() else b"x" * 100
    victim.write_bytes(before)
    at = folder / chance.choice(("a.txt", "a.md", "a.json"))
    os.link(victim, at)
    _ask_all(arena, chance, f"{turn}/files/{at.name}", turn)
    assert victim.read_bytes() == before, "a file outside was written through one more name of it"
    victim.unlink()


def _ask_all(arena: Arena, chance: Random, path: str, turn: str) -> None:
    asked = [*reads(path), ("workspace/sync", {}), *reads(path)]
    arena.talker(chance.choice(("exec", "runtime"))).ask(asked)
    arena.talker(chance.choice(("renderer", "editor"))).ask(asked)
    runtime = arena.talker("runtime")
    runtime.ask(changes(path, turn=turn, serial=1))
    runtime.ask([*reads(path), *changes(path, turn=turn, serial=2)])
    runtime.ask([("turn/end", {"turn_id": turn, "completion": {"text": f"see {path}"}})])


# While they change ----------------------------------------------------------------------------------------------------


def races(arena: Arena, chance: Random) -> None:
    """A file, a folder, a turn, a view changes places with a link to the outside while everything is done with it."""
    turn = arena.begin()
    files = arena.out / turn / "files"
    (files / "d").mkdir(parents=True, exist_ok=True)
    for name in ("d/secret.txt", "d/a.txt", "secret.txt", "a.txt", "page.html"):
        (files / name).write_text("honest too")
    what = chance.choice(("file", "folder", "turn", "files folder", "view", "page", "fifo", "truncated"))
    outside, spare = arena.guard.outside, arena.out / f"{turn}.spare"
    path = f"{turn}/files/d/secret.txt"
    first = {
        "file": files / "d/secret.txt",
        "folder": files / "d",
        "turn": arena.out / turn,
        "files folder": files,
    }.get(what)
    target: str | Path = {"file": outside / "secret.txt", "turn": outside}.get(what, outside)
    if what == "view":
        first, target = arena.out / "timeline.json", outside / "timeline.json"
        first.touch()
    elif what in ("page", "truncated"):
        first, path, target = files / "page.html", f"{turn}/files/page.html", outside / "page.html"
        first.write_text("<img src='d/secret.txt'>" * 3000)
    elif what == "fifo":
        first = files / "d/secret.txt"
    assert first is not None
    if what == "fifo":
        os.mkfifo(spare)
    elif what != "truncated":
        spare.symlink_to(target)
    with _swapping(first, spare if what != "truncated" else None):
        client, runtime = arena.talker(chance.choice(("exec", "renderer"))), arena.talker("runtime")
        for serial in range(4 if arena.quick else 15):
            client.ask([*reads(path), ("workspace/sync", {})])
            runtime.ask([*changes(path, turn=turn, serial=serial), *reads(path)])
        runtime.ask([("turn/end", {"turn_id": turn})])


SWAPPER = """
import ctypes, os, sys
first, second, libc = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2]), ctypes.CDLL(None)
print("swapping", flush=True)
while os.getppid() == int(sys.argv[3]):
    for _ in range(200):
        libc.renameat2(-100, first, -100, second, 2)
"""
TRUNCATER = """
import os, sys
print("truncating", flush=True)
while os.getppid() == int(sys.argv[3]):
    for size in (1 << 40, 0, 5000, 1 << 21, 3):
        try:
            os.truncate(sys.argv[1], size)
        except OSError:
            pass
"""


@contextmanager
def _swapping(first: Path, second: Path | None) -> Iterator[None]:
    """Two names change places as fast as another process can do it; or one file its size."""
    words = [sys.executable, "-c", TRUNCATER if second is None else SWAPPER, str(first), str(second), str(os.getpid())]
    with subprocess.Popen(words, cwd=PROJECT, env=environment(), stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        try:
            yield
        finally:
            swapper.kill()


@contextmanager
def _inside(folder: Path) -> Iterator[int]:
    here = os.open(folder, os.O_PATH)
    try:
        yield here
    finally:
        os.close(here)


Deed = Callable[[Arena, Random], Any]
