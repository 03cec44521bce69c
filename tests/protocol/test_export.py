"""What is generated equals what would be generated, and says the same as the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from protocol import export
from protocol.methods import EVENTS, REQUESTS

GENERATED = ["protocol/schema.json", "protocol/REFERENCE.md", "clients/typescript/src/protocol.ts"]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return export.schema()


@pytest.mark.parametrize("path", GENERATED)
def test_this_file_is_fresh(path: str) -> None:
    assert path not in export.stale(), f"{path} is stale; run `python -m protocol`"


def test_a_missing_file_is_stale(tmp_path: Path) -> None:
    assert export.stale(tmp_path) == GENERATED


def test_writing_leaves_nothing_stale(tmp_path: Path) -> None:
    assert export.write(tmp_path) == GENERATED
    assert export.stale(tmp_path) == []


def test_writing_touches_only_what_is_stale(tmp_path: Path) -> None:
    export.write(tmp_path)
    (tmp_path / GENERATED[1]).write_text("old", encoding="utf-8")
    assert export.write(tmp_path) == [GENERATED[1]]


def test_a_case_becomes_an_example_of_the_reference(tmp_path: Path) -> None:
    case = {
        "about": "It counts.",
        "steps": [{"call": "sources/render", "result": {"text": "one of a kind", "tokens": 4}}],
    }
    (tmp_path / export.CASES).mkdir(parents=True)
    (tmp_path / export.CASES / "a.json").write_text(json.dumps(case), encoding="utf-8")
    assert "one of a kind" in export.generated(tmp_path)["protocol/REFERENCE.md"]


def test_the_document_names_every_method_and_event(document: dict[str, Any]) -> None:
    assert document["methods"].keys() == REQUESTS.keys()
    assert document["events"].keys() == EVENTS.keys()


def test_every_definition_is_a_valid_schema(document: dict[str, Any]) -> None:
    for definition in document["$defs"].values():
        jsonschema.Draft202012Validator.check_schema(definition)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    for reference in _references(document):
        assert reference.removeprefix("#/$defs/") in document["$defs"]


def test_no_type_is_told_apart_by_its_module(document: dict[str, Any]) -> None:
    assert [name for name in document["$defs"] if not name.isalnum()] == []


def test_every_property_explains_itself(document: dict[str, Any]) -> None:
    silent = [
        f"{name}.{field}"
        for name, definition in document["$defs"].items()
        for field, inner in definition.get("properties", {}).items()
        if not inner.get("description")
    ]
    assert silent == []


def test_null_is_no_default(document: dict[str, Any]) -> None:
    defaults = [
        inner["default"]
        for definition in document["$defs"].values()
        for inner in definition.get("properties", {}).values()
        if "default" in inner
    ]
    assert defaults
    assert None not in defaults


def test_what_a_result_always_has_is_required(document: dict[str, Any]) -> None:
    assert set(document["$defs"]["ListResult"]["required"]) == {"artifacts", "next_cursor"}


def test_what_is_told_apart_by_being_known_is_left_open_and_nothing_else(document: dict[str, Any]) -> None:
    records = {name: row for name, row in document["$defs"].items() if "properties" in row}
    open_ones = {name for name, row in records.items() if row["additionalProperties"]}
    of_the_older_context = {"ContextArtifact", "ContextSlot", "ContextEvent", "ContextBudget", "FileValue", "SlotValue"}
    assert open_ones == {"Block", "SourceRow", *of_the_older_context}


def _references(value: object) -> list[str]:
    match value:
        case {"$ref": str(reference)}:
            return [reference]
        case dict():
            return [found for item in value.values() for found in _references(item)]
        case list():
            return [found for item in value for found in _references(item)]
        case _:
            return []
