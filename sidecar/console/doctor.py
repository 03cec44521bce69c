"""`doctor`: the settings with their sources, and what this system offers a daemon."""

from __future__ import annotations

import argparse
import functools
import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar

from sidecar.config import PREFIX, Setting
from sidecar.console import running, sandbox
from sidecar.console.output import cell, printable, say, say_json, size_said, table
from sidecar.console.place import Place
from sidecar.core.errors import StoreUnavailable
from sidecar.ports import Abilities
from sidecar.settings_file import read_beside
from sidecar.stores import kernel, lease
from sidecar.stores.index_census import engine
from sidecar.stores.index_location import IndexFile, parse_index, shown
from sidecar.stores.indexes import migrations
from sidecar.stores.objects import open_configured

OK, UNAVAILABLE = 0, 69
STORE_SECONDS = 40.0
State = Literal["ok", "warn", "fail"]
T = TypeVar("T")
ROLES = ("runtime", "renderer", "exec", "editor")

_INOTIFY = Path("/proc/sys/fs/inotify")
_FEW_WATCHES = 20_000
# Where inotify cannot see what others write: NFS, CIFS, SMB2, FUSE, 9p, AFS, Ceph, overlayfs below somebody else's.
_REMOTE = {
    0x6969: "nfs",
    0xFF534D42: "cifs",
    0xFE534D42: "smb2",
    0x65735546: "fuse",
    0x01021997: "9p",
    0x00C36400: "ceph",
}


class Finding(NamedTuple):
    """One thing looked at. `warn` works, but less well; `fail` does not work."""

    what: str
    state: State
    detail: str


def doctor(place: Place, asked: argparse.Namespace) -> int:
    """Exit code 69 when something that the daemon needs is missing."""
    findings = [finding for look in _LOOKS for finding in look(place)]
    settings = place.settings.listed()
    if asked.json:
        say_json({"settings": [s._asdict() for s in settings], "findings": [f._asdict() for f in findings]})
    else:
        table(("setting", "value", "from"), [(s.name, _with_unit(s), s.source) for s in settings])
        say()
        table(("checked", "", "found"), findings)
    return UNAVAILABLE if any(finding.state == "fail" for finding in findings) else OK


def _with_unit(setting: Setting) -> object:
    if setting.name in _SECONDS:
        return f"{setting.value:g} seconds"
    return size_said(setting.value) if setting.name == "keep_bytes" else setting.value


_SECONDS = ("idle_exit", "lease_seconds")


def _system(_: Place) -> Iterator[Finding]:
    release = os.uname().release
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    yield Finding("python", "ok" if sys.version_info >= (3, 11) else "fail", sys.version.split()[0])
    yield Finding(
        "kernel", "ok" if sys.platform == "linux" and numbers >= (5, 6) else "fail", f"{sys.platform} {release}"
    )
    yield Finding("sqlite", "ok", sqlite3.sqlite_version)


def _settings_file(place: Place) -> Iterator[Finding]:
    file = read_beside(place.settings.out_dir)
    if file.ignored:
        yield Finding("settings file", "warn", f"{file.path} is not read: {file.ignored}")
    else:
        yield Finding("settings file", "ok", f"{file.path}, {len(file.values)} settings" if file.values else "none")


