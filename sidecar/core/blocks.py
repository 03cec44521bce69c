"""What a timeline block is: told once, kept whole, remembered in memory as a small head.

A block told to us keeps every key. `tell` checks and completes it, writes its JSON once, and extracts what the index
needs, so that neither an answer nor a restart ever parses the JSON again. The head is a plain tuple of atoms, which
the garbage collector does not track.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from sidecar.core.errors import BadPath, Refusal, TooLarge
from sidecar.core.glances import may_hold_hosting, may_nest
from sidecar.core.paths import CallPath, FilePath, is_call_id, is_turn_id, parse, parse_logical

# Positions in a head. The journal stores the same list, and as one more element what the block says of an artifact.
TYPE: Final = 0
TURN: Final = 1
TS: Final = 2
MIME: Final = 3
PATH: Final = 4
CALL: Final = 5
FLAGS: Final = 6
PART: Final = 7  # only as the journal stores it, and only where there is one

HIDDEN = 1  # the block is hidden from the agent, not from discovery
HOSTING = 2  # somewhere inside stands a hosting field, so that answers to most roles need a cut
SHOWN = 4  # a copy that a read showed again; it makes no version
INTERNAL = 8  # it describes or holds an internal artifact

Head = tuple[str, str, float, str, str, str, int]

SUMMARY = "conv.range.summary"  # the type of the block that stands for all blocks before its cut

HOSTING_FIELDS = frozenset({"hosted_uri", "rn", "key"})
LEVELS = 200  # how deep JSON may nest; a little below what the serialiser can write
TEXT_LEVELS = 50  # what JSON held in a text counts for, so that texts in texts come to an end
_RECORD_MARKS = frozenset({"artifact_path", "physical_path", "hosted_uri", "sid"})
# How the values of hosting fields begin that we gave out; `hosted_uri` is ours whatever it holds.
_OURS: dict[str, tuple[str, ...]] = {"rn": ("ef:", "rn:"), "key": ("cb/",), "hosted_uri": ("",)}
_SAID_BY_TOOLS = ("react.tool.call", "react.tool.result", "react.notice")


class Told(NamedTuple):
    """A block ready for the journal: its head, what it says about an artifact or a call, and its JSON."""

    head: Head
    part: dict[str, Any] | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a block gets when it does not say."""

    turn_id: str
    ts: float


def tell(block: Mapping[str, Any], defaults: Defaults) -> Told:
    """Check and complete a block (spec section 4).

    Raises BadPath for a malformed turn id or path, UnsafePath for a path that leaves OUT_DIR, BadPath with the field's
    name for a `ts` that is no time or a field that should be text, and TooLarge when it nests too deep.
    """
    meta: dict[str, Any] = dict(block.get("meta") or {})
    turn = block.get("turn_id") or block.get("turn") or meta.get("turn_id") or defaults.turn_id
    if not isinstance(turn, str) or not is_turn_id(turn):
        raise BadPath(f"turn_id {turn!r}"[:200], "a turn id is 1 to 128 of A-Z a-z 0-9 _ -")
    moment = moment_of(ts := block.get("ts"), defaults.ts)
    mime = _text_of(block.get("mime") or "text/markdown", "mime")
    path = _canonical(block.get("path"))
    whole: dict[str, Any] = {
        "type": _text_of(block["type"], "type"),
        "author": block.get("author") or "agent",
        "turn_id": turn,
        "ts": ts if isinstance(ts, str) and ts.endswith("Z") else iso(moment),
        "mime": mime,
    }
    for key, value in block.items():
        if key not in whole and key not in ("hidden", "replacement_text"):
            whole[key] = value
    if block.get("hidden"):
        meta["hidden"] = True
    if block.get("replacement_text") and not meta.get("replacement_text"):
        meta["replacement_text"] = block["replacement_text"]
    if path:
        whole["path"] = path
    meta.setdefault("turn_id", turn)
    whole["meta"] = meta
    body = _encoded(whole)
    asked = _object_in(whole.get("text")) if whole["type"] == "react.tool.call" else {}
    call = _call_of(whole, meta, asked)
    flags = (HIDDEN if meta.get("hidden") else 0) | (SHOWN if meta.get("rel") == "read" else 0)
    if may_hold_hosting(body) and holds_hosting(whole):
        flags |= HOSTING
    part = _part(whole, meta, asked)
    said = (part.get("digest") or part.get("content") or meta) if part is not None else meta
    if said.get("visibility") == "internal":
        flags |= INTERNAL
    return Told((whole["type"], turn, moment, mime, path, call, flags), part, body)


def _encoded(whole: dict[str, Any]) -> bytes:
    """A block's JSON, from which nearly all blocks show that they need not be walked through."""
    try:
        body = orjson.dumps(whole)
    except orjson.JSONEncodeError:
        body = b""
    if (not body or may_nest(body, LEVELS)) and not is_shallow(whole):
        raise TooLarge("block", f"JSON may nest {LEVELS} levels deep")
    return body or orjson.dumps(whole)


