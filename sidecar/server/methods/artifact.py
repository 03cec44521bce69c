"""Find artifacts: by path, by property, by what stands in them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any

from protocol.requests.artifact import ListParams, ResolveParams, SearchParams, VersionsParams
from sidecar.core.artifacts import Artifact, call_of, describe_versions
from sidecar.core.blocks import iso
from sidecar.core.errors import NotFound, Refusal, UnsafePath
from sidecar.core.notices import Notice, for_selector, notice
from sidecar.core.paths import FilePath, Path, PoolPath, parse_physical
from sidecar.pacing import Pace
from sidecar.searching import query
from sidecar.searching import search as look_through
from sidecar.server.caller import Caller
from sidecar.server.methods.aliases import parse_asked, parse_spelled, spelled
from sidecar.server.methods.seeing import may_see, rows_for, sees_block, sees_fresh, sees_path
from sidecar.server.wire import LongList, encode
from sidecar.services import Services

Answer = dict[str, Any]

PATHS_AT_ONCE = 32
LISTED_AT_ONCE = 32


def resolve(services: Services, caller: Caller, params: ResolveParams) -> Any:
    """Answered at once where few are asked for and all are known; for a file that is not, the disk is asked first."""
    if len(params.paths) > PATHS_AT_ONCE:
        return _resolve_many(services, caller, params.paths)
    if len(params.paths) == 1:
        return _resolve_one(services, caller.role, params.paths[0])
    results, unknown = _resolve_some(services, caller.role, params.paths)
    return _with_disk(services, caller.role, results, unknown) if unknown else {"results": results}


def _resolve_one(services: Services, role: str, text: str) -> Any:
    """Most ask for one path, and for the same one again. A file that is known is answered from durable state alone."""
    revision = services.workspace.revision
    known = services.unchanged.get(revision, (role, text))
    if known is not None:
        return known
    results, unknown = _resolve_some(services, role, [text])
    if unknown:
        return _with_disk(services, role, results, unknown)
    answer: Answer = {"results": results}
    (found,) = results
    if not (found["found"] and text.startswith("fi:") and found["path"] == text):
        return answer
    encoded = encode(answer, role)
    services.unchanged.keep(revision, (role, text), encoded)
    return encoded


async def _resolve_many(services: Services, caller: Caller, paths: Sequence[str]) -> Answer:
    results: list[Answer] = []
    for at in range(0, len(paths), PATHS_AT_ONCE):
        some, unknown = _resolve_some(services, caller.role, paths[at : at + PATHS_AT_ONCE])
        await _with_disk(services, caller.role, some, unknown)
        results += some
        await asyncio.sleep(0)  # others are served in between
    return {"results": results}


def _resolve_some(
    services: Services, role: str, paths: Iterable[str]
) -> tuple[list[Answer], list[tuple[int, FilePath]]]:
    results: list[Answer] = []
    unknown: list[tuple[int, FilePath]] = []
    for at, asked in enumerate(paths):
        text = spelled(services, asked)
        try:
            path = parse_spelled(services, text)
        except Refusal as refusal:
            results.append(_not_found(text, refusal.kind))
            continue
        found = _known(services, role, text, path)
        if found is None and isinstance(path, FilePath):
            unknown.append((at, path))
        results.append(found or _not_found(text, "not_found"))
    return results, unknown


async def _with_disk(
    services: Services, role: str, results: list[Answer], unknown: list[tuple[int, FilePath]]
) -> Answer:
    """What the disk says of files nobody has registered: new ones become artifacts, generic ones are what they are."""
    for at, path in unknown:
        text = results[at]["path"]
        if path.logical is None or not sees_path(role, services.workspace, path):
            continue
        try:
            record = await services.reader.unregistered(path)
        except UnsafePath as refusal:
            results[at] = _not_found(text, refusal.kind)
            continue
        found = _known(services, role, text, path)
        if found is None and record is not None:
            found = {"path": text, "found": True, "artifact": record, "notices": []}
        results[at] = found or results[at]
    return {"results": results}


def _known(services: Services, role: str, text: str, path: Path) -> Answer | None:
    workspace = services.workspace
    if isinstance(path, FilePath):
        artifact = workspace.artifact(path)
        if artifact is None or not artifact.versions or not may_see(role, artifact):
            return None
        return {"path": text, "found": True, "artifact": services.reader.record(artifact), "notices": []}
    if isinstance(path, PoolPath):
        return _pool(services, role, text, path)
    told = workspace.timeline.told(path.logical, partial(sees_block, role, workspace))
    if told is None:
        return None
    record = {key: value for key, value in told.items() if value is not None}
    record |= {
        "ts": iso(told["ts"]),
        "origin": "told",
        "on_disk": False,
        "hidden": workspace.timeline.hidden(path.logical),
        "sources_used": [],
    }
    return {"path": text, "found": True, "artifact": record, "notices": []}


def _pool(services: Services, role: str, text: str, path: PoolPath) -> Answer:
    """A slice of the pool is found when any of its numbers is; what is missing is told in a notice."""
    pool = services.workspace.pool
    selection = path.numbers.select(pool.sids)
    rows = rows_for(role, services.workspace, (pool.rows.durable[sid] for sid in selection.found))
    notices: list[Notice] = list(for_selector(path.numbers.malformed, selection.missing))
    if not rows:
        return {**_not_found(text, "not_found"), "notices": notices}
    record = {
        "artifact_path": path.logical,
        "kind": "display",
        "mime": "application/json",
        "visibility": "external",
        "edited": False,
        "version": 1,
        "origin": "told",
        "on_disk": False,
        "hidden": False,
        "ts": services.reader.now(),
        "sources_used": [row["sid"] for row in rows],
    }
    return {"path": text, "found": True, "artifact": record, "notices": notices}


def _not_found(text: str, reason: str) -> Answer:
    return {"path": text, "found": False, "reason": reason, "notices": []}


async def list_artifacts(services: Services, caller: Caller, params: ListParams) -> Answer:
    """A page in order of logical path; the cursor is the last path of the page before."""
    catalogue, pace = await services.catalogue.ready(), Pace()
    page = LongList(caller.role)
    last, after = "", params.cursor or ""
    while entries := [*islice(catalogue.after(after, params.turn_id, params.prefix or ""), LISTED_AT_ONCE)]:
        for logical, artifact in ((entry.logical, entry.artifact) for entry in entries):
            if not _is_asked_for(artifact, params) or not may_see(caller.role, artifact):
                continue
            record = services.reader.record(artifact)
            if not _fits(record, params):
                continue
            if page.count == params.limit:
                return {"artifacts": page.whole(), "next_cursor": last}
            page.add(record)
            last = logical
        after = entries[-1].logical
        await pace.rest()
    return {"artifacts": page.whole(), "next_cursor": None}


def _is_asked_for(artifact: Artifact, params: ListParams) -> bool:
    return (params.tool_call_id is None or call_of(artifact.latest) == params.tool_call_id) and (
        params.visibility is None or artifact.visibility == params.visibility
    )


def _fits(record: Answer, params: ListParams) -> bool:
    if params.kind is not None and record["kind"] != params.kind:
        return False
    if params.mime is None:
        return True
    if params.mime.endswith("/*"):
        return record["mime"].startswith(params.mime[:-1])
    return record["mime"] == params.mime


async def versions(services: Services, caller: Caller, params: VersionsParams) -> Answer:
    path = parse_asked(services, params.path)
    if isinstance(path, FilePath):
        if services.workspace.artifact(path) is None and path.logical is not None:
            await services.reader.unregistered(path)
        artifact = services.workspace.artifact(path)
        visible = artifact is not None and artifact.versions and may_see(caller.role, artifact)
        rows = describe_versions(artifact) if artifact is not None and visible else []
    else:
        sees = partial(sees_block, caller.role, services.workspace)
        rows = _timed(services.workspace.timeline.versions(path.logical, sees))
    if not rows:
        raise NotFound(spelled(services, params.path), "nothing was told or seen there")
    return {"versions": rows}


def _timed(rows: list[Answer]) -> list[Answer]:
    return [{**row, "ts": iso(row["ts"])} for row in rows]


async def search(services: Services, caller: Caller, params: SearchParams) -> Answer:
    patterns = partial(
        query,
        params.root,
        name=params.name_regex,
        content=params.content_regex,
        context=params.context_lines,
        max_hits=params.max_hits,
    )
    wanted = await services.looker.search(patterns)
    progress = caller.progress("Searching OUT_DIR")
    found = await services.looker.search(
        lambda: look_through(
            services.outdir,
            wanted,
            stop=lambda: caller.cancelled,
            hide=lambda path: not _may_find(services, caller, path),
        )
    )
    # A file may have got other bytes between the question whether it may be shown and the reading of it.
    hits = await services.looker.search(
        lambda: [hit for hit in found.hits if _may_find(services, caller, parse_physical(hit["path"]))]
    )
    progress.end()
    answer: Answer = {"root": params.root, "hits": hits}
    if found.limit is not None:
        answer |= {"truncated": True, "notices": [notice("search_truncated", limit=found.limit)]}
    return answer


def _may_find(services: Services, caller: Caller, path: FilePath) -> bool:
    return sees_fresh(caller.role, services.workspace, path, services.outdir.key)
