"""A turn begins; calls begin and end in it, and what they produced is settled."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from sidecar.core import limits
from sidecar.core.artifacts import Artifact, Visibility
from sidecar.core.blocks import LEVELS, Defaults, is_shallow, iso, tell
from sidecar.core.entries import (
    BlockTold,
    CallBegun,
    CallEnded,
    Entry,
    Noticed,
    Promised,
    Remembered,
    SourceSet,
    TurnBegun,
    TurnEnded,
)
from sidecar.core.errors import NotFound, NotPermitted, Refusal, TooLarge, UnknownTurn
from sidecar.core.notices import Notice, notice
from sidecar.core.paths import CallPath, FilePath, MessagePath, parse, rewrite
from sidecar.core.registration import settle
from sidecar.core.state import Call
from sidecar.looking import Looker
from sidecar.reading import Reader
from sidecar.workspace import Workspace

Decided = tuple[Sequence[Entry], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Expected:
    """A file that a call was meant to make."""

    path: FilePath | None
    asked: str
    visibility: Visibility | None
    description: str | None


class Turns:
    """Decides what turns and calls change. Every method answers entries to stage and the result to give."""

    def __init__(self, workspace: Workspace, looker: Looker, reader: Reader, *, eligible: Sequence[str]) -> None:
        self._workspace = workspace
        self._looker = looker
        self._reader = reader
        self._eligible = eligible

    def begin(
        self, turn_id: str, *, prompt: str | None, conversation: Mapping[str, str], ts: float | None, params: str
    ) -> Decided:
        """Begin a turn, or answer again when it is open with equal params.

        Raises NotPermitted for an ended turn, an open one with other params, and another conversation.
        """
        workspace = self._workspace
        answer: dict[str, Any] = {"turn_id": turn_id, "notices": []}
        known = workspace.turns.latest(turn_id)
        if known is not None and known.ended:
            raise NotPermitted(turn_id, "this turn has ended; begin another one")
        if known is not None and workspace.turn_id == turn_id:
            if known.params != params:
                raise NotPermitted(turn_id, "this turn is open and was begun with other params")
            return (), answer
        now = time.time() if ts is None else ts
        entries: list[Entry] = [*self._identify(conversation), *self._abandon(now)]
        entries.append(TurnBegun(turn_id, now, params))
        entries.append(_block({"type": "turn.header", "author": "system", "text": f"[TURN {turn_id}]"}, turn_id, now))
        if prompt is not None:
            path = MessagePath(turn_id, "user.prompt").logical
            told = {"type": "user.prompt", "author": "user", "path": path, "text": prompt}
            entries.append(_block(told, turn_id, now))
        return entries, answer

    def begin_call(self, call_id: str, *, tool_id: str, params: Mapping[str, Any], turn_id: str | None) -> Decided:
        """Open a call. Raises NotPermitted for an id that was used, UnknownTurn when no turn is open or known."""
        workspace = self._workspace
        turn = turn_id or workspace.turn_id
        if not turn or not workspace.has_turn(turn):
            raise UnknownTurn(turn or "turn_id", "begin a turn first")
        if workspace.calls.latest(call_id) is not None or call_id in workspace.timeline.tools:
            raise NotPermitted(call_id, "this tool_call_id was used; every call has its own")
        if not is_shallow(params):
            raise TooLarge("params", f"JSON may nest {LEVELS} levels deep")
        now = time.time()
        said = {"tool_id": tool_id, "tool_call_id": call_id, "params": dict(params), "ts": iso(now)}
        block = {
            "type": "react.tool.call",
            "mime": "application/json",
            "path": CallPath(turn, call_id, "call").logical,
            "text": orjson.dumps(said).decode(),
            "meta": {"tool_call_id": call_id, "tool_id": tool_id},
        }
        entries = [CallBegun(call_id, turn, tool_id, now), _block(block, turn, now)]
        return entries, {"tool_call_id": call_id, "turn_id": turn, "revision": workspace.next_revision + 1}

    async def look_for_call(self, call_id: str) -> tuple[str, ...]:
        """Look at the disk for the end of a call; answers the files that stay open. Raises NotFound."""
        self._open(call_id)
        await self._looker.look("")
        return await self._looker.wait_closed(limits.STILL_OPEN_WAIT)

    async def files_have_arrived(self, expect: Iterable[Expected] = ()) -> None:
        """Wait for newer states of files that are about to be settled; settling an older one would bury them."""
        workspace = self._workspace
        named = [item.path.physical for item in expect if item.path is not None]
        while workspace.arriving([*named, *(artifact.path.physical for artifact in workspace.pending.values())]):
            await workspace.stage()

    def expected(self, call_id: str, asked: Iterable[tuple[str, Visibility | None, str | None]]) -> list[Expected]:
        """Read what a call was meant to make. What is no path of a file can only be missing."""
        turn = self._open(call_id).turn_id
        return [Expected(_target(text, turn), text, visibility, words) for text, visibility, words in asked]

    def end_call(
        self,
        call_id: str,
        *,
        outcome: Mapping[str, Any],
        expect: Sequence[Expected],
        unsettled: Sequence[str],
    ) -> Decided:
        """Close a call: settle and number what it produced, say what is missing. Raises NotFound for no open call.

        `outcome` holds `result` or `error`, as far as the tool gave one.
        """
        call = self._open(call_id)
        if not is_shallow(outcome):
            raise TooLarge("result", f"JSON may nest {LEVELS} levels deep")
        now = time.time()
        named = {item.path: item for item in expect if item.path is not None}
        late = [item for path, item in named.items() if path.physical in unsettled]
        mine, ambiguous = self._produced(call, named)
        settled = [(artifact, _wanted(named.get(artifact.path))) for artifact in mine]
        entries = settle(settled, call=call_id, pool=self._workspace.pool, eligible=self._eligible, ts=now)
        entries += settle(
            [(artifact, "external") for artifact in ambiguous],
            call="", pool=self._workspace.pool, eligible=self._eligible, ts=now,
        )  # fmt: skip
        sids = {entry.row["artifact_path"]: entry.row["sid"] for entry in entries if isinstance(entry, SourceSet)}
        records = [self._settled_record(artifact, visibility, call, sids) for artifact, visibility in settled]
        records.sort(key=lambda record: record["physical_path"].encode())
        missing = [item.asked for item in expect if item not in late and not self._is_there(item.path)]
        notices = _notices(ambiguous, missing, unsettled)
        words = {path.logical: item.description for path, item in named.items() if item.description}
        entries += [_block(_digest_block(record, call, words), call.turn_id, now) for record in records]
        entries += [_block(block, call.turn_id, now) for block in _outcome_blocks(call, outcome, missing, now)]
        entries += [Promised(path.physical, call_id, _wanted(item)) for path, item in named.items() if item in late]
        entries.append(CallEnded(call_id, now))
        entries += [Noticed(said) for said in notices if said["code"] == "attribution_ambiguous"]
        return entries, {"artifacts": records, "missing": missing, "unsettled": list(unsettled), "notices": notices}

    def _open(self, call_id: str) -> Call:
        for call in self._workspace.open_calls:
            if call.tool_call_id == call_id:
                return call
        raise NotFound(call_id, "no call of this id is open")

    def _produced(self, call: Call, named: Mapping[FilePath, Expected]) -> tuple[list[Artifact], list[Artifact]]:
        """What this call made, and what nobody claims once the last open call ends."""
        pending = list(self._workspace.pending.values())
        mine = [
            artifact
            for artifact in pending
            if artifact.owner == call.tool_call_id or (not artifact.owner and artifact.path in named)
        ]
        internal = [
            artifact
            for path, item in named.items()
            if item.visibility is not None
            and (artifact := self._workspace.artifact(path)) is not None
            and artifact.fact is not None
            and artifact not in mine
            and artifact.visibility not in ("pending", item.visibility)
        ]
        last = len(self._workspace.open_calls) == 1
        orphans = [artifact for artifact in pending if last and artifact not in mine]
        return mine + internal, orphans

    def _is_there(self, path: FilePath | None) -> bool:
        artifact = self._workspace.artifact(path) if path is not None else None
        return artifact is not None and artifact.on_disk

    def _settled_record(
        self, artifact: Artifact, visibility: Visibility, call: Call, sids: Mapping[str, int]
    ) -> dict[str, Any]:
        """The artifact as it will stand when the end of its call is applied."""
        record = self._reader.record(artifact)
        sid = sids.get(record["artifact_path"], artifact.sid)
        # The digest that is told beside it makes it an artifact both told and seen.
        record |= {
            "visibility": visibility,
            "origin": "both",
            "tool_call_id": call.tool_call_id,
            "tool_id": call.tool_id,
        }
        return record | ({"sid": sid} if sid is not None else {})

    def _abandon(self, now: float) -> list[Entry]:
        """Another turn is open: it ends as abandoned, with the calls in it."""
        workspace = self._workspace
        if not workspace.turn_id:
            return []
        entries: list[Entry] = []
        for call in workspace.open_calls:
            made = [
                (artifact, _wanted(None))
                for artifact in workspace.pending.values()
                if artifact.owner == call.tool_call_id
            ]
            entries += settle(made, call=call.tool_call_id, pool=workspace.pool, eligible=self._eligible, ts=now)
            entries.append(CallEnded(call.tool_call_id, now))
        orphans: list[tuple[Artifact, Visibility]] = [
            (artifact, "external") for artifact in workspace.pending.values() if not artifact.owner
        ]
        entries += settle(orphans, call="", pool=workspace.pool, eligible=self._eligible, ts=now)
        return [*entries, TurnEnded(workspace.turn_id, now, "abandoned")]

    def _identify(self, asked: Mapping[str, str]) -> list[Entry]:
        """The conversation is named by the first turn that names one; another conversation is refused afterwards."""
        facts = self._workspace.latest_facts
        open_now: dict[str, str] = facts.get("conversation", {})
        wanted = {key: value for key, value in asked.items() if value}
        if not wanted:
            return []
        if facts.get("named"):
            if wanted.get("conversation_id", open_now.get("conversation_id")) != open_now.get("conversation_id"):
                raise NotPermitted(wanted["conversation_id"], "another conversation needs another OUT_DIR")
            if wanted.items() <= open_now.items():
                return []
        return [Remembered({"conversation": {**open_now, **wanted}, "named": True})]


def _block(block: Mapping[str, Any], turn_id: str, now: float) -> BlockTold:
    return BlockTold(tell(block, Defaults(turn_id, now)))


def _target(text: str, turn_id: str) -> FilePath | None:
    """A file that a call names: a full path as it stands, a bare name in the call's turn; None for what is neither."""
    try:
        path = parse(text)
        return path if isinstance(path, FilePath) and path.place else rewrite(text, current_turn=turn_id).path
    except Refusal:
        return None


