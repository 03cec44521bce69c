"""The metadata of an export keeps what RO-Crate 1.2 demands: one graph, every reference met, what made what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sidecar.core.crate import Packed, crate

pytestmark = pytest.mark.rule("cli.export-and-gc")

FILES = (
    Packed("turn_1/files/in.csv", "a" * 64, 10, "text/csv", ts="2026-01-01T00:00:00Z"),
    Packed(
        "turn_1/files/größe 50%#1.md", "b" * 64, 20, "text/markdown",
        ts="2026-01-01T00:00:01Z", description="An answer", call="tc_1", tool="write me", sources=(1, 2, 3, 9),
    ),
    Packed(
        "turn_1/files/other.md", "c" * 64, 0, "text/markdown",
        ts="2026-01-01T00:00:02Z", call="tc_1", tool="write me",
    ),
)  # fmt: skip
ROWS = (
    {"sid": 1, "source_type": "web", "url": "https://example.com/a", "title": "A", "published_time_iso": "2025-12-31"},
    {"sid": 2, "source_type": "file", "physical_path": "turn_1/files/in.csv"},
    {"sid": 3, "source_type": "manual", "title": "Said by hand"},
    {"sid": 4, "source_type": "web", "url": "https://example.com/never-cited"},
)


def described() -> dict[str, Any]:
    return crate(FILES, ROWS, name="Sales", description="Of the year.", published="2026-01-01")


def graph() -> dict[str, dict[str, Any]]:
    return {entity["@id"]: entity for entity in described()["@graph"]}


def references(value: Any) -> Iterator[str]:
    match value:
        case {"@id": str() as name} if len(value) == 1:
            yield name
        case dict():
            for inner in value.values():
                yield from references(inner)
        case list():
            for inner in value:
                yield from references(inner)


def test_the_descriptor_points_to_a_whole_root() -> None:
    known = graph()
    assert described()["@context"] == "https://w3id.org/ro/crate/1.2/context"
    assert known["ro-crate-metadata.json"] == {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.2"},
    }
    root = known["./"]
    assert root["@type"] == "Dataset"
    assert all(root[name] for name in ("name", "description", "datePublished", "license"))


def test_every_reference_is_met_and_every_entity_is_there_once() -> None:
    entities = described()["@graph"]
    names = [entity["@id"] for entity in entities]
    assert len(names) == len(set(names))
    assert {*references(entities)} <= {*names, "https://w3id.org/ro/crate/1.2"}
    reached = {*references(entities)}
    assert {name for name in names if name != "ro-crate-metadata.json"} <= reached


def test_files_are_parts_with_size_as_text_type_and_hash() -> None:
    known = graph()
    name = "turn_1/files/größe%2050%25%231.md"
    assert {"@id": name} in known["./"]["hasPart"]
    file = known[name]
    assert (file["@type"], file["contentSize"], file["encodingFormat"]) == ("File", "20", "text/markdown")
    assert (file["sha256"], file["name"]) == ("b" * 64, "größe 50%#1.md")


def test_a_call_is_an_action_of_its_tool_with_what_it_used_and_made() -> None:
    action = graph()["#call-tc_1"]
    assert action["@type"] == "CreateAction"
    assert action["instrument"] == {"@id": "#tool-write%20me"}
    tool = graph()["#tool-write%20me"]
    assert (tool["@type"], tool["name"]) == ("SoftwareApplication", "write me")
    assert action["object"] == [{"@id": "turn_1/files/in.csv"}]
    assert [one["@id"] for one in action["result"]] == ["turn_1/files/größe%2050%25%231.md", "turn_1/files/other.md"]
    assert action["endTime"] == "2026-01-01T00:00:02Z"


def test_what_is_cited_is_a_work_with_its_address() -> None:
    known = graph()
    assert known["https://example.com/a"] == {
        "@id": "https://example.com/a",
        "@type": "CreativeWork",
        "name": "A",
        "url": "https://example.com/a",
        "datePublished": "2025-12-31",
    }
    assert known["#source-3"]["name"] == "Said by hand"
    assert "https://example.com/never-cited" not in known
    cited = [one["@id"] for one in known["turn_1/files/größe%2050%25%231.md"]["citation"]]
    assert cited == ["https://example.com/a", "turn_1/files/in.csv", "#source-3"]
