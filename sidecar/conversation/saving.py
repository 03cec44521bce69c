"""Save what turns leave behind: at their end, and again in the background whenever something of them changed later.

What is unsaved stands in the journal, so that a restart goes on with it. One save at a time, made by whoever holds the
lease; an outage is waited out, and nobody waits for longer than the end of a turn may take.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Coroutine
from typing import Any

from sidecar.conversation.accounting import Accounting
from sidecar.conversation.archive import Archive
from sidecar.conversation.committing import Batch, Committing
from sidecar.conversation.executions import Executions
from sidecar.conversation.lease import Lease
from sidecar.core.blocks import SUMMARY, TYPE
from sidecar.core.errors import JournalUnavailable, ShuttingDown, StoreUnavailable
from sidecar.core.happened import Happened
from sidecar.core.index_rows import LeaseLost, RowChanged
from sidecar.core.saved_turns import SUMMARIES, WHOLE
from sidecar.hosting import Hosting
from sidecar.looking import Looker
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)

TURNS_IN_A_BATCH = 32
QUIET_SECONDS = 1.0
LAST_REST = 30.0
HOSTING_PATIENCE = 5.0  # what is hosted meanwhile is saved with the rest
LEASE = "lease"


class Saver:
    """Keeps the conversation store up to what is durable here."""

    def __init__(
        self,
        workspace: Workspace,
        looker: Looker,
        archive: Archive,
        lease: Lease,
        hosting: Hosting,
        *,
        executions: Executions | None,
        accounting: Accounting,
    ) -> None:
        self._workspace = workspace
        self._archive = archive
        self._lease = lease
        self._hosting = hosting
        self._committing = Committing(workspace, looker, archive, lease, executions=executions, accounting=accounting)
        self._looker = looker
        self._one_at_a_time = asyncio.Lock()
        self._under_way: set[asyncio.Task[bool]] = set()
        self._stirred = asyncio.Event()
        self._failed = ""  # why the last save came to nothing
        workspace.listeners.append(self._hear)

    # What others ask -------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a save is under way."""
        return bool(self._under_way)

    @property
    def unsaved(self) -> int:
        """How many turns that are over have something unsaved, and one more for the conversation as a whole."""
        return len(self._due()) + self._is_whole_due()

    @property
    def reason(self) -> str:
        """Why something is not saved, as far as there is a reason; else empty."""
        if self._archive.fault or (self._hosting.store is not None and self._hosting.fault):
            return self._archive.fault or self._hosting.fault or ""
        return LEASE if not self._lease.mine else self._failed

    async def end(self, turn_id: str, *, seconds: float) -> tuple[list[dict[str, Any]], bool]:
        """Save a turn that has ended, and all else that is unsaved; answers what was saved of it, and what is pending.

        When the time is up it goes on in the background.
        """
        await self._within(self._catch_up(), seconds)
        return await self.saved(turn_id), not self._is_saved(turn_id)

    async def compacted(self, *, seconds: float) -> bool:
        """Save what a compaction left behind, and what else can be saved now. Answers whether that is done."""
        return await self._within(self._catch_up(), seconds)

    async def saved(self, turn_id: str) -> list[dict[str, Any]]:
        """What is saved of a turn: `{kind, hosted_uri, message_id, rn?, needs_embedding?}`; empty when nothing is."""
        saving = self._workspace.saved.at(turn_id)
        if saving is None:
            return []
        items = await self._looker.off_loop(self._workspace.recorded, saving.seq)
        return [{name: value for name, value in item.items() if name != "sha256"} for item in items]

    async def run(self) -> None:
        """Save what became unsaved, once it is quiet, and what could not be saved, after a rest; until cancelled."""
        rest = QUIET_SECONDS
        self._stirred.set()
        try:
            while True:
                await self._stirred.wait()
                await asyncio.sleep(rest)
                self._stirred.clear()
                if not self._is_due():
                    rest = QUIET_SECONDS
                    continue
                if not self._lease.mine:
                    self._stirred.set()  # the lease may be ours before long
                    rest = QUIET_SECONDS
                    continue
                await self._hosting.settle(HOSTING_PATIENCE)
                done = await self._within(self._catch_up(), math.inf)
                rest = QUIET_SECONDS if done else min(max(rest, QUIET_SECONDS) * 2, LAST_REST)
                if not done:
                    self._stirred.set()
        finally:
            for task in self._under_way:
                task.cancel()

    # One save after another ------------------------------------------------------------------------------------------

    async def _within(self, work: Coroutine[Any, Any, bool], seconds: float) -> bool:
        """Wait for a save at most so long; it comes to its end in any case."""
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        done, _ = await asyncio.wait({task}, timeout=None if math.isinf(seconds) else seconds)
        return bool(done) and not task.cancelled() and task.result()

    async def _catch_up(self) -> bool:
        """Save everything that is unsaved and over. Never raises; what failed stays unsaved and is tried again."""
        async with self._one_at_a_time:
            if not self._lease.mine:
                return False
            try:
                await self._save()
            except StoreUnavailable as refusal:
                self._failed = refusal.fault
            except LeaseLost:
                log.warning("nothing was saved: another daemon writes this conversation by now")
                self._failed = LEASE
                self._lease.lost()
            except (JournalUnavailable, ShuttingDown) as refusal:
                log.warning("what was saved is not recorded: %s", refusal)
                self._failed = "journal"
            except RowChanged:
                self._failed = "busy"
            except Exception:
                log.exception("saving failed")
                self._failed = "failed"
            else:
                self._failed = ""
                return True
            self._stirred.set()
            return False

    async def _save(self) -> None:
        """Everything that is unsaved, by what is durable now; a turn that is open stays so.

        While one is open the conversation as a whole is not at the end of any turn, and is left as it was.
        """
        workspace, saved = self._workspace, self._workspace.saved
        revision, end = workspace.revision, len(workspace.timeline)
        turns = self._in_order(self._unsaved())
        at_rest = not workspace.durable_turn_id and not workspace.pending
        last = workspace.turns.durable.get(saved.last_ended) if at_rest else None
        is_whole_due = last is not None and (bool(turns) or WHOLE in saved.unsaved)
        summaries = self._summaries()
        while turns or summaries or is_whole_due:
            some, turns = turns[:TURNS_IN_A_BATCH], turns[TURNS_IN_A_BATCH:]
            batch = Batch(
                turn_ids=some,
                revision=revision,
                snapshot_of=last if is_whole_due and not turns else None,
                summaries=summaries,
                next_block=end if at_rest and not turns else None,
            )
            await self._committing.save(batch)
            summaries = ()
            is_whole_due = is_whole_due and bool(turns)

    def _unsaved(self) -> set[str]:
        """Turns that have something unsaved and can be saved now: neither open, nor with files that are nobody's."""
        workspace = self._workspace
        saved = workspace.saved
        names = {*saved.unsaved, *(saved.unlogged if self._archive.stores else ())}
        undecided = {artifact.path.turn_id for artifact in workspace.pending.values()}
        return names - {WHOLE, SUMMARIES, workspace.durable_turn_id} - undecided

    def _due(self) -> set[str]:
        """Those among them that are to be saved without being asked: a turn that nobody began never ends."""
        turns = self._workspace.turns.durable
        return {turn for turn in self._unsaved() if (known := turns.get(turn)) is not None and known.ended}

    def _is_whole_due(self) -> bool:
        workspace = self._workspace
        at_rest = not workspace.durable_turn_id and not workspace.pending
        return at_rest and WHOLE in workspace.saved.unsaved and bool(workspace.saved.last_ended)

    def _is_due(self) -> bool:
        return bool(self._due()) or self._is_whole_due() or bool(self._summaries())

    def _is_saved(self, turn_id: str) -> bool:
        """Whether a turn and the conversation at its end are saved."""
        saved = self._workspace.saved
        return saved.is_saved(turn_id) and not (saved.last_ended == turn_id and self._is_whole_due())

    def _in_order(self, turns: set[str]) -> list[str]:
        """By their first blocks; those without any come last."""
        of_turn = self._workspace.timeline.of_turn

        def place(turn_id: str) -> tuple[float, str]:
            numbers = of_turn(turn_id)
            return (numbers[0] if numbers else math.inf), turn_id

        return sorted(turns, key=place)

    def _summaries(self) -> tuple[int, ...]:
        """The blocks of summaries that have no row yet."""
        timeline, saving = self._workspace.timeline, self._workspace.saved.at(SUMMARIES)
        known = saving.revision if saving is not None else 0
        if timeline.summary is None or timeline.seqs[timeline.summary] <= known:
            return ()
        return tuple(n for _, n in timeline.since_revision(known) if timeline.heads[n][TYPE] == SUMMARY)

    def _hear(self, happened: Happened) -> None:  # noqa: ARG002 - whatever happened, it may have to be saved
        if self._workspace.saved.unsaved:
            self._stirred.set()
