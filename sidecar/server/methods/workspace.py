"""The workspace as a whole: how it is, what is new in it, what changed since."""

from __future__ import annotations

from typing import Any

from protocol.base import NoParams
from protocol.requests.workspace import ChangesParams, SyncParams
from sidecar.core.blocks import iso
from sidecar.core.changelog import Change
from sidecar.pacing import Pace
from sidecar.server.caller import Caller
from sidecar.server.methods.seeing import rows_for, sees_block, sees_logical, visible_to
from sidecar.services import Services

ROWS_AT_ONCE = 1000


async def status(services: Services, caller: Caller, _: NoParams) -> dict[str, Any]:
    workspace, counts = services.workspace, await _counts(services, caller.role)
    answer: dict[str, Any] = {
        "revision": workspace.revision,
        "out_dir": services.outdir.root,
        "conversation": workspace.facts.get("conversation", {}),
        "counts": counts,
        "watcher": {**services.watch_state(), "over_limit": services.looker.over_limit},
        "store": services.hosting.state(),
        "conversation_store": _conversation_store(services),
        "clients": services.clients(),
        "uptime_seconds": services.uptime(),
    }
    if services.looker.last_look:
        answer["watcher"]["last_look"] = iso(services.looker.last_look)
    if workspace.durable_turn_id:
        answer["turn_id"] = workspace.durable_turn_id
    return answer


async def _counts(services: Services, role: str) -> dict[str, int]:
    """How much there is: of artifacts, versions and sources what the role may see, of turns and blocks all."""
    workspace, pace = services.workspace, Pace()
    artifacts, versions = await services.outlining.totals(visible_to(role))
    sources = len(workspace.pool)
    if "pending" not in visible_to(role):
        rows = workspace.pool.all_rows()
        sources = 0
        for at in range(0, len(rows), ROWS_AT_ONCE):
            sources += len(rows_for(role, workspace, rows[at : at + ROWS_AT_ONCE]))
            await pace.rest()
    return {
        "turns": len(workspace.turn_ids),
        "blocks": len(workspace.timeline),
        "artifacts": artifacts,
        "sources": sources,
        "versions": versions,
    }


def _conversation_store(services: Services) -> dict[str, Any]:
    standing, unsaved = services.lease.standing, services.saver.unsaved
    answer: dict[str, Any] = {**services.archive.state(), **services.lease.status()}
    answer |= {"change": standing.change, "next_block": standing.next_block}
    return answer | ({"unsaved": unsaved} if unsaved else {})


async def sync(services: Services, caller: Caller, params: SyncParams) -> dict[str, Any]:
    workspace = services.workspace
    progress = caller.progress("Looking at OUT_DIR")
    since = caller.synced if params.since is None else params.since
    await services.looker.look("")
    progress.end()
    reached = workspace.log.reaches(since, workspace.revision)
    changes = workspace.log.listed(since if reached else 0)
    artifacts, sources = _registered(services, caller.role, changes)
    caller.synced = workspace.revision
    answer: dict[str, Any] = {
        "revision": workspace.revision,
        "artifacts": artifacts,
        "sources": sources,
        "unsettled": sorted(services.looker.busy),
    }
    return answer | ({"truncated": True} if services.looker.over_limit or not reached else {})


def _registered(services: Services, role: str, changes: Any) -> tuple[list[str], list[int]]:
    workspace = services.workspace
    paths: dict[str, None] = {}
    sids: dict[int, None] = {}
    for _, kind, about in changes:
        if kind == "artifact" and sees_logical(role, workspace, about):
            paths[about] = None
        elif kind == "source":
            row = workspace.pool.get(about) or {}
            if sees_logical(role, workspace, str(row.get("artifact_path") or "")):
                sids[about] = None
    return list(paths), sorted(sids)


async def outline(services: Services, caller: Caller, _: NoParams) -> dict[str, Any]:
    return await services.outlining.outline(
        visible_to(caller.role), lambda number: sees_block(caller.role, services.workspace, number)
    )


def changes(services: Services, caller: Caller, params: ChangesParams) -> dict[str, Any]:
    workspace = services.workspace
    if not workspace.log.reaches(params.since, workspace.revision):
        return {"revision": workspace.revision, "fresh": True, "changes": []}
    page: list[dict[str, Any]] = []
    last = 0
    for change in workspace.log.since(params.since, workspace.timeline):
        # Changes of one revision stay on one page, since a client goes on from a revision.
        if len(page) >= params.limit and change.revision != last:
            break
        last = change.revision
        if _is_shown(services, caller.role, change):
            page.append(_shown(change))
    return {"revision": workspace.revision, "fresh": False, "changes": page}


def _is_shown(services: Services, role: str, change: Change) -> bool:
    workspace = services.workspace
    match change.kind:
        case "artifact":
            return sees_logical(role, workspace, str(change.about))
        case "block":
            return sees_block(role, workspace, int(change.about))
        case "source":
            row = workspace.pool.get(int(change.about)) or {}
            return sees_logical(role, workspace, str(row.get("artifact_path") or ""))
        case "notice":
            return True


_FIELD = {"artifact": "path", "source": "sid", "block": "index"}


def _shown(change: Change) -> dict[str, Any]:
    shown: dict[str, Any] = {"revision": change.revision, "kind": change.kind}
    if change.kind in _FIELD:
        shown[_FIELD[change.kind]] = change.about
    return shown
