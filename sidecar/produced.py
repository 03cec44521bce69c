"""What a call made, as it stands on disk: a block may have told of other bytes at its path meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sidecar.core.artifacts import Artifact
from sidecar.core.happened import Call
from sidecar.core.paths import CallPath, FilePath
from sidecar.workspace import Workspace


def sha256_on_disk(artifact: Artifact) -> str:
    """The hash of the file on disk, or the empty text where nobody knows it."""
    return (artifact.fact.sha256 if artifact.fact is not None else artifact.sha256()) or ""


def as_on_disk(artifact: Artifact) -> Artifact:
    """The artifact without what was only told since: its latest version is the file that stands on disk."""
    fact, versions = artifact.fact, artifact.versions
    if fact is None or not versions or versions[-1].sha256 == fact.sha256:
        return artifact
    here = [at for at, version in enumerate(versions) if version.seen and version.sha256 == fact.sha256]
    if not here:
        return artifact
    then = Artifact(artifact.path)
    then.versions = versions[: here[-1] + 1]
    then.fact, then.on_disk, then.visibility = fact, artifact.on_disk, artifact.visibility
    then.owner, then.sid = artifact.owner, artifact.sid
    return then


def changed_internally(workspace: Workspace, call: Call, named: Collection[FilePath]) -> Iterator[Artifact]:
    """Internal files that changed in this call and that nobody told of: they never are pending.

    One that changed while several calls were open is the call's that names it.
    """
    for artifact in changed_since_begun(workspace, call):
        if artifact.visibility != "internal" or artifact.fact is None:
            continue
        version = as_on_disk(artifact).latest
        untold = version.seen and not version.blocks and version.sha256 == artifact.fact.sha256
        if untold and (version.call == call.tool_call_id or (not version.call and artifact.path in named)):
            yield artifact


def changed_since_begun(workspace: Workspace, call: Call) -> Iterator[Artifact]:
    """The artifacts that changed since a call began; all of them where that lies too far back to tell."""
    begun = workspace.timeline.at(CallPath(call.turn_id, call.tool_call_id, "call").logical)
    revision = workspace.timeline.seqs[begun[0]] if begun else 0
    if not workspace.log.reaches(revision, workspace.revision):
        yield from workspace.artifacts
        return
    for about in dict.fromkeys(one.about for one in workspace.log.listed(revision) if one.kind == "artifact"):
        artifact = workspace.artifacts.get(str(about))
        if artifact is not None:
            yield artifact
