"""What was made of what, as far as a role may know; and the call that a request is made in."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from protocol.requests.lineage import LineageParams
from sidecar.core.errors import NotFound, NotPermitted
from sidecar.core.paths import FilePath
from sidecar.server.caller import Caller
from sidecar.server.methods.aliases import parse_asked, spelled
from sidecar.server.methods.seeing import sees_named
from sidecar.services import Services
from sidecar.workspace import Workspace


async def lineage(services: Services, caller: Caller, params: LineageParams) -> dict[str, Any]:
    """Edges of what this role sees; anything else is as if it were not there."""
    path = parse_asked(services, params.path)
    sees = partial(_sees, caller.role, services.workspace)
    if isinstance(path, FilePath) and path.logical is not None and services.workspace.artifact(path) is None:
        await services.reader.unregistered(path)
    edges, complete = await services.lineage.trace(path, params.direction, params.depth, sees)
    if not edges and not services.lineage.knows(path, sees):
        raise NotFound(spelled(services, params.path), "nothing was told or seen there")
    told = [
        {"from": edge.source, "to": edge.target, "how": edge.how}
        | ({"tool_call_id": edge.tool_call_id} if edge.tool_call_id else {})
        for edge in edges
    ]
    return {"edges": told, "complete": complete}


def require_own_call(caller: Caller, call_id: str | None) -> None:
    """The runtime may name any call, others only the one that their channel is bound to (spec section 7)."""
    if call_id is None or caller.role == "runtime" or call_id == caller.client.call:
        return
    said = f"this connection is bound to {caller.client.call}" if caller.client.call else "it is bound to no call"
    raise NotPermitted("tool_call_id", said)


def require_open_call(services: Services, caller: Caller, call_id: str | None) -> None:
    """What a program tells in its call is told while the call is open; what came before is answered again all the same.

    The runtime says itself what belongs together.
    """
    if call_id is None or caller.role == "runtime":
        return
    known = services.workspace.calls.latest(call_id)
    if known is None or not known.open:
        raise NotPermitted(call_id, "this call has ended")


def note_use(services: Services, caller: Caller, call_id: str | None, paths: Iterable[str]) -> None:
    """What was answered within a call went into what the call makes. It is a call's when it is named, or bound."""
    if call := call_id or caller.client.call:
        alias = services.context.finder.alias
        services.lineage.observed(call, (alias(path) or path for path in paths))


def _sees(role: str, workspace: Workspace, node: str) -> bool:
    return node.startswith("so:") or sees_named(role, workspace, node)
