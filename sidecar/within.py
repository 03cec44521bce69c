"""The call that a change is told in: one that is open, or one of its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sidecar.core.artifacts import Visibility
from sidecar.core.blocks import FLAGS, INTERNAL, iso
from sidecar.core.entries import CallBegun, CallEnded, Entry, Used
from sidecar.core.errors import NotFound, NotPermitted, Refusal, UnknownTurn
from sidecar.core.paths import FilePath, Path, PoolPath, parse
from sidecar.core.told_blocks import Block, call_block
from sidecar.settling import told
from sidecar.workspace import Workspace

Verb = Literal["write", "patch", "hide"]


@dataclass(frozen=True, slots=True)
class Within:
    """A call. One of its own begins and ends with the change that is told in it."""

    tool_call_id: str
    turn_id: str
    tool_id: str
    is_own: bool


@dataclass(frozen=True, slots=True)
class Telling:
    """How a change is to be told: in which call, if one was named, and what was asked, for a call of its own.

    `contents` are the params that show some of a content; they are left out where it is internal. `about` are the
    artifacts, by logical path, that the call and what came of it show something of.
    """

    verb: Verb
    tool_call_id: str | None
    params: Mapping[str, Any]
    contents: Mapping[str, str] = field(default_factory=dict[str, str])
    about: Sequence[str] = ()
    uses: tuple[str, ...] = ()  # what goes into it, by logical path


def about(workspace: Workspace, paths: Iterable[str]) -> tuple[str, ...]:
    """The artifacts, by logical path, that stand at these paths or that blocks at them tell of."""
    named: set[str] = set()
    for path in _parsed(paths):
        if isinstance(path, FilePath):
            named.add(path.logical or "")
        elif isinstance(path, PoolPath):
            selection = path.numbers.select(workspace.pool.sids)
            rows = (workspace.pool.get(sid) or {} for sid in selection.found)
            named.update(str(row.get("artifact_path") or "") for row in rows)
        else:
            numbers = workspace.timeline.at(path.logical)
            named.update(logical for number in numbers for logical in workspace.timeline.abouts.get(number, ()))
    return tuple(sorted(named - {""}))


def audience(workspace: Workspace, paths: Iterable[str]) -> Visibility:
    """Who may be told of what stands at all of these paths, as it is now: the strictest of them decides."""
    paths = tuple(paths)
    artifacts = (workspace.artifacts.get(logical) for logical in about(workspace, paths))
    met = {artifact.visibility for artifact in artifacts if artifact is not None}
    timeline = workspace.timeline
    said = (number for path in _parsed(paths) for number in timeline.at(path.logical or ""))
    if "internal" in met or any(timeline.heads[number][FLAGS] & INTERNAL for number in said):
        return "internal"
    return "pending" if "pending" in met else "external"


def _parsed(paths: Iterable[str]) -> Iterator[Path]:
    for text in paths:
        try:
            yield parse(text)
        except Refusal:
            continue  # it names nothing


def within(workspace: Workspace, telling: Telling) -> Within:
    """The call that was named, else the only one that is open, else one of its own in the open turn.

    Raises UnknownTurn when no turn is open, NotFound for a call that nobody told of, NotPermitted for one that ended.
    """
    if telling.tool_call_id is not None:
        return _named(workspace, telling.tool_call_id)
    if len(workspace.open_calls) == 1:
        (call,) = workspace.open_calls
        return Within(call.tool_call_id, call.turn_id, call.tool_id, is_own=False)
    own = f"{telling.verb}_{secrets.token_hex(6)}"
    return Within(own, require_turn(workspace), f"react.{telling.verb}", is_own=True)


def require_turn(workspace: Workspace) -> str:
    """The open turn. Raises UnknownTurn."""
    if not workspace.turn_id:
        raise UnknownTurn("turn_id", "begin a turn first")
    return workspace.turn_id


def entries_in(
    call: Within,
    telling: Telling,
    blocks: Iterable[Block],
    others: Iterable[Entry],
    *,
    visibility: Visibility,
    now: float,
) -> list[Entry]:
    """The blocks told in this call, shown to nobody who may not see what they tell of, and what goes with them."""
    entries: list[Entry] = [told(_guarded(block, visibility, telling), call.turn_id, now) for block in blocks]
    if telling.uses:
        entries.append(Used(call.tool_call_id, telling.uses, "observed"))
    if not call.is_own:
        return [*entries, *others]
    return [*_begun(call, telling, visibility, now), *entries, *others, CallEnded(call.tool_call_id, now)]


def _begun(call: Within, telling: Telling, visibility: Visibility, now: float) -> list[Entry]:
    params = {**telling.params, **(telling.contents if visibility != "internal" else {})}
    asked = call_block(call.turn_id, call.tool_call_id, call.tool_id, params, iso(now))
    begun = CallBegun(call.tool_call_id, call.turn_id, call.tool_id, now, watched=True)
    return [begun, told(_guarded(asked, visibility, telling), call.turn_id, now)]


def _guarded(block: Block, visibility: Visibility, telling: Telling) -> Block:
    """Blocks at an artifact's path follow what it is, others follow the artifacts that they name.

    Those that name none must say themselves that they are not for everybody.
    """
    follows = not block["path"].startswith("tc:")
    if telling.about and not follows:
        block, follows = {**block, "meta": {**block["meta"], "about": list(telling.about)}}, True
    if visibility == "external" or (visibility == "pending" and follows):
        return block
    return {**block, "meta": {**block["meta"], "visibility": "internal"}}


def _named(workspace: Workspace, asked: str) -> Within:
    for call in workspace.open_calls:
        if call.tool_call_id == asked:
            return Within(asked, call.turn_id, call.tool_id, is_own=False)
    if workspace.calls.latest(asked) is not None:
        raise NotPermitted(asked, "this call has ended")
    if asked in workspace.timeline.tools:  # told of in a block, and never begun here
        return Within(asked, require_turn(workspace), workspace.timeline.tools[asked], is_own=False)
    raise NotFound(asked, "no call of this id is open; begin it first, or name none")
