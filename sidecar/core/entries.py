"""The durable changes, one class each, and how the journal spells them.

Every entry is one revision. `encode` and `decode` are inverse for all but blocks, whose heads go to the timeline as
they stand: a restart must not build an object per block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from sidecar.core.artifacts import Visibility
from sidecar.core.blocks import Told, encode_head
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.notices import Notice
from sidecar.core.uses import How

BLOCK = "block"  # how the journal calls them


@dataclass(frozen=True, slots=True)
class BlockTold:
    told: Told


@dataclass(frozen=True, slots=True)
class SourceSet:
    """A row of the pool as it stands from now on, new or changed."""

    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FileSeen:
    """A complete state of a file, whose it is, and who may know of it."""

    fact: FileFact
    ts: float
    call: str
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class FileGone:
    path: str


@dataclass(frozen=True, slots=True)
class TurnBegun:
    turn_id: str
    ts: float
    params: str  # a hash of what the turn was begun with, so that beginning it again can be told from another begin


@dataclass(frozen=True, slots=True)
class TurnEnded:
    turn_id: str
    ts: float
    status: str


@dataclass(frozen=True, slots=True)
class CallBegun:
    tool_call_id: str
    turn_id: str
    tool_id: str
    ts: float
    watched: bool = False  # what it uses comes by the daemon: it has a channel of its own, or is the daemon's own work


@dataclass(frozen=True, slots=True)
class CallEnded:
    tool_call_id: str
    ts: float


@dataclass(frozen=True, slots=True)
class Used:
    """What a call used, by canonical logical path. `by` is the one thing that says so of itself, where it is not all
    that the call made.
    """

    tool_call_id: str
    nodes: tuple[str, ...]
    how: How
    by: str = ""


@dataclass(frozen=True, slots=True)
class Noticed:
    notice: Notice


@dataclass(frozen=True, slots=True)
class FolderAdopted:
    """A folder of the first look at a workspace without a timeline counts as a turn's (spec section 5)."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """Facts of the workspace as a whole: its conversation, and what a foreign timeline.json said about it."""

    facts: dict[str, Any]


Promise = tuple[str, Visibility]
"""The call that is to make a file, and who may see it."""


@dataclass(frozen=True, slots=True)
class Promised:
    """A call ended while a file it was to make was still being written; when that is closed, this is whose it is."""

    path: str
    tool_call_id: str
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class Answered:
    """What a change was answered with, so that asking again with the same `request_id` changes nothing (spec 7)."""

    request_id: str
    params: str  # a hash of method and params
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class HostingWanted:
    """These bytes of this file, by physical path, are to be hosted; a restart goes on with it."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Hosted:
    """Bytes of a file stand in the store, under a key that nothing else will ever have."""

    path: str
    sha256: str
    hosted_uri: str
    rn: str
    key: str


@dataclass(frozen=True, slots=True)
class HostingWaived:
    """Bytes that were to be hosted and never can be: they are gone, or not to be shown any more."""

    path: str
    sha256: str
    reason: str


@dataclass(frozen=True, slots=True)
class BlocksHidden:
    """These blocks are hidden from the agent; one of them shows the replacement in their place (spec section 8)."""

    numbers: tuple[int, ...]
    replacement: str


@dataclass(frozen=True, slots=True)
class BlocksShown:
    """These blocks are shown to the agent again."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Embedded:
    """A vector that the caller brought for what a turn leaves behind; the daemon computes none."""

    turn_id: str
    kind: str
    vector: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TurnSaved:
    """All of a turn up to a revision is in the conversation store, by this change of the index; `items` say what.

    Items are `{kind, hosted_uri, message_id, rn?, needs_embedding?, sha256?}`, as `turn/end` answers them but for the
    hash. A turn taken over from the store is saved without items.
    """

    turn_id: str
    revision: int
    change: int
    items: tuple[dict[str, Any], ...]


