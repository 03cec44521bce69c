"""The contents of artifacts: read them as blocks, fetch them in a program, bring them back."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from protocol.requests.contents import ReadItem, ReadParams, RehostParams
from sidecar.core import limits
from sidecar.core.blocks import FLAGS, HIDDEN, TYPE, Defaults, tell
from sidecar.core.counting import binary_tokens, count_tokens, packed_size
from sidecar.core.entries import BlocksShown, BlockTold, Entry
from sidecar.core.errors import Refusal, UnknownTurn
from sidecar.core.hosting import CUT_FOR, Verbatim, without
from sidecar.core.notices import Notice, for_selector, notice
from sidecar.core.paths import FilePath, Path, PoolPath
from sidecar.pacing import Pace
from sidecar.pieces import Pieces
from sidecar.reading import Content, Window
from sidecar.rehost import Missing
from sidecar.server.caller import Caller
from sidecar.server.methods.aliases import parse_asked, spelled
from sidecar.server.methods.changing import answered_before, stage_answer
from sidecar.server.methods.lineage import note_use, require_open_call, require_own_call
from sidecar.server.methods.seeing import blocks_for, rows_for, sees_logical, sees_path
from sidecar.services import Services
from sidecar.within import about, audience

Answer = dict[str, Any]


@dataclass(slots=True)
class _Found:
    """What reading one path came to: its line in the status, and its blocks."""

    status: Answer
    blocks: list[Answer] = field(default_factory=list[Answer])
    notices: list[Notice] = field(default_factory=list[Notice])


async def read(services: Services, caller: Caller, params: ReadParams) -> Answer:
    """A status of every path first, then the blocks. With a call's id the blocks are told to the timeline."""
    require_own_call(caller, params.tool_call_id)
    changing = params.tool_call_id is not None  # a plain read changes nothing, and nothing of it is remembered
    before = await answered_before(services.workspace, caller, params) if changing else None
    if before is not None:
        return before
    require_open_call(services, caller, params.tool_call_id)
    asked = params.items or [ReadItem(path=text) for text in params.paths or ()]
    items = [item.model_copy(update={"path": spelled(services, item.path)}) for item in asked]
    found: list[_Found] = []
    pace, room = Pace(), limits.READ_BYTES
    for item in items:
        await pace.rest()
        found.append(await _read_one(services, caller, item, params, room))
        room -= sum(map(_weight, found[-1].blocks))
    missing = [one.status["path"] for one in found if "missing" in one.status]
    notices = [said for one in found for said in one.notices]
    if missing:
        notices.append(notice("read_paths_missing", missing=missing))
    status = {
        "paths": [one.status for one in found],
        "total_tokens": sum(one.status.get("tokens", 0) for one in found),
        "missing": missing,
    }
    blocks = [] if params.stats_only else [block for one in found for block in one.blocks]
    if not params.stats_only:
        read_ones = (one.status["path"] for one in found if "missing" not in one.status)
        note_use(services, caller, params.tool_call_id, read_ones)
    answer = {"status": status, "blocks": blocks, "notices": notices}
    if not changing:
        return answer
    before = await answered_before(services.workspace, caller, params)
    if before is not None:
        return before  # the same request came twice, and the other one was faster
    for block in blocks:
        for part in ("text", "base64"):
            if isinstance(long := block.get(part), Pieces):
                block[part] = Verbatim(long.text())
    entries = _shown_again(services, caller.role, params, status, blocks, notices)
    await stage_answer(services.workspace, caller, params, entries, answer)
    return answer


async def _read_one(services: Services, caller: Caller, item: ReadItem, params: ReadParams, room: int) -> _Found:
    try:
        path = parse_asked(services, item.path)
        if isinstance(path, FilePath):
            return await _read_file(services, caller, item, path, params, room)
        if isinstance(path, PoolPath):
            return await _read_pool(services, caller, item, path, params, room)
        return await _read_told(services, caller, item, path, params, room)
    except Refusal as refusal:
        if refusal.kind in ("bad_path", "unsafe_path", "not_found"):
            return _Found({"path": item.path, "missing": refusal.kind})
        raise


