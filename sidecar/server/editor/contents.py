"""Older versions as documents: a URI for each, and the text behind it.

A version never changes, so that what an editor holds of one stays right. A display that is no file is shown so as well,
and what the pool holds of a source.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from sidecar.core.artifacts import Artifact
from sidecar.core.errors import BadPath, NotFound, NotPermitted
from sidecar.core.mime import is_text
from sidecar.core.paths import FilePath, parse_physical
from sidecar.server.editor.documents import Documents
from sidecar.server.editor.seen import Seen, title
from sidecar.server.lsp import Editor, Feature
from sidecar.server.methods.seeing import may_see
from sidecar.services import Services

SCHEME = "artifact-sidecar"
METHOD = "workspace/textDocumentContent"

# Some editors write the mark and the sign in a query as `%3D` and the like, or put slashes before the path.
_URI = re.compile(r"artifact-sidecar:(?://)?/(?P<path>[^?#]+)\?(?P<query>[^#]*)")
_SOURCE = re.compile(r"artifact-sidecar:(?://)?/sources_pool/([0-9]{1,15})\.md")
_QUERY = re.compile(r"version=([0-9]{1,15})")


def features(services: Services, documents: Documents) -> list[Feature]:  # noqa: ARG001 - all parts are made alike
    return [Feature(METHOD, partial(_text_of, services), options={"schemes": [SCHEME]})]


def uri_of(path: FilePath, version: int) -> str:
    """The address of a version: `artifact-sidecar:/turn_1/files/a.md?version=2`."""
    return f"{SCHEME}:/{quote(path.physical, safe='/')}?version={version}"


def parse_uri(uri: str) -> tuple[FilePath, int]:
    """The file and the version behind an address. Raises BadPath and UnsafePath."""
    found = _URI.fullmatch(uri)
    version = _QUERY.fullmatch(unquote(found["query"])) if found is not None else None
    if found is None or version is None:
        raise BadPath(uri[:200], f"an older version is at {SCHEME}:/<physical path>?version=<number>")
    return parse_physical(unquote(found["path"])), int(version[1])


def seen_artifact(services: Services, role: str, path: FilePath) -> Artifact:
    """The artifact at a path. Raises NotFound where there is none that the role may see."""
    artifact = services.workspace.artifact(path)
    if artifact is None or not artifact.versions or not may_see(role, artifact):
        raise NotFound(path.physical, "nothing is known at this path")
    return artifact


async def version_text(services: Services, artifact: Artifact, number: int) -> str:
    """The text of a version. Raises NotFound, TooLarge, StoreUnavailable, and NotPermitted for what is no text."""
    raw = await services.versions.bytes_of(artifact, number)
    if not is_text(raw):
        hint = f"version {number} is no text, and only texts are shown as documents; the latest one can be opened"
        raise NotPermitted(artifact.path.physical, hint)
    return raw.decode()


def source_uri(sid: int) -> str:
    """The address of what the pool holds of a source."""
    return f"{SCHEME}:/sources_pool/{sid}.md"


def _source_text(services: Services, role: str, sid: int) -> str:
    """A source as a page: its title, its address, what is known of its text."""
    row = Seen(services, role).row(sid)
    if row is None:
        raise NotFound(f"so:sources_pool[{sid}]", "no source has this number")
    parts = (f"# {title(row)}", row.get("url"), row.get("text"), row.get("content"))
    return "\n\n".join(str(part) for part in dict.fromkeys(parts) if part) + "\n"


async def _text_of(services: Services, editor: Editor, params: Any) -> dict[str, str]:
    if (source := _SOURCE.fullmatch(params.uri)) is not None:
        return {"text": _source_text(services, editor.client.role, int(source[1]))}
    path, number = parse_uri(params.uri)
    artifact = seen_artifact(services, editor.client.role, path)
    text = await version_text(services, artifact, number)
    seen_artifact(services, editor.client.role, path)  # it may have become known as what it is meanwhile
    return {"text": text}
