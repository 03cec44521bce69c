"""Changes that may be asked for twice: the same `request_id` with equal params answers the first result again."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel

from sidecar.core.entries import Answered, Entry
from sidecar.core.errors import Stale
from sidecar.server.caller import Caller
from sidecar.services import Services
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
    told, revision = known
    if told != asked:
        raise Stale(params.request_id, expected=told, actual=asked)
    await workspace.stage()
    return await asyncio.to_thread(workspace.answer_at, revision)


def one_meaning(handler: Callable[..., Any]) -> Callable[..., Any]:
    """A handler whose request ids mean one thing: while one is under way, the same id with other params is stale."""

    def guarded(services: Services, caller: Caller, params: Any) -> Any:
        if getattr(params, "request_id", None) is None:
            return handler(services, caller, params)
        return _alone(handler, services, caller, params)

    return guarded


async def _alone(handler: Callable[..., Any], services: Services, caller: Caller, params: Any) -> Any:
    asking, asked = services.workspace.asking, fingerprint(caller.method, params, caller.role)
    told, others = asking.get(params.request_id, (asked, 0))
    if told != asked:
        raise Stale(params.request_id, expected=told, actual=asked)
    asking[params.request_id] = (asked, others + 1)
    try:
        answer = handler(services, caller, params)
        return await answer if inspect.isawaitable(answer) else answer
    finally:
        _, count = asking.pop(params.request_id)
        if count > 1:
            asking[params.request_id] = (asked, count - 1)


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
