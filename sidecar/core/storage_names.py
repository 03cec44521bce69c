"""How hosted files are called: keys in the store, and download handles (spec section 10, seed 001).

A key is never given twice. The file's own name comes last and before it a mark of its path and its bytes, so two files
of one name in one turn, and two versions of one file, lie side by side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from sidecar.core.paths import FilePath

MARK_CHARS = 16
KEY_BYTES = 900  # what every store takes, with room for a prefix
NAME_CHARS = 180  # with its mark a name fits into one segment of a key


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose conversation it is; `user_type` is the role in keys."""

    tenant: str
    project: str
    user_id: str
    user_type: str
    conversation_id: str

    @classmethod
    def of(cls, conversation: Mapping[str, str]) -> Identity:
        """From what the workspace remembers of its conversation."""
        return cls(*(conversation[part] for part in cls.__slots__))


def encoded(part: str) -> str:
    """A part of a name as keys and handles carry it: percent codes for all but `A-Z a-z 0-9 . _ @ -`."""
    return quote(part, safe="@").replace("~", "%7E")


def key_prefix(identity: Identity) -> str:
    """Where every hosted file of a conversation lies, with a slash at the end."""
    place = [identity.user_type, identity.user_id, identity.conversation_id]
    return _tenant_prefix(identity) + "attachments/" + "".join(f"{encoded(part)}/" for part in place)


def is_ours(key: str, identity: Identity) -> bool:
    """Whether a key lies below this conversation's own prefix, and is spelled as we spell keys."""
    prefix = key_prefix(identity)
    rest = key.removeprefix(prefix)
    return key.startswith(prefix) and all(segment not in ("", ".", "..") for segment in rest.split("/"))


def key_for(path: FilePath, sha256: str, identity: Identity) -> str:
    """The key of these bytes of this file."""
    return f"{key_prefix(identity)}{path.turn_id}/{_name(path, sha256)}"


def handle_for(path: FilePath, sha256: str, identity: Identity) -> str:
    """The `rn`: opaque to clients, and one per file and content."""
    kind, role = ("attachment", "user") if path.place == "attachments" else ("file", "artifact")
    tenant, project = encoded(identity.tenant), encoded(identity.project)
    user, conversation = encoded(identity.user_id), encoded(identity.conversation_id)
    return f"ef:{tenant}:{project}:chatbot:{kind}:{user}:{conversation}:{path.turn_id}:{role}:{_name(path, sha256)}"


def _tenant_prefix(identity: Identity) -> str:
    return f"cb/tenants/{encoded(identity.tenant)}/projects/{encoded(identity.project)}/"


def _name(path: FilePath, sha256: str) -> str:
    """The file's name behind a mark of what it is. Of a long name the end stays, where the extension is."""
    mark = hashlib.sha256(f"{path.physical}\0{sha256}".encode()).hexdigest()[:MARK_CHARS]
    name = path.rel.rpartition("/")[2][-NAME_CHARS:]
    while len(encoded(name)) > NAME_CHARS:
        name = name[1:]  # whole characters, so that what is left is still an end of the name
    return f"{mark}-{encoded(name)}"