async def _read_file(
    services: Services, caller: Caller, item: ReadItem, path: FilePath, params: ReadParams, room: int
) -> _Found:
    workspace = services.workspace
    if path.logical is None or not sees_path(caller.role, workspace, path):
        return _Found({"path": item.path, "missing": "not_found"})
    window = Window(item.line_start, item.line_count, params.max_bytes)
    only_size = params.stats_only or room <= 0
    content = await (services.reader.known_size(path) if only_size else services.reader.file(path, window))
    if isinstance(content, Missing):
        why = content.told()
        return _Found({"path": item.path, "missing": why.pop("reason"), **why})
    used = await services.reader.sources_used(path, content)
    if not sees_path(caller.role, workspace, path):  # it became known as what it is while it was read
        return _Found({"path": item.path, "missing": "not_found"})
    status: Answer = {"path": item.path, "tokens": content.tokens}
    if content.lines is not None:
        status["lines"] = content.lines
    if _is_visible(services, path, content):
        status["status"] = "exists_in_visible_context"
        if params.tool_call_id is not None and caller.role != "exec":
            return _Found(status)  # the agent has it already; a second copy would only cost tokens
    return _Found(status, _file_blocks(services, path, content, used))


def _weight(block: Answer) -> int:
    return len(block.get("text") or "") + len(block.get("base64") or "")


def _is_visible(services: Services, path: FilePath, content: Content) -> bool:
    """Whether a block that the agent sees holds the same content."""
    if content.form != "text" or not content.text or content.lines is not None or path.logical is None:
        return False
    artifact = services.workspace.artifact(path)
    if artifact is None or not artifact.versions:
        return False
    if not services.workspace.timeline.in_view(path.logical):
        return False  # hidden, or told before the cut of the latest summary
    shown = services.workspace.shown.get(path.logical)
    return shown == hashlib.sha256(content.text.encode()).hexdigest()


def _file_blocks(services: Services, path: FilePath, content: Content, used: list[int]) -> list[Answer]:
    """The digest block, then the content block where there is content to show (seed 000)."""
    artifact = services.workspace.artifact(path)
    record = services.reader.record(artifact) if artifact is not None and artifact.versions else {}
    facts: Answer = {
        "artifact_path": path.logical,
        "physical_path": path.physical,
        "mime": content.mime,
        "kind": record.get("kind", "file"),
        "visibility": record.get("visibility", "external"),
        "size_bytes": content.size_bytes,
        **{key: record[key] for key in _DIGEST_FIELDS if record.get(key) not in (None, [])},
    }
    if used:
        facts["sources_used"] = used
    digest = orjson.dumps(facts).decode()
    base: Answer = {"type": "react.tool.result", "author": "tool", "path": path.logical, "ts": services.reader.now()}
    if path.turn_id:
        base["turn_id"] = path.turn_id
    blocks: list[Answer] = [
        {
            **base,
            "mime": "application/json",
            "text": digest,
            "meta": {"artifact_path": path.logical} | _not_read(content),
        }
    ]
    if content.form in ("text", "base64"):
        hosting = {key: record[key] for key in ("hosted_uri", "rn", "key") if key in record}
        meta = {key: value for key, value in facts.items() if key in _CONTENT_META} | hosting | {"digest": digest}
        meta |= _cut_facts(content)
        text = content.spelled or Verbatim(content.text)
        held = {"text": text} if content.form == "text" else {"base64": content.packed}
        blocks.append({**base, "mime": content.mime, **held, "meta": meta})
    return blocks


_DIGEST_FIELDS = ("channel", "description", "tool_call_id", "edited", "ts", "sha256")
_CONTENT_META = ("tool_call_id", "artifact_path", "physical_path", "mime", "kind", "visibility", "sources_used")


def _not_read(content: Content) -> Answer:
    """What the digest alone says of content that there was no room for."""
    if content.form != "unread":
        return {}
    return {"truncated": True, "size_bytes": content.size_bytes, "physical_path": content.path.physical}


def _cut_facts(content: Content) -> Answer:
    facts: Answer = {"lines": content.lines} if content.lines is not None else {}
    if content.truncated:
        facts |= {"truncated": True, "size_bytes": content.size_bytes, "physical_path": content.path.physical}
        if content.next_line is not None:
            facts["next_line"] = content.next_line
    return facts


