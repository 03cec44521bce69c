"""A whole content lands at a path of the open turn and is told of, or nothing happened.

What stands there is looked at first, so that unknown bytes become a version before they are replaced. The former file
waits aside until the change is durable; when the journal refuses, it stands again where it stood.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from sidecar.core import limits
from sidecar.core.artifacts import Visibility
from sidecar.core.blocks import iso
from sidecar.core.drafts import Draft, content_for, digest_for, visibility_at
from sidecar.core.entries import Entry, Promise, Promised
from sidecar.core.errors import (
    JournalUnavailable,
    NotFound,
    NotPermitted,
    ShuttingDown,
    Stale,
    StoreUnavailable,
    UnknownTurn,
    UnsafePath,
)
from sidecar.core.foretelling import foretell
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.notices import Notice
from sidecar.core.paths import FilePath
from sidecar.core.registration import register
from sidecar.core.told_blocks import Block, digest_block, notice_block, result_block
from sidecar.hosting import Hosting
from sidecar.looking import Looker
from sidecar.pacing import to_its_end
from sidecar.ports import Blobs, OutDir, Placed
from sidecar.within import Telling, Within, entries_in, within
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)
T = TypeVar("T")
Remember = Callable[[dict[str, Any]], list[Entry]]
"""What else is to be journalled with a result, so that the same request can be answered again."""

BUSY_REST = 0.02


@dataclass(frozen=True, slots=True)
class Saying:
    """What is said beside the content: notices, what came of the call as a block, and how the request is answered.

    `contents` is what the result shows of a content; it is left out where that is internal.
    """

    telling: Telling
    notices: Sequence[Notice]
    answer: Callable[[dict[str, Any]], dict[str, Any]]
    result: Mapping[str, Any] | None = None
    contents: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Landing:
    """Writes files of the open turn, one at a time for each path."""

    def __init__(
        self,
        workspace: Workspace,
        looker: Looker,
        outdir: OutDir,
        blobs: Blobs,
        hosting: Hosting,
        *,
        eligible: Sequence[str],
    ) -> None:
        self._workspace = workspace
        self._looker = looker
        self._outdir = outdir
        self._blobs = blobs
        self._hosting = hosting
        self._eligible = eligible
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def alone(self, path: FilePath) -> AsyncGenerator[None]:
        """Whoever writes at this path takes turns."""
        line = self._lines.setdefault(path.physical, asyncio.Lock())
        async with line:
            yield

    async def land(self, draft: Draft, saying: Saying, remember: Remember) -> dict[str, Any]:
        """Put a content in place and tell of it; answers when it is durable. Call it `alone`.

        Raises Stale when something else stands there than expected, NotPermitted when somebody else writes to it,
        StoreUnavailable for a disk that takes nothing, UnsafePath for links, and what `within` raises.
        """
        physical = draft.path.physical
        patience = time.monotonic() + limits.STILL_OPEN_WAIT
        while True:
            standing = await self._looker.look_at(draft.path)
            if standing is None or self._workspace.files.get(physical) == standing:
                self._expect(draft)
                try:
                    return await to_its_end(self._put(draft, standing, saying, remember))
                except FileExistsError:
                    pass  # another program was faster; what it made is looked at first
            if time.monotonic() >= patience:
                raise NotPermitted(physical, "another program writes to this file; try again when it is closed")
            await asyncio.sleep(BUSY_REST)

    async def tell(self, saying: Saying, remember: Remember, *, visibility: Visibility) -> dict[str, Any]:
        """Tell what came of a call that made nothing. Raises what `within` raises."""
        call = within(self._workspace, saying.telling)
        blocks = [*_notices(call, saying), *_results(call, saying, visibility)]
        entries = entries_in(call, saying.telling, blocks, (), visibility=visibility, now=time.time())
        result = saying.answer({})
        await self._workspace.stage(*entries, *remember(result))
        return result

    async def _put(self, draft: Draft, standing: StatKey | None, saying: Saying, remember: Remember) -> dict[str, Any]:
        workspace = self._workspace
        if standing is None and not draft.makes_file:
            await self._settled(draft.path)
            entries, result = self._entries(draft, None, saying)
            await workspace.stage(*entries, *remember(result))
            return result
        await self._promise(draft)
        with workspace.claims.hold(draft.path.physical):
            try:
                placed = await self._looker.off_loop(self._place, draft, standing)
            except BaseException:
                await self._promise_nothing(draft)
                raise
            try:
                kept = await self._looker.off_loop(self._keep, draft.body.content)
                await self._settled(draft.path)
                fact = FileFact(draft.path.physical, placed.key, draft.body.sha256, draft.body.mime, kept=kept)
                entries, result = self._entries(draft, fact, saying)
                await workspace.stage(*entries, *remember(result))
            except BaseException:
                await self._take_back(placed, draft.path)
                await self._promise_nothing(draft)
                raise
            try:
                await self._looker.off_loop(placed.keep)
            except OSError as fault:  # the write counts all the same; a later start sweeps what is left
                log.warning("what stood at %s before could not be removed: %s", draft.path.physical, fault)
        return result

    async def _promise(self, draft: Draft) -> None:
        """An internal file is promised before it appears: a daemon that dies here leaves nothing for all to see."""
        if self._is_internal(draft):
            await self._workspace.stage(Promised(draft.path.physical, "", "internal"))

    async def _promise_nothing(self, draft: Draft) -> None:
        """What was promised did not come; the next file at this path is anybody's."""
        if self._is_internal(draft):
            with suppress(JournalUnavailable, ShuttingDown):
                await self._workspace.stage(Promised(draft.path.physical, "", "external"))

    def _is_internal(self, draft: Draft) -> bool:
        known = self._workspace.artifact(draft.path)
        stays = draft.visibility is None and known is not None and known.visibility == "internal"
        return draft.visibility == "internal" or stays

    async def _settled(self, path: FilePath) -> None:
        """Wait for what is on its way to the journal and decides who may see this file."""
        while self._workspace.settling or self._workspace.arriving([path.physical]):
            await self._workspace.stage()

    def _place(self, draft: Draft, over: StatKey | None) -> Placed:
        physical = draft.path.physical
        try:
            return self._outdir.place(physical, [draft.body.content], over=over)
        except FileExistsError:
            raise
        except PermissionError as fault:
            raise NotPermitted(physical, "the daemon may not write there") from fault
        except NotFound as fault:
            raise StoreUnavailable(physical, "OUT_DIR is not where it was", fault="no_out_dir") from fault
        except OSError as fault:
            raise StoreUnavailable(physical, os.strerror(fault.errno or 0), fault="disk_full") from fault

    def _keep(self, content: bytes) -> bool:
        """Put the bytes aside as a look would; answers whether there was room."""
        if len(content) > limits.KEPT_FILE_BYTES:
            return False
        writer = self._blobs.writer()
        try:
            writer.write(content)
            writer.keep()
        finally:
            writer.discard()
        return writer.kept

    async def _take_back(self, placed: Placed, path: FilePath) -> None:
        """Undo what could not be told. If even that fails, what stands there is found by the next look."""

        def back() -> StatKey | None:
            if not placed.take_back():
                log.warning("%s changed before it could be told of; what is there now stays", path.physical)
            return self._outdir.key(path.physical)

        try:
            key = await self._looker.off_loop(back)
        except (OSError, UnsafePath):
            log.exception("%s could not be taken back", path.physical)
        else:
            if key is not None:
                self._workspace.rekey(path, key)

    def _expect(self, draft: Draft) -> None:
        known = self._workspace.artifact(draft.path)
        actual = (known.sha256() if known is not None else None) or ""
        if draft.expected is not None and draft.expected != actual:
            raise Stale(draft.path.physical, expected=draft.expected, actual=actual)

    def _entries(self, draft: Draft, fact: FileFact | None, saying: Saying) -> tuple[list[Entry], dict[str, Any]]:
        """What the change is, decided in one go on the state as the next change finds it."""
        workspace, path = self._workspace, draft.path
        if workspace.turn_id != draft.turn_id:
            raise UnknownTurn(draft.turn_id, "this turn ended meanwhile")
        self._expect(draft)
        call = within(workspace, saying.telling)
        now = time.time()
        known = workspace.artifact(path)
        known = known if known is not None and known.versions else None
        visibility = visibility_at(draft, known, calls_are_open=bool(workspace.open_calls))
        digest = digest_for(draft, known, visibility, call_id=call.tool_call_id, ts=iso(now))
        blocks = _notices(call, saying)
        blocks.append(digest_block(digest, turn_id=call.turn_id, tool_call_id=call.tool_call_id, tool_id=call.tool_id))
        blocks.append(content_for(draft, digest, tool_id=call.tool_id))
        blocks += _results(call, saying, visibility)
        owner = known.owner if known is not None and visibility == "pending" else call.tool_call_id
        others = self._registered(path, fact, (owner, visibility), now) if fact is not None else []
        entries = entries_in(call, saying.telling, blocks, others, visibility=visibility, now=now)
        record = foretell(known, path, entries, tools={call.tool_call_id: call.tool_id})
        return entries, saying.answer(record)

    def _registered(self, path: FilePath, fact: FileFact, promise: Promise, now: float) -> list[Entry]:
        workspace = self._workspace
        entries = register(
            [fact],
            artifacts=workspace.artifacts,
            pool=workspace.pool,
            open_calls={},
            eligible=self._eligible,
            ts=now,
            promised={path.physical: promise},
        )
        return entries + (self._hosting.wanted(path, fact.sha256) if promise[1] == "external" else [])


def _notices(call: Within, saying: Saying) -> list[Block]:
    return [notice_block(call.turn_id, call.tool_call_id, said) for said in saying.notices]


def _results(call: Within, saying: Saying, visibility: Visibility) -> list[Block]:
    if saying.result is None:
        return []
    said = {**saying.result, **(saying.contents if visibility != "internal" else {})}
    return [result_block(call.turn_id, call.tool_call_id, call.tool_id, said)]