def _wanted(item: Expected | None) -> Visibility:
    return item.visibility if item is not None and item.visibility is not None else "external"


_DIGEST_FIELDS = (
    "artifact_path", "physical_path", "mime", "kind", "visibility", "tool_call_id", "edited", "ts", "size_bytes",
    "sha256",
)  # fmt: skip


def _digest_block(record: Mapping[str, Any], call: Call, words: Mapping[str | None, str | None]) -> dict[str, Any]:
    """The metadata block of a produced file: a safe digest as text (seed 000)."""
    digest = {key: record[key] for key in _DIGEST_FIELDS if record.get(key) is not None}
    if words.get(record["artifact_path"]):
        digest["description"] = words[record["artifact_path"]]
    return {
        "type": "react.tool.result",
        "mime": "application/json",
        "path": CallPath(call.turn_id, call.tool_call_id, "result").logical,
        "text": orjson.dumps(digest).decode(),
        "meta": {"tool_call_id": call.tool_call_id, "tool_id": call.tool_id},
    }


def _outcome_blocks(call: Call, outcome: Mapping[str, Any], missing: Sequence[str], now: float) -> list[dict[str, Any]]:
    """What the tool answered, its error, and an error for each file that is missing."""
    said: list[dict[str, Any]] = []
    if outcome:
        said.append({"tool_call_id": call.tool_call_id, **outcome, "ts": iso(now)})
    for path in missing:
        error = {
            "code": "missing_artifact",
            "message": "this file was expected and is not there",
            "details": {"path": path},
        }
        said.append({"tool_call_id": call.tool_call_id, "error": error, "ts": iso(now)})
    return [
        {
            "type": "react.tool.result",
            "author": "tool",
            "mime": "application/json",
            "path": CallPath(call.turn_id, call.tool_call_id, "result").logical,
            "text": orjson.dumps(one).decode(),
            "meta": {"tool_call_id": call.tool_call_id, "tool_id": call.tool_id},
        }
        for one in said
    ]


def _notices(ambiguous: Iterable[Artifact], missing: Sequence[str], unsettled: Sequence[str]) -> list[Notice]:
    said = [notice("attribution_ambiguous", path=artifact.path.physical) for artifact in ambiguous]
    if missing:
        said.append(notice("missing_artifact", missing=list(missing)))
    if unsettled:
        said.append(notice("still_open", paths=list(unsettled)))
    return said