async def _read_told(
    services: Services, caller: Caller, item: ReadItem, path: Path, params: ReadParams, room: int
) -> _Found:
    logical = path.logical or ""
    if not sees_logical(caller.role, services.workspace, logical):
        return _Found({"path": item.path, "missing": "not_found"})
    blocks = await blocks_for(services, caller.role, logical)
    if not blocks:
        return _Found({"path": item.path, "missing": "not_found"})
    tokens = sum(_block_tokens(block) for block in blocks)
    status: Answer = {"path": item.path, "tokens": tokens}
    if services.workspace.timeline.in_view(logical) and not _hidden_at(services, [logical]):
        status["status"] = "exists_in_visible_context"
        if params.tool_call_id is not None and caller.role != "exec":
            return _Found(status)
    return _Found(status, [_cut_text(block, params.max_bytes if room > 0 else 0) for block in blocks])


def _block_tokens(block: Answer) -> int:
    text = block.get("text")
    return count_tokens(text) if isinstance(text, str) else binary_tokens(packed_size(str(block.get("base64") or "")))


def _cut_text(block: Answer, most: int) -> Answer:
    text = block.get("text")
    if not isinstance(text, str) or len(text) * 4 <= most or len(raw := text.encode()) <= most:
        return block
    kept = raw[:most].decode("utf-8", "ignore")
    cut = {"truncated": True, "size_bytes": len(raw), "next_line": kept.count("\n") + 1}
    return {**block, "text": kept, "meta": {**(block.get("meta") or {}), **cut}}


async def _read_pool(
    services: Services, caller: Caller, item: ReadItem, path: PoolPath, params: ReadParams, room: int
) -> _Found:
    """Per web row one text block, per file row the blocks of its file (spec section 8)."""
    pool = services.workspace.pool
    selection = path.numbers.select(pool.sids)
    shown = rows_for(caller.role, services.workspace, (pool.rows.durable[sid] for sid in selection.found))
    rows = [without(row, CUT_FOR[caller.role]) for row in shown]
    found = _Found({"path": item.path, "tokens": 0}, [], list(for_selector(path.numbers.malformed, selection.missing)))
    if not rows:
        found.status = {"path": item.path, "missing": "not_found"}
        return found
    pace = Pace()
    for row in rows:
        await pace.rest()
        logical = row.get("artifact_path")
        if isinstance(logical, str):
            file = await _read_one(
                services, caller, ReadItem(path=logical), params, room - sum(map(_weight, found.blocks))
            )
            found.blocks += file.blocks
            found.notices += file.notices
            if "missing" in file.status:
                found.notices.append(notice("read_paths_missing", missing=[logical]))
            found.status["tokens"] += file.status.get("tokens", 0)
        else:
            text = "\n".join(
                str(part)
                for part in (
                    f"[S:{row['sid']}] {row.get('title') or ''}".rstrip(),
                    row.get("url"),
                    row.get("text") or row.get("content"),
                )
                if part
            )
            said = {"type": "react.tool.result", "author": "tool", "mime": "text/markdown", "ts": services.reader.now()}
            found.blocks.append(
                _cut_text({**said, "path": f"so:sources_pool[{row['sid']}]", "text": text}, params.max_bytes)
            )
            found.status["tokens"] += count_tokens(text)
    return found


def _shown_again(
    services: Services,
    role: str,
    params: ReadParams,
    status: Answer,
    blocks: Sequence[Answer],
    notices: Sequence[Notice],
) -> list[Entry]:
    """What a read with a call's id tells the timeline: its status, what it showed, and what to note.

    These copies make no versions. What was hidden at the paths is shown again where it stands; an agent's thinking,
    which was never to be shown, is not. What a program reads is no news to the agent: only its notices are told.
    """
    workspace = services.workspace
    call = params.tool_call_id or ""
    known = workspace.calls.latest(call)
    turn = known.turn_id if known is not None else workspace.turn_id
    if not turn:
        raise UnknownTurn("tool_call_id", "begin a turn first")
    named = [item.path for item in params.items or ()] or list(params.paths or ())
    guard = _guard(services, named)
    told: list[Answer] = []
    if role != "exec":
        told = [_result_block(f"tc:{turn}.{call}.result", status, call, guard)]
        told += [{**block, "turn_id": turn, "meta": _as_a_copy(block.get("meta") or {}, call)} for block in blocks]
    at = f"tc:{turn}.{call}.notice"
    told += [{**_result_block(at, said, call, guard), "type": "react.notice"} for said in notices]
    defaults = Defaults(turn, time.time())
    entries: list[Entry] = [BlockTold(tell(block, defaults)) for block in told]
    paths = dict.fromkeys(str(block.get("path") or "") for block in blocks) if role != "exec" else ()
    hidden = _hidden_at(services, paths)
    return [*entries, BlocksShown(hidden)] if hidden else entries