def encode_head(told: Told) -> bytes:
    """The head as the journal keeps it."""
    return orjson.dumps([*told.head, told.part] if told.part else told.head)


@lru_cache(maxsize=4096)
def iso(moment: float) -> str:
    """Seconds since the epoch as ISO 8601 UTC."""
    text = dt.datetime.fromtimestamp(moment, tz=dt.UTC).isoformat(timespec="microseconds").removesuffix("+00:00")
    # Milliseconds where they say it all, as most writers have them.
    return text.removesuffix("000").removesuffix(".000") + "Z"


def holds_hosting(value: Any) -> bool:
    """Whether a hosting field stands anywhere inside, JSON held in text included."""
    open_ends: list[tuple[Any, int]] = [(value, LEVELS)]
    while open_ends:
        inner, levels = open_ends.pop()
        if isinstance(inner, dict) and (any(inner.get(field) for field in HOSTING_FIELDS) or _says_ours(inner)):
            return True
        if isinstance(inner, str):
            open_ends.append((record_in_text(inner, levels), levels - TEXT_LEVELS))
        else:
            open_ends.extend((item, levels) for item in _inside(inner))
    return False


def is_shallow(value: Any) -> bool:
    """Whether JSON nests at most `LEVELS` deep, so that it can be cut and written again."""
    level: list[Any] = [value]
    for _ in range(LEVELS):
        level = [item for inner in level for item in _inside(inner)]
        if not level:
            return True
    return False


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def record_in_text(text: str, levels: int = LEVELS) -> Any | None:
    """The record that a text holds as JSON, or None.

    Only JSON that describes an artifact or a source counts, itself or in a text inside it: a user's own file may well
    have a member called `key`, and is content.
    """
    if len(text) < 8 or text[0] not in '{[" \n\t\r' or '"' not in text or levels < TEXT_LEVELS:
        return None
    if not any(mark in text for mark in _RECORD_MARKS) and "\\u" not in text:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if _describes(value, levels - TEXT_LEVELS) else None


def _describes(value: Any, levels: int) -> bool:
    if isinstance(value, str):
        return record_in_text(value, levels) is not None
    if isinstance(value, dict) and not _RECORD_MARKS.isdisjoint(value):
        return True
    return levels > 0 and any(_describes(item, levels - 1) for item in _inside(value))


def is_said(block: Mapping[str, Any]) -> bool:
    """Whether a block's text is what a tool was asked or answered. At a file's path it is that file's content."""
    return block.get("type") in _SAID_BY_TOOLS and not str(block.get("path") or "").startswith("fi:")


def is_ours(field: str, value: Any) -> bool:
    """Whether a member called like a hosting field holds what we give out under that name."""
    return field in _OURS and isinstance(value, str) and bool(value) and value.startswith(_OURS[field])


def json_said(text: str, levels: int = LEVELS) -> Any | None:
    """The JSON that a call or its result is, when something in it may be one of our hosting fields; else None."""
    if len(text) < 8 or text[0] not in '{[" \n\t\r' or levels < TEXT_LEVELS:
        return None
    if not any(mark in text for mark in _SAID_MARKS):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


# How our values begin, or that a letter is spelled as an escape.
_SAID_MARKS = ("ef:", "rn:", "cb/", "hosted_uri", "\\u", "\\/")


def holds_ours(text: str, levels: int = LEVELS) -> bool:
    """Whether one of our hosting fields stands in the JSON of a call or its result, however deep."""
    open_ends: list[tuple[Any, int]] = [(text, levels)]
    while open_ends:
        inner, left = open_ends.pop()
        if isinstance(inner, dict) and any(is_ours(field, inner.get(field)) for field in _OURS):
            return True
        if isinstance(inner, str):
            open_ends.append((json_said(inner, left), left - TEXT_LEVELS))
        else:
            open_ends.extend((item, left) for item in _inside(inner))
    return False


def _says_ours(block: Mapping[str, Any]) -> bool:
    text = block.get("text")
    return isinstance(text, str) and is_said(block) and holds_ours(text)


