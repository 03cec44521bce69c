"""Which folders ought to be watched, and under which watch each one is.

A folder that came or went under its name is another folder, whatever it is called: its watch sits on the old one and is
not counted any more. So is everything below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

from sidecar.core import limits
from sidecar.stores.watch import Watch


class Roster:
    """The bell's bookkeeping. Times are seconds of one monotonic clock; nothing here waits or watches."""

    def __init__(self, limit: int = limits.FOLDERS_WATCHED) -> None:
        self.over_limit = 0
        self._limit = limit
        self._wanted: frozenset[str] = frozenset({""})
        self._inner: dict[str, set[str]] = {}  # of each folder above a wanted one, those on the way to it
        self._watched: dict[str, Watch] = {}
        self._absent: set[str] = set()
        self._resting: dict[str, float] = {}
        self._moved_meanwhile: set[str] | None = None

    def want(self, folders: Iterable[str]) -> None:
        """These folders were found by a look and are to be watched from now on, all others no more.

        OUT_DIR itself is always among them. Over the limit the deepest ones are left out: what is new appears above.
        """
        wanted = {"", *folders}
        self.over_limit = max(0, len(wanted) - self._limit)
        if self.over_limit:
            wanted = set(sorted(wanted, key=lambda folder: (_depth(folder), folder))[: self._limit])
        if wanted != self._wanted:
            self._wanted, self._inner = frozenset(wanted), _by_outer(wanted)
        self._absent.clear()
        self._resting = {folder: until for folder, until in self._resting.items() if folder in wanted}
        self._watched = {folder: watch for folder, watch in self._watched.items() if folder in wanted}

    def begin(self, now: float) -> tuple[str, ...]:
        """The folders to put under watch now, parents first. What comes or goes until `end` is not believed watched."""
        self._moved_meanwhile = set()
        rested = {folder for folder, until in self._resting.items() if until <= now}
        if rested:
            self._resting = {folder: until for folder, until in self._resting.items() if folder not in rested}
            self._unwatch(rested)
        out = self._watched.keys() | self._absent | self._resting.keys()
        return tuple(sorted(self._wanted - out, key=lambda folder: (_depth(folder), folder)))

    def take(self, watch: Watch) -> frozenset[str]:
        """Note a new watch; answers the folders that are under it and still wanted."""
        moved: Set[str] = self._moved_meanwhile or frozenset()
        taken = frozenset(folder for folder in watch.folders & self._wanted if not _is_within(folder, moved))
        self._watched.update(dict.fromkeys(taken, watch))
        return taken

    def miss(self, folders: Iterable[str]) -> None:
        """These were not there when they were to be watched. Their parent's watch tells when they come."""
        moved: Set[str] = self._moved_meanwhile or frozenset()
        self._absent.update(folder for folder in folders if not _is_within(folder, moved))

    def end(self) -> None:
        """The watches asked for by `begin` are built."""
        self._moved_meanwhile = None

    def move(self, entries: Iterable[str]) -> bool:
        """Entries came or went. Answers whether a folder of ours was among them and is to be watched anew."""
        moved = self._wanted.intersection(entries)
        if not moved:
            return False
        if self._moved_meanwhile is not None:
            self._moved_meanwhile |= moved
        self._unwatch(moved)
        return True

    def replace(self, watch: Watch) -> None:
        """This watch will be stopped once another has taken its place."""
        self._watched = {folder: by for folder, by in self._watched.items() if by is not watch}

    def lose(self, watch: Watch) -> None:
        """This watch ended. While its folders were under none, folders in them may have come or gone untold."""
        self._unwatch({folder for folder, by in self._watched.items() if by is watch})

    def forget(self) -> None:
        """Nothing is watched any more, though all is still wanted."""
        self._watched.clear()
        self._absent.clear()

    def rest(self, folders: Iterable[str], until: float) -> None:
        """Leave these alone for a while: watching them does no good."""
        self._resting.update(dict.fromkeys(self._wanted.intersection(folders), until))

    def sizes(self) -> Counter[Watch]:
        """How many folders each watch is needed for."""
        return Counter(self._watched.values())

    def is_watched(self, folder: str) -> bool:
        return folder in self._watched

    @property
    def resting(self) -> int:
        """How many folders are left alone for a while."""
        return len(self._resting)

    def _unwatch(self, folders: Set[str]) -> None:
        """These and all below them are to be watched anew."""
        waiting, met = [*folders], set[str]()
        while waiting:
            folder = waiting.pop()
            if folder not in met:
                met.add(folder)
                self._watched.pop(folder, None)
                self._absent.discard(folder)
                waiting += self._inner.get(folder, ())


def _by_outer(folders: Iterable[str]) -> dict[str, set[str]]:
    """The folders by the one that each is in, and those above them by theirs."""
    inner: dict[str, set[str]] = {}
    for folder in folders:
        while folder:
            outer = folder.rpartition("/")[0]
            known = inner.setdefault(outer, set())
            if folder in known:
                break
            known.add(folder)
            folder = outer
    return inner


def _depth(folder: str) -> int:
    return folder.count("/") + bool(folder)


def _is_within(folder: str, moved: Set[str]) -> bool:
    """Whether the folder or one above it is among `moved`."""
    while folder:
        if folder in moved:
            return True
        folder = folder.rpartition("/")[0]
    return "" in moved
