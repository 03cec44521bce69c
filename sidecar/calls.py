"""A tool call begins and ends, and what it produced is settled, told and hosted."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sidecar.core import limits
from sidecar.core.artifacts import Artifact, Visibility
from sidecar.core.blocks import LEVELS, is_shallow, iso
from sidecar.core.entries import (
    CallBegun,
    CallEnded,
    Entry,
    Noticed,
    Promised,
    Remembered,
    Stored,
    encode,
)
from sidecar.core.errors import NotFound, NotPermitted, Refusal, TooLarge, UnknownTurn
from sidecar.core.happened import Call
from sidecar.core.notices import Notice, notice
from sidecar.core.paths import FilePath, parse, rewrite
from sidecar.core.registration import told_visibility
from sidecar.core.told_blocks import call_block, result_block
from sidecar.looking import Looker
from sidecar.pacing import at_once, paced
from sidecar.produced import as_on_disk, changed_internally, changed_since_begun, sha256_on_disk
from sidecar.reading import Held, Reader
from sidecar.settling import Blocks, Record, Settling, told
from sidecar.workspace import Workspace

Decided = tuple[Sequence[Entry], dict[str, Any]]
Ended = tuple[Sequence[Entry], dict[str, Any], Sequence[Stored]]
"""What the end of a call changes, its result, and the entries as the journal stores them, if that is prepared."""
AHEAD = "settled_ahead"  # the fact that names open calls of whose files some are settled already
ROUNDS = 5  # of reading what was produced, when it goes on changing meanwhile


@dataclass(frozen=True, slots=True)
class Expected:
    """A file that a call was meant to make."""

    path: FilePath | None
    asked: str
    visibility: Visibility | None
    description: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to: what its tool said, what it was to make, and which files are still being written.

    `said` holds `result` or `error`, as far as the tool gave one; `held` the contents of what it made, by hash.
    """

    said: Mapping[str, Any]
    expect: Sequence[Expected]
    unsettled: Sequence[str]
    held: Mapping[str, Held]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The end of a call, decided ahead: it holds for as long as nothing else has changed since `mark`.

    Without a mark too much went on beside it, and only the blocks of what did not change can still be used.
    """

    mark: tuple[int, int] | None
    ended: Ended
    blocks: Blocks


class Calls:
    """Decides what calls change. What decides answers the entries to stage and the result to give."""

    def __init__(self, workspace: Workspace, looker: Looker, reader: Reader, settling: Settling) -> None:
        self._workspace = workspace
        self._looker = looker
        self._reader = reader
        self._settling = settling
        self._abandoning = 0  # ends of turns that have begun to settle what open calls made

    def begin(
        self, call_id: str, *, tool_id: str, params: Mapping[str, Any], turn_id: str | None, watched: bool = False
    ) -> Decided:
        """Open a call. Raises NotPermitted for an id that was used, UnknownTurn when no turn is open or known."""
        workspace = self._workspace
        turn = turn_id or workspace.turn_id
        if not turn or not workspace.has_turn(turn):
            raise UnknownTurn(turn or "turn_id", "begin a turn first")
        if workspace.calls.latest(call_id) is not None or call_id in workspace.timeline.tools:
            raise NotPermitted(call_id, "this tool_call_id was used; every call has its own")
        if not is_shallow(params):
            raise TooLarge("params", f"JSON may nest {LEVELS} levels deep")
        now = time.time()
        entries = [
            CallBegun(call_id, turn, tool_id, now, watched),
            told(call_block(turn, call_id, tool_id, dict(params), iso(now)), turn, now),
        ]
        return entries, {"tool_call_id": call_id, "turn_id": turn, "revision": workspace.next_revision + 1}

    async def look(self, call_id: str) -> tuple[str, ...]:
        """Look at the disk for the end of a call; answers the files that stay open. Raises NotFound."""
        self._open(call_id)
        await self._looker.look("")
        return await self._looker.wait_closed(limits.STILL_OPEN_WAIT)

    async def files_have_arrived(self, expect: Iterable[Expected] = ()) -> None:
        """Wait for newer states of files that are about to be settled; settling an older one would bury them."""
        workspace = self._workspace
        named = [item.path.physical for item in expect if item.path is not None]
        while workspace.arriving([*named, *(artifact.path.physical for artifact in workspace.pending.values())]):
            await workspace.stage()

    def expected(self, call_id: str, asked: Iterable[tuple[str, Visibility | None, str | None]]) -> list[Expected]:
        """Read what a call was meant to make. What is no path of a file can only be missing."""
        turn = self._open(call_id).turn_id
        return [Expected(_target(text, turn), text, visibility, words) for text, visibility, words in asked]

    async def read_produced(self, call_id: str, expect: Sequence[Expected]) -> dict[str, Held]:
        """The contents of what the call made, as far as blocks carry them, by hash. Waits for files on their way."""
        held: dict[str, Held] = {}
        room = limits.CALL_CONTENT_BYTES
        for _ in range(ROUNDS):
            await self.files_have_arrived(expect)
            call = self._find(call_id)
            if call is None:
                break  # the same end was asked for twice, and the other one was faster
            mine, _orphans = self._produced(call, _named(expect))
            lacking = [artifact for artifact in mine if sha256_on_disk(artifact) not in held]
            if not lacking:
                break
            for artifact in lacking:
                content = await self._reader.held(as_on_disk(artifact), room)
                held[sha256_on_disk(artifact)] = content
                room -= content.weight
        await self.files_have_arrived(expect)
        return held

    async def prepare(self, call_id: str, outcome: Outcome) -> Prepared | None:
        """Decide the end of a call ahead, with rests, however many files it made; None when the call is over.

        What is decided meanwhile makes it be decided anew, a few times. Raises what `end` raises.
        """
        blocks: Blocks = {}
        for _ in range(ROUNDS):
            await self.files_have_arrived(outcome.expect)
            mark = self._mark()
            if self._find(call_id) is None:
                return None
            entries, result = await paced(self._ending(call_id, outcome, blocks))
            encoded = await paced(_encoding(entries))
            if mark == self._mark():
                return Prepared(mark, (entries, result, encoded), blocks)
        await self.files_have_arrived(outcome.expect)
        return Prepared(None, ((), {}, ()), blocks)

    def end(self, call_id: str, outcome: Outcome, prepared: Prepared | None) -> Ended:
        """Close a call: settle, number, tell and host what it produced, say what is missing. Stage it at once.

        Raises NotFound for no open call, TooLarge for a result that nests too deep.
        """
        if prepared is not None and prepared.mark == self._mark():
            return prepared.ended
        entries, result = at_once(self._ending(call_id, outcome, prepared.blocks if prepared is not None else {}))
        return entries, result, ()

    def _mark(self) -> tuple[int, int]:
        """What is durable and what is staged: while neither moves, a decision stays what it was."""
        return self._workspace.revision, self._workspace.next_revision

    def _ending(self, call_id: str, outcome: Outcome, blocks: Blocks) -> Generator[None, None, Decided]:
        """Decide the end of a call; a pause is possible at every file. `blocks` are used again where they still fit."""
        call = self._open(call_id)
        _require_shallow(outcome)
        now = time.time()
        named = _named(outcome.expect)
        late = [item for path, item in named.items() if path.physical in outcome.unsettled]
        mine, others = self._produced(call, named)
        yield
        entries, records = yield from self._settled(call, mine, others, outcome, now, blocks)
        missing = [item.asked for item in outcome.expect if item not in late and not self._is_there(item.path)]
        for said in _results(call_id, outcome.said, missing, now):
            entries.append(told(result_block(call.turn_id, call_id, call.tool_id, said), call.turn_id, now))
        entries += [Promised(item.path.physical, call_id, _wanted(item)) for item in late if item.path is not None]
        entries += self._over([call_id], now)
        before = yield from self._settled_before(call, mine)
        records += [self._reader.record(as_on_disk(artifact)) for artifact in before]
        records.sort(key=lambda record: record["physical_path"].encode())
        claimed = {record["physical_path"] for record in records}
        unclaimed = dict.fromkeys(artifact.path.physical for artifact in others)
        unclaimed = self._workspace.unclaimed.get(call_id, {}) | unclaimed
        notices = _notices([path for path in unclaimed if path not in claimed], missing, outcome.unsettled)
        result = {"artifacts": records, "missing": missing, "unsettled": list(outcome.unsettled), "notices": notices}
        return entries, result

    def _settled(
        self,
        call: Call,
        mine: Sequence[Artifact],
        others: Sequence[Artifact],
        outcome: Outcome,
        now: float,
        blocks: Blocks,
    ) -> Generator[None, None, tuple[list[Entry], list[Record]]]:
        named = _named(outcome.expect)
        entries, records = yield from self._settling.of_call(
            call,
            [(artifact, _wanted(named.get(artifact.path), artifact)) for artifact in mine],
            others,
            now,
            held=outcome.held,
            descriptions={path.physical: item.description for path, item in named.items() if item.description},
            blocks=blocks,
        )
        ambiguous = _notices([artifact.path.physical for artifact in others], (), ())
        return entries + [Noticed(said) for said in ambiguous], records

    def _settled_before(self, call: Call, mine: Sequence[Artifact]) -> Generator[None, None, list[Artifact]]:
        """What this call made that was settled ahead of its end, as it stands now; a pause is possible at each."""
        found: list[Artifact] = []
        if call.tool_call_id not in self._workspace.latest_facts.get(AHEAD, ()):
            return found
        settled_now = set(mine)
        for artifact in list(changed_since_begun(self._workspace, call)):
            yield
            if artifact.visibility != "pending" and artifact.fact is not None and artifact not in settled_now:
                version = as_on_disk(artifact).latest
                is_its = version.seen and version.call == call.tool_call_id and not version.was_told_first
                found += [artifact] if is_its else []
        return found

    async def settle_ahead(self, call_id: str, outcome: Outcome) -> None:
        """Settle most of what a call made before it ends, some at a time, when it made very much.

        A call that did not end after all, or whose daemon died, tells of it when it does. Raises what `end` raises of a
        result, and what staging raises.
        """
        _require_shallow(outcome)
        workspace, named = self._workspace, _named(outcome.expect)

        def made() -> list[Artifact]:
            call = self._find(call_id)
            mine, others = self._produced(call, named) if call is not None else ([], [])
            return [*mine, *others]

        def is_anothers(artifact: Artifact) -> bool:
            return not _is_of(artifact, call_id, named)

        def decide(some: Sequence[Artifact]) -> Sequence[Entry]:
            call = self._find(call_id)
            if call is None:
                return ()
            last = len(workspace.open_calls) == 1
            mine = [artifact for artifact in some if not is_anothers(artifact)]
            others = [artifact for artifact in some if last and is_anothers(artifact)]
            entries, _ = at_once(self._settled(call, mine, others, outcome, time.time(), {}))
            ahead = workspace.latest_facts.get(AHEAD, [])
            return entries if call_id in ahead else [*entries, Remembered({AHEAD: [*ahead, call_id]})]

        await self._settling.ahead(made, decide, is_anothers)

    @asynccontextmanager
    async def abandoning(self) -> AsyncGenerator[bool]:
        """Settle most of what open calls made before their turn ends, when it is very much: gives whether it was.

        Then no call can end any more until the block is left: some of what it made is everybody's already.
        """
        begun = False

        def begin() -> None:
            nonlocal begun
            self._abandoning += not begun
            begun = True

        try:
            yield await self._settling.abandon(begin)
        finally:
            self._abandoning -= begun

    def abandon_all(self, now: float) -> list[Entry]:
        """The turn ends with calls open: what they made is settled and hosted, and they are over."""
        workspace = self._workspace
        entries = self._settling.abandoned(list(workspace.pending.values()), now)
        return entries + self._over([call.tool_call_id for call in workspace.open_calls], now)

    def _over(self, call_ids: Sequence[str], now: float) -> list[Entry]:
        """The end of these calls, which were settled ahead no more."""
        ahead = self._workspace.latest_facts.get(AHEAD, ())
        left = [one for one in ahead if one not in call_ids]
        ended: list[Entry] = [CallEnded(call_id, now) for call_id in call_ids]
        return ended + ([Remembered({AHEAD: left})] if len(left) < len(ahead) else [])

    def _open(self, call_id: str) -> Call:
        call = self._find(call_id)
        if call is None:
            raise NotFound(call_id, "no call of this id is open")
        return call

    def _find(self, call_id: str) -> Call | None:
        if self._abandoning:
            return None
        return next((call for call in self._workspace.open_calls if call.tool_call_id == call_id), None)

    def _produced(self, call: Call, named: Mapping[FilePath, Expected]) -> tuple[list[Artifact], list[Artifact]]:
        """What this call made, and what nobody claims once the last open call ends."""
        pending = list(self._workspace.pending.values())
        mine = [artifact for artifact in pending if _is_of(artifact, call.tool_call_id, named)]
        internal = [
            artifact
            for path, item in named.items()
            if item.visibility is not None
            and (artifact := self._workspace.artifact(path)) is not None
            and artifact.fact is not None
            and artifact.visibility not in ("pending", item.visibility)
        ]
        produced = list(dict.fromkeys([*mine, *internal, *changed_internally(self._workspace, call, named)]))
        last, claimed = len(self._workspace.open_calls) == 1, set(mine)
        orphans = [artifact for artifact in pending if last and artifact not in claimed]
        return produced, orphans

    def _is_there(self, path: FilePath | None) -> bool:
        artifact = self._workspace.artifact(path) if path is not None else None
        return artifact is not None and artifact.on_disk


def _encoding(entries: Iterable[Entry]) -> Generator[None, None, list[Stored]]:
    encoded: list[Stored] = []
    for entry in entries:
        encoded.append(encode(entry))
        yield
    return encoded


def _target(text: str, turn_id: str) -> FilePath | None:
    """A file that a call names: a full path as it stands, a bare name in the call's turn; None for what is neither."""
    try:
        path = parse(text)
        return path if isinstance(path, FilePath) and path.place else rewrite(text, current_turn=turn_id).path
    except Refusal:
        return None


