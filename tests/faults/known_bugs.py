"""Bugs that others have, or that we had: each small program here must still fail, or our tests could not fail either.

Each answers how often it failed of how many tries. They are what the figures of our own code are to be read beside.
"""

from __future__ import annotations

import fcntl
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from ctypes import CDLL, c_char_p
from pathlib import Path
from typing import NamedTuple

from tests.faults.disk_shim import read_log, recording
from tests.faults.lost_power import Disk, cuts


class Failing(NamedTuple):
    failed: int
    tries: int


# Power cuts: programs that say when they think that something is safe

_SAY = "import os, sys, time; say = lambda n: os.write(1, b'%d %d\\n' % (time.monotonic_ns(), n))\n"
_IN_PLACE = f"{_SAY}for n in range(1, 31):\n    open('f', 'w').write('x' * 2000 + f' {{n}}')\n    say(n)\n"
_RENAMED = f"""{_SAY}for n in range(1, 31):
    open('f.new', 'w').write('x' * 2000 + f' {{n}}')
    os.replace('f.new', 'f')
    say(n)
"""


def _commits(synchronous: str, folder: str = "") -> str:
    """A program that commits thirty rows into a database, in a folder that it makes when one is named."""
    return f"""{_SAY}import sqlite3
if {folder!r}:
    os.makedirs({folder!r})
db = sqlite3.connect(os.path.join({folder!r}, 'd.db'), isolation_level=None)
for words in ('journal_mode=WAL', 'synchronous={synchronous}'):
    db.execute('PRAGMA ' + words).fetchall()
db.execute('CREATE TABLE t(n)')
for n in range(1, 31):
    db.execute('INSERT INTO t VALUES(?)', (n,))
    say(n)
os.kill(os.getpid(), 9)
"""


def _last_word(folder: Path) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int((folder / "f").read_text("utf-8", "replace").split()[1])
    return 0


def _rows(folder: Path, name: str = "d.db") -> int:
    with suppress(sqlite3.Error):
        database = sqlite3.connect(folder / name)
        try:
            return int(database.execute("SELECT count(*) FROM t").fetchone()[0])
        finally:
            database.close()
    return 0


def _through_power_cuts(program: str, read: Callable[[Path], int], images: int = 40) -> Failing:
    """How many images hold less than the program had said was safe."""
    with tempfile.TemporaryDirectory() as top:
        folder, log = Path(top) / "disk", Path(top) / "log"
        folder.mkdir()
        disk = Disk(folder)
        words = [*recording(folder, log), sys.executable, "-S", "-c", program]
        said = subprocess.run(words, cwd=folder, capture_output=True, check=False).stdout.split(b"\n")[:-1]
        safe = [(int(at), int(n)) for at, n in (line.split() for line in said)]
        assert len(safe) == 30, "the program itself does not work"
        changes, done, failed = list(read_log(log)), 0, 0
        chance = random.Random(1)
        for number, cut in enumerate(cuts(changes, images, chance)):
            for change in changes[done:cut]:
                disk.advance(change)
            done = cut
            at = changes[cut].at if cut < len(changes) else 2**63
            image = Path(top) / str(number)
            disk.image(image, chance)
            failed += read(image) < max((n for when, n in safe if when < at), default=0)
    return Failing(failed, images)


def a_file_written_in_place_is_lost_with_the_power() -> Failing:
    return _through_power_cuts(_IN_PLACE, _last_word)


def a_rename_without_a_sync_is_lost_with_the_power() -> Failing:
    return _through_power_cuts(_RENAMED, _last_word)


def sqlite_that_does_not_sync_every_commit_loses_rows_with_the_power() -> Failing:
    return _through_power_cuts(_commits("NORMAL"), _rows)


def a_folder_that_nobody_synced_is_gone_with_all_that_was_synced_in_it() -> Failing:
    """Ours until these images were made: the state folder's own name, and the store's."""
    return _through_power_cuts(_commits("FULL", "state"), lambda at: _rows(at, "state/d.db"))


def sqlite_that_syncs_every_commit_loses_nothing() -> Failing:
    """No bug, but the same program done right: the images must not take away what was synced."""
    return _through_power_cuts(_commits("FULL"), _rows)


# Watching


