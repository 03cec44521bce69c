"""Fetch what stands at a path, for a program: rows, a file's content, or what was said."""

from __future__ import annotations

from typing import Any

from protocol.requests.contents import FetchParams
from sidecar.core import limits
from sidecar.core.errors import Refusal
from sidecar.core.hosting import Verbatim
from sidecar.core.notices import for_selector
from sidecar.core.paths import FilePath, Path, PoolPath
from sidecar.reading import Window
from sidecar.rehost import Missing
from sidecar.server.caller import Caller
from sidecar.server.methods.aliases import parse_asked, spelled
from sidecar.server.methods.lineage import note_use
from sidecar.server.methods.seeing import blocks_for, rows_for, sees_logical, sees_path
from sidecar.services import Services

Answer = dict[str, Any]


def fetch(services: Services, caller: Caller, params: FetchParams) -> Any:
    """`fetch_ctx`: rows for a `so:` path, the content for any other; what is wrong is told in `err`."""
    text = spelled(services, params.path)
    try:
        path = parse_asked(services, text)
    except Refusal as refusal:
        return _error(refusal.kind, refusal.hint or str(refusal), text)
    if isinstance(path, PoolPath):
        note_use(services, caller, None, [params.path])
        return _fetch_rows(services, caller, path)
    return _fetch_content(services, caller, path, text)


async def _fetch_content(services: Services, caller: Caller, path: Path, text: str) -> Answer:
    try:
        if isinstance(path, FilePath):
            answer = await _fetch_file(services, caller, path, text)
        else:
            answer = await _fetch_told(services, caller, path, text)
    except Refusal as refusal:
        if refusal.kind in ("bad_path", "unsafe_path", "not_found", "store_unavailable"):
            return _error(refusal.kind, refusal.hint or str(refusal), text)
        raise
    if answer["err"] is None:
        note_use(services, caller, None, [text])
    return answer


def _fetch_rows(services: Services, caller: Caller, path: PoolPath) -> Answer:
    pool = services.workspace.pool
    selection = path.numbers.select(pool.sids)
    rows = rows_for(caller.role, services.workspace, (pool.rows.durable[sid] for sid in selection.found))
    shown = {row["sid"] for row in rows}
    missing = sorted({*selection.missing, *(sid for sid in selection.found if sid not in shown)})
    answer: Answer = {"ret": rows, "err": None, "missing": missing}
    return answer | ({"notices": list(for_selector(path.numbers.malformed, ()))} if path.numbers.malformed else {})


async def _fetch_file(services: Services, caller: Caller, path: FilePath, text: str) -> Answer:
    if path.logical is None or not sees_path(caller.role, services.workspace, path):
        return _error("not_found", "nothing is known at this path", text)
    content = await services.reader.told(path) or await services.reader.file(path, Window())
    if isinstance(content, Missing):
        code = {"unsafe_path": "unsafe_path", "store_unavailable": "store_unavailable"}.get(content.reason, "not_found")
        return _error(code, _WHY[content.reason], text, **content.told())
    used = await services.reader.sources_used(path, content)
    if not sees_path(caller.role, services.workspace, path):  # it became known as what it is while it was read
        return _error("not_found", "nothing is known at this path", text)
    artifact = services.workspace.artifact(path)
    record = services.reader.record(artifact) if artifact is not None and artifact.versions else {}
    ret: Answer = {
        "path": text,
        "kind": record.get("kind", "file"),
        "mime": content.mime,
        "physical_path": path.physical,
        "size_bytes": content.size_bytes,
    }
    if content.form == "text":
        ret["text"] = Verbatim(content.text)
    elif content.form == "base64":
        ret["base64"] = content.packed
    if content.truncated:
        ret["truncated"] = True
    if used:
        ret["sources_used"] = used
    return {"ret": ret, "err": None}


async def _fetch_told(services: Services, caller: Caller, path: Path, text: str) -> Answer:
    logical = path.logical or ""
    blocks = await blocks_for(services, caller.role, logical)
    if not blocks or not sees_logical(caller.role, services.workspace, logical):
        return _error("not_found", "no block stands at this path", text)
    newest = blocks[-1]
    joined = "\n\n".join(str(block["text"]) for block in blocks if isinstance(block.get("text"), str))
    # A call's blocks are parts of one answer; at any other path the newest block is the answer.
    said = joined if logical.startswith("tc:") else newest.get("text")
    ret: Answer = {"path": text, "kind": "display", "mime": newest["mime"]}
    if isinstance(said, str):
        raw = said.encode("utf-8", "surrogatepass")
        ret["size_bytes"] = len(raw)
        ret["text"] = (
            said if len(raw) <= limits.INLINE_TEXT_BYTES else raw[: limits.INLINE_TEXT_BYTES].decode("utf-8", "ignore")
        )
        if len(raw) > limits.INLINE_TEXT_BYTES:
            ret["truncated"] = True
    elif isinstance(newest.get("base64"), str):
        ret["base64"] = newest["base64"]
    used = (newest.get("meta") or {}).get("sources_used")
    if isinstance(used, list) and used:
        ret["sources_used"] = sorted({sid for sid in used if isinstance(sid, int)})
    return {"ret": ret, "err": None}


_WHY = {
    "unknown": "nothing is known at this path",
    "not_hosted": "its bytes were never stored",
    "gone": "its bytes are no longer kept anywhere",
    "store_unavailable": "the store did not answer",
    "unsafe_path": "this is no regular file below OUT_DIR",
    "bad_path": "this is no path of a file",
}


def _error(code: str, message: str, path: str, **details: Any) -> Answer:
    return {"ret": None, "err": {"code": code, "message": message, "details": {"path": path, **details}}}
