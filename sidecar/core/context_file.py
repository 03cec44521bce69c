"""context.json and sources_pool.json: the shapes in which the older generation keeps a session, and the way back.

What is written is made of blocks as a reader of OUT_DIR may see them. What is read becomes a timeline, so that such a
session is taken in like any other (seed 002, Filesystem Layout).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from sidecar.core.blocks import is_shallow
from sidecar.core.context_blocks import ARTIFACT, BUDGET, EVENT, SLOT, completed, file_named, record_in
from sidecar.core.errors import Refusal
from sidecar.core.older_paths import CURRENT
from sidecar.core.paths import MessagePath, Place, is_turn_id

CONTEXT_FILE = "context.json"
POOL_FILE = "sources_pool.json"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TurnTold:
    """What there is to write of a turn: blocks as they may be seen, and what is known of its files."""

    turn_id: str
    ts: str | None
    prompt: Mapping[str, Any] | None = None
    completion: Mapping[str, Any] | None = None
    attachments: Sequence[Json] = ()
    files: Sequence[Json] = ()
    blocks: Sequence[Mapping[str, Any]] = field(default=())


def prior_turn(turn: TurnTold) -> Json:
    """A turn that is over. What only its runtime knew is null."""
    return {
        "turn_id": turn.turn_id,
        "ts": turn.ts,
        "user": _user(turn),
        "assistant": _assistant(turn),
        "project_log": None,
        "solver_failure": None,
        "deliverables": _slots(turn.blocks),
        "artifacts": _artifacts(turn.blocks),
        "events": _events(turn.blocks),
        "budget_state": _budget(turn.blocks),
        "turn_log": None,
        "sources_pool": [],
    }


def current_turn(turn: TurnTold) -> Json:
    """The turn that is under way, or the last one."""
    artifacts = _artifacts(turn.blocks)
    return {
        "turn_id": turn.turn_id,
        "ts": turn.ts,
        "user": _user(turn),
        "assistant": _assistant(turn),
        "slots": _slots(turn.blocks),
        "artifacts": artifacts,
        "events": _events(turn.blocks),
        "tool_result_counter": len(artifacts),
    }


def rest(current: TurnTold | None, *, max_sid: int, tools: Mapping[str, Json], now: float) -> Json:
    """All of context.json but former turns and the pool. `tools` is the tool index, `now` seconds since the epoch."""
    return {
        CURRENT: current_turn(current) if current is not None else None,
        "max_sid": max_sid,
        "last_persisted_at_ts": now,
        "tool_call_index": dict(tools),
        "budget_state": _budget(current.blocks) if current is not None else None,
    }


class ToolIndex:
    """By call: its tool, and the artifacts that were told to be of it."""

    def __init__(self, tools: Mapping[str, str]) -> None:
        self.calls: dict[str, Json] = {call: {"tool_id": tool, "artifact_ids": []} for call, tool in tools.items()}

    def take(self, blocks: Iterable[Mapping[str, Any]]) -> None:
        for block in blocks:
            call, name = block.get("tool_call_id"), block.get("artifact_id")
            if block["type"] == ARTIFACT and isinstance(call, str) and isinstance(name, str):
                known = self.calls.setdefault(call, {"tool_id": block.get("tool_id"), "artifact_ids": []})
                known["artifact_ids"].append(name)
                known["turn_id"] = block["turn_id"]


def _user(turn: TurnTold) -> Json:
    prompt = _said(turn.prompt)
    return {"prompt": prompt, "attachments": list(turn.attachments)}


def _assistant(turn: TurnTold) -> Json:
    return {"completion": _said(turn.completion), "files": list(turn.files)}


def _said(block: Mapping[str, Any] | None) -> Json | None:
    if block is None:
        return None
    used = (block.get("meta") or {}).get("sources_used")
    return {"text": block.get("text"), "ts": block["ts"]} | ({"sources_used": used} if used else {})


def _artifacts(blocks: Iterable[Mapping[str, Any]]) -> Json:
    return {
        block["artifact_id"]: _stamped(record_in(block), "turn_id")
        for block in blocks
        if block["type"] == ARTIFACT and isinstance(block.get("artifact_id"), str)
    }


def _slots(blocks: Iterable[Mapping[str, Any]]) -> Json:
    """Each slot's fields at its root, as its leaves are addressed."""
    slots: Json = {}
    for block in blocks:
        value = block.get("value")
        if block["type"] == SLOT and isinstance(value, Mapping):
            told = _stamped(record_in(block), "turn_id", "slot", "value")
            slots[str(block.get("slot"))] = {**value, **told}
    return slots


