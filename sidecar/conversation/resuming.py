"""A conversation that was saved goes on here: taken in whole at a start, and followed while somebody else writes it.

What is taken in becomes entries of our own journal (see `core/resumed.py`), in groups, through the way of every change,
so that editors hear of it. A fact says that it is under way: who is killed meanwhile goes on with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sidecar.conversation.archive import Archive
from sidecar.conversation.lease import Lease
from sidecar.core import limits
from sidecar.core.conversation_kinds import POOL, TIMELINE, TURN_LOG
from sidecar.core.conversation_names import scope_of
from sidecar.core.entries import BlockTold, Entry, FileSeen, Remembered, SourceSet, TurnSaved
from sidecar.core.errors import JournalUnavailable, NotFound, NotPermitted, ShuttingDown, StoreUnavailable
from sidecar.core.index_rows import Filters, IndexRow, Standing
from sidecar.core.paths import parse_physical
from sidecar.core.resumed import IMPORTED, Reach, Resuming, sids_in
from sidecar.core.resumed_own import own_work
from sidecar.core.saved_turns import WHOLE
from sidecar.core.storage_names import Identity
from sidecar.looking import Looker
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)

FOLLOWED = 5.0  # seconds that news are waited for at once: a conversation may be named meanwhile
FIRST_REST, LAST_REST = 0.5, 30.0
ROUNDS = 5  # of reading logs whose blobs are replaced meanwhile


class Resumer:
    """Takes in what others saved. `listeners` hear of every change of the index, with the number before it."""

    def __init__(self, workspace: Workspace, looker: Looker, archive: Archive, lease: Lease) -> None:
        self.listeners: list[Callable[[int], Awaitable[None]]] = []
        self._workspace = workspace
        self._looker = looker
        self._archive = archive
        self._lease = lease
        self._known = 0  # the change up to which news are known
        self._scope = None  # that it is known of
        self._otherwise: Callable[[], Awaitable[Sequence[Entry]]] = _nothing
        self._over = False
        self._waiter = ThreadPoolExecutor(1, thread_name_prefix="index-news")
        lease.catch_up = self.catch_up
        lease.became_writer = looker.number
        looker.numbers = lambda: lease.writes

    # A start ---------------------------------------------------------------------------------------------------------

    async def load(self, identity: Mapping[str, str], otherwise: Callable[[], Awaitable[Sequence[Entry]]]) -> bool:
        """Open a named conversation in an empty workspace: as it was saved, if anybody saved it, else `otherwise`.

        False when the index does not answer: then nothing is registered and no change is taken until it does.
        """
        workspace = self._workspace
        self._otherwise = otherwise
        self._shut(True)
        if not workspace.facts.get("resuming"):
            await workspace.stage(Remembered({"conversation": dict(identity), "resuming": True}))
        await self._lease.take()
        return not self._lease.blind

    async def named(self, asked: Mapping[str, str]) -> None:
        """A turn names its conversation: one that was saved is taken in, where there is nothing else yet.

        Raises NotPermitted where there is, and StoreUnavailable when nobody can say whether it was.
        """
        workspace = self._workspace
        facts = workspace.latest_facts
        open_now: dict[str, str] = facts["conversation"]
        wanted = {**open_now, **{key: value for key, value in asked.items() if value}}
        scope = scope_of(Identity.of(wanted))
        if scope == self._archive.scope or facts.get("resuming"):
            return
        if (facts.get("named") or workspace.has_turns) and not facts.get(IMPORTED):
            return  # whether this can be is for the turn to say
        if facts.get(IMPORTED):
            raise NotPermitted(scope.conversation_id, "another conversation needs another OUT_DIR")
        standing = await self._archive.ask(self._archive.index.standing, scope)
        if standing.change and not self._has_nothing():
            hint = "it was begun elsewhere; use an empty OUT_DIR, or start the daemon with --conversation-id"
            raise NotPermitted(scope.conversation_id, hint)
        resuming = {"resuming": True} if standing.change else {}
        self._shut(bool(resuming))
        await workspace.stage(Remembered({"conversation": wanted, "named": True, **resuming}))
        await self._lease.take()

    def _has_nothing(self) -> bool:
        workspace = self._workspace
        return not (workspace.next_block or workspace.pool.highest or len(workspace.artifacts) or workspace.turn_id)

    def _shut(self, shut: bool) -> None:
        """While it is not known what the conversation has, nothing on disk is registered."""
        opened = self._looker.shut and not shut
        self._lease.blind = self._looker.shut = shut
        if opened:
            self._looker.stir([""])

    # Taking in -------------------------------------------------------------------------------------------------------

    async def catch_up(self, standing: Standing) -> bool:
        """Take in all that others saved. False when there is work of our own that they went on without.

        Raises StoreUnavailable, JournalUnavailable and ShuttingDown; what was taken in by then stays.
        """
        facts = self._workspace.facts
        if standing.change > Reach.of(facts.get(IMPORTED)).change or facts.get("resuming"):
            if standing.change and await self._went_on_without_us(standing):
                return False
            standing = await self._take_in_at_rest(standing)
        self._known, self._scope = max(standing.change, self._heard_up_to()), self._archive.scope
        return True

    async def _take_in_at_rest(self, standing: Standing) -> Standing:
        """Take in what is there, again where a log was written anew meanwhile; answers how it stands by then."""
        for _ in range(ROUNDS):
            try:
                await self._take_in(standing)
            except NotFound as gone:
                missing = gone.about
                standing = await self._archive.ask(self._archive.index.standing, self._archive.scope)
            else:
                return standing
        raise StoreUnavailable(missing, "the index names what the store has not: check --store", fault="wrong_bytes")

    async def _went_on_without_us(self, standing: Standing) -> bool:
        """Whether something of ours was never saved, and somebody else gave its numbers to something else."""
        own = own_work(self._workspace, standing.next_block)
        if not own:
            return False
        for rows in _some(await self._rows(TURN_LOG, turn_ids=tuple(own.turns)) if own.turns else ()):
            for payload in await self._payloads(rows):
                own.found(self._workspace, payload)
        own.found_pool(self._workspace, await self._latest(POOL))
        return bool(own)

    async def _take_in(self, standing: Standing) -> None:
        """Take in what changed since the last time, in groups. Raises NotFound when a log is replaced meanwhile."""
        workspace, archive = self._workspace, self._archive
        since = Reach.of(workspace.facts.get(IMPORTED))
        await self._take_the_user_type()
        resuming = Resuming(workspace, archive.identity, standing.next_block)
        touched = dict(workspace.saved.unsaved)  # of our own: it stays unsaved
        saved: dict[str, int] = {}
        # Rows come newest first, and turns that followed each other are best told in that order.
        logs = (await self._rows(TURN_LOG, after=since.change))[::-1]
        for rows in _some(logs):
            entries: list[Entry] = []
            for payload in await self._payloads(rows):
                entries += await asyncio.to_thread(resuming.take, payload)
            await self._stage(entries, saved, standing.change)
            saved |= {row.turn_id: row.change for row in rows}
        pool, timeline = await self._latest(POOL), await self._latest(TIMELINE)
        entries = await asyncio.to_thread(resuming.finish, pool, timeline)
        entries += self._first_facts(standing)
        await self._stage(entries, saved, standing.change)
        # A log with blocks that are nobody's turn yet has to be read again.
        reached = since.change if resuming.held_over else standing.change
        known = since.and_also(Reach(reached, standing.next_block, sids_in(pool)))
        over: list[Entry] = [Remembered({IMPORTED: known.fact(), "resuming": False})] if standing.change else []
        if workspace.facts.get("resuming") and not standing.change:
            over = [*await self._otherwise(), Remembered({"resuming": False})]
        if over and (standing.change > since.change or workspace.facts.get("resuming")):
            over += self._are_saved(saved, touched, workspace.next_revision + len(over) - 1)
            await workspace.stage(*over)
        if self._lease.blind:
            self._shut(False)

    async def _take_the_user_type(self) -> None:
        """A user's type stands in every key: a conversation keeps the one that it was begun with."""
        archive, facts = self._archive, self._workspace.facts
        if not facts.get("resuming"):
            return
        rows = await archive.ask(archive.index.rows, archive.scope, Filters(kinds=(TURN_LOG,)), limit=1)
        if rows and rows[0].user_type != archive.identity.user_type:
            mended = {**facts["conversation"], "user_type": rows[0].user_type}
            await self._workspace.stage(Remembered({"conversation": mended}))

    def _first_facts(self, standing: Standing) -> list[Entry]:
        """A conversation that was taken in is this workspace's from now on, and no other."""
        fresh = standing.change and not self._workspace.facts.get("named")
        return [Remembered({"named": True})] if fresh else []

    async def _stage(self, entries: Sequence[Entry], saved: dict[str, int], change: int) -> None:
        if not entries:
            return
        workspace = self._workspace
        for entry in entries:
            if isinstance(entry, BlockTold):
                saved.setdefault(entry.told.head[1], change)
            elif isinstance(entry, SourceSet):
                saved.setdefault(WHOLE, change)
        here = {entry.fact.path for entry in entries if isinstance(entry, FileSeen)} & workspace.files.keys()
        await workspace.stage(*entries)
        if here:  # what stands on this disk is looked at again
            self._looker.stir({parse_physical(path).turn_id for path in here})

    def _are_saved(self, saved: Mapping[str, int], touched: Mapping[str, int], revision: int) -> list[Entry]:
        """The turns that were taken in are saved as they are, but for what is not from there."""
        return [
            TurnSaved(turn, touched[turn] - 1 if turn in touched else revision, change, ())
            for turn, change in saved.items()
        ]

    async def _rows(self, kind: str, *, after: int = 0, turn_ids: tuple[str, ...] = ()) -> list[IndexRow]:
        archive, filters = self._archive, Filters(kinds=(kind,), turn_ids=turn_ids)
        return await archive.ask(archive.index.rows, archive.scope, filters, after_change=after)

    async def _latest(self, kind: str) -> Any:
        """The payload of the newest row of a kind, or None."""
        archive, filters = self._archive, Filters(kinds=(kind,))
        rows = await archive.ask(archive.index.rows, archive.scope, filters, limit=1)
        return (await self._payloads(rows))[0] if rows else None

    async def _payloads(self, rows: Iterable[IndexRow]) -> list[Any]:
        """What these rows' blobs hold; None for what is lost. Raises NotFound for a row that names another by now."""
        return await asyncio.gather(*map(self._payload, rows))

    async def _payload(self, row: IndexRow) -> Any:
        archive = self._archive
        if not row.key:
            return None
        try:
            return (await archive.get(row)).get("payload")
        except NotFound:
            now = await archive.ask(archive.index.row, archive.scope, row.message_id)
            if now is None or now.key != row.key:
                raise
        except StoreUnavailable as refusal:
            if refusal.fault != "wrong_bytes":
                raise
        log.error("what the index names is not in the store, or damaged: %s", row.key)
        return None

    # Following -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Hear of every change of the conversation and, while somebody else writes it, take it in; until cancelled."""
        rest = FIRST_REST
        try:
            while not self._over:
                try:
                    if await self._changed() and not self._over:
                        await self._follow()
                except (StoreUnavailable, JournalUnavailable, ShuttingDown) as refusal:
                    log.info("what others do cannot be followed just now: %s", refusal)
                    await asyncio.sleep(rest)
                    rest = min(rest * 2, LAST_REST)
                except RuntimeError:
                    if not self._over:  # else nothing is asked any more
                        raise
                else:
                    rest = FIRST_REST
        finally:
            self._waiter.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Follow nothing any more."""
        self._over = True

    async def _changed(self) -> bool:
        archive = self._archive
        if self._scope != archive.scope:
            standing = await archive.ask(archive.index.standing, archive.scope)
            self._scope, self._known = archive.scope, standing.change
        waiting = asyncio.get_running_loop().run_in_executor(
            self._waiter, lambda: archive.index.changed(archive.scope, self._known, seconds=FOLLOWED)
        )
        return await waiting

    async def _follow(self) -> None:
        archive, lease, before = self._archive, self._lease, self._known
        standing = lease.note(await archive.ask(archive.index.standing, archive.scope))
        self._known = max(self._known, standing.change)
        if lease.state == "reader":
            async with lease.alone:
                await lease.reconcile(standing)
        for listener in self.listeners:
            await listener(before)

    def _heard_up_to(self) -> int:
        return self._known if self._scope == self._archive.scope else 0


async def _nothing() -> Sequence[Entry]:
    return ()


def _some(rows: Sequence[IndexRow]) -> Iterable[Sequence[IndexRow]]:
    return (rows[at : at + limits.LOGS_AT_ONCE] for at in range(0, len(rows), limits.LOGS_AT_ONCE))
