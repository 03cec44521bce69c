"""The conversation as it was saved: save to it, show its turns, list and search what is in it."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from protocol.base import Moment
from protocol.requests.conversation import (
    FetchTurnsParams,
    ReactionsParams,
    RecentParams,
    SaveParams,
    SearchTurnsParams,
)
from protocol.requests.turn import TurnFeedbackParams
from sidecar.conversation.contents import Onlooker
from sidecar.conversation.contributing import Contribution
from sidecar.conversation.finding import SNAPSHOTS, Pick, Question
from sidecar.core.blocks import moment_of
from sidecar.core.discretion import discreet
from sidecar.core.feedback import Reaction
from sidecar.core.hosting import CUT_FOR, without
from sidecar.core.index_rows import Filters, WrongDimension
from sidecar.pacing import to_its_end
from sidecar.server.caller import Caller
from sidecar.server.failures import Failed, wrong_params
from sidecar.server.methods.changing import answered_before, fingerprint, stage_answer
from sidecar.server.methods.seeing import sees_block, sees_logical
from sidecar.services import Services

DAY = 86_400.0


async def feedback(services: Services, caller: Caller, params: TurnFeedbackParams) -> dict[str, Any]:
    before = await answered_before(services.workspace, caller, params)
    if before is not None:
        return before
    ts = time.time() if params.ts is None else moment_of(params.ts)
    reaction = Reaction(params.turn_id, params.reaction, params.text, params.confidence, params.origin, ts)
    return await to_its_end(_rated(services, caller, params, reaction))


async def _rated(services: Services, caller: Caller, params: Any, reaction: Reaction) -> dict[str, Any]:
    result = {"saved": await services.feedback.rate(reaction, mark=_mark(caller, params))}
    await stage_answer(services.workspace, caller, params, (), result)
    return result


async def save(services: Services, caller: Caller, params: SaveParams) -> dict[str, Any]:
    before = await answered_before(services.workspace, caller, params)
    return before if before is not None else await to_its_end(_saved(services, caller, params))


async def _saved(services: Services, caller: Caller, params: SaveParams) -> dict[str, Any]:
    contributions = services.contributions
    try:
        if params.message_id is not None and params.embedding is not None:
            result = await contributions.embed(params.kind, params.message_id, params.embedding)
        else:
            result = await contributions.save(_contribution(caller, params))
    except WrongDimension as fault:
        raise Failed(wrong_params([("embedding", str(fault))])) from None
    await stage_answer(services.workspace, caller, params, (), result)
    return result


def _contribution(caller: Caller, params: SaveParams) -> Contribution:
    return Contribution(
        kind=params.kind,
        content=params.content,
        text=params.content_str,
        turn_id=params.turn_id,
        tags=params.tags,
        embedding=params.embedding,
        places="index_only" if params.index_only else "store_only" if params.store_only else "both",
        mark=_mark(caller, params),
    )


async def fetch(services: Services, caller: Caller, params: FetchTurnsParams) -> dict[str, Any]:
    pick = Pick(params.turn_ids, frozenset(params.kinds or ()), params.limit, params.cursor)
    return await services.finding.fetch(pick, _onlooker(services, caller))


async def recent(services: Services, caller: Caller, params: RecentParams) -> dict[str, Any]:
    since = time.time() - params.days * DAY if params.days is not None else _moment(params.since)
    filters = _filters(params, turn_ids=tuple(params.turn_ids or ()), since=since)
    finding = services.finding
    listed = finding.recent_contents if params.with_payload else finding.recent
    return {"items": await listed(filters, _onlooker(services, caller), limit=params.limit)}


async def search(services: Services, caller: Caller, params: SearchTurnsParams) -> dict[str, Any]:
    filters = _filters(params, since=_moment(params.since), until=_moment(params.until))
    question = Question(params.query, params.embedding, filters, params.limit)
    try:
        return {"hits": await services.finding.search(question, _onlooker(services, caller))}
    except WrongDimension as fault:
        raise Failed(wrong_params([("embedding", str(fault))])) from None


async def reactions(services: Services, _: Caller, params: ReactionsParams) -> dict[str, Any]:
    return {"reactions": await services.finding.reactions(params.turn_ids or (), _moment(params.since))}


def _onlooker(services: Services, caller: Caller) -> Onlooker:
    """What a role sees; what it is not to see is cut here, because contents are spliced into the answer."""
    role, workspace = caller.role, services.workspace
    artifact = partial(sees_logical, role, workspace)

    def cut(content: Any, turn_id: str) -> Any:
        return without(discreet(content, artifact, turn_id=turn_id), CUT_FOR[role])

    is_runtime = role == "runtime"
    return Onlooker(is_runtime, partial(sees_block, role, workspace), artifact, cut, _NONE if is_runtime else SNAPSHOTS)


_NONE: frozenset[str] = frozenset()


def _filters(params: RecentParams | SearchTurnsParams, **more: Any) -> Filters:
    return Filters(kinds=tuple(params.kinds or ()), tags=tuple(params.tags or ()), **more)


def _moment(given: Moment | None) -> float | None:
    return None if given is None else moment_of(given)


def _mark(caller: Caller, params: Any) -> str:
    """What tells a repeated request from another one; empty where it may not be repeated."""
    if params.request_id is None:
        return ""
    return f"{params.request_id}\0{fingerprint(caller.method, params, caller.role)}"
