"""Which role sees which artifact (spec sections 5 and 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from sidecar.core.artifacts import Artifact
from sidecar.core.blocks import FLAGS, HOSTING, INTERNAL, PATH, Head
from sidecar.core.compaction import cut_summary
from sidecar.core.errors import Refusal
from sidecar.core.hosting import CUT_FOR, without
from sidecar.core.inventory import StatKey
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


def visible_to(role: str) -> frozenset[str]:
    """The visibilities of artifacts that the role sees."""
    return _VISIBLE[role]


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
    """Whether a block may be shown: nothing in it is of an artifact that the role does not see."""
    timeline = workspace.timeline
    about = timeline.abouts.get(number, ())
    return sees_head(role, workspace, timeline.heads[number]) and all(
        sees_logical(role, workspace, logical) for logical in about
    )


def sees_named(role: str, workspace: Workspace, name: str | int) -> bool:
    """Whether a path, or the number of a block, may be named: some of what stands there may be shown."""
    if isinstance(name, int):
        return name >= len(workspace.timeline) or sees_block(role, workspace, name)
    if name.startswith("fi:"):
        return sees_logical(role, workspace, name)
    numbers = workspace.timeline.at(name)
    return not numbers or any(sees_block(role, workspace, number) for number in numbers)


def sees_fresh(role: str, workspace: Workspace, path: FilePath, key: Callable[[str], StatKey | None]) -> bool:
    """The same as `sees_path` for a file as the disk has it now. `key` asks the disk, and blocks.

    Bytes that nobody registered yet may turn out to be internal: at a known path they are for those who see that too.
    """
    if not sees_path(role, workspace, path):
        return False
    if "pending" in _VISIBLE[role]:
        return True
    if path.physical in workspace.claims:
        return False
    artifact = workspace.artifact(path)
    if artifact is None or not artifact.versions:
        return True
    try:
        return key(path.physical) == workspace.files.get(path.physical)
    except (Refusal, OSError):
        return False


def cut_for(role: str, workspace: Workspace, block: dict[str, Any]) -> dict[str, Any]:
    """A block whose digest of what was compacted names nothing that the role does not see."""
    if "internal" in _VISIBLE[role] and "pending" in _VISIBLE[role]:
        return block
    return cut_summary(block, partial(sees_named, role, workspace))


def sees_head(role: str, workspace: Workspace, head: Head) -> bool:
    """The same for a block that may stand nowhere yet."""
    if head[FLAGS] & INTERNAL and "internal" not in _VISIBLE[role]:
        return False
    return sees_logical(role, workspace, head[PATH])


async def blocks_for(services: Services, role: str, logical: str) -> list[dict[str, Any]]:
    """The blocks at a path, cut to the role before anything is joined or truncated: no half JSON text can be cut."""
    heads = services.workspace.timeline.heads
    told = await services.reader.texts(logical)
    shown = [
        (heads[number], cut_for(role, services.workspace, block))
        for number, block in told
        if sees_block(role, services.workspace, number)
    ]
    return [
        without(block, CUT_FOR[role]) if head[FLAGS] & HOSTING or head[PATH].startswith("fi:") else block
        for head, block in shown
    ]
