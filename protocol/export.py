"""Writes the wire down for those who do not read Python: as JSON Schema, as a reference, as TypeScript.

What is generated is committed, and `stale()` says which of it is no longer what would be generated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from protocol import reference, typescript
from protocol.context_blocks import CONTEXT_BLOCKS, FileValue, told_apart
from protocol.errors import FAILURES
from protocol.handshake import Envelope, InitializationOptions, SidecarCapability
from protocol.methods import COMMANDS, EVENTS, REQUESTS
from protocol.notices import NOTICES
from protocol.version import PROTOCOL_VERSION

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
CASES = Path("tests/conformance/cases")


class _Plain(GenerateJsonSchema):
    """Leaves out titles, which repeat the names, and null defaults, which stand for absent fields."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - the signature is pydantic's
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        plain = super().default_schema(schema)
        if plain.get("default", ...) is None:
            del plain["default"]
        return plain


def schema() -> Json:
    """Everything that the wire is, as one JSON document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "protocol_version": PROTOCOL_VERSION,
        "initialize": {
            "initializationOptions": _ref(InitializationOptions),
            "capabilities.experimental.artifact_sidecar": _ref(SidecarCapability),
        },
        "every_request": _ref(Envelope),
        "methods": {
            row.method: {
                "direction": "client_to_daemon",
                "summary": row.summary,
                "asked_by": sorted(row.asked_by),
                "params": _ref(row.params),
                "result": _ref(row.result),
                "fails_with": list(row.fails_with),
                "progress": row.progress,
            }
            for row in REQUESTS.values()
        },
        "commands": {
            row.command: {
                "direction": "client_to_daemon",
                "summary": row.summary,
                "params": _ref(row.params),
                "result": _ref(row.result),
                "fails_with": list(row.fails_with),
                "progress": row.progress,
            }
            for row in COMMANDS.values()
        },
        "events": {
            row.method: {
                "direction": "daemon_to_client",
                "summary": row.summary,
                "topic": row.topic,
                "params": _ref(row.payload),
            }
            for row in EVENTS.values()
        },
        "errors": [
            {"number": row.number, "kind": row.kind, "sentence": row.sentence}
            | ({"data": _ref(row.data)} if row.data else {})
            for row in FAILURES
        ],
        "notices": [
            {
                "code": row.code,
                "level": row.level,
                "sentence": row.sentence,
                "fields": list(row.fields),
                "may_have": list(row.may_have),
            }
            for row in NOTICES.values()
        ],
        "$defs": definitions(),
    }


def definitions() -> dict[str, Json]:
    """The JSON Schema of every type, by name. Params as they are taken, everything else as it is sent."""
    taken: list[type[BaseModel]] = [InitializationOptions, Envelope, *(row.params for row in REQUESTS.values())]
    taken += [row.params for row in COMMANDS.values()]
    taken += [*CONTEXT_BLOCKS.values(), FileValue]
    sent: list[type[BaseModel]] = [SidecarCapability, *(row.result for row in REQUESTS.values())]
    sent += [row.result for row in COMMANDS.values()]
    sent += [row.payload for row in EVENTS.values()]
    sent += [row.data for row in FAILURES if row.data]
    wanted = [*_in_mode(taken, "validation"), *_in_mode(sent, "serialization")]
    _, document = models_json_schema(wanted, schema_generator=_Plain)
    named = cast("dict[str, Json]", document["$defs"])
    for definition in named.values():
        definition.pop("title", None)
    appended = named["AppendParams"]["properties"]["blocks"]
    appended["items"] = told_apart(appended["items"])
    return {name: named[name] for name in sorted(named)}


def generated(root: Path = ROOT) -> dict[str, str]:
    """What each generated file should hold, by its path below the root."""
    document = schema()
    return {
        "protocol/schema.json": json.dumps(document, indent=2, ensure_ascii=False) + "\n",
        "protocol/REFERENCE.md": reference.render(document, reference.examples(_cases(root))),
        "clients/typescript/src/protocol.ts": typescript.render(document),
    }


def write(root: Path = ROOT) -> list[str]:
    """Bring the generated files up to date. Returns the paths that had to change."""
    texts = generated(root)
    changed = [path for path, text in texts.items() if _read(root / path) != text]
    for path in changed:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(texts[path], encoding="utf-8")
    return changed


def stale(root: Path = ROOT) -> list[str]:
    """The generated files that are missing or differ from what would be generated."""
    return [path for path, text in generated(root).items() if _read(root / path) != text]


def _read(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _cases(root: Path) -> Iterable[Mapping[str, Any]]:
    for file in sorted((root / CASES).glob("*.json")):
        yield json.loads(file.read_text(encoding="utf-8"))


def _ref(model: type[BaseModel]) -> Json:
    return {"$ref": f"#/$defs/{model.__name__}"}


def _in_mode(models: Iterable[type[BaseModel]], mode: JsonSchemaMode) -> list[tuple[type[BaseModel], JsonSchemaMode]]:
    return [(model, mode) for model in dict.fromkeys(models)]
