"""The sources pool: rows, numbers that never change, who is citable, merging (spec section 6, seed 003).

`plan_merge` decides and changes nothing: it answers the rows as they shall stand, already numbered. The workspace makes
them durable and then settles them here.
"""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

import orjson

from sidecar.core import limits
from sidecar.core.blocks import LEVELS, is_shallow
from sidecar.core.errors import BadPath, TooLarge, UnsafePath
from sidecar.core.layered import Layered
from sidecar.core.mime import is_textual, mime_by_name
from sidecar.core.paths import FilePath, parse_logical, parse_physical

Row = dict[str, Any]

SOURCE_TYPES = frozenset({"web", "file", "attachment", "manual", "search"})
_LONGER_WINS = ("title", "text", "content")
_TRACKERS = frozenset({"gclid", "fbclid"})
_DEFAULT_PORTS = {"http": 80, "https": 443}


class SourcesPool:
    """Rows by number. Numbers are given once; `highest` is the highest ever given, durable or not."""

    __slots__ = ("_ascending", "_durable_highest", "_staged_highest", "keys", "rows")

    def __init__(self) -> None:
        self.rows: Layered[int, Row] = Layered()
        self.keys: Layered[str, int] = Layered()
        self._ascending: list[int] = []
        self._durable_highest = 0
        self._staged_highest = 0

    def __len__(self) -> int:
        return len(self._ascending)

    @property
    def sids(self) -> Sequence[int]:
        """The durable numbers, ascending."""
        return self._ascending

    @property
    def highest(self) -> int:
        return max(self._durable_highest, self._staged_highest)

    def get(self, sid: int) -> Row | None:
        return self.rows.durable.get(sid)

    def by_path(self, physical: str) -> int | None:
        """The durable number of a file's row."""
        return self.keys.durable.get(f"file:{physical}")

    def all_rows(self) -> list[Row]:
        return [self.rows.durable[sid] for sid in self._ascending]

    def stage(self, row: Row, mark: int) -> None:
        sid: int = row["sid"]
        self.rows.stage(sid, row, mark)
        key = dedupe_key(row)
        if key is not None:
            self.keys.stage(key, sid, mark)
        self._staged_highest = max(self._staged_highest, sid)

    def settle(self, row: Row, mark: int) -> bool:
        """A row became durable. Answers whether its number is new."""
        sid: int = row["sid"]
        fresh = sid not in self.rows.durable
        self.rows.settle(sid, row, mark)
        key = dedupe_key(row)
        if key is not None:
            self.keys.settle(key, sid, mark)
        if fresh:
            insort(self._ascending, sid)
        self._durable_highest = max(self._durable_highest, sid)
        return fresh

    def reserve(self, sid: int) -> None:
        """Numbers up to this one were given elsewhere, and are never given again."""
        self._durable_highest = max(self._durable_highest, sid)

    def drop(self) -> None:
        """The journal refused what was staged: its numbers were never given."""
        self.rows.drop()
        self.keys.drop()
        self._staged_highest = 0


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge decides: the rows that change, in request order the numbers, and which are new."""

    changed: tuple[Row, ...]
    order: tuple[int, ...]
    added: tuple[int, ...]
    sid_map: Mapping[int, int] = field(default_factory=dict[int, int])


def plan_merge(
    pool: SourcesPool, rows: Iterable[Mapping[str, Any]], *, proposals: bool, most: float = limits.MERGE_ROWS
) -> Merge:
    """Number and merge rows against the pool as the next change will find it.

    With `proposals` a free `sid` that a row proposes is honoured (>= 1, at most 1,000 above the highest); otherwise,
    and for every other row, the next number after the highest ever given is taken.
    Raises TooLarge over `most` rows or 256 KiB in one, BadPath for a file row without a path or a malformed field.
    """
    incoming = [complete(row) for row in rows]
    if len(incoming) > most:
        raise TooLarge(f"{len(incoming)} rows", f"a merge holds at most {most} rows")
    changed: dict[int, Row] = {}
    keys: dict[str, int] = {}
    highest = pool.highest
    order: list[int] = []
    added: list[int] = []
    sid_map: dict[int, int] = {}
    for row in incoming:
        proposed = _number(row.pop("sid", None))
        key = dedupe_key(row)
        sid = None if key is None else keys.get(key) or pool.keys.latest(key)
        if sid is None and key is None and proposed is not None:
            sid = _same_manual(pool, changed, proposed, row)
        if sid is None:
            sid = highest + 1
            if proposals and proposed is not None and 1 <= proposed <= highest + limits.PROPOSED_SID_AHEAD:
                taken = proposed in changed or pool.rows.latest(proposed) is not None
                sid = sid if taken else proposed
            highest = max(highest, sid)
            added.append(sid)
            changed[sid] = {"sid": sid, **row}
        else:
            prior = changed.get(sid) or pool.rows.latest(sid) or {}
            changed[sid] = merge_row(prior, row)
        if key is not None:
            keys[key] = sid
        if proposed is not None:
            sid_map.setdefault(proposed, sid)
        order.append(sid)
    return Merge(tuple(changed[sid] for sid in dict.fromkeys(order)), tuple(order), tuple(added), sid_map)


def _same_manual(pool: SourcesPool, changed: Mapping[int, Row], proposed: int, row: Row) -> int | None:
    """A row without URL and path is itself: told again under its own number with the same name, it is that row."""
    known = changed.get(proposed) or pool.rows.latest(proposed)
    if known is None or dedupe_key(known) is not None:
        return None
    named = "title" if known.get("title") or row.get("title") else "text"
    return proposed if known.get(named) == row.get(named) else None


def _number(proposed: Any) -> int | None:
    """The number a row proposes; older tools write it as text."""
    if isinstance(proposed, str) and proposed.isascii() and proposed.isdigit() and len(proposed) <= 16:
        return int(proposed)
    if proposed is None or (isinstance(proposed, int) and not isinstance(proposed, bool)):
        return proposed
    raise BadPath(f"sid {proposed!r}"[:100], "a sid is a whole number from 1")


def merge_row(prior: Mapping[str, Any], row: Mapping[str, Any]) -> Row:
    """The prior row with blanks filled and the longer words taken. The number and the URL as first given stay."""
    merged = dict(prior)
    for key, value in row.items():
        if key == "sid":
            merged.setdefault(key, value)
        elif _says_more(key, value, merged.get(key)):
            merged[key] = value
    return merged


def _says_more(key: str, value: Any, known: Any) -> bool:
    if known in (None, "", [], {}):
        return True
    return key in _LONGER_WINS and isinstance(value, str) and len(value) > len(str(known))


def complete(row: Mapping[str, Any]) -> Row:
    """Check one row and derive what follows from what it says: source type, the other path, mime."""
    if not is_shallow(row):
        raise TooLarge("row", f"JSON may nest {LEVELS} levels deep")
    whole: Row = {key: value for key, value in row.items() if value is not None}
    packed = whole.get("base64")
    if isinstance(packed, str) and len(packed) > limits.ROW_BASE64_CHARS:
        del whole["base64"]  # seen: larger pictures belong into files, the row keeps its path
    if len(orjson.dumps(whole)) > limits.ROW_BYTES:
        raise TooLarge("row", f"a source row holds at most {limits.ROW_BYTES} bytes")
    path = _file_of(whole)
    kind = whole.get("source_type")
    if kind is None:
        whole["source_type"] = "web" if whole.get("url") else "file" if path else "manual"
    elif kind not in SOURCE_TYPES:
        raise BadPath(f"source_type {kind!r}"[:100], "one of " + ", ".join(sorted(SOURCE_TYPES)))
    if whole["source_type"] in ("file", "attachment"):
        if path is None:
            raise BadPath("source row", "a file or attachment row needs physical_path or artifact_path")
        whole |= {"physical_path": path.physical, "artifact_path": path.logical}
        whole["mime"] = whole.get("mime") or mime_by_name(path.physical)
    elif path is not None and whole.get("physical_path"):
        whole["physical_path"] = path.physical
    return whole


def _file_of(row: Mapping[str, Any]) -> FilePath | None:
    """The file a row names. Raises BadPath when its two paths name different files."""
    physical, logical = row.get("physical_path"), row.get("artifact_path")
    by_logical = parse_logical(logical) if isinstance(logical, str) and logical else None
    if not physical and by_logical is None:
        return _file_of_v1(row.get("local_path"))
    if isinstance(physical, str) and physical:
        path = parse_physical(physical)
        if path.logical is None or (isinstance(by_logical, FilePath) and by_logical != path):
            raise BadPath(physical, "physical_path and artifact_path must name one file")
        return path
    return by_logical if isinstance(by_logical, FilePath) else None


def _file_of_v1(local_path: Any) -> FilePath | None:
    """The older dialect has `local_path`, which need not lie in OUT_DIR; then it is no more than a key."""
    try:
        path = parse_physical(local_path) if isinstance(local_path, str) and local_path else None
    except UnsafePath:
        return None
    return path if path is not None and path.logical is not None else None


def dedupe_key(row: Mapping[str, Any]) -> str | None:
    """What makes two rows one: the file's path, else the canonical URL, else nothing (spec section 6)."""
    path = row.get("physical_path") or row.get("local_path")
    if isinstance(path, str) and path:
        return f"file:{path}"
    url = row.get("url")
    if isinstance(url, str) and url.strip():
        return f"url:{canonical_url(url)}"
    return None


