"""The doorbell: says in which folders of OUT_DIR to look, soon after something stirred in them.

It never says what changed, and it may be wrong both ways; the look is the truth (spec section 5). One rule keeps it
from losing anything for good: a folder that has just come under watch is rung for, so that what happened in it before
is looked at once. Folders are watched by lists, none of them recursive, each list by a watch of its own: a new folder
adds a small list, small lists are folded into one when it is quiet, and one that dies is built anew.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from sidecar.stores.deaths import MINUTE, Deaths
from sidecar.stores.hearing import Hearing
from sidecar.stores.roster import Roster
from sidecar.stores.standing import Standing
from sidecar.stores.watch import Stir, Watch, WatchRefused, culprit, watch

State = Literal["ok", "degraded", "polling", "lost"]

EVERYWHERE = frozenset({""})
"""The ring for all of OUT_DIR: a ring names scopes to look at, everything below them included."""

# Beside the step of 2 ms that every watch takes.
CALM_PAUSE, RELAXED_PAUSE = 0.008, 0.098
# Building a watch holds the interpreter for up to 80 microseconds per folder, and the loop may wait 50 ms.
FOLDERS_PER_WATCH = 500
SMALL_WATCHES = 4
CHANGES_APART = 0.05
CHECK_SECONDS = 2.0
OVERFLOWS_APART = 5.0
SCOPES_TOLD = 64


class Bell:
    """Rings `on_ring(folders)` on the event loop for as long as `run` runs.

    `state` is told by `workspace/status`: `ok`; `degraded` when some folders are found by slower looks only; `polling`
    when all may be; `lost` while no folder stands at OUT_DIR's path. `rebuilds` counts watches that died.
    """

    def __init__(self, root: str, on_ring: Callable[[frozenset[str]], None], roster: Roster | None = None) -> None:
        self.rebuilds = 0
        self._root = os.path.realpath(root)
        self._on_ring = on_ring
        self._roster = roster or Roster()
        self._hearing = Hearing()
        self._watches: set[Watch] = set()
        self._hands = ThreadPoolExecutor(1, thread_name_prefix="bell")
        self._changed = asyncio.Event()
        self._changed_at = 0.0
        self._pause = CALM_PAUSE
        self._attending = False
        self._standing = Standing(self._root)
        self._deaths = Deaths()
        self._silent_until = 0.0
        self._watches_nothing = True
        self._trouble = "the watch has not begun"
        self._overflowed = False
        self._renewed_at = 0.0
        self._closed = False

    # What others say and ask -----------------------------------------------------------------------------------------

    def set_folders(self, folders: Iterable[str]) -> None:
        """The real folders that looks have found, OUT_DIR-relative: watched from now on, and no others.

        Beyond `limits.FOLDERS_WATCHED` they are counted in `over_limit`. Folders that come under watch are rung for.
        """
        self._roster.want(folders)
        self._changed.set()

    def hurry(self) -> None:
        """Somebody may work in OUT_DIR: ring 10 to 20 ms after a change, and 2 to 4 ms where one was just before."""
        self._set_pause(CALM_PAUSE)

    def attend(self, attending: bool) -> None:
        """While a call makes files: ring 2 to 4 ms after every change."""
        if attending != self._attending:
            self._attending = attending
            self._set_pause(self._pause)

    def relax(self) -> None:
        """Nobody does: ring 100 to 200 ms after a change, for a fraction of the processor time."""
        self._set_pause(RELAXED_PAUSE)

    def overlooked(self, folders: Iterable[str]) -> None:
        """A look that no ring had asked for found news in these folders; missed, if no ring comes within a second."""
        watched = [folder for folder in folders if self._roster.is_watched(folder)]
        self._hearing.doubt(asyncio.get_running_loop(), watched)

    @property
    def state(self) -> State:
        """How changes are found at present."""
        return self._condition()[0]

    @property
    def reason(self) -> str:
        """Why the state is not `ok`, in words; empty when it is."""
        return self._condition()[1]

    @property
    def missed(self) -> int:
        """Watched folders in which news was found that no ring told."""
        return self._hearing.missed

    @property
    def over_limit(self) -> int:
        """Folders that are not watched because there are too many."""
        return self._roster.over_limit

    # Watching --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch and ring until cancelled. The loop is never held: what blocks is done in threads."""
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                await self._tend()
                await asyncio.sleep(CHANGES_APART)
                try:
                    async with asyncio.timeout(CHECK_SECONDS):
                        await self._changed.wait()
                        self._changed_at = self._loop.time()
                except TimeoutError:
                    pass  # nobody called; it is time to see to OUT_DIR itself
                self._changed.clear()
        finally:
            await self._end()

    async def _tend(self) -> None:
        """Bring what is watched in line with what ought to be."""
        if not await self._stands() or self._loop.time() < self._silent_until:
            return
        outgoing = self._outgoing()
        for old in outgoing:
            self._roster.replace(old)
        folders = self._roster.begin(self._loop.time())
        try:
            for start in range(0, len(folders), FOLDERS_PER_WATCH):
                if self._loop.time() >= self._silent_until:
                    await self._add(folders[start : start + FOLDERS_PER_WATCH])
        finally:
            self._roster.end()
        # The old watches go last, so that nothing is unwatched meanwhile. What they had still to tell is older than the
        # new ones, and those have been rung for.
        self._stop(outgoing)
        self._watches_nothing = not self._watches

    async def _add(self, folders: tuple[str, ...]) -> None:
        try:
            built = await self._loop.run_in_executor(self._hands, self._build, folders)
        except WatchRefused as refusal:
            self._trouble = f"the system watches no more folders: {refusal}"
            self._roster.rest(folders, self._loop.time() + MINUTE)
            return
        if built is None:
            self._roster.miss(folders)
        elif built.has_ended:
            self._watches.discard(built)
            self._changed.set()
        else:
            self._roster.miss(set(folders) - built.folders)
            self._set_pause(self._pause)
            self._ring(self._roster.take(built))

    def _build(self, folders: tuple[str, ...]) -> Watch | None:
        """In the bell's own thread, since the system takes its time."""
        built = watch(self._root, folders, self._post_stir, self._post_end)
        if built is not None:
            self._watches.add(built)
            if self._closed:
                built.stop()
        return built

    def _outgoing(self) -> list[Watch]:
        """The watches to be replaced: all of them when events were lost, else the small ones once it is quiet."""
        now = self._loop.time()
        if self._overflowed and now - self._renewed_at >= OVERFLOWS_APART:
            self._overflowed = False
            self._renewed_at = now
            return list(self._watches)
        sizes = self._roster.sizes()
        unused = [old for old in self._watches if not sizes[old]]
        small = [old for old in self._watches if 0 < sizes[old] <= FOLDERS_PER_WATCH // 2]
        is_quiet = now - self._changed_at >= CHECK_SECONDS
        if len(small) > SMALL_WATCHES or (is_quiet and len(small) > 1):
            return unused + small
        return unused

    def _stop(self, watches: Iterable[Watch]) -> None:
        for old in list(watches):
            old.stop()
            self._watches.discard(old)

    # OUT_DIR itself --------------------------------------------------------------------------------------------------

    async def _stands(self) -> bool:
        """Whether a folder stands at OUT_DIR's path. When it is another one than before, all begins anew."""
        if await self._loop.run_in_executor(self._hands, self._standing.has_changed):
            self._stop(self._watches)
            self._roster.forget()
            self._ring(EVERYWHERE)
        return not self._standing.is_lost

    # What the watches say --------------------------------------------------------------------------------------------

    def _post_stir(self, stir: Stir) -> None:
        self._post(self._hear, stir)

    def _post_end(self, source: Watch, reason: str | None) -> None:
        self._post(self._hear_end, source, reason)

    def _post(self, call: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            pass  # the loop is closed, and nobody is left to be told

    def _hear(self, stir: Stir) -> None:
        if self._closed:
            return
        if stir.is_full:
            self._overflowed = True
            self._changed.set()
        if self._roster.move(stir.moved):
            self._changed.set()
        self._ring(EVERYWHERE if stir.is_full else stir.folders)

    def _hear_end(self, source: Watch, reason: str | None) -> None:
        self._watches.discard(source)
        self._roster.lose(source)
        if reason is None or self._closed:
            return
        self.rebuilds += 1
        self._trouble = reason
        self._changed.set()
        now = self._loop.time()
        blamed = culprit(self._root, reason)
        match self._deaths.judge(blamed, now):
            case "rest" if blamed is not None:
                self._roster.rest((blamed,), now + MINUTE)
            case "silence":
                self._silent_until = now + MINUTE
                self._watches_nothing = True
                self._stop(self._watches)
                self._roster.forget()
                self._ring(EVERYWHERE)
            case _:
                pass  # what was under this watch is under none, so the next round builds another

    def _ring(self, folders: frozenset[str]) -> None:
        if folders:
            self._hearing.rang(folders, self._loop.time())
            self._on_ring(_scopes(folders))

    # The rest --------------------------------------------------------------------------------------------------------

    def _set_pause(self, pause: float) -> None:
        """Many watches step more slowly, so that all together cost what four do."""
        self._pause = pause
        slow = CALM_PAUSE * (len(self._watches) // SMALL_WATCHES)
        for one in list(self._watches):
            one.pause, one.eager_pause = slow if self._attending else max(pause, slow), slow

    def _condition(self) -> tuple[State, str]:
        if self._standing.is_lost:
            return "lost", "no folder stands at the path of OUT_DIR"
        if self._standing.deaf:
            return "polling", f"changes made elsewhere are not told on {self._standing.deaf}"
        if self._watches_nothing:
            return "polling", self._trouble
        if self._roster.resting:
            return "degraded", self._trouble
        if self.over_limit:
            return "degraded", f"{self.over_limit} folders are beyond the limit of watched ones"
        if self._hearing.is_hard:
            return "degraded", f"{self.missed} changes were found that no event had told"
        return "ok", ""

    async def _end(self) -> None:
        self._closed = True
        self._stop(watches := list(self._watches))
        try:
            # A disk that hangs may hold the hand for ever, and must not hold the end of the daemon.
            async with asyncio.timeout(CHECK_SECONDS):
                await self._loop.run_in_executor(self._hands, _join, watches)
        except TimeoutError:
            pass
        finally:
            self._hands.shutdown(wait=False, cancel_futures=True)
            self._standing.close()


def _scopes(folders: frozenset[str]) -> frozenset[str]:
    """Folders as scopes to look at: whole turns when they are many, everything when those are many too."""
    if len(folders) > SCOPES_TOLD:
        folders = frozenset(folder.partition("/")[0] for folder in folders)
    return EVERYWHERE if "" in folders or len(folders) > SCOPES_TOLD else folders


def _join(watches: Iterable[Watch]) -> None:
    for one in watches:
        one.join()
