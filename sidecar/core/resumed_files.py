"""The files of a conversation as it was saved: when each state of them was first seen, who may know of it, where it is.

A state is seen again where it was, between the blocks; that it is not on this disk is said in the same breath.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from sidecar.core.blocks import HOSTING_FIELDS
from sidecar.core.entries import Entry, FileGone, FileSeen, Hosted
from sidecar.core.errors import Refusal
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.limits import HASHED_BYTES
from sidecar.core.mime import mime_by_name
from sidecar.core.paths import FilePath, parse_logical, parse_physical
from sidecar.core.state import State
from sidecar.core.storage_names import Identity, is_ours

Json = Mapping[str, Any]
Settled = Literal["external", "internal"]
SIZE_MOST = 2**53


class _Event(NamedTuple):
    """What became of a file once `at` blocks were told. The rest keeps those of one place in order."""

    at: int
    rank: int  # what is hosted by then and was seen earlier comes first: who is seen later is hosted by itself
    ts: float
    order: int
    entry: FileSeen | Hosted


class Files:
    """Gives the entries for the files of every log that it took, each in its place."""

    def __init__(self, state: State, identity: Identity, end: int) -> None:
        self._state = state
        self._identity = identity
        self._first, self._end = len(state.timeline), end
        self._events: list[_Event] = []
        self._given = 0
        self._ours: set[tuple[str, object]] = set()  # the logical paths and places of what we hosted
        self._wanted: dict[str, Settled] = {}  # who may see a file in the end
        self._told: dict[str, Settled] = {}  # what the latest block about it says of that
        self._latest: dict[str, FileSeen] = {}

    def take(self, log: Json) -> int:
        """Note the files of a log; answers how many could not be read."""
        files = log.get("files")
        return sum(not self._file(one) for one in files) if isinstance(files, list) else 0

    def as_told(self, block: Json) -> Json:
        """A content block as it was told, before its file was hosted: from now on the version says where that is."""
        meta = block.get("meta")
        if not isinstance(meta, dict) or (block.get("path"), meta.get("hosted_uri")) not in self._ours:
            return block
        if meta.get("rel") == "read":
            return block  # a copy shows what stood there then
        return {**block, "meta": {key: value for key, value in meta.items() if key not in HOSTING_FIELDS}}

    def before(self, number: int) -> Iterator[Entry]:
        """What happened before this block was told."""
        while self._events and self._events[0].at <= number:
            yield from self._happens(self._events.pop(0).entry)

    def told(self, part: Json | None) -> None:
        """A block is told that may say who sees a file."""
        said = ((part or {}).get("digest") or (part or {}).get("content")) if part is not None else None
        visibility = said.get("visibility") if isinstance(said, dict) else None
        path = parse_logical(part["at"]) if part is not None and visibility in ("external", "internal") else None
        if isinstance(path, FilePath):
            self._told[path.physical] = "external" if visibility == "external" else "internal"

    def finish(self) -> Iterator[Entry]:
        """What happened after the last block, and who may see what in the end."""
        for one in self._events:
            yield from self._happens(one.entry)
        self._events = []
        for physical, visibility in self._wanted.items():
            yield from self._settle(physical, visibility)

    def _happens(self, entry: FileSeen | Hosted) -> Iterator[Entry]:
        yield entry
        if isinstance(entry, FileSeen):
            physical = entry.fact.path
            yield FileGone(physical)
            self._latest[physical] = entry
            self._told.pop(physical, None)

    def _settle(self, physical: str, visibility: Settled) -> Iterator[Entry]:
        """A block may have said otherwise of a file than the end of its call did, which counts."""
        latest = self._latest.get(physical)
        known = self._state.artifact(parse_physical(physical))
        if latest is not None:
            if self._told.get(physical, visibility) != visibility:
                yield FileSeen(latest.fact, latest.ts, latest.call, visibility)
                yield FileGone(physical)
        elif known is not None and known.fact is not None and known.visibility != visibility:
            yield FileSeen(known.fact, known.latest.ts, "", visibility)
            if not known.on_disk:
                yield FileGone(physical)

    def _file(self, said: object) -> bool:
        """Note one file. False when it cannot be read."""
        text = said.get("physical_path") if isinstance(said, dict) else None
        try:
            path = parse_physical(text) if isinstance(text, str) else None
        except Refusal:
            return False
        if path is None or path.logical is None or not path.place or not isinstance(said, dict):
            return False
        told = said.get("versions")
        versions = [_Version.read(one, path) for one in told] if isinstance(told, list) else [None]
        whole = [one for one in versions if one is not None]
        # What is neither of the two was not settled when it was saved, and is shown to nobody.
        visibility: Settled = "external" if said.get("visibility") == "external" else "internal"
        if whole:
            self._wanted[path.physical] = visibility
        self._note(path, whole, visibility)
        return len(whole) == len(versions)

    def _note(self, path: FilePath, versions: Sequence[_Version], visibility: Settled) -> None:
        artifact = self._state.artifact(path)
        mine = [one.sha256 for one in artifact.versions if one.seen] if artifact is not None else []
        known = 0  # of mine, those before this place were met
        for number, version in enumerate(versions):
            at = self._end if version.at is None else version.at
            is_known = version.sha256 in mine[known:]
            if is_known:
                known = mine.index(version.sha256, known) + 1
            # Whose the newest state is may have been found out since.
            is_claimed = is_known and known == len(mine) and artifact is not None and not artifact.latest.call
            if not is_known or (is_claimed and version.call):
                self._add(at, 1, version.ts, self._seen(path, number, version, visibility))
            place = version.hosted(path, self._identity)
            if place is not None:
                self._ours.add((str(path.logical), place.hosted_uri))
            stands = artifact.hosting(version.sha256).get("key") if artifact is not None else None
            if place is not None and (place.key != stands or version.hosted_at > self._first):
                is_later = is_known or version.hosted_at > at
                self._add(max(at, version.hosted_at), 0 if is_later else 1, version.ts, place)

    @staticmethod
    def _seen(path: FilePath, number: int, version: _Version, visibility: Settled) -> FileSeen:
        """Nothing on a disk has such a key, and no two states of a file share one."""
        key = StatKey(0, 0, version.size, int(version.ts * 1e9), number + 1)
        fact = FileFact(path.physical, key, version.sha256, version.mime, incomplete=version.incomplete)
        return FileSeen(fact, version.ts, version.call, visibility)

    def _add(self, at: int, rank: int, ts: float, entry: FileSeen | Hosted) -> None:
        insort(self._events, _Event(at, rank, ts, self._given, entry), key=_place)
        self._given += 1


class _Version(NamedTuple):
    """One state of a file, as a turn log has it."""

    at: int | None
    ts: float
    call: str
    sha256: str | None
    size: int
    mime: str
    incomplete: bool
    places: tuple[str, str, str] | None
    hosted_at: int

    @classmethod
    def read(cls, said: object, path: FilePath) -> _Version | None:
        """None when it cannot be read."""
        if not isinstance(said, dict):
            return None
        ts, size, sha256, mime = (said.get(name) for name in ("ts", "size_bytes", "sha256", "mime"))
        call = said.get("call") or ""
        if not isinstance(ts, int | float) or not 0 <= ts < SIZE_MOST or not isinstance(call, str):
            return None
        if not (sha256 is None or isinstance(sha256, str)) or not (size is None or isinstance(size, int)):
            return None
        hosted_at = _first_number(said.get("hosted_at"))
        places = tuple(said.get(name) for name in ("hosted_uri", "rn", "key"))
        return cls(
            _first_number(said.get("at"), said.get("before")),
            float(ts),
            call,
            sha256,
            size or 0,
            mime if isinstance(mime, str) else mime_by_name(path.physical),
            sha256 is None and (size or 0) <= HASHED_BYTES,
            places if all(isinstance(one, str) for one in places) else None,  # type: ignore[arg-type]
            -1 if hosted_at is None else hosted_at,
        )

    def hosted(self, path: FilePath, identity: Identity) -> Hosted | None:
        """Where we put these bytes, if that is a place of this conversation; what a block says is not repeated."""
        if self.places is None or self.sha256 is None or self.hosted_at < 0 or not is_ours(self.places[2], identity):
            return None
        return Hosted(path.physical, self.sha256, *self.places)


def _place(one: _Event) -> tuple[int, int, float, int]:
    return one[:4]


def _first_number(*given: object) -> int | None:
    numbers = (one for one in given if isinstance(one, int) and not isinstance(one, bool) and one >= 0)
    return next(numbers, None)
