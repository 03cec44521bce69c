"""Every place in a document that refers to something of the workspace: paths, citations, and paths nobody may follow.

A path is found wherever it stands, in a fence of code too, since agents put the paths they speak of in backticks. A
citation counts where it is replaced. What a link or a picture of a page refers to is read from the page's own folder.
What resolves decides where a path ends, and that changes while the document does not: the readings are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from sidecar.core import limits
from sidecar.core.asset_reference import Place, cited, wanted
from sidecar.core.asset_reference import Reference as Asset
from sidecar.core.citations import scan
from sidecar.core.errors import Refusal, UnsafePath
from sidecar.core.mentions import Spot, spots
from sidecar.core.numbers import NumberSet
from sidecar.core.paths import FilePath, Path, parse
from sidecar.core.targets import CSS, HTML, MARKDOWN, style_targets, targets

Kind = Literal["path", "citation", "unsafe"]
Form = Literal["logical", "physical", "relative", ""]
"""How a path is written: with its family, from OUT_DIR, or from the document's own folder. A citation has none."""


class Reading(NamedTuple):
    """One way to read a path: up to where, and what it names."""

    written: str
    path: Path


@dataclass(frozen=True, slots=True)
class Reference:
    """What stands at `start:end`, in code points. `written` is exactly that slice of the text.

    A path has its `readings` in the order in which they are tried; `usual` is meant when none of them leads anywhere.
    A citation has its `numbers`; one that is `settled` is a `<sup class="cite">`, which cites already.
    """

    start: int
    end: int
    kind: Kind
    written: str
    form: Form = ""
    readings: tuple[Reading, ...] = ()
    usual: Path | None = None
    numbers: NumberSet | None = None
    settled: bool = False
    embedded: bool = False
    linked: bool = False  # it is the address of a link or picture, in which names are percent-encoded

    @property
    def furthest(self) -> int:
        """Where the longest reading ends."""
        return max([self.end, *(self.start + len(reading.written) for reading in self.readings)])


def references(text: str, mime: str, *, folder: str | None = None) -> list[Reference]:
    """The references of a text in order, none overlapping another, at most `limits.REFERENCES_IN_TEXT`.

    `folder` is the document's own, relative to OUT_DIR; without one nothing is read from where the document lies. A
    text of more than `limits.REFERENCED_CHARS` has none.
    """
    if len(text) > limits.REFERENCED_CHARS:
        return []
    most = limits.REFERENCES_IN_TEXT
    kind = mime.partition(";")[0].strip().lower()
    # What is found first keeps its place: a picture's address is no prose.
    found = [*islice(_citations(text, kind), most)]
    found += islice(_assets(text, kind, folder), most)
    found += islice(_paths(text), most)
    return _apart(found)[:most]


def chosen(reference: Reference, resolves: Callable[[Path], bool]) -> tuple[Reference, Path | None]:
    """The reference up to where the reading ends that leads somewhere, and its path.

    Where none does, the reference is as it was, and so is the usual path, which may be none.
    """
    for written, path in reference.readings:
        if resolves(path):
            if written == reference.written:
                return reference, path
            return replace(reference, end=reference.start + len(written), written=written), path
    return reference, reference.usual


def is_older_spelling(reference: Reference, path: Path | None) -> bool:
    """Whether a path is written as nobody prints it any more: `fi:<turn>.attachments/<name>`."""
    if reference.form != "logical" or not isinstance(path, FilePath) or path.place != "attachments":
        return False
    return reference.written.startswith(f"fi:{path.turn_id}.attachments/")


def respelled(reference: Reference, path: FilePath, folder: str | None, *, instead_of: Path | None = None) -> str:
    """Another path, written as the reference writes its own; in full where the form does not reach it.

    `instead_of` is the path that is meant, the usual one if none is given: what follows it, as `#section`, is kept.
    """
    tail = _tail(reference.written, instead_of or reference.usual)
    match reference.form:
        case "logical" if path.logical is not None:
            return path.logical + tail
        case "relative" if folder is not None:
            return quote(_relative(path.physical, folder)) + tail
        case _:
            return (quote(path.physical) if reference.linked else path.physical) + tail


def _tail(written: str, path: Path | None) -> str:
    """The query and the fragment of a link, unless they are a part of the file's name."""
    found = _TAIL.search(written)
    if found is None or not isinstance(path, FilePath):
        return ""
    return "" if path.physical.endswith((found[0], unquote(found[0]))) else found[0]


