"""The TypeScript is printed from few shapes, and mentions everything."""

from __future__ import annotations

from typing import Any

import pytest

from protocol import export, typescript
from protocol.errors import FAILURES
from protocol.methods import COMMANDS, EVENTS, REQUESTS

EMPTY: dict[str, Any] = {"protocol_version": "1.0", "methods": {}, "commands": {}, "events": {}, "errors": []}


@pytest.fixture(scope="module")
def module() -> str:
    return typescript.render(export.schema())


@pytest.mark.parametrize("method", REQUESTS)
def test_every_method_is_mapped_to_its_params_and_result(module: str, method: str) -> None:
    row = REQUESTS[method]
    assert f'  "{method}": {{ params: {row.params.__name__}; result: {row.result.__name__} }};' in module


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_mapped_to_its_argument_and_result(module: str, command: str) -> None:
    row = COMMANDS[command]
    assert f'  "{command}": {{ params: {row.params.__name__}; result: {row.result.__name__} }};' in module


@pytest.mark.parametrize("method", EVENTS)
def test_every_event_is_mapped_to_its_payload(module: str, method: str) -> None:
    assert f'  "{method}": {EVENTS[method].payload.__name__};' in module


@pytest.mark.parametrize("failure", FAILURES, ids=lambda row: row.kind)
def test_every_failure_has_its_number(module: str, failure: Any) -> None:
    assert f"  {failure.kind}: {failure.number}," in module


def test_every_type_that_is_used_is_declared(module: str) -> None:
    for name in export.definitions():
        assert f"export interface {name} {{" in module or f"export type {name} = " in module


def test_brackets_are_balanced(module: str) -> None:
    code = "\n".join(line for line in module.splitlines() if not line.lstrip().startswith(("/*", "//")))
    assert all(code.count(left) == code.count(right) for left, right in ("{}", "[]", "<>"))


@pytest.mark.parametrize(
    ("schema", "printed"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer", "minimum": 0}, "number"),
        ({"type": "boolean"}, "boolean"),
        ({"const": "a"}, '"a"'),
        ({"enum": ["a", "b"]}, '"a" | "b"'),
        ({"$ref": "#/$defs/Artifact"}, "Artifact"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, 'Array<"a" | "b">'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "number"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "{ [key: string]: number }"),
        ({"type": "object", "additionalProperties": True}, "{ [key: string]: unknown }"),
        ({}, "unknown"),
    ],
)
def test_this_shape_is_printed_as(schema: dict[str, Any], printed: str) -> None:
    assert f"export type T = {printed};" in typescript.render({**EMPTY, "$defs": {"T": schema}})


def test_a_record_says_what_may_be_absent_and_what_it_means() -> None:
    record = {
        "type": "object",
        "description": "A thing */ indeed.",
        "properties": {"a": {"type": "string", "description": "First."}, "b": {"type": "null"}},
        "required": ["a"],
        "additionalProperties": True,
    }
    printed = typescript.render({**EMPTY, "$defs": {"Thing": record}})
    assert (
        "/** A thing * / indeed. */\nexport interface Thing {\n  /** First. */\n  a: string;\n  b?: null;\n"
        "  [key: string]: unknown;\n}\n"
    ) in printed


def test_an_unknown_shape_stops_the_printer() -> None:
    with pytest.raises(ValueError, match="shape"):
        typescript.render({**EMPTY, "$defs": {"T": {"allOf": []}}})
