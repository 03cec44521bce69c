"""Artifacts by turn and name, for those who type the beginning of a path, or some letters of a name.

Everything is asked at every key press, so that each question is one pass over short texts, ended when enough is found.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from typing import Literal, NamedTuple

from sidecar.core.artifacts import Artifact

Spelling = Literal["logical", "physical"]
Sees = Callable[[Artifact], bool]

FAMILY = "fi:"


class Entry(NamedTuple):
    """One artifact. Entries of a turn are in order of their logical paths."""

    logical: str
    physical: str
    folded: str  # what follows the turn, whatever its case
    last: str  # the last part of it
    artifact: Artifact

    def spelled(self, spelling: Spelling) -> str:
        return self.logical if spelling == "logical" else self.physical

    @property
    def name(self) -> str:
        return self.physical.rpartition("/")[2]


class Folder(NamedTuple):
    """A place of a turn in which there is something, as the beginning of a path."""

    path: str
    turn_id: str


class Catalogue:
    """Every artifact that has a version. Who asks says which of them may be seen."""

    __slots__ = ("_all", "_in_order", "_known", "_turns")

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._all: list[Entry] = []
        self._in_order = True  # put right by who asks: many files land at once, and few ask for all of them
        self._turns: dict[str, list[Entry]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, artifact: Artifact) -> None:
        """Take in an artifact; one that is known already changes nothing."""
        logical = artifact.path.logical
        if logical is None or logical in self._known or not artifact.versions:
            return
        self._known.add(logical)
        path = artifact.path
        folded = path.rel.casefold()
        entry = Entry(logical, path.physical, folded, folded.rpartition("/")[2], artifact)
        insort(self._turns.setdefault(path.turn_id if path.place else "", []), entry, key=_logical)
        self._in_order = self._in_order and (not self._all or self._all[-1].logical < logical)
        self._all.append(entry)

    @property
    def firsts(self) -> dict[str, float]:
        """Every turn that has artifacts, with the moment of the first of them, as they are named."""
        return {turn: entries[0].artifact.versions[0].ts for turn, entries in self._turns.items() if turn}

    def all(self, order: Iterable[str]) -> Iterator[Entry]:
        """Every entry, turn by turn in this order, those of no turn last."""
        for turn in (*order, ""):
            yield from self._turns.get(turn, ())

    def after(self, logical: str, turn_id: str | None, prefix: str = "") -> Iterator[Entry]:
        """Entries in order of their logical paths, from the one behind this path on.

        Only of one turn where it is named, and only those whose path begins with the prefix.
        """
        entries = self._everything() if turn_id is None else self._turns.get(turn_id, [])
        if logical < prefix:
            start = bisect_left(entries, prefix, key=_logical)
        else:
            start = bisect_right(entries, logical, key=_logical)
        return takewhile(lambda one: one.logical.startswith(prefix), islice(entries, start, None))

    def _everything(self) -> list[Entry]:
        if not self._in_order:
            self._all.sort(key=_logical)
            self._in_order = True
        return self._all

    def folders(self, typed: str, spelling: Spelling, order: Iterable[str], sees: Sees) -> Iterator[Folder]:
        """The places of turns whose paths begin with what was typed, and go on."""
        for turn in order:
            head = f"{FAMILY}{turn}." if spelling == "logical" else f"{turn}/"
            if not (head.startswith(typed) or typed.startswith(head)):
                continue
            for place in ("files", "attachments"):
                mark = f"user.{place}/" if spelling == "logical" and place == "attachments" else f"{place}/"
                path = head + mark
                if path.startswith(typed) and path != typed and self._has(turn, place, sees):
                    yield Folder(path, turn)

    def begin_with(self, typed: str, spelling: Spelling, order: Iterable[str], sees: Sees) -> Iterator[Entry]:
        """Entries whose path begins with what was typed, turn by turn."""
        for turn in (*order, ""):
            head = "" if not turn else f"{FAMILY}{turn}." if spelling == "logical" else f"{turn}/"
            if head.startswith(typed) and typed != head:
                yield from (one for one in self._turns.get(turn, ()) if sees(one.artifact))
            elif typed.startswith(head):
                yield from (
                    one
                    for one in self._turns.get(turn, ())
                    if one.spelled(spelling).startswith(typed) and sees(one.artifact)
                )

    def holding(self, words: str, order: Iterable[str], sees: Sees) -> Iterator[Entry]:
        """Entries with these words, in whatever case, in what follows the turn."""
        wanted = words.casefold()
        for turn in (*order, ""):
            yield from (one for one in self._turns.get(turn, ()) if wanted in one.folded and sees(one.artifact))

    def _has(self, turn: str, place: str, sees: Sees) -> bool:
        return any(one.artifact.path.place == place and sees(one.artifact) for one in self._turns.get(turn, ()))


def _logical(entry: Entry) -> str:
    return entry.logical
