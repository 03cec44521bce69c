"""What the daemon answered, as MCP says it: text, pictures, embedded files, and errors that a model can act upon."""

from __future__ import annotations

from typing import Any

import orjson
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

from sidecar.mcp.addresses import address
from sidecar.mcp.door import NoDaemon, Refused

Json = dict[str, Any]

_CUT = ("truncated", "size_bytes", "physical_path", "next_line", "lines")


def told(method: str, result: Json) -> CallToolResult:
    """An answer. What has contents is given as such, everything else as JSON."""
    match method:
        case "artifact/read":
            rest: Json = {"status": result["status"]}
            rest |= {"notices": result["notices"]} if result["notices"] else {}
            blocks = [part for block in result["blocks"] for part in _parts(block, block.get("meta") or {})]
            return CallToolResult(content=[_json(rest), *blocks])
        case "artifact/fetch" if result.get("err") is not None:
            err = result["err"]
            return _failed(err["code"], about=err["message"], hint="", more={"details": err.get("details", {})})
        case "artifact/fetch" if isinstance(result["ret"], dict):
            ret = result["ret"]
            head = {key: value for key, value in ret.items() if key not in ("text", "base64")}
            return CallToolResult(content=[_json(head), *_parts({**ret, "path": ret["path"]}, {})])
        case _:
            return CallToolResult(content=[_json(result)], structured_content=result)


def failed(failure: Refused | NoDaemon) -> CallToolResult:
    """A refusal, with what a caller needs to do better."""
    if isinstance(failure, NoDaemon):
        return _failed("no_daemon", about=str(failure), hint="ask again once the daemon can start")
    faults = {"faults": failure.data["faults"]} if failure.data.get("faults") else {}
    kind = failure.kind or ("invalid_params" if failure.code == _INVALID_PARAMS else "failed")
    about = failure.about or (failure.message if faults else str(failure))
    return _failed(kind, about=about, hint=failure.hint, more=faults)


def contents(uri: str, fetched: Json) -> list[TextResourceContents | BlobResourceContents]:
    """What was fetched, as the contents of a resource. Raises LookupError when the bytes do not travel."""
    ret = fetched["ret"]
    if isinstance(ret, list):
        return [TextResourceContents(uri=uri, mime_type="application/json", text=_dumped(ret))]
    meta = {key: ret[key] for key in _CUT if key in ret} or None
    if ret.get("text") is not None:
        return [TextResourceContents(uri=uri, mime_type=ret["mime"], text=ret["text"], _meta=meta)]
    if ret.get("base64") is not None:
        return [BlobResourceContents(uri=uri, mime_type=ret["mime"], blob=ret["base64"], _meta=meta)]
    where = f"; open {ret['physical_path']} below OUT_DIR" if ret.get("physical_path") else ""
    raise LookupError(f"{ret['mime']} is not sent as it is{where}")


_INVALID_PARAMS = -32602


def _failed(kind: str, *, about: str, hint: str, more: Json | None = None) -> CallToolResult:
    error: Json = {"kind": kind, "about": about, "hint": hint, **(more or {})}
    text = [f"{kind}: {about}", hint]
    text += [f"{fault['where']}: {fault['problem']}" for fault in error.get("faults", ())]
    return CallToolResult(
        content=[TextContent(text="\n".join(dict.fromkeys(filter(None, text))))],
        structured_content={"error": error},
        is_error=True,
    )


def _parts(block: Json, meta: Json) -> list[ContentBlock]:
    """The contents of one block, and where the rest is when it was cut."""
    parts: list[ContentBlock] = []
    mime = block.get("mime") or "application/octet-stream"
    if block.get("text") is not None:
        parts.append(TextContent(text=block["text"]))
    elif block.get("base64") is not None and mime.startswith("image/"):
        parts.append(ImageContent(data=block["base64"], mime_type=mime))
    elif block.get("base64") is not None:
        blob = BlobResourceContents(uri=address(block["path"]), mime_type=mime, blob=block["base64"])
        parts.append(EmbeddedResource(resource=blob))
    if meta.get("truncated"):
        parts.append(_json({key: meta[key] for key in _CUT if key in meta}))
    return parts


def _json(value: Any) -> TextContent:
    return TextContent(text=_dumped(value))


def _dumped(value: Any) -> str:
    return orjson.dumps(value).decode()
