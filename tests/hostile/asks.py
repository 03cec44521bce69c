"""Every place of every method where a text can stand, found in the protocol's own models, and params for each of them.

A new method, or a new field of one, is attacked without anybody thinking of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from protocol.methods import COMMANDS, REQUESTS

HOLE = "<here>"
DEPTH = 6
# What stands in the other places: the turn and the call of the attack, and a file that is there.
TURN, CALL, FILE = "<turn>", "<call>", "turn_0/files/honest.txt"
Json = dict[str, Any]


class Place(NamedTuple):
    """One place: who may ask, and the params with `HOLE` where the text belongs."""

    method: str
    roles: tuple[str, ...]
    params: Any

    def filled(self, text: str, *, turn: str = "turn_0", call: str = "tc_0") -> tuple[str, Json]:
        return self.method, _put(self.params, {HOLE: text, TURN: turn, CALL: call})


@cache
def places() -> tuple[Place, ...]:
    """Of every method and of every command of editors."""
    found: list[Place] = []
    for row in REQUESTS.values():
        schema = row.params.model_json_schema(by_alias=True)
        shapes = [shape for shape in _holes(schema, schema.get("$defs", {}), DEPTH) if isinstance(shape, dict)]
        found += [Place(row.method, tuple(sorted(row.asked_by)), shape) for shape in shapes]
    for command in COMMANDS.values():
        schema = command.params.model_json_schema(by_alias=True)
        for shape in _holes(schema, schema.get("$defs", {}), DEPTH):
            params = {"command": command.command, "arguments": [shape]}
            found.append(Place("workspace/executeCommand", ("editor", "exec", "renderer", "runtime"), params))
    return tuple(found)


def _holes(schema: Json, defs: Json, depth: int) -> Iterator[Any]:
    """Values of this schema with one `HOLE` in each."""
    if depth == 0:
        return
    if "$ref" in schema:
        yield from _holes(defs[schema["$ref"].rpartition("/")[2]], defs, depth)
    elif "anyOf" in schema:
        for way in schema["anyOf"]:
            yield from _holes(way, defs, depth)
    elif "enum" in schema or "const" in schema:
        return
    elif schema.get("type") == "string":
        yield HOLE
    elif schema.get("type") == "array":
        for inner in _holes(schema.get("items", {}), defs, depth - 1):
            yield [inner]
    elif schema.get("type") == "object":
        yield from _holes_of_object(schema, defs, depth)
    elif "type" not in schema:
        yield from (HOLE, {"path": HOLE})


def _holes_of_object(schema: Json, defs: Json, depth: int) -> Iterator[Json]:
    needed = [*schema.get("required", ()), *(schema.get("oneOf") or [{"required": []}])[0]["required"]]
    least = {name: _least(schema["properties"][name], defs, name) for name in needed}
    others = {name for way in schema.get("oneOf", ()) for name in way["required"]}
    for name, part in schema.get("properties", {}).items():
        rest = {key: value for key, value in least.items() if not (name in others and key in others)}
        for inner in _holes(part, defs, depth - 1):
            yield {**rest, name: inner}
    extra = schema.get("additionalProperties")
    if extra not in (None, False):
        yield {**least, HOLE: "x"}
        yield from (
            {**least, "path": inner} for inner in _holes(extra if isinstance(extra, dict) else {}, defs, depth - 1)
        )


def _least(schema: Json, defs: Json, name: str) -> Any:
    """The smallest honest value."""
    if "$ref" in schema:
        return _least(defs[schema["$ref"].rpartition("/")[2]], defs, name)
    if "anyOf" in schema:
        return _least(schema["anyOf"][0], defs, name)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "string":
            return {"turn_id": TURN, "tool_call_id": CALL, "path": FILE, "sha256": ""}.get(name, "x")
        case "integer" | "number":
            return max(schema.get("minimum", 1), 1) if schema.get("maximum") != 1 else 1
        case "boolean":
            return False
        case "array":
            return [_least(schema.get("items", {}), defs, "path")] if schema.get("minItems", 1) else []
        case "object":
            return {key: _least(schema["properties"][key], defs, key) for key in schema.get("required", ())}
        case _:
            return "x"


def _put(shape: Any, texts: dict[str, str]) -> Any:
    if isinstance(shape, str):
        return texts.get(shape, shape)
    if isinstance(shape, list):
        return [_put(inner, texts) for inner in shape]
    if isinstance(shape, dict):
        return {_put(key, texts): _put(value, texts) for key, value in shape.items()}
    return shape


# What LSP asks, at a document that is open under the hostile address and says the hostile text.
_AT = {"textDocument": {"uri": HOLE}, "position": {"line": 0, "character": 3}}
_RANGE = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
EDITOR: tuple[tuple[str, Json], ...] = (
    ("textDocument/hover", _AT),
    ("textDocument/definition", _AT),
    ("textDocument/completion", _AT),
    ("textDocument/documentLink", {"textDocument": {"uri": HOLE}}),
    ("textDocument/documentSymbol", {"textDocument": {"uri": HOLE}}),
    ("textDocument/diagnostic", {"textDocument": {"uri": HOLE}}),
    ("textDocument/inlayHint", {"textDocument": {"uri": HOLE}, "range": _RANGE}),
    ("textDocument/codeAction", {"textDocument": {"uri": HOLE}, "range": _RANGE, "context": {"diagnostics": []}}),
    ("workspace/textDocumentContent", {"uri": HOLE}),
    ("workspace/symbol", {"query": HOLE}),
    ("workspace/willRenameFiles", {"files": [{"oldUri": HOLE, "newUri": HOLE}]}),
    ("documentLink/resolve", {"range": _RANGE, "target": HOLE, "data": HOLE}),
    ("documentLink/resolve", {"range": _RANGE, "data": {"path": HOLE, "uri": HOLE}}),
    ("completionItem/resolve", {"label": HOLE, "data": HOLE}),
    ("completionItem/resolve", {"label": HOLE, "data": {"path": HOLE}}),
    ("workspaceSymbol/resolve", {"name": HOLE, "kind": 1, "location": {"uri": HOLE}, "data": HOLE}),
    ("workspace/executeCommand", {"command": HOLE, "arguments": [HOLE]}),
)


def editor_asks(text: str) -> list[tuple[str, Json]]:
    return [(method, _put(params, {HOLE: text})) for method, params in EDITOR]
