"""A turn begins."""

from __future__ import annotations

from typing import Any

from protocol.requests.turn import TurnBeginParams
from sidecar.core.blocks import moment_of
from sidecar.server.caller import Caller
from sidecar.server.methods.changing import change, fingerprint
from sidecar.services import Services


async def begin(services: Services, caller: Caller, params: TurnBeginParams) -> dict[str, Any]:
    asked = params.conversation.model_dump(exclude_none=True) if params.conversation is not None else {}
    await services.turns.files_have_arrived()
    return await change(
        services.workspace,
        caller,
        params,
        lambda: services.turns.begin(
            params.turn_id,
            prompt=params.prompt,
            conversation=asked,
            ts=None if params.ts is None else moment_of(params.ts),
            params=fingerprint(caller.method, params, caller.role),
        ),
    )
