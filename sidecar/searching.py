"""Search names and contents of files below OUT_DIR, off the loop and within stated limits (spec section 7).

Patterns are RE2, so no pattern can take more than linear time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import re2

from sidecar.core import limits
from sidecar.core.errors import BadPath, BadSelector, NotFound, Refusal
from sidecar.core.mime import is_text
from sidecar.core.paths import FilePath, parse, parse_physical
from sidecar.ports import OutDir

LINE_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. Patterns are compiled; `root` is `""` or a folder below OUT_DIR."""

    root: str
    name: Any | None
    content: Any | None
    context: int
    max_hits: int


@dataclass(slots=True)
class Found:
    hits: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    limit: str | None = None
    chars: int = 0  # of matched lines, so far


def query(root: str, *, name: str | None, content: str | None, context: int, max_hits: int) -> Query:
    """Check a search. Blocking. Raises BadPath or UnsafePath for the root, BadSelector for what RE2 does not take."""
    return Query(_folder(root), _compiled(name), _compiled(content), context, max_hits)


def search(outdir: OutDir, wanted: Query, *, stop: Callable[[], bool], hide: Callable[[FilePath], bool]) -> Found:
    """Look through the files in order of path. `stop` is asked between files, `hide` leaves files out.

    Blocking. Raises NotFound when no folder stands at the root, UnsafePath when a link does.
    """
    found = Found()
    deadline = time.monotonic() + limits.SEARCH_SECONDS
    looked = 0
    survey = outdir.survey(wanted.root)
    if not survey.folders and wanted.root:
        outdir.key(wanted.root)  # a link is unsafe, whatever it leads to
        raise NotFound(wanted.root, "no folder stands there")
    for text in sorted(survey.files):
        path = _path(text)
        if path is None or hide(path) or (wanted.name is not None and not wanted.name.search(text)):
            continue
        if stop() or time.monotonic() > deadline:
            found.limit = "seconds"
            return found
        size = survey.files[text].size
        hit: dict[str, Any] = {"path": text, "size_bytes": size}
        if path.logical is not None:
            hit["logical_path"] = path.logical
        if wanted.content is not None:
            if looked >= limits.SEARCH_FILES:
                found.limit = "files"
                return found
            looked += 1
            matches = _matches(outdir, text, wanted) if size <= limits.SEARCH_FILE_BYTES else []
            found.chars += sum(_chars(match) for match in matches)
            if not matches:
                continue
            hit["matches"] = matches
        if len(found.hits) >= wanted.max_hits:
            found.limit = "max_hits"
            return found
        found.hits.append(hit)
        if found.chars > limits.SEARCH_CHARS:
            found.limit = "chars"
            return found
    if survey.over_limit:
        found.limit = "files"
    return found


def _folder(root: str) -> str:
    if not root:
        return ""
    path = parse(root)
    if not isinstance(path, FilePath):
        raise BadPath(root, "the root of a search is a folder below OUT_DIR")
    return path.physical


def _compiled(pattern: str | None) -> Any | None:
    if pattern is None:
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = limits.SEARCH_PATTERN_MEMORY  # which bounds how long it is read: nothing else runs meanwhile
    try:
        return re2.compile(pattern, options)
    except re2.error as fault:
        raise BadSelector(pattern[:200], f"patterns are RE2: {_words(fault)}") from None


def _words(fault: Exception) -> str:
    said = fault.args[0] if fault.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _path(text: str) -> FilePath | None:
    try:
        return parse_physical(text)
    except Refusal:
        return None


def _matches(outdir: OutDir, text: str, wanted: Query) -> list[dict[str, Any]]:
    try:
        with outdir.open(text) as stream:
            held = stream.read(limits.SEARCH_FILE_BYTES + 1)
    except (Refusal, OSError):
        return []
    if len(held) > limits.SEARCH_FILE_BYTES or not is_text(held):
        return []
    lines = held.decode("utf-8", "replace").splitlines()
    return list(islice(_matching(lines, wanted), limits.SEARCH_MATCHES))


def _chars(match: dict[str, Any]) -> int:
    return sum(map(len, (match["text"], *match.get("before", ()), *match.get("after", ()))))


def _matching(lines: list[str], wanted: Query) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, start=1):
        if wanted.content is not None and wanted.content.search(line):
            match: dict[str, Any] = {"line": number, "text": line[:LINE_CHARS]}
            if wanted.context:
                before = lines[max(0, number - 1 - wanted.context) : number - 1]
                match["before"] = [one[:LINE_CHARS] for one in before]
                match["after"] = [one[:LINE_CHARS] for one in lines[number : number + wanted.context]]
            yield match