def _events(blocks: Iterable[Mapping[str, Any]]) -> list[Json]:
    events: list[Json] = []
    for block in blocks:
        if block["type"] == EVENT:
            told = record_in(block)
            more = {key: item for key, item in told.items() if key not in ("turn_id", "ts", "event", "data")}
            events.append({"ts": told["ts"], "kind": told.get("event"), "data": told.get("data") or {}, **more})
    return events


def _budget(blocks: Iterable[Mapping[str, Any]]) -> Json | None:
    told = [block for block in blocks if block["type"] == BUDGET]
    return _stamped(record_in(told[-1]), "turn_id") if told else None


def _stamped(record: Mapping[str, Any], *dropped: str) -> Json:
    kept = {key: value for key, value in record.items() if key != "ts" and key not in dropped}
    return {**kept, "timestamp": record["ts"]}


# The way back.


def as_timeline(context: Mapping[str, Any], pool: Mapping[str, Any]) -> Json:
    """A session of the older generation as a timeline. What is no record of it is None among the blocks."""
    blocks: list[Json | None] = []
    turns: list[str] = []
    last = context.get(CURRENT)
    for turn_id, turn in [*_members(context.get("prior_turns")), *([("", last)] if isinstance(last, Mapping) else [])]:
        told = turn.get("turn_id") if isinstance(turn, Mapping) else None
        name = told if isinstance(told, str) else turn_id
        if not isinstance(turn, Mapping) or not is_turn_id(name):
            blocks.append(None)
            continue
        turns.append(name)
        is_last = turn is last
        blocks += _turn_blocks(name, {**turn, **({"budget_state": context.get("budget_state")} if is_last else {})})
    told_there = context.get("sources_pool")  # what is no list must not stand before a good file of its own
    rows = told_there if isinstance(told_there, list) and told_there else pool.get("sources_pool")
    return {"blocks": blocks, "sources_pool": rows, "turn_ids": list(dict.fromkeys(turns))}


def _turn_blocks(turn_id: str, turn: Mapping[str, Any]) -> Iterator[Json | None]:
    ts = turn.get("ts")
    base: Json = {"turn_id": turn_id, "ts": ts}
    yield {**base, "type": "turn.header", "author": "system", "text": f"[TURN {turn_id}]"}
    prompt = _text_in(turn.get("user"), "prompt")
    if prompt:
        path = MessagePath(turn_id, "user.prompt").logical
        yield {**base, **prompt, "type": "user.prompt", "author": "user", "path": path}
    yield from _files(base, _listed(turn.get("user"), "attachments"), "attachments")
    yield from _files(base, _listed(turn.get("assistant"), "files"), "files")
    for told in _records(turn):
        try:
            yield completed({**base, **told}, turn_id)
        except (Refusal, KeyError, TypeError, ValueError, AttributeError):
            yield None
    completion = _text_in(turn.get("assistant"), "completion")
    if completion:
        path = MessagePath(turn_id, "assistant.completion").logical
        yield {**base, **completion, "type": "assistant.completion", "author": "assistant", "path": path}


def _listed(said: Any, name: str) -> list[Any]:
    held = said.get(name) if isinstance(said, Mapping) else None
    return held if isinstance(held, list) else []