def _relative(physical: str, folder: str) -> str:
    """A path as it is written from a folder."""
    here, there = folder.split("/") if folder else [], physical.split("/")
    same = 0
    while same < min(len(here), len(there) - 1) and here[same] == there[same]:
        same += 1
    return "/".join([*[".."] * (len(here) - same), *there[same:]])


def _citations(text: str, kind: str) -> Iterator[Reference]:
    for found in scan(text, kind):
        start = found.start
        if start == found.end:
            # A tag of HTML cites from its end on; the members of JSON cite at no place of their own.
            tag = _tag_before(text, start) if kind in HTML else None
            if tag is None:
                continue
            start = tag
        yield Reference(
            start, found.end, "citation", text[start : found.end], numbers=found.numbers, settled=found.settled
        )


def _tag_before(text: str, end: int) -> int | None:
    """Where the last `<sup` before an offset begins."""
    # In small letters a text may be longer, and all of it for each tag would be too much.
    near = max(0, end - _TAG_CHARS)
    starts = [found.start() for found in _TAG.finditer(text[near:end])]
    return near + starts[-1] if starts else None


def _assets(text: str, kind: str, folder: str | None) -> Iterator[Reference]:
    """The links and pictures of a page, as far as they may be files of OUT_DIR."""
    if kind not in HTML | MARKDOWN | CSS:
        return
    for target in style_targets(text) if kind in CSS else targets(text, html=kind in HTML):
        asset = Asset(target.meant, target.how)
        file = wanted(asset, Place(folder)) if cited(target.meant) is None else None
        if file is None:
            continue
        form = _form(target.meant)
        if form == "relative" and folder is None:
            continue
        written = text[target.start : target.end]
        readings = tuple(Reading(written, path) for path in file.paths)
        is_unsafe = file.refused == "unsafe_path" and not readings
        if readings or is_unsafe:
            yield Reference(
                target.start, target.end, "unsafe" if is_unsafe else "path", written, form, readings,
                usual=file.usual or (readings[0].path if readings else None), embedded=target.how == "embedded",
                linked=True,
            )  # fmt: skip


def _paths(text: str) -> Iterator[Reference]:
    """What is named in the middle of anything. A line at a time, so that others get their turn."""
    start = 0
    for line in text.splitlines(keepends=True):
        if _MAY_NAME.search(line):
            for spot in spots(line):
                found = _named(spot, start + spot.start)
                if found is not None:
                    yield found
        start += len(line)


def _named(spot: Spot, start: int) -> Reference | None:
    readings: list[Reading] = []
    usual: Path | None = None
    is_unsafe = False
    for text in spot.readings:
        try:
            path = parse(text)
        except UnsafePath:
            # A folder with its slash is refused as well, and prose may name one.
            is_unsafe = is_unsafe or (text == spot.usual and _LEAVES.search(text) is not None)
        except Refusal:
            pass
        else:
            readings.append(Reading(text, path))
            usual = path if text == spot.usual else usual
    if not readings and not is_unsafe:
        return None
    kind: Kind = "unsafe" if is_unsafe else "path"
    kept = () if is_unsafe else tuple(readings)
    return Reference(start, start + len(spot.usual), kind, spot.usual, _form(spot.usual), kept, usual=usual)


def _form(text: str) -> Form:
    if text.startswith(("ar:", "fi:", "so:", "su:", "tc:", "sources_pool[")):
        return "logical"
    return "physical" if _FROM_OUT_DIR.match(text) else "relative"


def _apart(found: Iterable[Reference]) -> list[Reference]:
    """In order, without what overlaps something that came earlier in the list."""
    order = sorted(enumerate(found), key=lambda pair: (pair[1].start, pair[0]))
    kept: list[tuple[int, Reference]] = []
    for rank, one in order:
        while kept and kept[-1][1].end > one.start and kept[-1][0] > rank:
            kept.pop()
        if not kept or kept[-1][1].end <= one.start:
            kept.append((rank, one))
    return [one for _, one in kept]


_TAG_CHARS = 4096
_TAG = re.compile("<sup", re.IGNORECASE | re.ASCII)
_TAIL = re.compile(r"[?#].*", re.DOTALL)
_FROM_OUT_DIR = re.compile(r"(?:\./)?[A-Za-z0-9_-]{1,128}/(?:files|attachments)/")
_LEAVES = re.compile(r"(?:\A|/)\.\.(?:/|\Z)")
_MAY_NAME = re.compile(r"files/|attachments/|[a-z]:[\w.]|sources_pool")
