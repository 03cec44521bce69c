"""The operational context of the older generation: fetch, bind, map, show."""

from __future__ import annotations

from typing import Any

from protocol.requests.context import (
    ContextBindParams,
    ContextFetchParams,
    ContextMapSlotsParams,
    ContextShowArtifactsParams,
    SlotAsked,
    SlotDue,
)
from sidecar.context.binding import Asked, is_write_tool
from sidecar.context.slots import Asked as AskedSlot
from sidecar.core.blocks import LEVELS, is_shallow
from sidecar.core.entries import BlockTold
from sidecar.core.errors import TooLarge
from sidecar.core.older_paths import OlderRefusal
from sidecar.core.slotting import Wanted
from sidecar.server.caller import Caller
from sidecar.server.methods.changing import answered_before, stage_answer
from sidecar.server.methods.lineage import note_use
from sidecar.services import Services

Answer = dict[str, Any]


async def fetch(services: Services, caller: Caller, params: ContextFetchParams) -> Answer:
    try:
        path, value = await services.context.fetcher.fetch(params.path)
    except OlderRefusal as refusal:
        details = {"path": services.context.finder.respelled(params.path)}
        return {"ret": None, "err": {"code": refusal.code, "message": refusal.message, "details": details}}
    note_use(services, caller, None, [path])
    return {"ret": value, "err": None}


async def bind(services: Services, caller: Caller, params: ContextBindParams) -> Answer:
    """A plain bind changes nothing; with a call's id the timeline is told what was bound."""
    workspace, binder = services.workspace, services.context.binder
    changing = params.tool_call_id is not None
    before = await answered_before(workspace, caller, params) if changing else None
    if before is not None:
        return before
    if not is_shallow(params.params):
        raise TooLarge("params", f"JSON may nest {LEVELS} levels deep")
    asked = Asked(
        tool_id=params.tool_id,
        params=params.params,
        paths=[(one.path, one.param_name) for one in params.fetch_context],
        budget_tokens=params.budget_tokens,
        citation_aware=params.citation_aware,
        generator=params.generator,
        write_tool=is_write_tool(params.tool_id) if params.write_tool is None else params.write_tool,
    )
    bound = await binder.bind(asked)
    note_use(services, caller, params.tool_call_id, bound.content_lineage)
    answer = {"params": bound.params, "content_lineage": bound.content_lineage, "notices": bound.notices}
    if params.tool_call_id is None:
        return answer
    before = await answered_before(workspace, caller, params)
    if before is not None:
        return before  # the same request came twice, and the other one was faster
    await stage_answer(workspace, caller, params, binder.tell(asked, bound, params.tool_call_id), answer)
    return answer


async def map_slots(services: Services, caller: Caller, params: ContextMapSlotsParams) -> Answer:
    workspace, mapper = services.workspace, services.context.slots
    before = await answered_before(workspace, caller, params)
    if before is not None:
        return before
    contract = params.contract or {}
    asked = [AskedSlot(one.slot, one.path, _wanted(one, contract.get(one.slot))) for one in params.slots]
    mapped, notices = await mapper.prepare(asked, list(contract))
    before = await answered_before(workspace, caller, params)
    if before is not None:
        return before  # the same request came twice, and the other one was faster
    entries, slots = mapper.tell(mapped)
    entries += services.lineage.declared([entry.told for entry in entries if isinstance(entry, BlockTold)])
    answer = {"slots": slots, "notices": notices}
    await stage_answer(workspace, caller, params, entries, answer)
    return answer


async def show_artifacts(services: Services, caller: Caller, params: ContextShowArtifactsParams) -> Answer:
    shown = await services.context.shower.show(params.paths)
    note_use(services, caller, None, (one["path"] for one in shown.items))
    return {"items": shown.items, "attachments": shown.attachments, "missing": shown.missing}


def _wanted(asked: SlotAsked, due: SlotDue | None) -> Wanted:
    due = due or SlotDue()
    return Wanted(
        type=due.type,
        mime=due.mime,
        format=due.format,
        description=due.description,
        draft=asked.draft,
        gaps=asked.gaps,
    )
