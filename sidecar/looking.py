"""Looking at OUT_DIR: the one function that finds out what is there.

The bell says where to look, never what is there. A look surveys without following links, reads what is complete and
new, and hands it to the workspace. Looks never overlap: one is under way, at most one is waiting, and whoever asks gets
a look that began after the asking.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidecar.core import limits
from sidecar.core.entries import Entry, FileGone, Noticed
from sidecar.core.errors import JournalUnavailable, ShuttingDown, UnsafePath
from sidecar.core.inventory import ByFolder, FileFact, News, Sorted, StatKey, Survey, admit, news, sort_out, widest
from sidecar.core.notices import for_oddity, notice
from sidecar.core.paths import FilePath, is_turn_id
from sidecar.core.registration import in_order, register, settle, source_entries, told_visibility
from sidecar.hands import Hands
from sidecar.pacing import paced
from sidecar.ports import Blobs, OutDir
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)

FILES_PER_READ, GONE_AT_ONCE = 256, 1000
READ_SECONDS = 0.02  # after which what was read is told, so that many large files do not wait for each other
FIRST_RETRY, LAST_RETRY = 0.02, 0.25
ODDITIES_TOLD = 1000
REST_SHARE = 5  # times as long as a look at everything takes, before the bell alone brings about another


@dataclass(slots=True)
class _Wish:
    """Where the next look shall go, and who waits for it."""

    scopes: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    rung: bool = False  # somebody asked or the bell rang; else the look is for what no bell tells
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Looker(Hands):
    """Keeps the workspace's idea of OUT_DIR true."""

    def __init__(self, workspace: Workspace, outdir: OutDir, blobs: Blobs, *, eligible: Sequence[str]) -> None:
        super().__init__()
        self.last_look = 0.0
        self.over_limit = 0
        self.busy: dict[str, float] = {}  # files somebody writes to -> seconds until they are asked again
        self.folders: frozenset[str] = frozenset()
        self.on_folders: Callable[[frozenset[str]], None] = lambda _: None
        self.on_overlooked: Callable[[set[str]], None] = lambda _: None
        self.shut = False  # nothing is registered, while it is not known what the conversation has
        self.numbers: Callable[[], bool] = lambda: True  # whether new files are numbered: a writer alone does
        self._workspace = workspace
        self._known = ByFolder()
        self._outdir = outdir
        self._blobs = blobs
        self._eligible = eligible
        self._wish: _Wish | None = None
        self._wake = asyncio.Event()
        self._retry: asyncio.TimerHandle | None = None
        self._everything_at = self._everything_cost = 0.0
        self._resting = False
        self._room = 0  # how many new files the look under way may still register
        self._oddities = 0  # and how many oddities it may still tell
        workspace.listeners.append(self._hear)

    # Asking for a look ---------------------------------------------------------------------------------------------

    async def look(self, *scopes: str) -> None:
        """Everything complete below these folders is registered when this returns. `""` is all of OUT_DIR."""
        wish = self._wished()
        wish.scopes.update(scopes)
        await asyncio.shield(wish.done)

    def stir(self, scopes: Iterable[str]) -> None:
        """Something may have changed there; look soon. Looks at everything leave the disk some rest between them."""
        scopes = set(scopes)
        rest = self._everything_at + REST_SHARE * self._everything_cost - time.monotonic()
        if "" in scopes and rest > 0:
            if not self._resting:
                self._resting = True
                asyncio.get_running_loop().call_later(rest, self._stir_everything)
            scopes.discard("")
        if scopes:
            self._wished().scopes.update(scopes)

    def _stir_everything(self) -> None:
        self._resting = False
        self._wished().scopes.add("")

    async def look_at(self, path: FilePath) -> StatKey | None:
        """Look at one file now. Answers its key, or None when nothing is there.

        Registers it when its bytes are unknown and nobody writes to it. Raises UnsafePath for links and the like.
        """
        text = path.physical
        key = await self.off_loop(self._outdir.key, text)
        known = self._workspace.files.get(text)
        if key == known:
            return key
        if not self.registers(path):
            return key
        if key is None:
            await self._workspace.stage(FileGone(text))
            return None
        wish = self._wished()
        wish.files.add(text)
        await asyncio.shield(wish.done)
        return key

    def registers(self, path: FilePath) -> bool:
        """Whether a file at this path becomes an artifact; others are readable and no more."""
        is_place = bool(path.place) and path.logical is not None and not self.shut
        return is_place and self._workspace.is_turn(path.turn_id)

    @property
    def eligible(self) -> Sequence[str]:
        """The media types that get a number now."""
        return self._eligible if self.numbers() else ()

    async def number(self) -> None:
        """Number the files that were registered while nobody gave numbers here."""
        workspace = self._workspace
        there = [one for one in workspace.artifacts.seen() if one.on_disk and one.visibility == "external"]
        files = [(one.path, one.fact) for one in there if one.fact is not None]
        eligible = self.eligible
        await workspace.stage(
            *source_entries(files, artifacts=workspace.artifacts, pool=workspace.pool, eligible=eligible)
        )

    async def reconcile(self) -> None:
        """Look at everything for what no bell has told; the bell hears of what it overlooked."""
        wish = self._wish or self._wished(rung=False)
        wish.scopes.add("")
        await asyncio.shield(wish.done)

    async def turns_there(self) -> tuple[str, ...]:
        """The folders that stand there like a turn's, as `<id>/files` or `<id>/attachments`, and are not yet known."""
        survey = await self.off_loop(self._outdir.survey, "")
        pairs = (folder.split("/") for folder in survey.folders if folder.count("/") == 1)
        turns = {turn for turn, place in pairs if place in ("files", "attachments") and is_turn_id(turn)}
        return tuple(sorted(turn for turn in turns if not self._workspace.is_turn(turn)))

    async def wait_closed(self, seconds: float) -> tuple[str, ...]:
        """Wait until nobody writes to a file any more, or the time is up. Answers the files still open."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.busy:
                    wish = self._wished()
                    wish.files.update(self.busy)
                    await asyncio.shield(wish.done)
                    if self.busy:
                        await asyncio.sleep(FIRST_RETRY)
        return tuple(sorted(self.busy))

    async def tell(self, fact: FileFact) -> None:
        """A file that we put in place ourselves, of bytes that are known, is there. A look need not read it again."""
        await self._calls_have_ended()
        if self._workspace.files.get(fact.path) != fact.key:
            await self._workspace.stage(*self._entries([fact]))

    # The looks themselves --------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look whenever asked, one look at a time, until cancelled."""
        for path in self._workspace.files:
            self._known.note(path, there=True)
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                wish, self._wish = self._wish, None
                if wish is not None:
                    await self._grant(wish)
        finally:
            if self._retry is not None:
                self._retry.cancel()
            if self._wish is not None:
                _disappoint(self._wish, ShuttingDown("look", "the daemon is ending; connect again"))
            self.let_go()

    async def _grant(self, wish: _Wish) -> None:
        try:
            await self._look(wish)
        except (JournalUnavailable, ShuttingDown) as refusal:
            # What was found is not lost: it is still on disk, and the next look finds it again.
            _disappoint(wish, refusal)
        except asyncio.CancelledError:
            _disappoint(wish, ShuttingDown("look", "the daemon is ending; connect again"))
            raise
        except Exception as fault:
            log.exception("a look failed")
            _disappoint(wish, fault)
        else:
            if not wish.done.done():
                wish.done.set_result(None)

    async def _look(self, wish: _Wish) -> None:
        if self.shut:
            return
        staged: list[asyncio.Future[Any]] = []
        self._room = limits.FILES_REGISTERED - len(self._workspace.files)
        self._oddities = ODDITIES_TOLD - len(self._workspace.noticed)
        files = self._workspace.files
        for scope in widest(wish.scopes):
            began = time.monotonic()
            # As it is known before the survey: what comes meanwhile is not gone.
            known = await paced(self._known.keys_below(scope, files)) if scope else dict(files)
            survey, sorted_out, fresh = await self.see(self._compare, scope, known)
            if scope == "":
                self.over_limit = survey.over_limit
                self._everything_at = time.monotonic()
                self._everything_cost = self._everything_at - began
            staged += self._tell_oddities(survey, sorted_out.ambiguous)
            self._remember_folders(sorted_out.survey)
            if not wish.rung:
                self.on_overlooked({path.rpartition("/")[0] for path in fresh.changed if path not in self.busy})
            staged += await self._take_in(fresh.changed)
            # A file that was open and has another name now is not news, since it never was registered.
            within = f"{scope}/" if scope else ""
            wish.files.update(path for path in self.busy if path.startswith(within) and path not in survey.files)
            gone = [*fresh.gone, *(await self.see(self._absent, fresh.doubtful) if fresh.doubtful else ())]
            for at in range(0, len(gone), GONE_AT_ONCE):
                some = gone[at : at + GONE_AT_ONCE]
                await asyncio.gather(*(staged[-1:] if at else ()))  # others are served between one and the next
                # Of what has come back meanwhile, or is on its way, it is asked once more.
                back = {path for path in some if files.get(path) != known[path] or self._workspace.arriving([path])}
                if back:
                    self._wished().files.update(back)
                if lost := [path for path in some if path not in back]:
                    staged.append(self._workspace.stage(*map(FileGone, lost)))
                for path in lost:
                    self.busy.pop(path, None)
        staged += await self._take_in(sorted(wish.files))
        if staged:
            await asyncio.gather(*staged)
        await self._settle_orphans()
        self.last_look = time.time()
        self._ask_again()

    def _compare(self, scope: str, known: Mapping[str, StatKey]) -> tuple[Survey, Sorted, News]:
        """What is there, what of it belongs to turns, and what of that is not known yet."""
        survey = self._outdir.survey(scope)
        sorted_out = sort_out(survey, self._workspace.is_turn)
        return survey, sorted_out, news(sorted_out.survey, known)

    def _absent(self, paths: Iterable[str]) -> list[str]:
        return [path for path in paths if not self._stands(path)]

    def _stands(self, path: str) -> bool:
        """Whether a regular file does; what has become anything else is gone as a file."""
        try:
            return self._outdir.key(path) is not None
        except UnsafePath:
            return False

    async def _take_in(self, paths: Sequence[str]) -> list[asyncio.Future[Any]]:
        """Read the complete ones among these files and stage them, keeping their order. What is gone is told too."""
        staged: list[asyncio.Future[Any]] = []
        paths, left_out = admit(paths, self._workspace.files, self._room)
        self._room -= sum(path not in self._workspace.files for path in paths)
        self.over_limit += left_out
        while paths:
            some = paths[:FILES_PER_READ]
            await self._workspace.claims.released(some)
            read = await self.see(self._read_some, some)
            some, paths = some[: len(read)], paths[len(read) :]
            facts, gone = self._note_busy(read)
            await self._calls_have_ended()
            told = self._workspace.claims.met(some)
            if told:
                self._wished().files.update(told)  # by what is read of them next
            known = self._workspace.files
            facts = [fact for fact in facts if known.get(fact.path) != fact.key and fact.path not in told]
            entries = self._entries(facts) + [FileGone(path) for path in gone if path in known and path not in told]
            if entries:
                staged.append(self._workspace.stage(*entries))
        return staged

    def _entries(self, facts: Sequence[FileFact]) -> list[Entry]:
        workspace = self._workspace
        entries = register(
            facts,
            artifacts=workspace.artifacts,
            pool=workspace.pool,
            open_calls={call.tool_call_id: call.turn_id for call in workspace.open_calls},
            promised=workspace.promised.durable,
            eligible=self.eligible,
            ts=time.time(),
        )
        oversize = [fact.path for fact in facts if fact.sha256 is None]
        return entries + [Noticed(notice("oversize", path=path)) for path in oversize]

    def _read_some(self, paths: Sequence[str]) -> list[tuple[str, str, FileFact | None]]:
        """Read one file, and others for as long as it is not yet time to tell of them."""
        until = time.monotonic() + READ_SECONDS
        read: list[tuple[str, str, FileFact | None]] = []
        for path, intake in zip(paths, self._outdir.take_in_all(paths, self._blobs), strict=False):
            read.append((path, *intake))
            if time.monotonic() >= until:
                break
        return read

    def _note_busy(self, intakes: Iterable[tuple[str, str, FileFact | None]]) -> tuple[list[FileFact], list[str]]:
        """The complete files among these, and those that are gone or no regular files any more."""
        facts: list[FileFact] = []
        gone: list[str] = []
        for path, outcome, fact in intakes:
            if outcome == "busy":
                self.busy[path] = min(self.busy.get(path, FIRST_RETRY / 2) * 2, LAST_RETRY)
                continue
            self.busy.pop(path, None)
            if fact is not None:
                facts.append(fact)
            else:
                gone.append(path)
        return facts, gone

    async def _settle_orphans(self) -> None:
        """A file that was registered while its call ended has nobody left to settle it."""
        await self._calls_have_ended()
        workspace = self._workspace
        orphans = list(workspace.pending.values())
        if not orphans or workspace.open_calls:
            return
        for call in sorted({artifact.owner for artifact in orphans}):
            made = [(one, told_visibility(one), call) for one in in_order(orphans) if one.owner == call]
            entries = settle(
                made, artifacts=workspace.artifacts, pool=workspace.pool, eligible=self.eligible, ts=time.time()
            )
            await workspace.stage(*entries)

    async def _calls_have_ended(self) -> None:
        """Wait for ends of calls on their way to the journal: until then it is not seen what they made internal."""
        while self._workspace.settling:
            await self._workspace.stage()

    def _ask_again(self) -> None:
        """There is no event for "closed", so a busy file is asked again after 20, 40, … 250 ms."""
        if self.busy and self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(min(self.busy.values()), self._retry_now)

    def _retry_now(self) -> None:
        self._retry = None
        self._wished().files.update(self.busy)

    # Small things ----------------------------------------------------------------------------------------------------

    def _wished(self, *, rung: bool = True) -> _Wish:
        if self._wish is None:
            self._wish = _Wish()
        self._wish.rung = self._wish.rung or rung
        self._wake.set()
        return self._wish

    def _hear(self, happened: Any) -> None:
        """What is on disk now. A turn that a block named for the first time has artifacts in its folder from now on."""
        for artifact in happened.artifacts.values():
            physical = artifact.path.physical
            self._known.note(physical, there=physical in self._workspace.files)
        if happened.turns:
            self.stir(happened.turns)

    def _remember_folders(self, survey: Survey) -> None:
        prefix = f"{survey.scope}/" if survey.scope else ""
        kept = {folder for folder in self.folders if not (folder == survey.scope or folder.startswith(prefix))}
        folders = frozenset(kept | set(survey.folders))
        if folders != self.folders:
            self.folders = folders
            self.on_folders(folders)

    def _tell_oddities(self, survey: Survey, ambiguous: Iterable[str]) -> list[asyncio.Future[Any]]:
        """Each oddity is reported once, and at most a thousand of them."""
        found = [for_oddity(oddity.kind, oddity.name) for oddity in survey.oddities]
        found += [notice("path_ambiguous", name=name) for name in ambiguous]
        told = self._workspace.noticed  # by what is durable: a notice that was refused is told by the next look
        fresh = [said for said in found if (said["code"], said["name"]) not in told]
        fresh = fresh[: max(0, self._oddities)]
        self._oddities -= len(fresh)
        return [self._workspace.stage(*(Noticed(said) for said in fresh))] if fresh else []


def _disappoint(wish: _Wish, reason: Exception) -> None:
    """Tell those who wait; that nobody may be waiting is no fault."""
    if not wish.done.done():
        wish.done.set_exception(reason)
        wish.done.exception()
