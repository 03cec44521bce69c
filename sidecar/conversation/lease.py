"""Who writes the conversation. One daemon at a time holds its lease in the index; all others read and follow.

The lease says who may begin to write; what is written is fenced by its generation, so that a writer who lost it without
knowing changes nothing. A workspace whose index does not answer goes on: its journal is the truth, saves wait, and the
fence decides later.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from sidecar.conversation.archive import Archive
from sidecar.core import limits
from sidecar.core.entries import Noticed, Remembered
from sidecar.core.errors import JournalUnavailable, NotPermitted, ShuttingDown, StoreUnavailable
from sidecar.core.index_rows import Fence, Scope, Standing
from sidecar.core.notices import notice
from sidecar.core.resumed import IMPORTED
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)

State = Literal["writer", "reader", "diverged", "unknown"]
CatchUp = Callable[[Standing], Awaitable[bool]]

HELD_AT = "held_at"  # the fact that says in which place the workspace's own id was made
RENEWALS = 3  # within the time that a lease lasts
SHORTEST = 0.05
UNKNOWN_REST = 5.0  # before an index that did not answer is asked again, or a renewal's time if that is shorter
FAREWELL = 2.0  # that the end waits for the index; a lease that is not given up expires
ROUNDS = 3  # of catching up with a writer who goes on meanwhile


class Lease:
    """The workspace's part in its conversation. `label` says to people who holds it; `seconds` is how long it lasts.

    `place` is what a copy of the workspace's state has not in common with it; empty where nobody could copy it.
    """

    def __init__(
        self,
        workspace: Workspace,
        archive: Archive,
        *,
        label: str,
        place: str = "",
        seconds: float = limits.LEASE_SECONDS,
    ) -> None:
        self.state: State = "unknown"
        self.standing = Standing()
        self.blind = False  # the conversation may exist elsewhere, and nobody could be asked
        # Takes in what others saved; False when that cannot be reconciled with what was never saved here.
        self.catch_up: CatchUp = _nothing_to_catch_up
        self.became_writer: Callable[[], Awaitable[None]] = _nothing_to_do
        self.alone = asyncio.Lock()  # nobody takes anything in while it is being decided who writes
        self.patience = limits.CONFIRM_SECONDS  # with an index that says nothing
        self._workspace = workspace
        self._archive = archive
        self._label = label
        self._place = place
        self._seconds = seconds
        self._scope: Scope | None = None  # of the lease that is held
        self._generation = 0  # the one we write in
        self._until = 0.0  # by `clock`: when the lease that is known ends
        self._reason, self._about = "", "index"  # why nobody could be asked, and what is away
        self._over = False
        self._opened = False  # whether the index has been opened
        self._stirred = asyncio.Event()
        self._confirming: asyncio.Task[None] | None = None
        self._waited_out = False  # whether somebody waited for it in vain
        self._taking_in = False  # what others saved: the index answers
        self._taken_in = 0  # how often
        self._line = asyncio.Lock()
        self._in_line = 0

    # What others ask -------------------------------------------------------------------------------------------------

    @property
    def mine(self) -> bool:
        """Whether this daemon is the writer, as far as it knows."""
        return self.state == "writer"

    @property
    def writes(self) -> bool:
        """Whether changes are taken: by the writer, and where nobody can say who it is."""
        return self.state == "writer" or (self.state == "unknown" and not self.blind)

    @property
    def lapsed(self) -> bool:
        """Whether the lease that we write by is over by our own clock, or somebody else has it by now."""
        return self.mine and (self.standing.holder != self.holder or clock() >= self._until)

    @property
    def doubtful(self) -> bool:
        """Whether a change is to be `settled` first: also behind others that wait, as they were asked for before it."""
        return self._in_line > 0 or self.lapsed

    @property
    def held_by(self) -> str:
        """Who writes, in words for people; empty when it is us, or nobody is known."""
        return "" if self.state in ("writer", "unknown") else self.standing.label

    @property
    def fence(self) -> Fence:
        """What a commit of ours is fenced with."""
        return Fence(self.holder, self._generation)

    @property
    def holder(self) -> str:
        """Our id in the index, the same as long as there is the workspace; empty before it was first needed."""
        return self._workspace.facts.get("holder", "")

    def status(self) -> dict[str, Any]:
        """How it is, as `workspace/status` answers it."""
        return {"lease": self.state} | ({"held_by": self.held_by} if self.held_by else {})

    def require(self) -> None:
        """Raises NotPermitted for anybody but the writer, and StoreUnavailable while nobody can say who that is."""
        if self.writes:
            return
        if self.state == "unknown":
            why = f": {self._reason}" if self._reason else ""
            hint = f"this conversation may go on elsewhere, and what was saved of it cannot be read{why}"
            raise StoreUnavailable(self._about, hint, fault=self._archive.fault or "unreachable")
        conversation = self._archive.scope.conversation_id
        if self.state == "diverged":
            hint = "somebody else went on while this workspace had unsaved work; start with an empty --state-dir"
        else:
            left = max(0, round(self._until - clock()))
            who = self.held_by or "another daemon"
            hint = f"{who} writes this conversation, for {left} more seconds unless it goes on; here it can be read"
        raise NotPermitted(conversation, hint)

    # Taking and giving up --------------------------------------------------------------------------------------------

    async def confirm(self) -> None:
        """Before a turn begins: make sure of a lease that should have been renewed, and try for one that is not.

        An index that says nothing is waited for no longer than `patience`: then nobody knows who writes, and the taking
        goes on in the background. What others saved is waited for, as nothing may be written before it is taken in.
        """
        if self.mine and self._scope == self._archive.scope and not self.lapsed:
            return
        task = self._confirming
        if task is None or task.done():
            task = self._confirming = asyncio.create_task(self.take(), name="confirm the lease")
            self._waited_out = False
        while not task.done():
            if self._waited_out and not self._taking_in:
                self._know_nothing()
                return
            taken_in = self._taken_in  # what comes after a taking in has the whole patience for itself
            # Whoever stops waiting leaves the task to itself, with the lock that it holds or waits for.
            done, _ = await asyncio.wait({task}, timeout=self.patience)
            self._waited_out = not (done or self._taking_in or self._taken_in != taken_in)
        if task.done() and not task.cancelled():
            task.result()

    async def settle(self) -> None:
        """Make sure of a lease that has `lapsed`. Whoever waits goes on in the order of asking."""
        self._in_line += 1
        try:
            async with self._line:
                if self.lapsed:
                    await self.confirm()
        finally:
            self._in_line -= 1

    async def take(self) -> None:
        """Become the writer if nobody else is, after everything that others saved is taken in. Never raises."""
        async with self.alone:
            if self._over or self._workspace.facts.get("diverged"):
                self._become("unknown" if self._over else "diverged")
                return
            try:
                await self._take()
            except StoreUnavailable as refusal:
                if self._reason != refusal.hint:
                    log.warning("nobody can say who writes the conversation: %s", refusal)
                self._reason = refusal.hint
                self._about = "index" if refusal.about == "index" else "conversation"
                self._become("unknown")
            except (JournalUnavailable, ShuttingDown) as refusal:
                log.warning("what others saved could not be taken in: %s", refusal)
                self._become("unknown")
                self.blind = self.blind or bool(self._workspace.facts.get("resuming"))

    async def release(self, *, within: float = FAREWELL) -> None:
        """Give the lease up, at a clean end; the index is waited for no longer than that. Nothing is taken after it."""
        self._over = True
        try:
            async with asyncio.timeout(min(FAREWELL, within)), self.alone:
                scope, self._scope, self.state = self._scope, None, "unknown"
                if scope is not None:
                    await self._archive.ask(self._archive.index.release, scope, self.holder)
        except (StoreUnavailable, TimeoutError):
            log.warning("the lease could not be given up; it expires")
        finally:
            if self._confirming is not None:
                self._confirming.cancel()  # there is nobody left to ask

    def lost(self) -> None:
        """A commit was refused: somebody else is the writer by now. Who that is, is found out soon."""
        if self.state == "writer":
            self.standing = Standing()
            self._become("reader")
            self._stirred.set()

    async def run(self) -> None:
        """Renew the lease, or try for it, until cancelled."""
        while True:
            try:
                await asyncio.wait_for(self._stirred.wait(), self._pause())
            except TimeoutError:
                pass
            self._stirred.clear()  # before taking: who stirs meanwhile is heard in the next round
            await self.take()

    def _pause(self) -> float | None:
        match self.state:
            case "writer":
                return self._seconds / RENEWALS
            case "reader":
                return max(SHORTEST, self._until - clock())
            case "unknown":
                return min(UNKNOWN_REST, self._seconds / RENEWALS)
            case "diverged":
                return None

    async def _take(self) -> None:
        if not self._opened:
            await self._archive.ask(self._archive.index.open)
            self._opened = True
        holder, scope = await self._own_id(), self._archive.scope
        if self._scope not in (None, scope):
            await self._archive.ask(self._archive.index.release, self._scope, holder)
            self._scope = None
        if self._scope is not None and self.mine and await self._renew(scope, holder):
            if self.state == "unknown":  # nobody waited for the answer
                await self._has_it(scope, self.standing)
            return
        for _ in range(ROUNDS):
            standing = self.note(await self._archive.ask(self._archive.index.standing, scope))
            caught_up = standing.change
            if not await self.reconcile(standing):
                return
            if standing.holder not in ("", holder) and 0 < standing.expires_in <= limits.LONGEST_LEASE:
                self._become("reader")
                return
            standing = await self._claim(scope, holder)
            if standing.holder != holder:
                continue  # somebody was faster
            # Nobody else writes from now on; what they wrote before we had it is taken in before we write.
            if standing.change > caught_up and not await self.reconcile(standing):
                return
            await self._has_it(scope, standing)
            return
        self._become("reader")

    async def _renew(self, scope: Scope, holder: str) -> bool:
        """Go on holding it. False when somebody else had it meanwhile."""
        standing = await self._claim(scope, holder)
        return standing.holder == holder and standing.generation == self._generation

    async def reconcile(self, standing: Standing) -> bool:
        """Take in what others wrote since we did, if anybody did. False when that cannot be, which is final.

        Call it `alone`. Raises what `catch_up` raises.
        """
        await self._look_for_losses(standing)
        if self._workspace.facts.get("generation") == [*self._archive.scope, standing.generation]:
            return await self._take_in(standing) if self._workspace.facts.get("resuming") else True
        if await self._take_in(standing):
            return True
        await self._diverge()
        return False

    async def _look_for_losses(self, standing: Standing) -> None:
        """An index that is behind what it told us was restored from a backup: what it lost is saved to it again.

        One that knows nothing at all may have been told to forget, so nothing is brought back to it.
        """
        known = self._workspace.saved.latest_change
        if not 0 < standing.change < known:
            return
        log.error("the index is at change %d and had %d: what it lost is saved again", standing.change, known)
        anew = {"set_back": known, "generation": [], IMPORTED: {}}
        await self._workspace.stage(Remembered(anew))

    async def _take_in(self, standing: Standing) -> bool:
        self._taking_in = True
        try:
            return await self.catch_up(standing)
        finally:
            self._taking_in = False
            self._taken_in += 1

    async def _diverge(self) -> None:
        self._become("diverged")
        who = {"reason": f"{self.standing.label} writes it"} if self.standing.label else {}
        said = notice("conversation_diverged", **who)
        await self._workspace.stage(Remembered({"diverged": True}), Noticed(said))

    async def _claim(self, scope: Scope, holder: str) -> Standing:
        index, asked = self._archive.index, clock()
        claimed = await self._archive.ask(index.claim, scope, holder, self._label, seconds=self._seconds)
        return self.note(claimed, asked=asked)

    async def _has_it(self, scope: Scope, standing: Standing) -> None:
        self._scope, self._generation = scope, standing.generation
        ours = [*scope, standing.generation]
        if self._workspace.facts.get("generation") != ours:
            await self._workspace.stage(Remembered({"generation": ours}))
        if not self.mine:
            self._become("writer")
            await self.became_writer()

    async def _own_id(self) -> str:
        """Made once per workspace, so that a daemon that is started again has its own lease at once.

        A copy of its state is another workspace: it has another id, and does not know what was written since.
        """
        facts = self._workspace.latest_facts
        if "holder" not in facts:
            await self._workspace.stage(Remembered({"holder": uuid.uuid4().hex, HELD_AT: self._place}))
        elif HELD_AT not in facts:
            await self._workspace.stage(Remembered({HELD_AT: self._place}))
        elif facts[HELD_AT] != self._place:
            log.warning("this state folder is a copy, or was moved: what was saved meanwhile is taken in first")
            anew = {"holder": uuid.uuid4().hex, HELD_AT: self._place, "generation": []}
            await self._workspace.stage(Remembered(anew))
        return self.holder

    def note(self, standing: Standing, *, asked: float | None = None) -> Standing:
        """How the conversation stands by now. A lease of ours lasts from when we asked: the answer may be late."""
        self.standing = standing
        self._until = (clock() if asked is None else asked) + standing.expires_in
        if self.mine and standing.holder != self.holder:
            self._stirred.set()
        return standing

    def _know_nothing(self) -> None:
        """The index says nothing: nobody knows who writes, unless it is somebody else whose lease goes on."""
        if self.state == "writer" or (self.state == "reader" and clock() >= self._until):
            log.warning("the index says nothing; nobody can say who writes the conversation")
            self._become("unknown")

    def _become(self, state: State) -> None:
        if state != self.state:
            log.info("who writes the conversation: this daemon is %s (%s)", state, self.standing.label)
        self.state = state


def clock() -> float:
    """Our own clock, in seconds. It goes on while the machine sleeps, as the index's does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


async def _nothing_to_catch_up(_: Standing) -> bool:
    return True


async def _nothing_to_do() -> None:
    return