def canonical_url(url: str) -> str:
    """The form under which two URLs are one source. It is a key only; rows keep the URL as it was given.

    Scheme and host in lower case, the scheme's own port, credentials, fragment and trackers dropped, one trailing slash
    dropped; order of parameters, percent-encoding and everything else kept. Text that is no URL is its own key.
    """
    text = url.strip()
    try:
        parts = _split(text)
        port = parts.port if parts is not None else None
    except ValueError:
        return text
    if parts is None:
        return text
    scheme, host = parts.scheme.lower(), (parts.hostname or "")
    if ":" in host:
        host = f"[{host}]"
    if port is not None and port != _DEFAULT_PORTS.get(scheme):
        host = f"{host}:{port}"
    path = parts.path or "/"
    if path != "/" and path.endswith("/"):
        path = path[:-1]
    query = "&".join(piece for piece in parts.query.split("&") if piece and not _tracks(piece))
    return f"{scheme}://{host}{path}" + (f"?{query}" if query else "")


def _split(text: str) -> SplitResult | None:
    """A URL in its parts; `example.com/x` is one too. None for any other text. Raises ValueError for a broken URL."""
    if _SCHEME.match(text):
        return urlsplit(text)
    return urlsplit(f"https://{text}") if _BARE_HOST.match(text) else None


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_BARE_HOST = re.compile(r"(?:[\w-]+\.)+[\w-]+(?::[0-9]+)?(?=[/?#]|\Z)|localhost(?::[0-9]+)?(?=[/?#]|\Z)")


