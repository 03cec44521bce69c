"""The record of an artifact as it will stand once a change is applied, for the answer that is journalled with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

from sidecar.core.artifacts import Artifact, Artifacts, Version, describe
from sidecar.core.entries import BlockTold, Entry, FileSeen, SourceSet
from sidecar.core.paths import FilePath

_CHANGEABLE = 64  # how many of the newest versions a block or a file may still add to


def foretell(
    known: Artifact | None, path: FilePath, entries: Iterable[Entry], *, tools: Mapping[str, str]
) -> dict[str, Any]:
    """The record after these entries, whole: the connection cuts it to the role. `known` is left as it is.

    `tools` maps the calls named in the entries to their tools.
    """
    world = Artifacts()
    artifact = world.at(path)
    if known is not None:
        _resemble(artifact, known)
    for entry in entries:
        match entry:
            case BlockTold(told) if told.part is not None and told.part.get("at") == path.logical:
                world.tell(artifact, told.head, told.part, -1)
            case FileSeen(fact) if fact.path == path.physical:
                world.see(path, fact, ts=entry.ts, call=entry.call, visibility=entry.visibility)
            case SourceSet(row) if row.get("artifact_path") == path.logical:
                artifact.sid = row["sid"]
            case _:
                pass
    return describe(artifact, tools)


def _resemble(artifact: Artifact, known: Artifact) -> None:
    artifact.fact, artifact.on_disk = known.fact, known.on_disk
    artifact.visibility, artifact.owner, artifact.sid = known.visibility, known.owner, known.sid
    artifact.versions = [*known.versions[:-_CHANGEABLE], *map(_twin, known.versions[-_CHANGEABLE:])]


def _twin(version: Version) -> Version:
    twin = copy(version)
    twin.facts, twin.blocks = dict(version.facts), dict(version.blocks)
    return twin
