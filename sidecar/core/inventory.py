"""What is on disk, and what about it is news.

A survey is one look at OUT_DIR without following a link. Comparing it with what was seen before says which files must
be read again and which are gone; nothing here touches a disk.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from sidecar.core.errors import Refusal
from sidecar.core.paths import is_turn_id, parse_physical

KEYS_AT_ONCE = 256


class StatKey(NamedTuple):
    """The identity of one state of a file: equal keys mean equal bytes (spec section 5)."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Oddity(NamedTuple):
    """An entry that can be no artifact. `name` is printable: undecodable bytes stand as `%XX`."""

    kind: Literal["not_utf8", "link", "special", "unsafe_name"]
    name: str


@dataclass(frozen=True, slots=True)
class Survey:
    """One no-follow look at a part of OUT_DIR.

    `files` maps the OUT_DIR-relative path of every regular file to its key; `folders` are the real folders met, the
    surveyed one included (`""` is OUT_DIR itself). `over_limit` counts entries left out by a limit.
    """

    scope: str
    files: Mapping[str, StatKey]
    folders: tuple[str, ...]
    oddities: tuple[Oddity, ...] = ()
    over_limit: int = 0


@dataclass(frozen=True, slots=True)
class FileFact:
    """A complete file as it was read: the bytes with this hash stood at this path.

    `sha256` is None for a file over the hashing limit (`oversize`). `kept` says whether its bytes were put aside.
    `incomplete` marks a file registered at the end of its turn while somebody still wrote to it.
    """

    path: str
    key: StatKey
    sha256: str | None
    mime: str
    kept: bool = False
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class News:
    """What a survey says beyond what is known: paths to read again, in order of time and name, and paths gone.

    `doubtful` were known, and were not listed by a survey that could not list everything.
    """

    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


def admit(paths: Iterable[str], known: Container[str], room: int) -> tuple[tuple[str, ...], int]:
    """The paths that may be registered when there is room for so many new ones, and how many others there are."""
    admitted: list[str] = []
    left_out = 0
    for path in paths:
        fresh = path not in known
        if fresh and room <= 0:
            left_out += 1
            continue
        room -= fresh
        admitted.append(path)
    return tuple(admitted), left_out


def news(survey: Survey, known: Mapping[str, StatKey]) -> News:
    """Compare a survey with the keys known below its scope.

    `known` may hold more than the scope; only paths below it can be gone. A survey that hit a limit proves no absence,
    so what it does not list is doubtful, and worth a look at each.
    """
    changed = [path for path, key in survey.files.items() if known.get(path) != key]
    changed.sort(key=lambda path: (survey.files[path].mtime_ns, path))
    prefix = f"{survey.scope}/" if survey.scope else ""
    unlisted = tuple(sorted(path for path in known if path.startswith(prefix) and path not in survey.files))
    if survey.over_limit:
        return News(tuple(changed), doubtful=unlisted)
    return News(tuple(changed), gone=unlisted)


class ByFolder:
    """Paths by their folder, so that a look at a part does not go through all that is known."""

    __slots__ = ("_folders",)

    def __init__(self) -> None:
        self._folders: dict[str, set[str]] = {}

    def note(self, path: str, *, there: bool) -> None:
        """A file is there, or is not."""
        folder = path.rpartition("/")[0]
        if there:
            self._folders.setdefault(folder, set()).add(path)
        elif (paths := self._folders.get(folder)) is not None:
            paths.discard(path)
            if not paths:
                del self._folders[folder]

    def below(self, scope: str) -> list[str]:
        """The paths in this folder and in all below it."""
        prefix = f"{scope}/"
        found = (paths for folder, paths in self._folders.items() if folder == scope or folder.startswith(prefix))
        return [path for paths in found for path in paths]

    def keys_below(self, scope: str, files: Mapping[str, StatKey]) -> Generator[None, None, dict[str, StatKey]]:
        """The same with what each file is known as, by steps: what goes between two of them is left out."""
        known: dict[str, StatKey] = {}
        for at, path in enumerate(self.below(scope)):
            if (key := files.get(path)) is not None:
                known[path] = key
            if at % KEYS_AT_ONCE == KEYS_AT_ONCE - 1:
                yield
        return known


@dataclass(frozen=True, slots=True)
class Sorted:
    """A survey with what belongs to turns alone, and the names of files that can have no logical path."""

    survey: Survey
    ambiguous: tuple[str, ...]


def sort_out(survey: Survey, is_turn: Callable[[str], bool]) -> Sorted:
    """Keep the files and folders of turns; name what can have no logical path (spec section 3)."""
    files: dict[str, StatKey] = {}
    ambiguous: list[str] = []
    turns: dict[str, bool] = {}  # the same few stand before many names
    for text, key in survey.files.items():
        turn, _, below = text.partition("/")
        place, _, rest = below.partition("/")
        if rest and place in ("files", "attachments") and is_turn_id(turn):
            known = turns.get(turn)
            if known is None:
                known = turns[turn] = is_turn(turn)
            if known:
                files[text] = key
        elif _is_ambiguous(text):
            ambiguous.append(text)
    folders = tuple(folder for folder in survey.folders if folder == "" or is_turn(folder.partition("/")[0]))
    return Sorted(replace(survey, files=files, folders=folders), tuple(ambiguous))


def _is_ambiguous(text: str) -> bool:
    if "." not in text:
        return False
    try:
        return parse_physical(text).logical is None
    except Refusal:
        return False


def widest(scopes: Iterable[str]) -> list[str]:
    """The scopes that no other one contains, in order."""
    asked = set(scopes)
    return [""] if "" in asked else sorted(scope for scope in asked if asked.isdisjoint(_above(scope)))


def _above(folder: str) -> Iterator[str]:
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        yield folder
