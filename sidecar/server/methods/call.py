"""A tool call begins and ends."""

from __future__ import annotations

from typing import Any

from protocol.requests.call import CallBeginParams, CallEndParams, Expected
from sidecar.server.caller import Caller
from sidecar.server.methods.changing import answered_before, change, stage_answer
from sidecar.services import Services


async def begin(services: Services, caller: Caller, params: CallBeginParams) -> dict[str, Any]:
    return await change(
        services.workspace,
        caller,
        params,
        lambda: services.turns.begin_call(
            params.tool_call_id, tool_id=params.tool_id, params=params.params, turn_id=params.turn_id
        ),
    )


async def end(services: Services, caller: Caller, params: CallEndParams) -> dict[str, Any]:
    turns, workspace = services.turns, services.workspace
    before = await answered_before(workspace, caller, params)
    if before is not None:
        return before
    expect = turns.expected(params.tool_call_id, [_asked(item) for item in params.expect])
    unsettled = await turns.look_for_call(params.tool_call_id)
    await turns.files_have_arrived(expect)
    before = await answered_before(workspace, caller, params)
    if before is not None:
        return before  # the same request came twice, and the other one was faster
    outcome = {key: getattr(params, key) for key in ("result", "error") if key in params.model_fields_set}
    entries, result = turns.end_call(params.tool_call_id, outcome=outcome, expect=expect, unsettled=unsettled)
    await stage_answer(workspace, caller, params, entries, result)
    return result


def _asked(item: str | Expected) -> tuple[str, Any, str | None]:
    return (item, None, None) if isinstance(item, str) else (item.path, item.visibility, item.description)
