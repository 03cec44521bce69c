"""What happens in a workspace, for as long as somebody wants to know, whatever becomes of the daemon meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any

from artifact_client import Client, ConnectionLost, NoAnswer, NoSidecar, RpcError

from sidecar.console.place import Place

Told = tuple[str, dict[str, Any]]

# Beside the daemon's own events, under names that no event has.
STATUS, AWAY, BACK, FRESH, IDLE = "watch/status", "watch/away", "watch/back", "watch/fresh", "watch/idle"

TOPICS = ["sources", "artifacts", "timeline", "notices"]
PAGE = 500  # paths in one request
AGAIN_SECONDS = 0.2
_DAEMON_WENT = (ConnectionLost, NoSidecar, NoAnswer)


class Following:
    """The events of a workspace, one after the other, without an end.

    What was missed (the daemon ended, or we read too slowly) is caught up with by `workspace/changes`: artifacts and
    sources as they are now, in the order in which they changed last. Blocks and notices are told once or never.
    """

    def __init__(self, place: Place, *, since: int | None = None, recent: int = 0, idle: float, status: float) -> None:
        """`since` is a revision to begin after, else the last `recent` changes come first. `idle` says after how many
        seconds without an event IDLE comes, `status` how often STATUS comes anew."""
        self._place = place
        self._since = since
        self._recent = recent
        self._idle = idle
        self._status = status
        self._asked = 0.0
        self._replayed = 0  # events up to this revision were told by a replay

    def __iter__(self) -> Iterator[Told]:
        """Raises what the first connection fails with; from then on a daemon that is away is waited for."""
        self._place.start()
        with self._client() as client:
            status = client.call("workspace/status")
            if self._since is None:
                self._since = max(0, status["revision"] - self._recent)
            yield STATUS, status
            try:
                yield from self._session(client)
            except (*_DAEMON_WENT, RpcError) as why:
                yield from self._lost(why)
        while True:
            # Nobody but the user starts a daemon anew: one that was stopped stays stopped.
            try:
                with self._client() as client:
                    status = client.call("workspace/status")
                    yield BACK, status
                    yield from self._session(client)
            except NoSidecar:
                sleep(AGAIN_SECONDS)
                yield IDLE, {}
            except (ConnectionLost, NoAnswer, RpcError) as why:
                yield from self._lost(why)

    def _client(self) -> Client:
        return self._place.client_of_running(events=TOPICS)

    def _lost(self, why: Exception) -> Iterator[Told]:
        if isinstance(why, RpcError) and why.kind != "shutting_down":
            raise why
        sleep(AGAIN_SECONDS)
        yield AWAY, {"reason": str(why)}

    def _session(self, client: Client) -> Iterator[Told]:
        self._asked = monotonic()
        yield from self._missed(client)
        while True:
            for method, params in client.events(timeout=self._idle):
                notice = params.get("notice", {}) if method == "notice/posted" else None
                if notice is None and params.get("revision", 0) <= self._replayed:
                    continue
                if notice is not None and notice.get("code") == "events_dropped":
                    yield from self._missed(client)
                    continue
                self._since = max(self._since or 0, params.get("revision", 0))
                yield method, params
                yield from self._status_when_old(client)
            yield IDLE, {}
            yield from self._status_when_old(client)

    def _status_when_old(self, client: Client) -> Iterator[Told]:
        if monotonic() - self._asked >= self._status:
            yield STATUS, client.call("workspace/status")
            self._asked = monotonic()

    def _missed(self, client: Client) -> Iterator[Told]:
        """Everything that changed after the revision that is known."""
        since = self._since or 0
        paths: dict[str, None] = {}
        sids: list[int] = []
        while True:
            page = client.call("workspace/changes", {"since": since})
            if page["fresh"]:
                yield FRESH, {"revision": page["revision"]}
                since = page["revision"]
                break
            for change in page["changes"]:
                if change["kind"] == "artifact":
                    paths.pop(change["path"], None)
                    paths[change["path"]] = None
                elif change["kind"] == "source":
                    sids.append(change["sid"])
            since = page["changes"][-1]["revision"] if page["changes"] else page["revision"]
            if since >= page["revision"]:
                break
        self._since = self._replayed = since
        for method, params in (*_artifacts(client, list(paths)), *_sources(client, sorted(set(sids)))):
            yield method, {**params, "revision": since}


def _artifacts(client: Client, paths: list[str]) -> Iterator[Told]:
    for some in _pages(paths):
        found = client.call("artifact/resolve", {"paths": some})["results"]
        artifacts = [one["artifact"] for one in found if one.get("artifact")]
        if artifacts:
            yield "artifacts/changed", {"artifacts": artifacts}


def _sources(client: Client, sids: list[int]) -> Iterator[Told]:
    for some in _pages(sids):
        rows = client.call("sources/list", {"selector": ",".join(map(str, some))})["rows"]
        if rows:
            yield "sources/added", {"rows": rows}


def _pages(items: list[Any]) -> Iterator[list[Any]]:
    for at in range(0, len(items), PAGE):
        yield items[at : at + PAGE]
