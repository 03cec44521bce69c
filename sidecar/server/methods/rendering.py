"""The timeline as the agent sees it, and leaving the beginning of it to a summary."""

from __future__ import annotations

from functools import partial
from typing import Any

from protocol.requests.rendering import AnnounceParams, CompactParams, PlanParams, RenderParams
from sidecar.core import limits
from sidecar.core.notices import pending
from sidecar.pages import Sight
from sidecar.rendering import Asked, Part
from sidecar.server.caller import Caller
from sidecar.server.methods.changing import answered_before, change
from sidecar.server.methods.seeing import sees_head, sees_logical
from sidecar.services import Services


def announce(services: Services, _: Caller, params: AnnounceParams) -> dict[str, Any]:
    services.rendering.announce(params.blocks)
    return {}


async def render(services: Services, caller: Caller, params: RenderParams) -> dict[str, Any]:
    wanted: dict[Part, bool] = {"announce": params.include_announce, "sources": params.include_sources}
    parts = frozenset(part for part, included in wanted.items() if included)
    return await services.rendering.render(_sight(services, caller), Asked(params.form, parts, params.max_tokens))


async def plan_compaction(services: Services, caller: Caller, params: PlanParams) -> dict[str, Any]:
    return await services.compacting.plan(_sight(services, caller), params.keep_recent_tokens)


async def compact(services: Services, caller: Caller, params: CompactParams) -> dict[str, Any]:
    async with services.compacting.turn:
        before = await answered_before(services.workspace, caller, params)
        if before is not None:
            return before
        decided = await services.compacting.decide(params.cut, params.summary, params.embedding)
        result = {**await change(services.workspace, caller, params, lambda: decided)}
    if not await services.saver.compacted(seconds=limits.SAVING_WAIT):
        result["notices"] = [*result["notices"], pending(services.saver.reason)]
    return result


def _sight(services: Services, caller: Caller) -> Sight:
    role, workspace = caller.role, services.workspace
    return Sight(role, partial(sees_head, role, workspace), partial(sees_logical, role, workspace))