def _out_dir(place: Place) -> Iterator[Finding]:
    folder = os.open(place.settings.out_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield _opens(folder)
        yield _leases(folder)
        kind = kernel.file_system_type(folder)
    finally:
        os.close(folder)
    name = _file_system(place.settings.out_dir)
    if kind in _REMOTE:
        yield Finding("file system", "warn", f"{name}: writes from elsewhere are seen by looking, not at once")
    else:
        yield Finding("file system", "ok", name)


def _opens(folder: int) -> Finding:
    try:
        os.close(kernel.openat2(folder, b".", os.O_PATH))
    except OSError as error:
        return Finding("openat2", "warn", f"{error.strerror}: paths are walked level by level instead")
    return Finding("openat2", "ok", "opens stay below OUT_DIR in the kernel")


def _leases(folder: int) -> Finding:
    """Ask for a lease on a file that has no name, so that nothing appears in OUT_DIR."""
    try:
        made = os.open(f"/proc/self/fd/{folder}", os.O_TMPFILE | os.O_RDWR, 0o600)
        try:
            read_only = os.open(f"/proc/self/fd/{made}", os.O_RDONLY)
        finally:
            os.close(made)
    except OSError as error:
        return Finding(
            "leases", "warn", f"cannot be tried here ({error.strerror}); else files settle by two equal looks"
        )
    try:
        works = lease.writers(read_only) == "none"
    finally:
        os.close(read_only)
    if works:
        return Finding("leases", "ok", "a file is known to be complete at once")
    return Finding("leases", "warn", "not granted: a file is complete when two looks saw it equal")


def _file_system(path: str) -> str:
    """The type and the mount point of the file system that holds `path`."""
    best = ("", "unknown")
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode().decode("unicode_escape")
        if os.path.commonpath((path, point)) == point and len(point) >= len(best[0]):
            best = (point, after.split()[0])
    return f"{best[1]} at {best[0]}"


def _watches(_: Place) -> Iterator[Finding]:
    for name in ("max_user_watches", "max_user_instances", "max_queued_events"):
        try:
            limit = int((_INOTIFY / name).read_text("ascii"))
        except (OSError, ValueError):
            yield Finding(f"inotify {name}", "warn", "cannot be read")
            continue
        few = name == "max_user_watches" and limit < _FEW_WATCHES
        yield Finding(
            f"inotify {name}", "warn" if few else "ok", f"{limit}" + (": folders beyond are polled" if few else "")
        )


def _sockets(place: Place) -> Iterator[Finding]:
    for path in (place.folder, *(os.path.join(place.folder, role) for role in ROLES)):
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            continue
        open_to_others = stat.S_IMODE(found.st_mode) & 0o077
        asked_for = os.path.basename(path) in place.settings.allowed
        state = "warn" if found.st_uid != os.geteuid() or (open_to_others and not asked_for) else "ok"
        yield Finding("socket folder", state, f"{path} is {stat.filemode(found.st_mode)}, of uid {found.st_uid}")
    if not os.path.lexists(place.folder):
        yield Finding("socket folder", "ok", f"{place.folder}, made by the first daemon")


def _roles(place: Place) -> Iterator[Finding]:
    others = sorted({uid for uids in place.settings.allowed.values() for uid in uids})
    if others:
        yield Finding(
            "roles", "ok", f"uids {cell(others)} are let in by role; they are a boundary if they reach no other socket"
        )
    else:
        yield Finding(
            "roles", "warn",
            f"all clients have uid {os.geteuid()}: roles guard against mistakes, not against hostile programs. Give "
            "those a uid or a mount namespace of their own, or one connected descriptor and nothing else",
        )  # fmt: skip


def _sandbox(place: Place) -> Iterator[Finding]:
    """Try the sandbox that `exec` would run a program in."""
    try:
        with running.folders(place, None) as view:
            why = sandbox.obstacle(view)
    except running.Unfit as unfit:
        why = str(unfit)
    if why:
        yield Finding("sandbox", "warn", f"{why}: `exec` runs programs without one, and says so")
    else:
        yield Finding("sandbox", "ok", "bubblewrap works: what `exec` runs sees OUT_DIR, its channel and a bare system")


def _journal(place: Place) -> Iterator[Finding]:
    state = Path(place.settings.state_dir)
    if not state.is_dir():
        yield Finding("state", "ok", f"{state}, made by the first daemon")
        return
    found = state.stat()
    private = found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
    yield Finding("state", "ok" if private else "warn", f"{state} is {stat.filemode(found.st_mode)}")
    sizes = {path.name: path.stat().st_size for path in state.glob("journal.db*")}
    yield Finding("journal", "ok", f"{sum(size for name, size in sizes.items() if 'db.' not in name)} bytes")
    for name in sorted(name for name in sizes if name.startswith("journal.db.damaged-")):
        yield Finding("journal", "warn", f"was damaged once; the damaged file is kept as {name}")


def _store(place: Place) -> Iterator[Finding]:
    """Put a few bytes into the store and read them back, as a daemon does at its start."""
    wanted = place.settings.object_store
    if wanted is None:
        yield Finding("store", "ok", "none: files are kept here and not hosted")
    elif os.path.isabs(wanted.uri) and not os.path.lexists(wanted.uri):
        yield Finding("store", "ok", f"{wanted.uri}, made by the first daemon")
    else:
        try:
            can = _within(STORE_SECONDS, lambda: open_configured(wanted).probe())
        except StoreUnavailable as refusal:
            yield Finding("store", "fail", f"{wanted.uri}: {refusal.fault}: {refusal.hint}")
            return
        careful = can.ranges and can.atomic_create
        state = "fail" if not can.reads_back else "ok" if careful else "warn"
        yield Finding("store", state, f"{wanted.uri} {_abilities(can)}")


def _index(place: Place) -> Iterator[Finding]:
    """Ask the index how it is; one that is yet to be made is not made by that."""
    location = place.settings.index_location
    name, where = shown(location), parse_index(location)
    if place.settings.forgets_index:
        yield Finding(
            "index", "warn",
            "it is named with a password, which is never written down: every daemon of this workspace has to be told "
            f"of it again, by --index or {PREFIX}INDEX. A password file (PGPASSFILE) spares that",
        )  # fmt: skip
    if isinstance(where, IndexFile) and not os.path.lexists(where.path):
        yield Finding("index", "ok", f"{name}, made by the first daemon")
        return
    try:
        found, steps = _within(STORE_SECONDS, lambda: (engine(location), migrations(location)))
    except StoreUnavailable as refusal:
        yield Finding("index", "fail", f"{name}: {refusal.fault}: {refusal.hint}")
        return
    if not found.vectors:
        yield Finding("index", "fail", f"{name}: {found.version} without pgvector: install that on the server")
        return
    pending = [step.name for step in steps if step.applied is None]
    told = f"{name} is {found.version}, {found.vectors}"
    if not found.writable:
        yield Finding("index", "fail", f"{told}: we may only read it: give its user the right to write")
    elif pending:
        yield Finding("index", "warn", f"{told}: {cell(pending)} to be applied: `artifact-sidecar index --migrate`")
    else:
        yield Finding("index", "ok", f"{told}, schema {steps[-1].name}")


def _abilities(can: Abilities) -> str:
    told = [says if able else f"does not {says}" for says, able in (
        ("read back what was put", can.reads_back),
        ("read from the middle", can.ranges),
        ("refuse a second create", can.atomic_create),
        ("check hashes", can.verifies_sha256),
        ("sign links", can.presigns),
    )]  # fmt: skip
    told.append("no conditional writes" if can.cas == "none" else f"conditional writes by {can.cas} ETag")
    return "can: " + ", ".join(told)


def _within(seconds: float, work: Callable[[], T]) -> T:
    """What the work answers or raises. One that takes longer, on a disk that hangs, is left behind."""
    done: list[Callable[[], T]] = []

    def run() -> None:
        try:
            answer = work()
        except Exception as failure:  # noqa: BLE001 - whatever it is, it is raised to whom it concerns
            done.append(functools.partial(_raise, failure))
        else:
            done.append(lambda: answer)

    hand = threading.Thread(target=run, daemon=True)
    hand.start()
    hand.join(seconds)
    if not done:
        raise StoreUnavailable("store", f"no answer within {seconds:g} seconds", fault="timed_out")
    return done[0]()


def _raise(failure: Exception) -> NoReturn:
    raise failure


def _daemon(place: Place) -> Iterator[Finding]:
    pid = place.daemon()
    if pid is None:
        yield Finding("daemon", "ok", "none runs; it is started when needed")
        return
    with place.client_of_running() as client:
        answer = client.call("workspace/status")
    watcher = answer["watcher"]
    yield Finding("daemon", "ok", f"process {pid}, revision {answer['revision']}, {len(answer['clients'])} clients")
    yield Finding(
        "watcher",
        "ok" if watcher["state"] == "ok" else "warn",
        f"{watcher['state']} {watcher.get('reason', '')}".strip(),
    )
    yield _conversation(answer)


def _conversation(status: dict[str, Any]) -> Finding:
    """Who writes the conversation, and what waits to be saved."""
    kept = status["conversation_store"]
    waits = f"; {kept['unsaved']} turns or summaries wait to be saved" if kept.get("unsaved") else ""
    if kept["state"] != "ok":
        waits += f"; the index does not answer: {kept.get('reason', 'unavailable')}"
    state, told = _WRITERS[kept["lease"]]
    who = printable(kept.get("held_by") or "another daemon")
    return Finding("conversation", "warn" if waits else state, told.format(who=who) + waits)


_WRITERS: dict[str, tuple[State, str]] = {
    "writer": ("ok", "this daemon writes it"),
    "reader": ("warn", "{who} writes it: here it can be read, and changes are refused until that daemon ends"),
    "diverged": (
        "fail",
        "{who} went on while work of this workspace was never saved: start with an empty --state-dir to go on with "
        "what was saved, and `export --internal` what is only here",
    ),
    "unknown": ("warn", "nobody can say who writes it: changes are taken, and saved once the index answers"),
}


_LOOKS: tuple[Callable[[Place], Iterator[Finding]], ...] = (
    _system, _settings_file, _out_dir, _watches, _sockets, _roles, _sandbox, _journal, _store, _index, _daemon,
)  # fmt: skip