Entry = (
    BlockTold | SourceSet | FileSeen | FileGone | TurnBegun | TurnEnded | CallBegun | CallEnded | Noticed
    | FolderAdopted | Remembered | Promised | Answered | HostingWanted | Hosted | HostingWaived | BlocksHidden
    | BlocksShown | Embedded | TurnSaved | Used
)  # fmt: skip


class Stored(NamedTuple):
    """An entry as the journal keeps it, still without its revision."""

    kind: str
    head: bytes
    body: bytes


def encode(entry: Entry) -> Stored:
    match entry:
        case BlockTold(told):
            return Stored(BLOCK, encode_head(told), told.body)
        case FileSeen(fact, ts, call, visibility):
            head = [fact.path, *fact.key, fact.sha256, fact.mime, fact.kept, fact.incomplete, ts, call, visibility]
            return Stored("file", orjson.dumps(head), b"")
        case SourceSet(row):
            return Stored("source", b"", orjson.dumps(row))
        case Noticed(notice):
            return Stored("notice", b"", orjson.dumps(notice))
        case Remembered(facts):
            return Stored("remembered", b"", orjson.dumps(facts))
        case Answered(request_id, params, result):
            return Stored("answered", orjson.dumps([request_id, params]), orjson.dumps(result))
        case Embedded(turn_id, kind, vector):
            return Stored("embedded", orjson.dumps([turn_id, kind]), orjson.dumps(vector))
        case TurnSaved(turn_id, revision, change, items):
            return Stored("saved", orjson.dumps([turn_id, revision, change]), orjson.dumps(items))
        case _:
            fields = [getattr(entry, field) for field in type(entry).__slots__]
            return Stored(_KINDS[type(entry)], orjson.dumps(fields), b"")


# Entries of plain values are their fields in order.
_KINDS: dict[type, str] = {
    FileGone: "gone",
    TurnBegun: "turn_begun",
    TurnEnded: "turn_ended",
    CallBegun: "call_begun",
    CallEnded: "call_ended",
    FolderAdopted: "adopted",
    Promised: "promised",
    HostingWanted: "hosting_wanted",
    Hosted: "hosted",
    HostingWaived: "hosting_waived",
    BlocksHidden: "hidden",
    BlocksShown: "shown",
    Used: "used",
}
_PLAIN: dict[str, Callable[..., Entry]] = {
    "gone": FileGone,
    "turn_begun": TurnBegun,
    "turn_ended": TurnEnded,
    "call_begun": CallBegun,
    "call_ended": CallEnded,
    "adopted": FolderAdopted,
    "promised": Promised,
    "hosting_wanted": HostingWanted,
    "hosted": Hosted,
    "hosting_waived": HostingWaived,
}


def decode(kind: str, head: bytes, body: bytes) -> Entry:
    """Read back any entry but a block. Raises ValueError for a kind that this version does not know."""
    match kind:
        case "file":
            path, *key, sha256, mime, kept, incomplete, ts, call, visibility = orjson.loads(head)
            return FileSeen(FileFact(path, StatKey(*key), sha256, mime, kept, incomplete), ts, call, visibility)
        case "source":
            return SourceSet(orjson.loads(body))
        case "notice":
            return Noticed(orjson.loads(body))
        case "remembered":
            return Remembered(orjson.loads(body))
        case "answered":
            request_id, params = orjson.loads(head)
            return Answered(request_id, params, orjson.loads(body))
        case "hidden":
            numbers, replacement = orjson.loads(head)
            return BlocksHidden(tuple(numbers), replacement)
        case "shown":
            return BlocksShown(tuple(orjson.loads(head)[0]))
        case "used":
            call, nodes, how, by = orjson.loads(head)
            return Used(call, tuple(nodes), how, by)
        case "embedded":
            turn_id, name = orjson.loads(head)
            return Embedded(turn_id, name, tuple(orjson.loads(body)))
        case "saved":
            turn_id, revision, change = orjson.loads(head)
            return TurnSaved(turn_id, revision, change, tuple(orjson.loads(body)))
        case _:
            if kind not in _PLAIN:
                raise ValueError(f"the journal holds an entry of kind {kind!r}")
            return _PLAIN[kind](*orjson.loads(head))
