"""What an exported workspace says of itself as linked data: RO-Crate 1.2, its files, what made them, what they cite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

NAME = "ro-crate-metadata.json"
VERSION = "https://w3id.org/ro/crate/1.2"
LICENSE = "Not stated. Ask whoever gave you this archive before you pass it on."

Entity = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Packed:
    """A file of the archive, by its path in it, with what is known of it. `size` is in bytes, `ts` is ISO 8601."""

    path: str
    sha256: str
    size: int
    mime: str
    ts: str = ""
    description: str = ""
    call: str = ""
    tool: str = ""
    sources: tuple[int, ...] = ()


def crate(
    files: Sequence[Packed], rows: Iterable[Mapping[str, Any]], *, name: str, description: str, published: str
) -> Entity:
    """The metadata document. `rows` are the sources pool; `published` is ISO 8601, a day or a moment."""
    sources = {row["sid"]: row for row in rows}
    ours = {file.path for file in files}
    cited = {sid: sources[sid] for file in files for sid in file.sources if sid in sources}
    actions = _actions(files, sources, ours)
    tools = dict.fromkeys(file.tool for file in files if file.call and file.tool)
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": name,
        "description": description,
        "datePublished": published,
        "license": LICENSE,
        "hasPart": [_ref(_file_id(file.path)) for file in files],
    }
    if actions:
        root["mentions"] = [_ref(action["@id"]) for action in actions]
    works = [_work(row) for row in cited.values() if row.get("physical_path") not in ours]
    return {
        "@context": f"{VERSION}/context",
        "@graph": [
            {"@id": NAME, "@type": "CreativeWork", "about": _ref("./"), "conformsTo": _ref(VERSION)},
            root,
            *(_file(file, sources, ours) for file in files),
            *actions,
            *({"@id": _tool_id(tool), "@type": "SoftwareApplication", "name": tool} for tool in tools),
            *{work["@id"]: work for work in works}.values(),
        ],
    }


def _file(file: Packed, sources: Mapping[int, Mapping[str, Any]], ours: set[str]) -> Entity:
    entity: Entity = {
        "@id": _file_id(file.path),
        "@type": "File",
        "name": file.path.rpartition("/")[2],
        "contentSize": str(file.size),
        "encodingFormat": file.mime,
        "sha256": file.sha256,
    }
    if file.description:
        entity["description"] = file.description
    if file.ts:
        entity["dateModified"] = file.ts
    cited = [_ref(_source_id(sources[sid], ours)) for sid in file.sources if sid in sources]
    return entity | ({"citation": cited} if cited else {})


def _actions(files: Sequence[Packed], sources: Mapping[int, Mapping[str, Any]], ours: set[str]) -> list[Entity]:
    """One action per tool call: what made which files, and from which others."""
    calls: dict[str, list[Packed]] = {}
    for file in files:
        if file.call:
            calls.setdefault(file.call, []).append(file)
    actions: list[Entity] = []
    for call, made in calls.items():
        action: Entity = {
            "@id": f"#call-{quote(call, safe='')}",
            "@type": "CreateAction",
            "name": f"{made[0].tool or 'a tool'}, call {call}",
            "result": [_ref(_file_id(file.path)) for file in made],
        }
        if made[0].tool:
            action["instrument"] = _ref(_tool_id(made[0].tool))
        if ended := max(file.ts for file in made):
            action["endTime"] = ended
        used = dict.fromkeys(sid for file in made for sid in file.sources if sid in sources)
        given = [str(sources[sid]["physical_path"]) for sid in used if sources[sid].get("physical_path") in ours]
        if given:
            action["object"] = [_ref(_file_id(path)) for path in given]
        actions.append(action)
    return actions


def _work(row: Mapping[str, Any]) -> Entity:
    entity: Entity = {
        "@id": _source_id(row, set()),
        "@type": "CreativeWork",
        "name": str(row.get("title") or row.get("url") or f"Source {row['sid']}"),
    }
    for ours, theirs in (("url", "url"), ("published_time_iso", "datePublished")):
        if isinstance(row.get(ours), str) and row[ours]:
            entity[theirs] = row[ours]
    return entity


def _source_id(row: Mapping[str, Any], ours: set[str]) -> str:
    """A file of the archive by its path, a page by its address, anything else by its number."""
    path, url = row.get("physical_path"), row.get("url")
    if isinstance(path, str) and path in ours:
        return _file_id(path)
    if isinstance(url, str) and _ADDRESS.fullmatch(url):
        return url
    return f"#source-{row['sid']}"


_ADDRESS = re.compile(r"https?://[^\s<>\"{}|\\^`\x00-\x1f]+")
# What an IRI path cannot hold as it is; letters of every script can stay (RO-Crate 1.2, Encoding file paths).
_NOT_IN_A_PATH = re.compile(r"[\x00-\x20\x7f%#?<>\"{}|\\^`\[\]]")


def _file_id(path: str) -> str:
    return _NOT_IN_A_PATH.sub(lambda found: f"%{ord(found.group()):02X}", path)


def _tool_id(tool: str) -> str:
    return f"#tool-{quote(tool, safe='')}"


def _ref(name: str) -> Entity:
    return {"@id": name}
