"""A tool call begins and ends."""

from __future__ import annotations

from typing import Any

from protocol.requests.call import CallBeginParams, CallEndParams, Expected
from sidecar.calls import Outcome
from sidecar.server.caller import Caller
from sidecar.server.methods.changing import Decided, answered_before, change, remembered
from sidecar.services import Services


async def begin(services: Services, caller: Caller, params: CallBeginParams) -> dict[str, Any]:
    """Open a call, and bind a connection to it where one is named."""
    call_id = params.tool_call_id
    if params.channel is not None:
        await services.channels.arrival(params.channel)

    def decide() -> Decided:
        channel = services.channels.free(params.channel) if params.channel is not None else None
        entries, result = services.calls.begin(
            call_id,
            tool_id=params.tool_id,
            params=params.params,
            turn_id=params.turn_id,
            watched=channel is not None,
        )
        named = services.lineage.in_params(call_id, params.params)
        if channel is not None:
            channel.call = call_id
        return [*entries, *named], {**result, "revision": result["revision"] + len(named)}

    return await change(services.workspace, caller, params, decide)


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
    await calls.settle_ahead(params.tool_call_id, outcome)
    prepared = await calls.prepare(params.tool_call_id, outcome)
    before = await answered_before(workspace, caller, params)
    if before is not None:
        return before  # the same request came twice, and the other one was faster
    entries, result, encoded = calls.end(params.tool_call_id, outcome, prepared)
    await workspace.stage(*entries, *remembered(caller, params, result), encoded=encoded)
    return result


def _asked(item: str | Expected) -> tuple[str, Any, str | None]:
    return (item, None, None) if isinstance(item, str) else (item.path, item.visibility, item.description)