def _tracks(parameter: str) -> bool:
    name = parameter.partition("=")[0].lower()
    return name in _TRACKERS or name.startswith("utm_")


def is_citable(mime: str, eligible: Iterable[str]) -> bool:
    """Whether files of this type become sources. `eligible` holds types, a whole family as `text/*`."""
    family = mime.partition("/")[0]
    return any(entry in (mime, f"{family}/*") for entry in eligible)


def render(rows: Sequence[Row]) -> str:
    """The pool as the agent sees it: a header and exactly one line per row, never truncated."""
    return render_lines([render_row(row) for row in rows])


def render_lines(lines: Sequence[str]) -> str:
    """The same of rows that are rendered already."""
    return "\n".join([f"SOURCES POOL ({len(lines)} sources)", *lines])


def render_row(row: Mapping[str, Any]) -> str:
    quoted = _one_line(_snippet(row)).replace('"', '\\"')
    return f'[S:{row["sid"]}] {_one_line(_place(row))}  |  "{quoted}"'


def _place(row: Mapping[str, Any]) -> str:
    if row.get("source_type") in ("file", "attachment"):
        return str(row.get("artifact_path") or row.get("physical_path"))
    domain = row.get("domain")
    if isinstance(domain, str) and domain:
        return domain
    url = row.get("url")
    try:
        parts = _split(url.strip()) if isinstance(url, str) else None
    except ValueError:
        parts = None
    host = parts.hostname if parts is not None else None
    return (host or "").removeprefix("www.") or "manual"


def _one_line(text: str) -> str:
    return _BREAKS.sub(" ", text)


_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def _snippet(row: Mapping[str, Any]) -> str:
    mime = row.get("mime")
    if isinstance(mime, str) and mime:
        kind = mime.partition(";")[0].strip().lower()
        if kind.startswith("image/") or kind == "application/pdf":
            return "<base64>"
        if not is_textual(kind):
            return "<binary>"
    return str(row.get("title") or str(row.get("text") or row.get("content") or "")[:200])
