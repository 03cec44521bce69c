"""What editors run: open an artifact or one of its versions, bring files back, cite sources.

A command takes one object. What it takes and answers is declared in `protocol/`, and a refusal is like any other.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from protocol.methods import COMMANDS
from protocol.requests.commands import CiteParams, OpenParams, RehostFilesParams
from sidecar.core import limits
from sidecar.core.artifacts import Artifact
from sidecar.core.errors import BadPath, NotFound, StoreUnavailable, UnsafePath
from sidecar.core.mime import HEAD_BYTES, is_packed, is_text_head, mime_of
from sidecar.core.paths import FilePath, parse_physical
from sidecar.core.tokens import print_token
from sidecar.rehost import Missing
from sidecar.server.caller import Caller
from sidecar.server.editor.contents import seen_artifact, uri_of, version_text
from sidecar.server.editor.documents import Documents
from sidecar.server.editor.progress import Work
from sidecar.server.failures import Failed, wrong_fields, wrong_params
from sidecar.server.lsp import Editor, Feature
from sidecar.server.methods.aliases import parse_asked
from sidecar.server.methods.contents import bring_back
from sidecar.server.methods.seeing import rows_for, sees_path
from sidecar.services import Services

METHOD = "workspace/executeCommand"
Answer = dict[str, Any]


def features(services: Services, documents: Documents) -> list[Feature]:  # noqa: ARG001 - all parts are made alike
    return [Feature(METHOD, partial(_run, services), options={"commands": list(COMMANDS)})]


async def _run(services: Services, editor: Editor, params: Any) -> Answer:
    command = COMMANDS.get(params.command)
    if command is None:
        raise Failed(wrong_params([("command", f"there are {', '.join(COMMANDS)}")]))
    given = list(params.arguments or ())
    if len(given) > 1:
        raise Failed(wrong_params([("arguments", "a command takes one object")]))
    try:
        asked = command.params.model_validate(given[0] if given else {})
    except ValidationError as error:
        raise Failed(wrong_fields(error, below="arguments.0")) from None
    with Work(editor, params, command.summary.partition(":")[0].rstrip(".")) as work:
        return await _COMMANDS[params.command](services, editor, asked, work)


# Open ----------------------------------------------------------------------------------------------------------------


async def _open(services: Services, editor: Editor, params: OpenParams, work: Work) -> Answer:
    role = editor.client.role
    path = parse_asked(services, params.path)
    if not isinstance(path, FilePath):
        raise BadPath(params.path, "only files are opened; artifact/read answers what else there is")
    if path.logical is None or not sees_path(role, services.workspace, path):
        raise NotFound(path.physical, "nothing is known at this path")
    artifact = services.workspace.artifact(path)
    versions = len(artifact.versions) if artifact is not None else 0
    if params.version is not None and params.version != versions:
        return await _older(services, role, path, params.version)
    if artifact is not None and versions and not artifact.latest.seen and await services.reader.told(path) is not None:
        return await _older(services, role, path, versions)  # a display that never was a file, and stays none
    work.report(path.physical)
    await _bring(services, path)
    if not sees_path(role, services.workspace, path):  # it became known as what it is while it was looked at
        raise NotFound(path.physical, "nothing is known at this path")
    head = await services.looker.off_loop(_head, services, path)
    artifact = services.workspace.artifact(path)
    known = _known(services, artifact, len(artifact.versions)) if artifact is not None and artifact.versions else {}
    answer = {"mime": mime_of(path.physical, head), **known}
    is_shown = not is_packed(answer["mime"]) and is_text_head(head)
    return _opened(path, answer, file_uri(services, path), text=is_shown, read_only=False)


async def _older(services: Services, role: str, path: FilePath, number: int) -> Answer:
    """An older version, which stands nowhere on disk; what has no text is refused."""
    artifact = seen_artifact(services, role, path)
    await version_text(services, artifact, number)
    seen_artifact(services, role, path)
    return _opened(path, _known(services, artifact, number), uri_of(path, number), text=True, read_only=True)


def _known(services: Services, artifact: Artifact, number: int) -> Answer:
    record = services.reader.record(artifact)
    mime = artifact.versions[number - 1].facts.get("mime") or record["mime"]
    return {"mime": mime, "kind": record["kind"], "version": number}


def _opened(path: FilePath, known: Answer, uri: str, *, text: bool, read_only: bool) -> Answer:
    named: Answer = {"uri": uri, "physical_path": path.physical, "name": path.rel.rpartition("/")[2]}
    named |= {"artifact_path": path.logical} if path.logical is not None else {}
    return {**named, **known, "text": text, "read_only": read_only}


async def _bring(services: Services, path: FilePath) -> None:
    brought = await services.rehoster.rehost(path)
    if not isinstance(brought, Missing):
        return
    match brought.reason:
        case "unsafe_path":
            raise UnsafePath(path.physical, "links and what is no regular file are not opened")
        case "store_unavailable":
            hint = f"the store is {brought.fault}; ask again"
            raise StoreUnavailable(path.physical, hint, fault=brought.fault or "server_error")
        case "unknown":
            raise NotFound(path.physical, "nothing is known at this path")
        case _:
            raise NotFound(path.physical, "its bytes were neither kept nor hosted, and the file is gone")


def _head(services: Services, path: FilePath) -> bytes:
    with services.outdir.open(path.physical) as stream:
        return stream.read(HEAD_BYTES)


def file_uri(services: Services, path: FilePath) -> str:
    """The `file:` URI of a file in OUT_DIR, percent-encoded."""
    return Path(os.path.join(services.outdir.root, path.physical)).as_uri()


# Bring back ----------------------------------------------------------------------------------------------------------


async def _rehost(services: Services, editor: Editor, params: RehostFilesParams, work: Work) -> Answer:
    """A few at a time, so that giving up leaves what is done and begins nothing new."""
    caller = Caller(editor.client, None, METHOD, size=0, post=_Nobody())
    rehosted: list[Answer] = []
    missing: list[Answer] = []
    for at in range(0, len(params.paths), limits.REHOSTS_AT_ONCE):
        if work.cancelled:
            return {"rehosted": rehosted, "missing": missing, "cancelled": True}
        work.report(params.paths[at], 100 * at // len(params.paths))
        brought = await bring_back(services, caller, params.paths[at : at + limits.REHOSTS_AT_ONCE])
        rehosted += [
            {**one, "uri": file_uri(services, parse_physical(one["physical_path"]))} for one in brought["rehosted"]
        ]
        missing += brought["missing"]
    return {"rehosted": rehosted, "missing": missing}


class _Nobody:
    """Nobody hears the progress of the request; the command has its own."""

    def post(self, method: str, params: bytes) -> None:  # noqa: ARG002 - they are what a post takes
        return

    def notify(self, method: str, params: bytes) -> bool:  # noqa: ARG002 - as above
        return True


# Cite ----------------------------------------------------------------------------------------------------------------


async def _cite(services: Services, editor: Editor, params: CiteParams, work: Work) -> Answer:  # noqa: ARG001
    pool = services.workspace.pool
    rows = rows_for(editor.client.role, services.workspace, (row for sid in params.sids if (row := pool.get(sid))))
    known = {row["sid"] for row in rows}
    if not known:
        raise NotFound("sids", "no source has any of these numbers")
    return {"text": print_token(known), "missing": [sid for sid in params.sids if sid not in known]}


_COMMANDS: dict[str, Callable[[Services, Editor, Any, Work], Awaitable[Answer]]] = {
    "artifact-sidecar.open": _open,
    "artifact-sidecar.rehost": _rehost,
    "artifact-sidecar.cite": _cite,
}