def _named(expect: Iterable[Expected]) -> dict[FilePath, Expected]:
    return {item.path: item for item in expect if item.path is not None}


def _is_of(artifact: Artifact, call_id: str, named: Mapping[FilePath, Expected]) -> bool:
    return artifact.owner == call_id or (not artifact.owner and artifact.path in named)


def _require_shallow(outcome: Outcome) -> None:
    if not is_shallow(outcome.said):
        raise TooLarge("result", f"JSON may nest {LEVELS} levels deep")


def _wanted(item: Expected | None, artifact: Artifact | None = None) -> Visibility:
    """Who may see what a call made: as `expect` says, else as was told of it, else everybody."""
    if item is not None and item.visibility is not None:
        return item.visibility
    if artifact is not None and artifact.visibility == "internal":
        return "internal"
    return told_visibility(artifact) if artifact is not None else "external"


def _results(call_id: str, said: Mapping[str, Any], missing: Sequence[str], now: float) -> list[dict[str, Any]]:
    """What the tool answered, its error, and an error for each file that is missing."""
    results: list[dict[str, Any]] = []
    if said:
        results.append({"tool_call_id": call_id, **said, "ts": iso(now)})
    for path in missing:
        error = {
            "code": "missing_artifact",
            "message": "this file was expected and is not there",
            "details": {"path": path},
        }
        results.append({"tool_call_id": call_id, "error": error, "ts": iso(now)})
    return results


def _notices(ambiguous: Iterable[str], missing: Sequence[str], unsettled: Sequence[str]) -> list[Notice]:
    said = [notice("attribution_ambiguous", path=path) for path in ambiguous]
    if missing:
        said.append(notice("missing_artifact", missing=list(missing)))
    if unsettled:
        said.append(notice("still_open", paths=list(unsettled)))
    return said
