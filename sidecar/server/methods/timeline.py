"""The timeline: append blocks, read them, write the view."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import orjson

from protocol.base import NoParams
from protocol.requests.timeline import AppendParams, BlocksParams
from sidecar.core import limits
from sidecar.core.blocks import FLAGS, HOSTING, HOSTING_FIELDS, PATH, SUMMARY, TYPE, Defaults, Told, tell
from sidecar.core.context_blocks import TYPES, completed
from sidecar.core.entries import BlockTold, Entry
from sidecar.core.errors import NotFound, StoreUnavailable, UnknownTurn
from sidecar.core.paths import parse
from sidecar.core.standing import as_it_stands, changes_since
from sidecar.server.caller import Caller, Later
from sidecar.server.methods.changing import Decided, answered_before, remembered
from sidecar.server.methods.seeing import cut_for, sees_block, sees_named
from sidecar.server.wire import cut_block
from sidecar.services import Services
from sidecar.workspace import Workspace

BLOCKS_AT_ONCE = 100
SHORT_BYTES = 64 * limits.KIB  # of a request
BODIES_AT_ONCE = 32
PAGE_BYTES = 16 * limits.MIB  # a page ends early rather than being too large to answer


def append(services: Services, caller: Caller, params: AppendParams) -> Any:
    """What is short and need not be remembered is decided at once; it is answered when it is durable."""
    is_short = len(params.blocks) <= BLOCKS_AT_ONCE and caller.size <= SHORT_BYTES
    if params.request_id is not None or not is_short or caller.client.telling is not None:
        return _append(services, caller, params, is_short=is_short)
    workspace = services.workspace
    defaults = Defaults(workspace.turn_id, time.time())
    entries, result = _decided(services, _tell_some(params.blocks, defaults))
    return Later(workspace.stage(*entries), result)


async def _append(services: Services, caller: Caller, params: AppendParams, *, is_short: bool) -> dict[str, Any]:
    workspace, client = services.workspace, caller.client
    before = await answered_before(workspace, caller, params)
    if before is not None:
        return before
    earlier, telling = client.telling, asyncio.get_running_loop().create_future()
    client.telling = telling
    try:
        told = await _tell_all(services, params.blocks, is_short=is_short)
        if earlier is not None:
            await asyncio.wait([earlier])
        before = await answered_before(workspace, caller, params)
        if before is not None:
            return before  # the same request came twice, and the other one was faster
        entries, result = _decided(services, told)
        staged = workspace.stage(*entries, *remembered(caller, params, result))
    finally:
        telling.set_result(None)
        if client.telling is telling:
            client.telling = None
    await staged
    return result


def _decided(services: Services, told: Sequence[Told]) -> Decided:
    workspace = services.workspace
    entries: list[Entry] = [*map(BlockTold, told), *services.lineage.declared(told)]
    blocks: list[dict[str, Any]] = [
        {"index": at, "path": path} if (path := one.head[PATH]) else {"index": at}
        for at, one in enumerate(told, start=workspace.next_block)
    ]
    return entries, {"revision": workspace.next_revision + len(entries) - 1, "blocks": blocks}


async def _tell_all(services: Services, blocks: Sequence[Any], *, is_short: bool) -> list[Told]:
    """Check the blocks; those of a long append off the loop, some at a time, so that it keeps nobody waiting."""
    defaults = Defaults(services.workspace.turn_id, time.time())
    if is_short:
        return _tell_some(blocks, defaults)
    told: list[Told] = []
    for at in range(0, len(blocks), BLOCKS_AT_ONCE):
        told += await services.looker.search(partial(_tell_some, blocks[at : at + BLOCKS_AT_ONCE], defaults))
    return told


def _tell_some(blocks: Iterable[Any], defaults: Defaults) -> list[Told]:
    return [tell(_completed(block, defaults), defaults) for block in blocks]


def _completed(block: Any, defaults: Defaults) -> Any:
    return completed(block, defaults.turn_id) if block["type"] in TYPES else block


async def blocks(services: Services, caller: Caller, params: BlocksParams) -> dict[str, Any]:
    """Blocks as they stand; their JSON is spliced in, not parsed, unless it changed or must be cut."""
    workspace, timeline = services.workspace, services.workspace.timeline
    chosen: Any = range(len(timeline))
    if params.path is not None:
        logical = parse(params.path).logical or ""
        chosen = timeline.at(logical)
        if caller.role != "runtime" and not (chosen and sees_named(caller.role, workspace, logical)):
            raise NotFound(params.path)  # what is internal and what is not there are told alike
    if params.turn_id is not None:
        if not timeline.knows(params.turn_id) and params.turn_id not in workspace.turns.durable:
            raise UnknownTurn(params.turn_id)
        of_turn = timeline.of_turn(params.turn_id)
        chosen = of_turn if params.path is None else sorted({*chosen} & {*of_turn})
    end, revision = len(timeline), workspace.revision  # blocks that come while bodies are fetched are of the next page
    numbers = _page(services, caller.role, chosen, since=params.since, limit=params.limit)
    spliced: list[orjson.Fragment] = []
    budget = PAGE_BYTES
    for at in range(0, len(numbers), BODIES_AT_ONCE):
        some = numbers[at : at + BODIES_AT_ONCE]
        for number, body in zip(some, await services.looker.off_loop(workspace.bodies, some), strict=True):
            if spliced and len(body) > budget:
                return {"blocks": spliced, "next_since": number, "revision": revision}
            budget -= len(body)
            spliced.append(orjson.Fragment(_for_role(workspace, number, body, caller.role)))
    after = numbers[-1] + 1 if len(numbers) == params.limit else end
    return {"blocks": spliced, "next_since": max(after, params.since), "revision": revision}


def _for_role(workspace: Workspace, number: int, body: bytes, role: str) -> bytes:
    changes = changes_since(workspace.timeline, workspace.artifacts, number)
    head = workspace.timeline.heads[number]
    hosting = head[FLAGS] & HOSTING or not HOSTING_FIELDS.isdisjoint(changes)
    body = as_it_stands(body, changes)
    if head[TYPE] == SUMMARY and role != "runtime":
        body = orjson.dumps(cut_for(role, workspace, orjson.loads(body)))
    return cut_block(body, role) if hosting else body


def _page(services: Services, role: str, chosen: Any, *, since: int, limit: int) -> list[int]:
    numbers: list[int] = []
    for number in chosen[since:] if isinstance(chosen, range) else chosen:
        if number >= since and sees_block(role, services.workspace, number):
            numbers.append(number)
            if len(numbers) == limit:
                break
    return numbers


async def flush(services: Services, caller: Caller, _: NoParams) -> dict[str, Any]:
    caller.progress("Writing timeline.json")
    try:
        return {"files": await services.views.flush()}
    except OSError as fault:
        raise StoreUnavailable("timeline.json", os.strerror(fault.errno or 0), fault="disk_full") from fault
    except NotFound as fault:
        raise StoreUnavailable("timeline.json", "OUT_DIR is not where it was", fault="no_out_dir") from fault
