"""Everything a page needs is brought into OUT_DIR before it is rendered."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from protocol.requests.assets import PullParams
from sidecar.core.assets import notices_for
from sidecar.core.entries import Entry, SourceSet
from sidecar.core.errors import BadPath, JournalUnavailable, NotFound, StoreUnavailable, UnknownTurn
from sidecar.core.errors import UnsafePath as Unsafe
from sidecar.core.notices import Notice
from sidecar.core.paths import FilePath
from sidecar.core.told_blocks import notice_block
from sidecar.pulling import Brought, Hole, Pulled
from sidecar.rehost import Missing
from sidecar.server.caller import Caller
from sidecar.server.methods.aliases import parse_asked, spelled
from sidecar.server.methods.changing import answered_before, stage_answer
from sidecar.server.methods.lineage import note_use, require_open_call, require_own_call
from sidecar.server.methods.seeing import rows_for, sees_path
from sidecar.services import Services
from sidecar.settling import told

Answer = dict[str, Any]


class Eyes:
    """What the role of a caller sees."""

    def __init__(self, services: Services, caller: Caller) -> None:
        self._workspace = services.workspace
        self._role = caller.role

    def path(self, path: FilePath) -> bool:
        return sees_path(self._role, self._workspace, path)

    def rows(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return rows_for(self._role, self._workspace, rows)


async def pull(services: Services, caller: Caller, params: PullParams) -> Answer:
    """A success even with holes. With a call's id the notices are told to the timeline, once per call and code."""
    require_own_call(caller, params.tool_call_id)
    before = await answered_before(services.workspace, caller, params)
    if before is not None:
        return before
    require_open_call(services, caller, params.tool_call_id)
    turn = _turn_of(services, params)
    pulled = await _pulled(services, caller, params)
    notices = _notices(services, params, pulled)
    noted = await services.noted.codes(turn, params.tool_call_id) if params.tool_call_id is not None else set[str]()
    before = await answered_before(services.workspace, caller, params)
    if before is not None:
        return before  # the same request came twice, and the other one was faster
    joining = services.puller.joining(pulled)
    answer = _answer(services, params, pulled, notices, joining)
    note_use(services, caller, params.tool_call_id, (path for path, _ in pulled.lock))
    entries: list[Entry] = [*joining, *_blocks(params.tool_call_id, turn, notices, noted)]
    if entries or params.request_id is not None:
        try:
            await stage_answer(services.workspace, caller, params, entries, answer)
        except JournalUnavailable:
            services.noted.forget(params.tool_call_id or "")
            raise
    return answer


async def _pulled(services: Services, caller: Caller, params: PullParams) -> Pulled:
    progress = caller.progress("Pulling assets")
    eyes, mime = Eyes(services, caller), params.mime or ""
    if params.path is None:
        return await services.puller.text(params.content or "", mime, eyes, progress.report)
    asked, path = spelled(services, params.path), parse_asked(services, params.path)
    if not isinstance(path, FilePath):
        raise BadPath(asked, "a page is a file: give fi:<turn>.files/<name> or <turn>/files/<name>")
    pulled = await services.puller.file(path, mime, eyes, progress.report)
    match pulled:
        case Missing("store_unavailable", fault):
            raise StoreUnavailable(asked, "the page is only in the store", fault=fault or "unreachable")
        case Missing("unsafe_path"):
            raise Unsafe(asked, "this is no regular file below OUT_DIR")
        case Missing(reason):
            raise NotFound(asked, f"there is no such page ({reason})")
        case _:
            return pulled


def _turn_of(services: Services, params: PullParams) -> str:
    """The turn in which the notices of a call are told. Raises UnknownTurn when there is none."""
    if params.tool_call_id is None:
        return ""
    known = services.workspace.calls.latest(params.tool_call_id)
    turn = known.turn_id if known is not None else services.workspace.turn_id
    if not turn:
        raise UnknownTurn("tool_call_id", "begin a turn first")
    return turn


def _notices(services: Services, params: PullParams, pulled: Pulled) -> list[Notice]:
    known = services.workspace.calls.latest(params.tool_call_id or "")
    holes = pulled.holes.values()
    return notices_for(
        missing=[hole.name for hole in holes if hole.sid is None],
        missing_sids=sorted(pulled.missing_sids),
        missing_sid_assets=[(hole.sid, hole.name) for hole in holes if hole.sid is not None],
        exceeded=pulled.exceeded,
        tool_id=params.tool_id or (known.tool_id if known is not None else ""),
    )


def _blocks(call: str | None, turn: str, notices: Iterable[Notice], noted: set[str]) -> list[Entry]:
    """The notices that this call was not given yet, one of each code; from now on it was."""
    if call is None:
        return []
    fresh: dict[str, Notice] = {}
    for said in notices:
        if said["code"] not in noted:
            fresh.setdefault(said["code"], said)
    noted.update(fresh)
    now = time.time()
    return [told(notice_block(turn, call, said), turn, now) for said in fresh.values()]


def _answer(
    services: Services, params: PullParams, pulled: Pulled, notices: list[Notice], joining: Iterable[Entry]
) -> Answer:
    keys = services.workspace.pool.keys
    joined = {entry.row["physical_path"]: entry.row["sid"] for entry in joining if isinstance(entry, SourceSet)}

    def asset(one: Brought) -> Answer:
        physical = one.file.path.physical
        sid = joined.get(physical) or keys.latest(f"file:{physical}")
        return {
            "path": one.asked,
            "physical_path": physical,
            "sha256": one.file.sha256,
            **({"sid": sid} if sid is not None else {}),
            **({"spellings": list(one.spelled)} if one.spelled else {}),
        }

    came = pulled.brought.values()
    lock = dict(pulled.lock)
    answer: Answer = {
        "present": [asset(one) for one in came if one.file.origin == "on_disk"],
        "rehosted": [asset(one) for one in came if one.file.origin != "on_disk"],
        "missing": [_hole(hole) for hole in pulled.holes.values()],
        "files_of_sources": {str(sid): path.physical for sid, path in sorted(pulled.files_of_sources.items())},
        "sources_used": sorted(pulled.sources_used),
        "notices": notices,
        "lock": [{"path": path, "sha256": sha256} for path, sha256 in lock.items()],
    }
    if params.lock is not None:
        answer["drift"] = _drift({one.path: one.sha256 for one in params.lock}, lock)
    return answer


def _hole(hole: Hole) -> Answer:
    place = {"physical_path": hole.path.physical} if hole.path is not None else {}
    return {"path": hole.asked, **place, **hole.why.told(), **({"sid": hole.sid} if hole.sid is not None else {})}


def _drift(before: Mapping[str, str], now: Mapping[str, str]) -> list[Answer]:
    """What is not as it was, in order of path."""
    return [
        {"path": path}
        | ({"expected": before[path]} if path in before else {})
        | ({"actual": now[path]} if path in now else {})
        for path in sorted({*before, *now}, key=lambda text: text.encode("utf-8", "surrogatepass"))
        if before.get(path) != now.get(path)
    ]
