"""What people and machines think of the turns reaches the agent: as blocks where its cache is cold, else announced.

The cache is cold when this daemon begins to write: at its first turn, and at the first one after somebody else wrote.
Blocks are told just before that turn begins, so that they are saved with it and a daemon that is only looked at changes
nothing. Until then, and whenever news come later, reactions are announced and kept by nobody but the index.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sidecar.conversation.archive import Archive
from sidecar.conversation.feedback import Feedback
from sidecar.conversation.lease import Lease
from sidecar.conversation.resuming import Resumer
from sidecar.core.blocks import Defaults, iso, moment_of, tell
from sidecar.core.conversation_kinds import REACTION
from sidecar.core.entries import BlockTold, Entry, Noticed, Remembered
from sidecar.core.errors import BadPath, JournalUnavailable, ShuttingDown, StoreUnavailable
from sidecar.core.feedback import feedback_of, in_order
from sidecar.core.feedback_blocks import announced, feedback_block
from sidecar.core.index_rows import Filters, IndexRow
from sidecar.core.notices import Notice, notice
from sidecar.rendering import Rendering
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)

KNOWN = "last_known_feedback_ts"  # the fact that says which reactions stand in the timeline
TICK = 1e-6  # what a moment loses when it is written as text


class Reacting:
    """Knows the latest reaction to each turn that does not stand in the timeline yet."""

    def __init__(
        self,
        workspace: Workspace,
        archive: Archive,
        lease: Lease,
        resumer: Resumer,
        rendering: Rendering,
        feedback: Feedback,
    ) -> None:
        self._workspace = workspace
        self._archive = archive
        self._lease = lease
        self._fresh: dict[str, IndexRow] = {}
        self._untold: list[IndexRow] = []  # of these no notice was given yet
        self._cold = True
        rendering.beside = self.announced
        resumer.listeners.append(self.hear)
        feedback.listeners.append(self._heard)

    def announced(self) -> Sequence[Mapping[str, Any]]:
        """What is announced of reactions, behind what the runtime announced: one block, or none."""
        rows = (row for row in self._fresh.values() if self._is_news(row))
        return announced(feedback_of(row) for row in reversed(in_order(rows)))

    async def look(self) -> None:
        """Find what was said while this daemon was not there. An index that does not answer is asked another time."""
        archive = self._archive
        try:
            rows = await archive.ask(archive.index.latest_reactions, archive.scope, since=self._since() - TICK)
        except StoreUnavailable as refusal:
            log.info("nobody can say what was said of the turns: %s", refusal)
        else:
            self._note(rows)

    async def hear(self, after: int) -> None:
        """The conversation changed after this number: reactions among that are told. Raises StoreUnavailable."""
        archive, filters = self._archive, Filters(kinds=(REACTION,))
        rows = await archive.ask(archive.index.rows, archive.scope, filters, after_change=after)
        if self._lease.state == "reader":
            self._cold = True
        news, self._untold = [*self._untold, *self._note(rows)], []
        await self._tell(news)

    async def begin_turn(self) -> None:
        """A turn is about to begin: where the cache is cold, what is new becomes blocks of the turns it is about."""
        if not self._cold or not self._lease.mine or self._workspace.turn_id:
            return
        await self.look()
        if self._archive.fault is not None:
            return
        rows = in_order(row for row in self._fresh.values() if self._is_news(row))
        now = time.time()
        entries: list[Entry] = [
            BlockTold(tell(feedback_block(feedback_of(row)), Defaults(row.turn_id, now))) for row in rows
        ]
        if entries:
            await self._workspace.stage(*entries, Remembered({KNOWN: iso(rows[-1].ts)}))
        self._fresh.clear()
        self._cold = False

    def _note(self, rows: Iterable[IndexRow]) -> list[IndexRow]:
        """The rows that are news, each the latest to its turn; from now on they are not."""
        news: list[IndexRow] = []
        for row in in_order(rows):
            known = self._fresh.get(row.turn_id)
            if not self._is_news(row) or (known is not None and known.message_id == row.message_id):
                continue
            if known is not None and (known.ts, known.change) > (row.ts, row.change or known.change):
                continue
            self._fresh[row.turn_id] = row
            news.append(row)
        return news

    def _is_news(self, row: IndexRow) -> bool:
        return moment_of(iso(row.ts)) > self._since() and self._workspace.has_turn(row.turn_id)

    def _since(self) -> float:
        try:
            return moment_of(self._workspace.facts.get(KNOWN), 0.0)
        except BadPath:
            return 0.0

    def _heard(self, row: IndexRow) -> None:
        """Somebody said it here; the index tells of it as well."""
        self._untold += self._note([row])

    async def _tell(self, rows: Iterable[IndexRow]) -> None:
        said = [_notice(row) for row in rows]
        if not said:
            return
        try:
            await self._workspace.stage(*map(Noticed, said))
        except (JournalUnavailable, ShuttingDown) as refusal:
            log.warning("nobody was told of what was said of a turn: %s", refusal)


def _notice(row: IndexRow) -> Notice:
    return notice("feedback_received", turn_id=row.turn_id, reaction=str(feedback_of(row).get("reaction", "")))