def _files(base: Json, listed: Iterable[Any], place: Place) -> Iterator[Json | None]:
    """What was told of files that lie in their turn's folder; which bytes they have, the disk says."""
    for one in listed:
        if not is_shallow(one):
            yield None  # it could be neither read nor written again
            continue
        path = file_named(str(one.get("path") or ""), base["turn_id"]) if isinstance(one, Mapping) else None
        if path is None or (path.turn_id, path.place) != (base["turn_id"], place):
            continue
        digest = {"artifact_path": path.logical, "physical_path": path.physical, "kind": "file"}
        named = {"mime": "mime", "size_bytes": "size_bytes", "sources_used": "sources_used", "summary": "description"}
        digest |= {field: one[key] for key, field in named.items() if one.get(key)}
        kind = "user.attachment.meta" if place == "attachments" else "react.tool.result"
        yield {
            **base,
            "type": kind,
            "author": "user" if place == "attachments" else "tool",
            "mime": "application/json",
            "path": path.logical,
            "text": orjson.dumps(digest).decode(),
        }


def _records(turn: Mapping[str, Any]) -> Iterator[Json]:
    for name, record in _members(turn.get("artifacts")):
        if isinstance(record, Mapping):
            told = _timed(record, *_BLOCKS_KEYS)
            yield {**told, "type": ARTIFACT, "artifact_id": name, "artifact_kind": _kind(record), "path": None}
    for name, record in _members(turn.get("slots") or turn.get("deliverables")):
        if isinstance(record, Mapping):
            held = record.get("value") if isinstance(record.get("value"), Mapping) else record
            value = {key: item for key, item in dict(held or {}).items() if key not in ("timestamp", "content_lineage")}
            lineage = record.get("content_lineage")
            told = _timed({key: record[key] for key in ("timestamp",) if key in record})
            yield {**told, "type": SLOT, "slot": name, "value": value} | (
                {"content_lineage": lineage} if isinstance(lineage, list) else {}
            )
    events = turn.get("events")
    for event in events if isinstance(events, list) else ():
        if isinstance(event, Mapping):
            yield _event(event)
    budget = turn.get("budget_state")
    if isinstance(budget, Mapping) and isinstance(budget.get("caps"), Mapping):
        yield {**_timed(budget, *_BLOCKS_KEYS), "type": BUDGET}


_BLOCKS_KEYS = ("type", "path", "meta", "text", "base64", "author", "mime", "turn_id", "ts")


def _event(event: Mapping[str, Any]) -> Json:
    """An event with what it says under `data`, where it says that at its root too."""
    said = event.get("data")
    more = {key: item for key, item in event.items() if key not in ("ts", "kind", "data", *_BLOCKS_KEYS)}
    known = {key: more[key] for key in ("tool_call_id",) if isinstance(more.get(key), str)}
    told: Json = {"type": EVENT, "event": event.get("kind"), "ts": event.get("ts")}
    return {**told, **(known if isinstance(said, Mapping) else {}), "data": said if isinstance(said, Mapping) else more}


def _kind(record: Mapping[str, Any]) -> str:
    """What an artifact is; older ones did not always say."""
    kind, value = record.get("artifact_kind"), record.get("value")
    if kind in ("inline", "file", "search"):
        return kind
    if isinstance(value, list) and value and all(isinstance(row, Mapping) and "url" in row for row in value):
        return "search"
    return "file" if isinstance(value, Mapping) and isinstance(value.get("path"), str) else "inline"


def _timed(record: Mapping[str, Any], *dropped: str) -> Json:
    """A record with its time under the name that a block has for it."""
    kept = {key: value for key, value in record.items() if key not in ("timestamp", *dropped)}
    when = record.get("timestamp") or record.get("ts")
    return {**kept, "ts": when} if when else kept


def _members(value: Any) -> list[tuple[str, Any]]:
    return [(str(name), item) for name, item in value.items()] if isinstance(value, Mapping) else []


def _text_in(said: Any, name: str) -> Json | None:
    """What was said, in any of the ways that it is kept: a text, or an object with one, or such an object inside."""
    held = said.get(name, said) if isinstance(said, Mapping) else said
    if isinstance(held, str):
        return {"text": held}
    if not isinstance(held, Mapping) or not isinstance(held.get("text"), str):
        return None
    used = held.get("sources_used")
    told: Json = {"text": held["text"]} | ({"ts": held["ts"]} if held.get("ts") else {})
    return told | ({"meta": {"sources_used": used}} if isinstance(used, list) and used else {})
