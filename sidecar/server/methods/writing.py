"""Change what stands at a path: write it, patch it, hide it from the agent."""

from __future__ import annotations

from functools import partial
from typing import Any

from protocol.requests.writing import HideParams, PatchParams, WriteParams
from sidecar.patches import Wanted
from sidecar.server.caller import Caller
from sidecar.server.methods.changing import answered_before, remembered
from sidecar.server.methods.lineage import require_own_call
from sidecar.server.methods.seeing import sees_path
from sidecar.services import Services
from sidecar.writing import Writ, target_of


async def write(services: Services, caller: Caller, params: WriteParams) -> dict[str, Any]:
    require_own_call(caller, params.tool_call_id)
    before = await answered_before(services.workspace, caller, params)
    if before is not None:
        return before
    target = target_of(services.workspace, params.path)
    writ = Writ(
        content=params.content,
        packed=params.base64,
        kind=params.kind,
        channel=params.channel,
        visibility=params.visibility,
        mime=params.mime,
        description=params.description,
        sources_used=params.sources_used,
        tool_call_id=params.tool_call_id,
        expected_sha256=params.expected_sha256,
    )
    async with services.landing.alone(target.path):
        before = await answered_before(services.workspace, caller, params)
        if before is not None:
            return before  # the same request came twice, and the other one was faster
        return await services.writing.write(target, writ, partial(remembered, caller, params))


async def patch(services: Services, caller: Caller, params: PatchParams) -> dict[str, Any]:
    require_own_call(caller, params.tool_call_id)
    before = await answered_before(services.workspace, caller, params)
    if before is not None:
        return before
    target = target_of(services.workspace, params.path)
    wanted = Wanted(
        patch=params.patch,
        kind=params.kind,
        channel=params.channel,
        tool_call_id=params.tool_call_id,
        expected_sha256=params.expected_sha256,
        sees=partial(sees_path, caller.role, services.workspace),
    )
    async with services.landing.alone(target.path):
        before = await answered_before(services.workspace, caller, params)
        if before is not None:
            return before
        return await services.patches.patch(target, wanted, partial(remembered, caller, params))


async def hide(services: Services, caller: Caller, params: HideParams) -> dict[str, Any]:
    async with services.hiding.alone:
        before = await answered_before(services.workspace, caller, params)
        if before is not None:
            return before
        return await services.hiding.hide(
            params.paths, params.replacement, params.tool_call_id, partial(remembered, caller, params)
        )
