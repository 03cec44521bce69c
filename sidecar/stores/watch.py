"""One watch over a list of folders, in a thread of its own.

watchfiles is used for what it is good at, saying that a folder stirred. It follows no subfolder here, it knows nothing
of what the kernel could not tell it, and one name that is not UTF-8 ends it for good; the bell lives with all three.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from watchfiles import Change
from watchfiles._rust_notify import RustNotify

# A batch leaves as soon as nothing came for one step, and after the debounce in any case: milliseconds.
STEP_MS = 2
DEBOUNCE_MS = 100
# Where something happened, more will: for so long a watch rests no longer than it must.
EAGER_SECONDS = 1.0
# The kernel keeps 16,384 events for a watch and a new file makes four, so a fuller batch may have lost some.
FULL_BATCH = 4000

# What a stop may have to wait for.
STOP_SECONDS = 0.02

_BUILD_TRIES = 3


@dataclass(frozen=True, slots=True)
class Stir:
    """What one batch says: folders in which something happened, and entries that came or went.

    All are OUT_DIR-relative. `is_full` means that more may have happened than could be told.
    """

    folders: frozenset[str]
    moved: frozenset[str]
    is_full: bool = False


class WatchRefused(Exception):  # noqa: N818 - the system's answer, with its reason
    """The system watches no more folders for us: a limit of inotify was reached."""


Hear = Callable[[Stir], None]
HearEnd = Callable[["Watch", str | None], None]


def watch(root: str, folders: Iterable[str], on_stir: Hear, on_end: HearEnd) -> Watch | None:
    """Watch those of the folders that are there; None when none is.

    Building a watch holds the interpreter for 50 to 80 microseconds per folder. Raises WatchRefused.
    """
    present = [folder for folder in folders if _is_watchable(os.path.join(root, folder))]
    try:
        notify = _notify_of_present(root, present) if present else None
        return None if notify is None else Watch(root, frozenset(present), notify, on_stir, on_end)
    except (OSError, RuntimeError) as failure:
        raise WatchRefused(str(failure)) from failure


class Watch:
    """Watches `folders`, none of their subfolders, until stopped.

    `on_stir` and `on_end` are called in the watch's thread; `on_end` gets None after `stop`, else why the watch died.
    `pause` is how many seconds it rests between two steps, `eager_pause` the same while something has just happened;
    both may be set at any time.
    """

    def __init__(self, root: str, folders: frozenset[str], notify: RustNotify, on_stir: Hear, on_end: HearEnd) -> None:
        self.folders = folders
        self.pause = self.eager_pause = 0.0
        self._eager_until = 0.0
        self.has_ended = False
        self._root = root
        self._notify = notify
        self._on_stir = on_stir
        self._on_end = on_end
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="bell")
        self._thread.start()

    def stop(self) -> None:
        """End the watch within a step. What it had not told by then it never tells."""
        self._stopped.set()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    def is_set(self) -> bool:
        """Whether to stop. watchfiles asks this once per step, so that a longer step is a wait in here."""
        pause = self.pause if time.monotonic() >= self._eager_until else self.eager_pause
        if pause > STOP_SECONDS:
            return self._stopped.wait(pause)
        if pause:
            time.sleep(pause)  # a wait that can be ended costs three times as much, and there are a hundred in a second
        return self._stopped.is_set()

    def _listen(self) -> None:
        reason = "the watching thread failed"
        try:
            while not isinstance(batch := self._notify.watch(DEBOUNCE_MS, STEP_MS, 0, self), str):
                self._eager_until = time.monotonic() + EAGER_SECONDS
                self._on_stir(_stir(self._root, batch))
        except (RuntimeError, OSError) as failure:
            reason = str(failure)
        finally:
            self._notify.close()
            self.has_ended = True
            self._on_end(self, None if self._stopped.is_set() else reason)


def culprit(root: str, reason: str) -> str | None:
    """The folder that holds the undecodable name of which a watch died, or None when the reason does not tell."""
    named = re.search(r'Unable to decode path "(.+)/', reason)
    return None if named is None else _relative(root, named[1])


def _notify_of_present(root: str, folders: Sequence[str]) -> RustNotify:
    for _ in range(_BUILD_TRIES):
        try:
            # Having missing folders ignored would hide the system's limits as well, so they are left out by hand.
            present = [folder for folder in folders if _is_watchable(os.path.join(root, folder))]
            return _notify(root, present, ignoring=False)
        except FileNotFoundError:
            continue
    return _notify(root, folders, ignoring=True)


def _notify(root: str, folders: Sequence[str], *, ignoring: bool) -> RustNotify:
    absolute = [f"{root}/{folder}" if folder else root for folder in folders]
    return RustNotify(absolute, False, False, 0, False, ignoring)


def _is_watchable(path: str) -> bool:
    """A folder, and no link to one. Who swaps it in this very moment has us ring the bell for nothing, no more."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode) and os.access(path, os.R_OK)
    except OSError:
        return False


def _stir(root: str, batch: set[tuple[int, str]]) -> Stir:
    folders: set[str] = set()
    moved: set[str] = set()
    for change, path in batch:
        entry = _relative(root, path)
        folders.add(entry.rpartition("/")[0])
        if change != Change.modified:
            moved.add(entry)
    return Stir(frozenset(folders), frozenset(moved), is_full=len(batch) >= FULL_BATCH)


def _relative(root: str, path: str) -> str:
    return path[len(root) + 1 :]
