"""The one place where changes are refused to a daemon that does not write the conversation, before anything happens."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from protocol.base import ChangingParams
from sidecar.server.caller import Caller
from sidecar.services import Services

OPEN = frozenset({"turn/feedback"})  # a reaction is kept in the index, whoever writes
ONLY_IN_A_CALL = frozenset({"artifact/read", "assets/pull"})  # these change something when they are told of a call


def gated(method: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    """The handler of a method, for writers alone where it is asked to change something."""
    if method in OPEN:
        return handler
    if method == "turn/begin":
        return _beginning(handler)

    def guarded(services: Services, caller: Caller, params: Any) -> Any:
        if changes(method, params):
            if services.lease.doubtful:
                return _settled(handler, services, caller, params)
            services.lease.require()
        return handler(services, caller, params)

    return guarded


def changes(method: str, params: Any) -> bool:
    """Whether this request changes the conversation."""
    if method in ONLY_IN_A_CALL:
        return params.tool_call_id is not None
    return isinstance(params, ChangingParams)


async def _settled(handler: Callable[..., Any], services: Services, caller: Caller, params: Any) -> Any:
    """We were stopped, or slept, beyond the lease's end: somebody else may have gone on meanwhile."""
    await services.lease.settle()
    services.lease.require()
    answer = handler(services, caller, params)
    return await answer if inspect.isawaitable(answer) else answer


def _beginning(handler: Callable[..., Any]) -> Callable[..., Any]:
    """A turn may be the first to name the conversation, and the moment to become its writer."""

    async def guarded(services: Services, caller: Caller, params: Any) -> Any:
        if params.conversation is not None:
            await services.resumer.named(params.conversation.model_dump(exclude_none=True))
        await services.lease.confirm()
        services.lease.require()
        await services.reacting.begin_turn()
        answer = handler(services, caller, params)
        return await answer if inspect.isawaitable(answer) else answer

    return guarded
