"""A tool call begins and ends."""

from __future__ import annotations

from typing import Any

from protocol.requests.call import CallBeginParams, CallEndParams, Expected
from sidecar.calls import Outcome
from sidecar.server.caller import Caller
from sidecar.server.methods.changing import answered_before, change, remembered
from sidecar.services import Services


async def begin(services: Services, caller: Caller, params: CallBeginParams) -> dict[str, Any]:
    return await change(
        services.workspace,
        caller,
        params,
        lambda: services.calls.begin(
            params.tool_call_id, tool_id=params.tool_id, params=params.params, turn_id=params.turn_id
        ),
    )


async def end(services: Services, caller: Caller, params: CallEndParams) -> dict[str, Any]:
    calls, workspace = services.calls, services.workspace
    before = await answered_before(workspace, caller, params)
    if before is not None:
        return before
    expect = calls.expected(params.tool_call_id, [_asked(item) for item in params.expect])
    unsettled = await calls.look(params.tool_call_id)
    held = await calls.read_produced(params.tool_call_id, expect)
    said = {key: getattr(params, key) for key in ("result", "error") if key in params.model_fields_set}
    outcome = Outcome(said, expect, unsettled, held)
    prepared = await calls.prepare(params.tool_call_id, outcome)
    before = await answered_before(workspace, caller, params)
    if before is not None:
        return before  # the same request came twice, and the other one was faster
    entries, result, encoded = calls.end(params.tool_call_id, outcome, prepared)
    await workspace.stage(*entries, *remembered(caller, params, result), encoded=encoded)
    return result


def _asked(item: str | Expected) -> tuple[str, Any, str | None]:
    return (item, None, None) if isinstance(item, str) else (item.path, item.visibility, item.description)
