"""Links for people: a URL to download a hosted file by, made anew each time, neither stored nor logged."""

from __future__ import annotations

import os
from pathlib import Path

from sidecar.core import limits
from sidecar.core.artifacts import Artifact
from sidecar.core.errors import NotFound, NotPermitted, StoreUnavailable, UnsafePath
from sidecar.core.paths import FilePath, parse_physical
from sidecar.hosting import Hosting
from sidecar.ports import OutDir
from sidecar.rehost import Missing, Rehoster
from sidecar.workspace import Workspace


class Links:
    """Mints URLs for external files (spec section 7). Internal and unsettled ones are not permitted."""

    def __init__(self, workspace: Workspace, hosting: Hosting, rehoster: Rehoster, outdir: OutDir) -> None:
        self._workspace = workspace
        self._hosting = hosting
        self._rehoster = rehoster
        self._outdir = outdir

    async def by_handle(self, rn: str, *, seconds: int) -> str:
        """A URL for the version that this handle names.

        Raises NotFound for a handle that this conversation did not give out, NotPermitted, and StoreUnavailable.
        """
        hosted = self._workspace.handles.get(rn)
        artifact = self._workspace.artifact(parse_physical(hosted.path)) if hosted is not None else None
        if hosted is None or artifact is None:
            raise NotFound("rn", "this conversation gave out no such handle")
        _require_external(artifact, "rn")
        url = await self._presigned(artifact.path, hosted.key, seconds, _mime(artifact, hosted.sha256))
        if url is not None:
            return url
        if artifact.sha256() != hosted.sha256:
            raise NotFound("rn", "this names an older version, and the store is a folder; only the latest has a link")
        return await self._copy_in_out_dir(artifact.path)

    async def by_path(self, path: FilePath, *, seconds: int) -> str:
        """A URL for the latest version of a file, which is hosted first where it is not yet.

        Raises NotFound, NotPermitted, UnsafePath and StoreUnavailable.
        """
        artifact = self._workspace.artifact(path)
        if artifact is None or not artifact.versions:
            raise NotFound(path.physical, "nothing is known at this path")
        _require_external(artifact, path.physical)
        if not any(version.seen for version in artifact.versions):
            raise NotFound(path.physical, "this is a display that never was a file; read it instead")
        if self._hosting.store is None or self._hosting.store.kind == "folder":
            return await self._copy_in_out_dir(path)
        keys = self._hosting.keys_of(artifact.latest.facts) or await self._host_now(artifact)
        url = await self._presigned(path, keys[0], seconds, _mime(artifact, artifact.sha256()))
        assert url is not None, "a store that is no folder signs URLs"
        return url

    async def _host_now(self, artifact: Artifact) -> list[str]:
        sha256 = artifact.sha256()
        if sha256 is None or not artifact.latest.seen:
            raise NotFound(artifact.path.physical, "its bytes never stood in a file, so they are not hosted")
        await self._workspace.stage(*self._hosting.wanted(artifact.path, sha256))
        await self._hosting.settle(limits.HOSTING_WAIT)
        keys = self._hosting.keys_of(artifact.hosting(sha256))
        if not keys:
            fault = self._hosting.fault or "timed_out"
            hint = f"it is not hosted yet, the store is {fault}; `artifact-sidecar doctor` says more"
            raise StoreUnavailable(artifact.path.physical, hint, fault=fault)
        return keys

    async def _presigned(self, path: FilePath, key: str, seconds: int, mime: str) -> str | None:
        store = self._hosting.store
        if store is None or store.kind == "folder":
            return None
        name = path.rel.rpartition("/")[2]
        return await self._hosting.ask(lambda: store.presign(key, seconds=seconds, filename=name, mime=mime))

    async def _copy_in_out_dir(self, path: FilePath) -> str:
        brought = await self._rehoster.rehost(path)
        if isinstance(brought, Missing):
            match brought.reason:
                case "unsafe_path":
                    raise UnsafePath(path.physical)
                case "store_unavailable":
                    raise StoreUnavailable(path.physical, "ask again", fault=brought.fault or "server_error")
                case _:
                    raise NotFound(path.physical, "its bytes are nowhere")
        return Path(os.path.join(self._outdir.root, path.physical)).as_uri()


def _require_external(artifact: Artifact, about: str) -> None:
    if artifact.visibility != "external":
        raise NotPermitted(about, f"this file is {artifact.visibility}; links are for what users may see")


def _mime(artifact: Artifact, sha256: str | None) -> str:
    version = next((one for one in reversed(artifact.versions) if one.sha256 == sha256), artifact.latest)
    return version.facts.get("mime") or "application/octet-stream"
