"""The tools: which methods of the daemon an MCP client may call, and by what name. Their params are the protocol's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from mcp_types import Tool, ToolAnnotations

from protocol.export import definitions
from protocol.methods import REQUESTS

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Offered:
    """One tool. `first` are params that it asks with unless the caller says otherwise; `without` are not offered.

    `changes` says whether it is meant to change something. A read may bring an absent file back, but only the very one.
    """

    name: str
    method: str
    title: str
    more: str = ""
    first: tuple[tuple[str, Any], ...] = ()
    changes: bool = False
    without: tuple[str, ...] = ()


# An MCP client is in no call of the timeline, so nothing is told there as the answer of one.
_CALL = ("tool_call_id",)

_ALL = (
    Offered("workspace_status", "workspace/status", "Status of the workspace"),
    Offered("outline", "workspace/outline", "Turns, calls and what they made"),
    Offered(
        "list_artifacts", "artifact/list", "List artifacts", "Begin with this; `next_cursor` leads to the next page.",
        first=(("limit", 100),),
    ),
    Offered("resolve_paths", "artifact/resolve", "Find what stands at paths"),
    Offered(
        "read_artifacts", "artifact/read", "Read artifacts",
        "Text comes as text, pictures as pictures. Give `paths` to read them whole, or `items` for ranges of lines.",
        without=_CALL,
    ),
    Offered(
        "fetch", "artifact/fetch", "Fetch one path",
        "Of any family: `fi:` files, `so:sources_pool[1,3-5]` sources, `ar:`, `tc:` and `su:` what was said.",
    ),
    Offered("artifact_versions", "artifact/versions", "Versions of an artifact"),
    Offered("artifact_lineage", "artifact/lineage", "What an artifact was made of"),
    Offered("search_files", "artifact/search", "Search names and contents"),
    Offered("list_sources", "sources/list", "List sources", "A `selector` such as `1,3-5` takes some of them."),
    Offered(
        "replace_citations", "citations/replace", "Citations into links", "A citation of source 3 is `[[S:3]]`."
    ),
    Offered("rehost_files", "artifact/rehost", "Bring files back into OUT_DIR", changes=True),
    Offered(
        "pull_assets", "assets/pull", "Bring what a page needs into OUT_DIR", "Give `content` or `path`.", changes=True,
        without=(*_CALL, "tool_id"),
    ),
    Offered("sync_workspace", "workspace/sync", "Look at the disk now", changes=True),
)  # fmt: skip


def offered(role: str) -> dict[str, Offered]:
    """The tools of a role by their names: those whose method it may ask."""
    return {tool.name: tool for tool in _ALL if tool.method in REQUESTS and role in REQUESTS[tool.method].asked_by}


def described(tool: Offered) -> Tool:
    """The tool as MCP lists it."""
    return Tool(
        name=tool.name,
        title=tool.title,
        description=" ".join(filter(None, (REQUESTS[tool.method].summary, tool.more))),
        input_schema=_schema(tool),
        annotations=ToolAnnotations(
            read_only_hint=not tool.changes, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )


def _schema(tool: Offered) -> Json:
    """The schema of the method's params, in one piece.

    References are put in, and what stands beside `properties` at the top (`oneOf`) is left to the daemon, because there
    are clients that refuse tools with either.
    """
    named = _named()
    whole: Json = _inlined(named[REQUESTS[tool.method].params.__name__], named)
    left_out = ("request_id", *tool.without)  # a `request_id` is ours to give, so that nothing is changed twice
    properties: Json = {name: one for name, one in whole.get("properties", {}).items() if name not in left_out}
    for name, value in tool.first:
        properties[name] = {**properties[name], "default": value}
    required = [name for name in whole.get("required", ()) if name in properties]
    schema: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


@cache
def _named() -> dict[str, Json]:
    return definitions()


def _inlined(schema: Any, named: dict[str, Json]) -> Any:
    match schema:
        case {"$ref": str() as name, **beside}:
            return {**_inlined(named[name.rpartition("/")[2]], named), **_inlined(beside, named)}
        case dict():
            return {key: _inlined(value, named) for key, value in schema.items()}
        case list():
            return [_inlined(value, named) for value in schema]
        case _:
            return schema