def digest_in(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """The artifact digest that a metadata block carries as JSON text (seed 000, Block metadata).

    A result block at a file's path is that file's content, unless its JSON describes that very path. One that carries
    a digest beside it is content whatever it says: a file must not describe itself.
    """
    kind, path = block.get("type"), block.get("path")
    if kind == "user.attachment.meta":
        digest = _object_in(block.get("text"))
        if digest:
            digest.setdefault("artifact_path", path)
    elif kind == "react.tool.result" and block.get("mime") == "application/json":
        digest = _object_in(block.get("text"))
        is_content = digest.get("artifact_path") != path or "digest" in (block.get("meta") or {})
        if isinstance(path, str) and path.startswith("fi:") and is_content:
            return None
    else:
        return None
    return digest if isinstance(digest.get("artifact_path"), str) else None


def _object_in(text: Any) -> dict[str, Any]:
    """The JSON object that a text holds, or an empty one."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(value, dict):
        return {}
    return value if not may_nest(text.encode("utf-8", "replace"), LEVELS) or is_shallow(value) else {}


def _part(block: dict[str, Any], meta: dict[str, Any], asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """What this block says about an artifact (`digest`, `content`), a call (`tool`), or the kept part (`cut`).

    `about` are the artifacts that a call, its result or a notice shows something of; `asked` is a call's own JSON.
    """
    about = _about(meta) if is_said(block) or block["type"].startswith("context.") else {}
    if block["type"] == "react.tool.call":
        tool = asked.get("tool_id") or meta.get("tool_id") or block.get("tool_id")
        return {"tool": tool, **about} if tool and isinstance(tool, str) else about or None
    if block["type"] == SUMMARY:
        cut = meta.get("cut")
        return {"cut": cut} if type(cut) is int and cut >= 0 else None
    digest = digest_in(block)
    if digest is not None:
        try:
            artifact = parse(digest["artifact_path"])
        except Refusal:
            return None
        logical = artifact.logical if isinstance(artifact, FilePath) else None
        return None if logical is None else {"digest": digest, "at": logical}
    if about:
        return about
    path = block.get("path")
    if block["type"] == "user.attachment.meta":
        return None  # metadata that cannot be read is still not the content
    if isinstance(path, str) and path.startswith("fi:") and isinstance(parse(path), FilePath):
        return {"content": _content(block, meta), "at": path}
    return None


def _about(meta: Mapping[str, Any]) -> dict[str, Any]:
    """`{about: [logical path]}` as `meta.about` says it, of what is a file's path; else nothing."""
    said = meta.get("about")
    paths = {text for text in said if isinstance(text, str) and _is_file(text)} if isinstance(said, list) else set()
    return {"about": sorted(paths)} if paths else {}


def _is_file(text: str) -> bool:
    try:
        return text.startswith("fi:") and isinstance(parse_logical(text), FilePath)
    except Refusal:
        return False


def _content(block: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """The facts of a content block: what it holds, its hash, and the metadata beside it."""
    facts: dict[str, Any] = {key: meta[key] for key in _CONTENT_META if meta.get(key) is not None}
    facts["mime"] = block["mime"]
    facts["attachment"] = block["type"].startswith("user.attachment")
    if block["type"] == "user.attachment.text":
        facts["extracted"] = True  # it may be the file itself or a text made from it; `artifacts` decides
    copied = meta.get("digest")
    if isinstance(copied, str):
        copied = _object_in(copied)
    if isinstance(copied, dict) and copied:
        facts["digest"] = copied
    payload = _payload(block)
    if payload is not None:
        facts |= {"sha256": hashlib.sha256(payload).hexdigest(), "size_bytes": len(payload)}
        facts["holds"] = "text" if isinstance(block.get("text"), str) else "base64"
    return facts


_CONTENT_META = (
    "kind", "visibility", "channel", "description", "physical_path", "sources_used", "hosted_uri", "rn", "key",
    "edited",
)  # fmt: skip


def _payload(block: Mapping[str, Any]) -> bytes | None:
    text, packed = block.get("text"), block.get("base64")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if isinstance(packed, str):
        try:
            return base64.b64decode(packed, validate=True)
        except ValueError as fault:  # binascii.Error is one, and so is what it says of letters beyond ASCII
            raise BadPath("base64", "the block's base64 does not decode") from fault
    return None


def _call_of(block: Mapping[str, Any], meta: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """The call a block belongs to: what a call says itself, meta, the older top-level key, its path (call map)."""
    for value in (asked.get("tool_call_id"), meta.get("tool_call_id"), block.get("tool_call_id"), block.get("call_id")):
        if isinstance(value, str) and is_call_id(value):
            return value
    path = block.get("path")
    if isinstance(path, str) and path.startswith("tc:"):
        parsed = parse_logical(path)
        if isinstance(parsed, CallPath):
            return parsed.call_id
    return ""


def _text_of(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise BadPath(field, f"{field} is text")
    return value


def _canonical(path: Any) -> str:
    if path is None or path == "":
        return ""
    if not isinstance(path, str):
        raise BadPath("path", "a path is text")
    logical = parse(path).logical
    if logical is None:
        raise BadPath(path, "this file has no logical path")
    return logical


def moment_of(value: Any, fallback: float = 0.0) -> float:
    """A told time as seconds since the epoch. It may come as ISO text or as a number (spec section 4)."""
    match value:
        case None | "":
            return fallback
        case bool():
            raise BadPath("ts", "a time is ISO 8601 text or seconds since the epoch")
        case int() | float():
            moment = float(value)
        case str():
            try:
                parsed = dt.datetime.fromisoformat(value.strip())
            except ValueError as fault:
                raise BadPath("ts", "a time is ISO 8601 text or seconds since the epoch") from fault
            moment = (parsed if parsed.tzinfo else parsed.replace(tzinfo=dt.UTC)).timestamp()
        case _:
            raise BadPath("ts", "a time is ISO 8601 text or seconds since the epoch")
    if not 0 <= moment < 253_402_300_800:  # the year 9999
        raise BadPath("ts", "a time lies between 1970 and 9999")
    return moment
