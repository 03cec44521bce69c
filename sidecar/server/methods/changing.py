"""Changes that may be asked for twice: the same `request_id` with equal params answers the first result again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel

from sidecar.core.entries import Answered, Entry
from sidecar.core.errors import Stale
from sidecar.server.caller import Caller
from sidecar.workspace import Applied, Workspace

Decided = tuple[Sequence[Entry], dict[str, Any]]


def fingerprint(method: str, params: BaseModel, role: str) -> str:
    """A hash of what was asked and by which role, the request id left out."""
    said = params.model_dump_json(exclude={"request_id"}, exclude_unset=True)
    return hashlib.sha256(f"{role} {method}\n{said}".encode("utf-8", "surrogatepass")).hexdigest()


async def answered_before(workspace: Workspace, caller: Caller, params: Any) -> dict[str, Any] | None:
    """The result of an earlier request with this id, once it is durable. Raises Stale when the params differ."""
    if params.request_id is None:
        return None
    known = workspace.answers.latest(params.request_id)
    if known is None:
        return None
    asked = fingerprint(caller.method, params, caller.role)
    if known.params != asked:
        raise Stale(params.request_id, expected=known.params, actual=asked)
    await workspace.stage()
    return known.result


async def change(workspace: Workspace, caller: Caller, params: Any, decide: Callable[[], Decided]) -> dict[str, Any]:
    """Decide, make durable, answer; at most once per `request_id`."""
    before = await answered_before(workspace, caller, params)
    if before is not None:
        return before
    entries, result = decide()
    await stage_answer(workspace, caller, params, entries, result)
    return result


async def stage_answer(
    workspace: Workspace, caller: Caller, params: Any, entries: Sequence[Entry], result: dict[str, Any]
) -> Applied:
    """Stage the entries and, with a `request_id`, what they are answered with."""
    return await workspace.stage(*entries, *remembered(caller, params, result))


def remembered(caller: Caller, params: Any, result: dict[str, Any]) -> list[Entry]:
    """The entry that answers the same request again; none without a `request_id`."""
    if params.request_id is None:
        return []
    return [Answered(params.request_id, fingerprint(caller.method, params, caller.role), result)]
