"""The records of the older context as blocks: what they are called, where they stand, how they are completed.

    context.artifact   ar:<turn>.context.artifact.<id>    what a tool made: a value, a file, rows of a search
    context.slot       ar:<turn>.context.slot.<name>      a deliverable
    context.event      ar:<turn>.context.event.<kind>     something happened; all of one kind stand at one path
    context.budget     ar:<turn>.context.budget           how much may be used, and how much is

They are blocks like any other: journalled, resolved, rendered and compacted. A record told again at its path is its
next version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, cast

from sidecar.core.blocks import LEVELS, is_shallow
from sidecar.core.context_text import text_for
from sidecar.core.errors import BadPath, Refusal, TooLarge
from sidecar.core.mentions import spots
from sidecar.core.older_paths import CURRENT, Made, Named, OlderRefusal, Said, Sliced, Slotted, parse, respelled
from sidecar.core.older_values import rows_in
from sidecar.core.paths import FilePath, MessagePath, is_turn_id, parse_physical
from sidecar.core.paths import parse as parse_today

ARTIFACT = "context.artifact"
SLOT = "context.slot"
EVENT = "context.event"
BUDGET = "context.budget"
TYPES = frozenset({ARTIFACT, SLOT, EVENT, BUDGET})

NAMED_CHARS = 1_000_000  # of what an event says that are looked through for paths

Kind = Literal["artifact", "slot", "event", "budget"]


class Place(NamedTuple):
    """What a block of the older context is about; a budget has no name."""

    turn_id: str
    kind: Kind
    name: str

    @property
    def logical(self) -> str:
        return MessagePath(self.turn_id, f"context.{self.kind}" + (f".{self.name}" if self.name else "")).logical


def place_at(logical: str) -> Place | None:
    """What the path of such a block says, or None for any other path."""
    match = _PATH.fullmatch(logical)
    if match is None:
        return None
    turn_id, budget, kind, name = match.groups()
    return Place(turn_id, "budget", "") if budget else Place(turn_id, cast(Kind, kind), name)


_PATH = re.compile(
    r"ar:([A-Za-z0-9_-]{1,128})\.context\.(?:(budget)|(artifact|slot|event)\.([A-Za-z0-9_-]{1,128}))", re.ASCII
)


def completed(block: Mapping[str, Any], turn_id: str) -> dict[str, Any]:
    """A block of the older context with its path, its text, and today's names in place of `current_turn`.

    `turn_id` is for a block that names no turn. Raises BadPath when it names another path than its own, and TooLarge
    when it nests too deep.
    """
    if not is_shallow(block):
        raise TooLarge("block", f"JSON may nest {LEVELS} levels deep")
    meta: dict[str, Any] = dict(block.get("meta") or {})
    turn = block.get("turn_id") or block.get("turn") or meta.get("turn_id") or turn_id
    if not isinstance(turn, str) or not is_turn_id(turn):
        raise BadPath(f"turn_id {turn!r}"[:200], "a turn id is 1 to 128 of A-Z a-z 0-9 _ -")
    place = _place_of(block, turn)
    asked = block.get("path")
    if asked and asked != place.logical:
        raise BadPath(str(asked)[:200], f"this record stands at {place.logical}; leave its path out")
    whole = {key: _renamed(key, value, turn) for key, value in block.items()}
    about = {*_files_in(whole, turn), *_words_in(meta.get("about"))}
    if about:
        meta["about"] = sorted(about)
    text = block.get("text")
    return {
        **whole,
        "turn_id": turn,
        "path": place.logical,
        "text": text if isinstance(text, str) else text_for(whole),
        "meta": meta,
    }


def record_in(block: Mapping[str, Any]) -> dict[str, Any]:
    """The record that a block holds, with the turn and time of its block and without what every block has."""
    record = {key: value for key, value in block.items() if key not in _BLOCKS_OWN}
    return {**record, "turn_id": block["turn_id"], "ts": block["ts"]}


_BLOCKS_OWN = frozenset({"type", "author", "turn_id", "turn", "ts", "mime", "path", "text", "base64", "meta"})


def without_contents(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block of the older context that says which file it is about, and nothing of what that holds.

    Only what is known to be harmless stays: a record may have members that nobody here has heard of.
    """
    value, meta = block.get("value"), block.get("meta")
    kept: dict[str, Any] = {key: block[key] for key in _NAMING if isinstance(block.get(key), str | int | float)}
    if "content_lineage" in block:
        kept["content_lineage"] = _words_in(block["content_lineage"])
    if "value" in block:
        facts = ("path", "physical_path", "filename", "mime", "format", "type", "size_bytes")
        held: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        kept["value"] = {key: held[key] for key in facts if isinstance(held.get(key), str | int)} or None
    if isinstance(meta, Mapping):
        kept["meta"] = {key: meta[key] for key in _NAMING_META if key in meta}
    return kept


_NAMING = (
    "type", "author", "turn_id", "ts", "mime", "path", "artifact_id", "artifact_kind", "slot", "event", "tool_id",
    "tool_call_id", "producer",
)  # fmt: skip
_NAMING_META = ("turn_id", "tool_call_id", "about", "visibility", "hidden")


