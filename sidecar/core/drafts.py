"""What is to stand at a path, and the blocks that will say so."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sidecar.core import limits
from sidecar.core.artifacts import Artifact, Visibility, describe
from sidecar.core.citations import extract
from sidecar.core.mime import HEAD_BYTES, is_packed, mime_of
from sidecar.core.paths import FilePath
from sidecar.core.told_blocks import Block, content_block, digest_of

Kind = Literal["file", "display"]


@dataclass(frozen=True, slots=True)
class Body:
    """A whole content with what can be said of it. `text` is it as text, where it is one."""

    content: bytes
    text: str | None
    sha256: str
    mime: str
    sources_used: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to stand at a path of a turn.

    `expected` is the hash of what it replaces, empty for nothing, None for whatever is there. Without `visibility` it
    stays as it is. `makes_file` writes the file although none stands there.
    """

    path: FilePath
    turn_id: str
    body: Body
    kind: Kind
    channel: str | None = None
    visibility: Visibility | None = None
    description: str | None = None
    expected: str | None = None
    makes_file: bool = True


def body_of(
    content: bytes, path: FilePath, *, mime: str | None, sources_used: Sequence[int] | None, sids: Sequence[int]
) -> Body:
    """Look at a content once. What was told of its type and its sources wins over what is found.

    Takes time in proportion to its length.
    """
    text = text_of(content)
    mime = mime or mime_of(path.physical, content[:HEAD_BYTES])
    if sources_used is None:
        sources_used = extract(text, mime, sids) if text is not None else ()
    return Body(content, text, hashlib.sha256(content).hexdigest(), mime, tuple(sorted(set(sources_used))))


def text_of(content: bytes) -> str | None:
    """The content as text, or None: UTF-8 without NUL is text (spec section 8)."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def kind_at(draft: Draft, known: Artifact | None) -> Kind:
    """What it becomes: a file at the path of a display is that display (spec section 8), if it can be shown."""
    if draft.kind == "display" or known is None or describe(known, {})["kind"] != "display":
        return draft.kind
    can_be_shown = draft.body.text is not None and len(draft.body.content) <= limits.DISPLAY_BYTES
    return "display" if can_be_shown else "file"


def visibility_at(draft: Draft, known: Artifact | None, *, calls_are_open: bool) -> Visibility:
    """Who may see it: as asked, else as it is. What is internal is not shown because it changed."""
    if draft.visibility is not None:
        return draft.visibility
    if known is None or (known.visibility == "pending" and not calls_are_open):
        return "external"
    return known.visibility


def digest_for(
    draft: Draft, known: Artifact | None, visibility: Visibility, *, call_id: str, ts: str
) -> dict[str, Any]:
    """The digest of what is drafted (spec section 4). What an open call makes is external until the call says other."""
    record = {
        "artifact_path": draft.path.logical,
        "physical_path": draft.path.physical,
        "mime": draft.body.mime,
        "kind": kind_at(draft, known),
        "visibility": "internal" if visibility == "internal" else "external",
        "tool_call_id": call_id,
        "edited": known is not None,
        "ts": ts,
        "size_bytes": len(draft.body.content),
        "sha256": draft.body.sha256,
    }
    return digest_of(record, description=draft.description, channel=draft.channel, sources_used=draft.body.sources_used)


def content_for(draft: Draft, digest: dict[str, Any], *, tool_id: str) -> Block:
    """The content block: whole for a display, else as far as blocks carry contents.

    On the internal channel it is a note.
    """
    body, size = draft.body, len(draft.body.content)
    text = packed = None
    if digest["kind"] == "display":
        text = body.text
    elif is_packed(body.mime):
        packed = base64.b64encode(body.content).decode() if size <= limits.INLINE_BASE64_BYTES else None
    elif size <= limits.INLINE_TEXT_BYTES:
        text = body.text
    kind = "react.note" if draft.channel == "internal" else "react.tool.result"
    return content_block(digest, content=text, packed=packed, tool_id=tool_id, type=kind)