def _guard(services: Services, paths: Sequence[str]) -> Answer:
    """What keeps a status from those who may not see what it names, now or later."""
    guard: Answer = {"visibility": "internal"} if audience(services.workspace, paths) == "internal" else {}
    named = about(services.workspace, paths)
    return guard | ({"about": list(named)} if named else {})


def _as_a_copy(meta: Answer, call: str) -> Answer:
    """The `meta` of a block that is shown once more, by this call. What is shown is not hidden."""
    kept = {key: value for key, value in meta.items() if key not in ("hidden", "replacement_text")}
    return {**kept, "tool_call_id": call, "rel": "read"}


def _hidden_at(services: Services, paths: Iterable[str]) -> tuple[int, ...]:
    timeline = services.workspace.timeline
    return tuple(
        number
        for path in paths
        for number in timeline.at(path)
        if timeline.heads[number][FLAGS] & HIDDEN and timeline.heads[number][TYPE] != "react.thinking"
    )


def _result_block(path: str, said: Answer, call: str, guard: Answer) -> Answer:
    meta = {"tool_call_id": call, "rel": "result", **guard}
    text = orjson.dumps(said).decode()
    return {
        "type": "react.tool.result",
        "author": "tool",
        "mime": "application/json",
        "path": path,
        "text": text,
        "meta": meta,
    }


async def rehost(services: Services, caller: Caller, params: RehostParams) -> Answer:
    brought = await bring_back(services, caller, params.paths)
    note_use(services, caller, None, (one["path"] for one in brought["rehosted"]))
    return {**brought, "notices": []}


_BROUGHT_TOGETHER = 8 * limits.REHOSTS_AT_ONCE  # so that copies do not wait for the slowest of each few


async def bring_back(services: Services, caller: Caller, paths: Sequence[str]) -> Answer:
    """As many side by side as the rehoster allows; `rehosted` and `missing` are in request order."""
    paths = [spelled(services, text) for text in paths]
    progress = caller.progress("Bringing files back")
    done = 0

    async def one(text: str) -> Answer | Missing:
        nonlocal done
        outcome = await _rehost_one(services, caller, text)
        done += 1
        progress.report(text, 100 * done // len(paths))
        return outcome

    outcomes: list[Answer | Missing] = []
    for at in range(0, len(paths), _BROUGHT_TOGETHER):
        outcomes += await asyncio.gather(*map(one, paths[at : at + _BROUGHT_TOGETHER]))
    progress.end()
    pairs = list(zip(paths, outcomes, strict=True))
    return {
        "rehosted": [{"path": text, **outcome} for text, outcome in pairs if not isinstance(outcome, Missing)],
        "missing": [{"path": text, **outcome.told()} for text, outcome in pairs if isinstance(outcome, Missing)],
    }


async def _rehost_one(services: Services, caller: Caller, text: str) -> Answer | Missing:
    try:
        path = parse_asked(services, text)
    except Refusal as refusal:
        return Missing("unsafe_path" if refusal.kind == "unsafe_path" else "bad_path")
    if not isinstance(path, FilePath):
        return Missing("bad_path")
    if path.logical is None or not sees_path(caller.role, services.workspace, path):
        return Missing("unknown")
    brought = await services.rehoster.rehost(path)
    if isinstance(brought, Missing):
        return brought
    return {
        "physical_path": path.physical,
        "size_bytes": brought.size_bytes,
        "sha256": brought.sha256,
        "origin": brought.origin,
    }
