"""The handlers, one module per noun, and the table that names them.

A handler takes the services, the caller and its params, and answers what the protocol's result says. It decides nothing
that a client in another language would have to know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from protocol.base import ChangingParams
from protocol.methods import REQUESTS
from sidecar.server.methods import (
    artifact,
    assets,
    call,
    citations,
    contents,
    context,
    conversation,
    fetching,
    lineage,
    linking,
    rendering,
    sources,
    timeline,
    turn,
    workspace,
    writing,
)
from sidecar.server.methods.changing import one_meaning
from sidecar.server.methods.gate import gated
from sidecar.services import Services

METHODS: dict[str, Callable[..., Any]] = {
    "workspace/status": workspace.status,
    "workspace/sync": workspace.sync,
    "workspace/changes": workspace.changes,
    "workspace/outline": workspace.outline,
    "turn/begin": turn.begin,
    "turn/end": turn.end,
    "turn/feedback": conversation.feedback,
    "call/begin": call.begin,
    "call/end": call.end,
    "artifact/resolve": artifact.resolve,
    "artifact/list": artifact.list_artifacts,
    "artifact/versions": artifact.versions,
    "artifact/search": artifact.search,
    "artifact/read": contents.read,
    "artifact/fetch": fetching.fetch,
    "artifact/rehost": contents.rehost,
    "artifact/write": writing.write,
    "artifact/patch": writing.patch,
    "artifact/hide": writing.hide,
    "artifact/link": linking.link,
    "artifact/lineage": lineage.lineage,
    "sources/merge": sources.merge,
    "sources/list": sources.list_sources,
    "sources/render": sources.render,
    "citations/extract": citations.extract,
    "citations/replace": citations.replace,
    "citations/stream": citations.stream,
    "assets/pull": assets.pull,
    "timeline/append": timeline.append,
    "timeline/blocks": timeline.blocks,
    "timeline/announce": rendering.announce,
    "timeline/render": rendering.render,
    "timeline/plan_compaction": rendering.plan_compaction,
    "timeline/compact": rendering.compact,
    "timeline/flush": timeline.flush,
    "conversation/save": conversation.save,
    "conversation/fetch": conversation.fetch,
    "conversation/recent": conversation.recent,
    "conversation/search": conversation.search,
    "conversation/reactions": conversation.reactions,
    "context/fetch": context.fetch,
    "context/bind": context.bind,
    "context/map_slots": context.map_slots,
    "context/show_artifacts": context.show_artifacts,
}


# What is read for these may be long, so that few of them are answered at once for one client. None of them changes the
# timeline: what was asked behind it would be decided before.
BULKY = frozenset(
    {
        "artifact/fetch", "artifact/lineage", "artifact/list", "artifact/read", "artifact/search", "artifact/versions",
        "citations/extract", "citations/replace", "context/fetch", "context/show_artifacts", "conversation/fetch",
        "conversation/recent", "conversation/search", "timeline/blocks", "timeline/plan_compaction", "timeline/render",
        "workspace/outline",
    }
)  # fmt: skip
# Blocks stand in the order in which a client told them, also when it did not wait for the answers.
ORDERED = frozenset({"timeline/append"})


def handlers(services: Services) -> dict[str, Callable[..., Any]]:
    """The table with the services put in."""
    return {method: partial(_guarded(method, handler), services) for method, handler in METHODS.items()}


def _guarded(method: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Whatever can change something takes a `request_id`; the others are asked without any detour."""
    may_change = issubclass(REQUESTS[method].params, ChangingParams)
    return gated(method, one_meaning(handler)) if may_change else handler