def watchfiles_alone_misses_a_full_folder_renamed_into_place() -> Failing:
    from watchfiles import watch

    with tempfile.TemporaryDirectory() as top:
        root, aside = Path(top) / "root", Path(top) / "aside"
        root.mkdir()
        aside.mkdir()
        for at in range(100):
            (aside / f"{at}").write_text("x")
        over, begun, seen = threading.Event(), threading.Event(), set[str]()

        def listen() -> None:
            settings = {"watch_filter": None, "rust_timeout": 100, "yield_on_timeout": True, "stop_event": over}
            for changes in watch(root, **settings):  # type: ignore[arg-type]
                begun.set()
                seen.update(Path(path).name for _, path in changes)

        listening = threading.Thread(target=listen)
        listening.start()
        begun.wait()
        aside.rename(root / "aside")
        (root / "last").write_text("x")
        for _ in range(100):
            if "last" in seen or over.wait(0.1):
                break
        over.set()
        listening.join()
        return Failing(len({str(at) for at in range(100)} - seen), 100)


def a_read_lease_ends_a_holder_that_does_not_ignore_its_signal() -> Failing:
    program = """
import fcntl, os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
os.write(1, b'held\\n')
time.sleep(20)
"""
    with tempfile.TemporaryDirectory() as top:
        file = Path(top) / "f"
        file.write_text("x")
        holder = subprocess.Popen([sys.executable, "-S", "-c", program, str(file)], stdout=subprocess.PIPE)
        assert holder.stdout is not None
        holder.stdout.readline()
        with suppress(BlockingIOError):
            os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
        holder.communicate(timeout=10)
        return Failing(int(holder.returncode == -signal.SIGIO), 1)


# Paths


def a_path_that_was_checked_first_leads_outside_when_it_is_opened() -> Failing:
    from tests.faults.test_paths import swapping

    with tempfile.TemporaryDirectory() as top:
        inside, outside = Path(top) / "in", Path(top) / "outside"
        (inside / "a").mkdir(parents=True)
        outside.mkdir()
        (inside / "a" / "f").write_text("inside")
        (outside / "f").write_text("outside")
        (inside / "b").symlink_to(outside)
        path, real, escaped, tries = inside / "a" / "f", os.path.realpath(inside), 0, 0
        with swapping(inside / "a", inside / "b"):
            while not escaped and tries < 100_000:
                tries += 1
                with suppress(OSError):
                    if os.path.realpath(path).startswith(real):
                        escaped += path.read_text() == "outside"
        return Failing(escaped, tries)


def a_nul_ends_the_path_that_c_is_given() -> Failing:
    with tempfile.TemporaryDirectory() as top:
        (Path(top) / "a").write_text("x")
        fd = CDLL(None).open(c_char_p(os.fsencode(f"{top}/a") + b"\0/../b"), os.O_RDONLY)
        if fd >= 0:
            os.close(fd)
        return Failing(int(fd >= 0), 1)


# Locks and full disks


def a_posix_lock_is_gone_once_its_owner_opens_the_file_again() -> Failing:
    take = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    with tempfile.NamedTemporaryFile() as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        before = subprocess.run([sys.executable, "-S", "-c", take, file.name], capture_output=True, check=False)
        Path(file.name).read_bytes()
        after = subprocess.run([sys.executable, "-S", "-c", take, file.name], capture_output=True, check=False)
    return Failing(int(before.returncode != 0 and after.returncode == 0), 1)


def a_bare_write_on_a_full_disk_is_short_and_says_nothing() -> Failing:
    program = "import os; fd = os.open('f', os.O_WRONLY | os.O_CREAT); os.write(1, b'%d' % os.write(fd, b'x' * 9000))"

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    with tempfile.TemporaryDirectory() as top:
        words = [sys.executable, "-S", "-c", program]
        said = subprocess.run(words, cwd=top, capture_output=True, check=True, preexec_fn=small).stdout
    return Failing(int(said == b"4096"), 1)


RIGHT = sqlite_that_syncs_every_commit_loses_nothing
NEED_SHIM: tuple[Callable[[], Failing], ...] = (
    a_file_written_in_place_is_lost_with_the_power,
    a_rename_without_a_sync_is_lost_with_the_power,
    sqlite_that_does_not_sync_every_commit_loses_rows_with_the_power,
    a_folder_that_nobody_synced_is_gone_with_all_that_was_synced_in_it,
)
BUGS: tuple[Callable[[], Failing], ...] = (
    *NEED_SHIM,
    watchfiles_alone_misses_a_full_folder_renamed_into_place,
    a_read_lease_ends_a_holder_that_does_not_ignore_its_signal,
    a_path_that_was_checked_first_leads_outside_when_it_is_opened,
    a_nul_ends_the_path_that_c_is_given,
    a_posix_lock_is_gone_once_its_owner_opens_the_file_again,
    a_bare_write_on_a_full_disk_is_short_and_says_nothing,
)
