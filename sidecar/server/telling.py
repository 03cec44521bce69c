"""Events: what happened, told to the clients that asked for it and may know of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sidecar.core.blocks import PATH, TURN, TYPE
from sidecar.core.errors import Refusal
from sidecar.core.happened import Happened
from sidecar.core.notices import Notice
from sidecar.core.paths import FilePath, parse
from sidecar.reading import Reader
from sidecar.server.methods.seeing import may_see, rows_for, sees_block, sees_named, sees_path
from sidecar.server.service import Guest
from sidecar.server.wire import encode
from sidecar.workspace import Workspace

Payload = dict[str, Any]
BLOCKS_TOLD = 1000


class Telling:
    """Keeps the list of connections and tells them. One payload is made per role and topic, however many listen."""

    def __init__(self, workspace: Workspace, reader: Reader) -> None:
        self.guests: dict[int, Guest] = {}
        self.changed: Callable[[], None] = lambda: None  # called when a client came or went
        self._workspace = workspace
        self._reader = reader
        workspace.listeners.append(self.tell)

    def join(self, guest: Guest) -> None:
        self.guests[guest.client.id] = guest
        self.changed()

    def leave(self, guest: Guest) -> None:
        self.guests.pop(guest.client.id, None)
        self.changed()

    def clients(self) -> list[Payload]:
        """Who is connected, as `workspace/status` answers it."""
        return [{"role": guest.client.role, "queued": guest.queued} for guest in self.guests.values()]

    def tell(self, happened: Happened) -> None:
        """Send each listener its events. Never waits: a client that does not read misses events and is told so."""
        listening = [guest for guest in self.guests.values() if guest.client.events]
        if not listening:
            return
        made: dict[tuple[str, str], list[tuple[str, bytes]]] = {}
        for guest in listening:
            role = guest.client.role
            for topic in guest.client.events:
                if (topic, role) not in made:
                    made[topic, role] = [
                        (method, encode(payload, role)) for method, payload in _TOPICS[topic](self, happened, role)
                    ]
                for method, params in made[topic, role]:
                    guest.notify(method, params)

    def _sources(self, happened: Happened, role: str) -> list[tuple[str, Payload]]:
        rows = rows_for(role, self._workspace, happened.sources.values())
        return [("sources/added", {"rows": rows, "revision": happened.revision})] if rows else []

    def _artifacts(self, happened: Happened, role: str) -> list[tuple[str, Payload]]:
        seen = [artifact for artifact in happened.artifacts.values() if artifact.versions and may_see(role, artifact)]
        records = [self._reader.record(artifact) for artifact in seen]
        return [("artifacts/changed", {"artifacts": records, "revision": happened.revision})] if records else []

    def _timeline(self, happened: Happened, role: str) -> list[tuple[str, Payload]]:
        if role not in ("runtime", "editor"):
            return []  # whoever may not read blocks is not told of them
        shown = [number for number in happened.blocks if sees_block(role, self._workspace, number)]
        return [
            ("timeline/appended", {"blocks": [self._head(number) for number in page], "revision": happened.revision})
            for page in (shown[at : at + BLOCKS_TOLD] for at in range(0, len(shown), BLOCKS_TOLD))
        ]

    def _head(self, number: int) -> Payload:
        head = self._workspace.timeline.heads[number]
        told: Payload = {"index": number, "type": head[TYPE], "turn_id": head[TURN]}
        return told | ({"path": head[PATH]} if head[PATH] else {})

    def _notices(self, happened: Happened, role: str) -> list[tuple[str, Payload]]:
        cut = (self._cut(role, notice) for notice in happened.notices)
        return [("notice/posted", {"notice": notice, "revision": happened.revision}) for notice in cut if notice]

    def _cut(self, role: str, notice: Notice) -> Notice | None:
        """The notice without the paths that the role may not know of; None when it is about nothing else."""
        if any(field in notice and not self._may_know(role, notice[field]) for field in _PATH):
            return None
        for field in _PATHS:
            named = notice.get(field)
            if isinstance(named, list) and named:
                known = [path for path in named if self._may_know(role, path)]
                if not known:
                    return None
                notice = {**notice, field: known}
        return notice

    def _may_know(self, role: str, text: Any) -> bool:
        """Whether a path may be named, physical or logical; what is none may."""
        try:
            path = parse(text) if isinstance(text, str) else None
        except Refusal:
            return True
        if isinstance(path, FilePath):
            return sees_path(role, self._workspace, path)
        return path is None or sees_named(role, self._workspace, path.logical)


_PATH = ("path", "original", "normalized")
_PATHS = ("paths", "missing")


_TOPICS: dict[str, Callable[[Telling, Happened, str], list[tuple[str, Payload]]]] = {
    "sources": Telling._sources,
    "artifacts": Telling._artifacts,
    "timeline": Telling._timeline,
    "notices": Telling._notices,
}
