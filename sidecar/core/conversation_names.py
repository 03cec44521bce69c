"""How what a conversation leaves behind is called: blobs, handles, executions, accounting (seed 004, Storage Layout).

Every part is percent-encoded where a store or a URL could not take it; `spelled` reads a key as the seed prints it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from urllib.parse import unquote

from sidecar.core.index_rows import Scope
from sidecar.core.storage_names import Identity, encoded

ID_CHARS = 12
NAME_CHARS = 180


def scope_of(identity: Identity) -> Scope:
    return Scope(identity.tenant, identity.project, identity.user_id, identity.conversation_id)


def message_id(kind: str, ts: float, *, mark: str) -> str:
    """`artifact-<ts>-<id>-<kind>`: the same for the same kind, moment (seconds, UTC) and mark, which is any text."""
    stamp = dt.datetime.fromtimestamp(ts, dt.UTC).strftime("%Y-%m-%dT%H-%M-%S")
    short = hashlib.sha256(f"{kind}\0{ts!r}\0{mark}".encode()).hexdigest()[:ID_CHARS]
    return f"artifact-{stamp}-{short}-{kind}"


def conversation_prefix(identity: Identity) -> str:
    """Where every blob of a conversation lies, with a slash at the end."""
    return _place(identity, "conversation")


def blob_key(identity: Identity, turn_id: str, name: str) -> str:
    """The key of one blob: `…/conversation/<role>/<user>/<conversation>/<turn>/<name>.json`; `name` as `message_id`."""
    return f"{conversation_prefix(identity)}{turn_id or '-'}/{_segment(name)}.json"


def message_handle(identity: Identity, turn_id: str, message: str) -> str:
    """The `rn` of a blob: opaque to clients."""
    parts = (identity.tenant, identity.project, "chatbot", "message", identity.user_id, identity.conversation_id)
    return ":".join(("ef", *map(encoded, parts), turn_id, "artifact", encoded(message)))


def execution_prefix(identity: Identity) -> str:
    """Where every archive of a conversation's executions lies, with a slash at the end."""
    return _place(identity, "executions")


def execution_key(identity: Identity, turn_id: str, exec_id: str, name: str) -> str:
    """`…/executions/<role>/<user>/<conversation>/<turn>/<exec_id>/<name>`; `name` is `out.zip` or `pkg.zip`."""
    return f"{execution_prefix(identity)}{turn_id}/{encoded(exec_id)}/{name}"


def accounting_key(identity: Identity, *, bundle_id: str, service: str, turn_id: str, agent: str, ts: float) -> str:
    """`accounting/<tenant>/project/<YYYY.MM.DD>/<service>/<bundle>/cb|<user>|<conversation>|<turn>|<agent>|<ts>.json`."""
    moment = dt.datetime.fromtimestamp(ts, dt.UTC)
    place = (identity.tenant, "project", moment.strftime("%Y.%m.%d"), service, bundle_id or "default")
    stamp = moment.strftime("%Y-%m-%dT%H-%M-%S.%f")
    name = "|".join(("cb", *map(encoded, (identity.user_id, identity.conversation_id, turn_id, agent, stamp))))
    return f"accounting/{'/'.join(map(encoded, place))}/{_segment(name)}.json"


def spelled(key: str) -> str:
    """A key as the seed prints it: what a store or a URL could not take is read back."""
    return unquote(key)


def _segment(name: str) -> str:
    """A name as a segment of a key; one that is too long for that is the hash of itself."""
    spelling = encoded(name)
    return spelling if len(spelling) <= NAME_CHARS else hashlib.sha256(name.encode()).hexdigest()


def _place(identity: Identity, what: str) -> str:
    tenant, project = encoded(identity.tenant), encoded(identity.project)
    owner = "/".join(map(encoded, (identity.user_type, identity.user_id, identity.conversation_id)))
    return f"cb/tenants/{tenant}/projects/{project}/{what}/{owner}/"
