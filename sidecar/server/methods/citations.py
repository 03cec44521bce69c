"""Citations in a text: `[[S:1,3-5]]` and their kin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from protocol.requests.citations import ExtractParams, ReplaceParams, StreamParams
from sidecar.core import citations, limits
from sidecar.core.errors import TooLarge
from sidecar.core.hosting import Verbatim
from sidecar.pieces import Pieces, spelled
from sidecar.server.caller import Caller, Client
from sidecar.server.methods.seeing import rows_for
from sidecar.services import Services

T = TypeVar("T")
SHORT_CHARS = 64 * limits.KIB


@dataclass(frozen=True, slots=True)
class PoolLinks:
    """The pool as links. Only web addresses become links: a file's row is named, not linked."""

    rows: Mapping[int, dict[str, Any]]
    sids: Sequence[int]
    sees: Callable[[dict[str, Any]], bool]

    def link(self, sid: int) -> citations.Link | None:
        row = self.rows.get(sid)
        if row is None or not self.sees(row):
            return None
        url = row.get("url")
        is_web = isinstance(url, str) and url and row.get("source_type") not in ("file", "attachment")
        title = row.get("title") or url or row.get("artifact_path") or f"Source {sid}"
        return citations.Link(str(title), url if is_web else None)


def _links(services: Services, role: str) -> PoolLinks:
    """The pool as it stands now: rows are replaced when they change, so a copy of the table is a snapshot."""
    workspace = services.workspace
    pool = workspace.pool
    return PoolLinks(dict(pool.rows.durable), tuple(pool.sids), lambda row: bool(rows_for(role, workspace, [row])))


async def _run(services: Services, text: str, work: Callable[[], T]) -> T:
    """A long text is looked through off the loop."""
    return work() if len(text) <= SHORT_CHARS else await services.looker.search(work)


async def extract(services: Services, _: Caller, params: ExtractParams) -> dict[str, Any]:
    sids = tuple(services.workspace.pool.sids)
    return {"sids": await _run(services, params.text, lambda: citations.extract(params.text, params.mime, sids))}


async def replace(services: Services, caller: Caller, params: ReplaceParams) -> dict[str, Any]:
    links = _links(services, caller.role)

    def work() -> dict[str, Any]:
        replaced = citations.replace(params.text, params.mime, links)
        text = _as_it_goes_out(replaced.text)
        return {"text": text, "sources_used": replaced.sources_used, "unresolved": replaced.unresolved}

    return await _run(services, params.text, work)


def _as_it_goes_out(text: str) -> Verbatim | Pieces:
    """What a client wrote itself, with links to web addresses in it: nothing of that is to be kept from it."""
    return Verbatim(text) if len(text) <= SHORT_CHARS else spelled(text)


def stream(services: Services, caller: Caller, params: StreamParams) -> Any:
    """A stream belongs to its connection; the pool is the one at its first chunk (spec section 6).

    A long chunk is looked through off the loop, and those that come meanwhile wait for it.
    """
    streams = caller.streams
    _drop_idle(streams, caller.began)
    open_stream = streams.get(params.stream_id)
    if open_stream is None:
        if len(streams) >= limits.STREAMS_PER_CONNECTION:
            raise TooLarge(
                params.stream_id, f"at most {limits.STREAMS_PER_CONNECTION} streams are open at once; flush one"
            )
        links = _links(services, caller.role)
        open_stream = streams[params.stream_id] = _Stream(citations.StreamReplacer(params.mime, links))
    open_stream.touched = caller.began
    if params.flush:
        del streams[params.stream_id]
    if len(params.chunk) > SHORT_CHARS or open_stream.waited_for:
        open_stream.waited_for = True
        return _feed_in_turn(services, caller.client, open_stream, params)
    return _fed(caller.client, open_stream, params)


async def _feed_in_turn(
    services: Services, client: Client, open_stream: _Stream, params: StreamParams
) -> dict[str, Any]:
    async with open_stream.turn:
        return await services.looker.search(lambda: _fed(client, open_stream, params))


def _fed(client: Client, open_stream: _Stream, params: StreamParams) -> dict[str, Any]:
    try:
        text = open_stream.feed(params.chunk, room=limits.MESSAGE_BYTES - _kept(client, besides=open_stream))
        if params.flush:
            text += open_stream.replacer.flush()
    except TooLarge:
        if client.streams.get(params.stream_id) is open_stream:
            del client.streams[params.stream_id]  # what it held is of no use any more
        raise
    finally:
        client.kept = _kept(client)
    return {"text": _as_it_goes_out(text), "sources_used": open_stream.replacer.sources_used}


@dataclass(slots=True)
class _Stream:
    replacer: citations.StreamReplacer
    touched: float = 0.0
    taken: int = 0
    shown: int = 0
    waited_for: bool = False  # a chunk of it went off the loop, and from then on all do, in order
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def kept(self) -> int:
        """Characters that are held back."""
        return self.taken - self.shown

    def feed(self, chunk: str, *, room: int) -> str:
        """Raises TooLarge when more than `room` would be held back; JSON is answered at flush and held whole."""
        self.taken += len(chunk)
        if self.kept > room:
            raise TooLarge("stream", "the streams of a connection hold back at most one message")
        text = self.replacer.feed(chunk) if chunk else ""
        self.shown += len(text)
        return text


def _kept(client: Client, *, besides: _Stream | None = None) -> int:
    """What all streams of the connection hold back, perhaps without one of them."""
    return sum(one.kept for one in list(client.streams.values()) if one is not besides)


def _drop_idle(streams: dict[str, Any], now: float) -> None:
    for name, stream in list(streams.items()):
        if now - stream.touched > limits.STREAM_IDLE:
            del streams[name]