def slot_block(turn_id: str, name: str, value: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A slot as a block to be told."""
    said = {key: item for key, item in more.items() if item not in (None, [], "")}
    return completed({"type": SLOT, "slot": name, "value": dict(value), **said, "turn_id": turn_id}, turn_id)


def event_block(turn_id: str, kind: str, fields: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """An event as a block to be told."""
    return completed({"type": EVENT, "event": kind, "data": dict(fields), **more, "turn_id": turn_id}, turn_id)


def todays_name(text: str, turn_id: str) -> str | None:
    """Today's path of what an older path or a place below OUT_DIR names, as far as that is plain from the text alone.

    A file's name is taken as it stands: whether it is a normalised one only the index knows.
    """
    try:
        older = parse(text)
    except OlderRefusal:
        return _todays(_below_out(text, turn_id))
    turn = turn_id if getattr(older, "turn", CURRENT) == CURRENT else getattr(older, "turn", "")
    match older:
        case Made(artifact_id=name):
            return Place(turn, "artifact", name).logical
        case Slotted(name=name):
            return Place(turn, "slot", name).logical
        case Said(tail=tail):
            return MessagePath(turn, tail).logical
        case Named(place=place, name=name):
            return _todays(f"{turn}/{place}/{name}")
        case Sliced(rows):
            return rows.logical


def _todays(text: str) -> str | None:
    try:
        path = parse_today(text)
    except Refusal:
        return None
    # Any words are the name of a file below OUT_DIR; only what says so is taken for one.
    is_plain = isinstance(path, FilePath) and not path.place and not text.startswith("fi:")
    return None if is_plain else path.logical


def _place_of(block: Mapping[str, Any], turn: str) -> Place:
    match block["type"]:
        case "context.artifact":
            return Place(turn, "artifact", block["artifact_id"])
        case "context.slot":
            return Place(turn, "slot", block["slot"])
        case "context.event":
            return Place(turn, "event", block["event"])
        case _:
            return Place(turn, "budget", "")


def _renamed(key: str, value: Any, turn: str) -> Any:
    """A member of a record without the older word for its turn; what an artifact holds is content, and is left alone.

    Lineage is kept in today's names.
    """
    if key == "content_lineage" and isinstance(value, list):
        return list(dict.fromkeys(todays_name(one, turn) or one for one in value if isinstance(one, str)))
    if key == "value" and isinstance(value, Mapping):
        return {name: _path_only(name, item, turn) for name, item in value.items()}
    return value if key in _CONTENTS else _deep(value, turn)


_CONTENTS = frozenset({"value", "text", "text_surrogate", "summary", "base64"})


def _path_only(name: str, item: Any, turn: str) -> Any:
    return respelled(item, turn) if name in ("path", "physical_path") and isinstance(item, str) else item


def _deep(value: Any, turn: str) -> Any:
    match value:
        case str():
            return respelled(value, turn)
        case list():
            return [_deep(item, turn) for item in value]
        case dict():
            return {key: _deep(item, turn) for key, item in value.items()}
        case _:
            return value


def _files_in(block: Mapping[str, Any], turn: str) -> Iterator[str]:
    """The artifacts that a record tells of: the file of a file's artifact or slot, those of rows and of events."""
    value = block.get("value")
    if block["type"] == EVENT:
        yield from _named_in(block.get("data"), turn)
    if isinstance(value, Mapping) and isinstance(value.get("path"), str):
        path = file_named(value["path"], turn)
        if path is not None and path.logical is not None:
            yield path.logical
    if isinstance(value, Mapping):
        yield from files_of_row(value, turn)
    if block.get("artifact_kind") == "search":
        for row in rows_in(value):
            yield from files_of_row(row, turn)


def _named_in(value: Any, turn: str) -> Iterator[str]:
    """The artifacts whose paths stand anywhere in what an event says, in the middle of words too."""
    waiting, room = [value], NAMED_CHARS
    while waiting and room > 0:
        one = waiting.pop()
        if isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str):
            room -= len(one)
            for line in _below_out(one, turn).splitlines():
                for text in (reading for spot in spots(line) for reading in spot.readings):
                    path = file_named(text, turn)
                    if path is not None and path.logical is not None:
                        yield path.logical


def files_of_row(row: Mapping[str, Any], turn_id: str = "") -> Iterator[str]:
    """The artifacts that a source row is, by whichever of its paths names one."""
    for key in ("artifact_path", "physical_path", "local_path"):
        text = row.get(key)
        if not isinstance(text, str) or not text:
            continue
        try:
            path = parse_today(_below_out(text, turn_id))
        except Refusal:
            continue
        if isinstance(path, FilePath) and path.logical is not None:
            yield path.logical


def _words_in(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _below_out(text: str, turn_id: str) -> str:
    """A path with the turn's own id, and without what says that it lies below OUT_DIR."""
    text = respelled(text, turn_id)
    return text[begin.end() :] if (begin := _OUT.match(text)) is not None else text


_OUT = re.compile(r"(?:\./)*out/")


def file_named(text: str, turn_id: str) -> FilePath | None:
    """The file that a record names: below OUT_DIR, or by a bare name among the turn's own; None for what is no path."""
    text = _below_out(text, turn_id)
    try:
        path = parse_today(text)
        if not isinstance(path, FilePath):
            return None
        bare = not path.place and "/" not in path.rel and not text.startswith("fi:")
        return parse_physical(f"{turn_id}/files/{path.rel}") if bare else path
    except Refusal:
        return None
