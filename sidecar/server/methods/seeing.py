"""Which role sees which artifact (spec sections 5 and 7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sidecar.core.artifacts import Artifact
from sidecar.core.blocks import FLAGS, HOSTING, INTERNAL, PATH, Head
from sidecar.core.hosting import CUT_FOR, without
from sidecar.core.paths import FilePath
from sidecar.services import Services
from sidecar.workspace import Workspace

# What an open call has made so far is for the program and its runtime; internal files are for everybody but people.
_VISIBLE: dict[str, frozenset[str]] = {
    "runtime": frozenset({"external", "internal", "pending"}),
    "exec": frozenset({"external", "internal", "pending"}),
    "renderer": frozenset({"external", "internal"}),
    "editor": frozenset({"external"}),
}


def may_see(role: str, artifact: Artifact) -> bool:
    return artifact.visibility in _VISIBLE[role]


def sees_path(role: str, workspace: Workspace, path: FilePath) -> bool:
    """Whether the file at this path may be shown.

    What nobody has registered is nobody's secret, unless it may be what an open call, or a write, is making just now.
    """
    artifact = workspace.artifact(path)
    if artifact is not None and artifact.versions:
        return may_see(role, artifact)
    making = workspace.open_calls and path.place and workspace.is_turn(path.turn_id)
    making = making or path.physical in workspace.claims
    return not making or "pending" in _VISIBLE[role]


def sees_logical(role: str, workspace: Workspace, logical: str) -> bool:
    artifact = workspace.artifacts.get(logical)
    return artifact is None or may_see(role, artifact)


def rows_for(role: str, workspace: Workspace, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without those of artifacts that the role does not see."""
    return [row for row in rows if sees_logical(role, workspace, str(row.get("artifact_path") or ""))]


def sees_block(role: str, workspace: Workspace, number: int) -> bool:
    """Whether a block may be shown: it is not of an artifact that the role does not see, nor is a digest in it."""
    return sees_head(role, workspace, workspace.timeline.heads[number])


def sees_head(role: str, workspace: Workspace, head: Head) -> bool:
    """The same for a block that may stand nowhere yet."""
    if head[FLAGS] & INTERNAL and "internal" not in _VISIBLE[role]:
        return False
    return sees_logical(role, workspace, head[PATH])


async def blocks_for(services: Services, role: str, logical: str) -> list[dict[str, Any]]:
    """The blocks at a path, cut to the role before anything is joined or truncated: no half JSON text can be cut."""
    heads = services.workspace.timeline.heads
    told = await services.reader.texts(logical)
    return [
        without(block, CUT_FOR[role])
        if heads[number][FLAGS] & HOSTING or heads[number][PATH].startswith("fi:")
        else block
        for number, block in told
        if sees_block(role, services.workspace, number)
    ]
