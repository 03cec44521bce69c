"""The state of a workspace: what every entry changes, first as decided, then as durable.

`stage` puts an entry on top, where the next decision finds it; `apply` makes it what readers see. Both are plain
functions of the entries in order, so that a restart, which applies the journal, ends where the daemon was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sidecar.core import limits
from sidecar.core.artifacts import Artifact, Artifacts
from sidecar.core.blocks import FLAGS, HIDDEN, PATH, SHOWN, TURN
from sidecar.core.changelog import Change, ChangeLog
from sidecar.core.entries import (
    Answered,
    BlocksHidden,
    BlocksShown,
    BlockTold,
    CallBegun,
    CallEnded,
    Embedded,
    Entry,
    FileGone,
    FileSeen,
    FolderAdopted,
    Hosted,
    HostingWaived,
    HostingWanted,
    Noticed,
    Promise,
    Promised,
    Remembered,
    SourceSet,
    TurnBegun,
    TurnEnded,
)
from sidecar.core.happened import Call, Happened, Turn
from sidecar.core.inventory import StatKey
from sidecar.core.layered import Layered
from sidecar.core.paths import FilePath, is_turn_id, parse_logical, parse_physical
from sidecar.core.sources import SourcesPool
from sidecar.core.timeline import Timeline


class State:
    """Timeline, artifacts, pool, turns and calls of one OUT_DIR. Readers see what is durable."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.artifacts = Artifacts()
        self.pool = SourcesPool()
        self.log = ChangeLog()
        self.turns: Layered[str, Turn] = Layered()
        self.calls: Layered[str, Call] = Layered()
        # By request_id, the newest `limits.ANSWERS_KEPT`: a hash of the params, and the revision that holds the result.
        self.answers: Layered[str, tuple[str, int]] = Layered()
        self.facts: dict[str, Any] = {}
        self.promised: Layered[str, Promise] = Layered()  # files a call was to make and had not finished when it ended
        self.revision = 0
        self.files: dict[str, StatKey] = {}  # complete files on disk, by physical path
        self.pending: dict[str, Artifact] = {}  # what open calls produced so far, by logical path
        self.adopted: set[str] = set()
        self.shown: dict[str, str] = {}  # the hash of the text that the agent sees at a file's path
        self.noticed: set[tuple[str, str]] = set()  # oddities reported so far, by code and name
        self.hosting: dict[tuple[str, str], None] = {}  # what is to be hosted: physical path, sha256
        self.handles: dict[str, Hosted] = {}  # every rn given out
        self.keys: set[str] = set()  # every key given to hosted bytes
        self.contents: dict[str, str] = {}  # sha256 -> a key under which these bytes stand in the store
        self.vectors: dict[tuple[str, str], int] = {}  # (turn, kind) -> the revision that holds the vector
        self._current_turn: Layered[str, str] = Layered()
        self._latest_facts: dict[str, Any] = {}  # what is remembered as the next change will find it
        self._known_turns: set[str] = set()
        self._naming: set[str] = set()  # turns that blocks on their way to the journal name
        self._open_calls: dict[str, Call] = {}
        self._ending: set[str] = set()  # calls whose end is on its way to the journal
        self._arriving: dict[str, int] = {}  # how many states of a file are on their way, by physical path

    @property
    def turn_id(self) -> str:
        """The open turn as the next change will find it, or the empty text."""
        return self._current_turn.latest("") or ""

    @property
    def durable_turn_id(self) -> str:
        return self._current_turn.durable.get("", "")

    @property
    def turn_ids(self) -> tuple[str, ...]:
        """Every turn that is known: from a foreign timeline, from a block, or begun."""
        known = (*self.facts.get("turn_ids", ()), *self.timeline.turns, *self.turns.durable)
        return tuple(dict.fromkeys(known))

    @property
    def open_calls(self) -> tuple[Call, ...]:
        """The calls that are open as the next change will find them."""
        return tuple(self._open_calls.values())

    @property
    def settling(self) -> bool:
        """Whether the end of a call is on its way: readers do not know yet who may see its files."""
        return bool(self._ending)

    def arriving(self, paths: Iterable[str]) -> bool:
        """Whether newer states of any of these files, by physical path, are on their way."""
        return not self._arriving.keys().isdisjoint(paths)

    @property
    def latest_facts(self) -> dict[str, Any]:
        """What is remembered, as the next change will find it."""
        return {**self.facts, **self._latest_facts}

    def has_turn(self, turn_id: str) -> bool:
        """Whether the next change will find this turn known: open, begun, or named by a block."""
        begun = self.turns.latest(turn_id) is not None
        return begun or self.timeline.knows(turn_id) or turn_id in self._naming

    def is_turn(self, folder: str) -> bool:
        """Whether a top-level folder is a turn's (spec section 5)."""
        named = folder.startswith("turn_") or folder in self._known_turns or folder in self.adopted
        return named and is_turn_id(folder)

    def artifact(self, path: FilePath) -> Artifact | None:
        logical = path.logical
        return self.artifacts.get(logical) if logical is not None else None

    # Deciding

    def decide(self, entry: Entry, mark: int) -> None:
        """Put an entry on top of what is durable; `mark` is the revision it will get."""
        match entry:
            case SourceSet(row):
                self.pool.stage(row, mark)
            case TurnBegun(turn_id, _, params):
                self.turns.stage(turn_id, Turn(turn_id, params), mark)
                self._current_turn.stage("", turn_id, mark)
            case TurnEnded(turn_id):
                known = self.turns.latest(turn_id)
                self.turns.stage(turn_id, Turn(turn_id, known.params if known else "", ended=True), mark)
                if self.turn_id == turn_id:
                    self._current_turn.stage("", "", mark)
            case CallBegun(call, turn_id, tool_id):
                begun = self._open_calls[call] = Call(call, turn_id, tool_id)
                self.calls.stage(call, begun, mark)
            case CallEnded(call) if (begun := self._open_calls.pop(call, None)) is not None:
                self._ending.add(call)
                self.calls.stage(call, Call(call, begun.turn_id, begun.tool_id, open=False), mark)
            case Answered(request_id, params):
                self.answers.stage(request_id, (params, mark), mark)
            case FileSeen() | FileGone():
                path = _path_of(entry)
                self._arriving[path] = self._arriving.get(path, 0) + 1
            case Remembered(facts):
                self._latest_facts.update(facts)
            case BlockTold(told):
                self._naming.add(told.head[TURN])
            case Promised(path, call, visibility):
                self.promised.stage(path, (call, visibility), mark)
            case Noticed() | FolderAdopted() | CallEnded() | HostingWanted() | Hosted() | HostingWaived():
                pass
            case BlocksHidden() | BlocksShown() | Embedded():
                pass  # nothing is decided on the strength of these before they are durable

    def drop(self) -> None:
        """Forget what was staged and is not durable: the journal refused it."""
        for layered in (self.turns, self.calls, self._current_turn, self.answers):
            layered.drop()
        self.pool.drop()
        self.promised.drop()
        for staged in (self._ending, self._arriving, self._naming, self._latest_facts):
            staged.clear()
        self.recall()

    def recall(self) -> None:
        """The calls that are open, by what is durable."""
        self._open_calls = {name: call for name, call in self.calls.durable.items() if call.open}

    # Applying

    def apply(self, seq: int, entry: Entry, happened: Happened) -> int | None:
        """Make a durable entry what readers see. Answers the number of a block."""
        number = None
        if isinstance(entry, BlockTold):
            told = entry.told
            number = self.apply_block(seq, (*told.head, told.part) if told.part else told.head, happened)
        else:
            self._apply(seq, entry, happened)
        self.revision = seq
        return number

    def apply_block(self, seq: int, stored: Sequence[Any], happened: Happened) -> int:
        """The same for a block as the journal stores its head."""
        number = self.timeline.add(seq, stored)
        self._know_turn(stored[TURN], happened)
        if len(stored) > 7 and "at" in stored[7]:
            self._join_told(seq, number, stored[7], happened)
        elif stored[PATH].startswith("fi:") and (known := self.artifacts.get(stored[PATH])) is not None:
            happened.artifacts[stored[PATH]] = known
        happened.blocks.append(number)
        return number

    def apply_blocks(self, seqs: Sequence[int], stored: Sequence[Sequence[Any]], happened: Happened) -> None:
        """The same for a run of blocks, at a start."""
        first = len(self.timeline)
        self.timeline.extend(seqs, stored)
        self._known_turns.update({one[TURN] for one in stored})
        for at, one in enumerate(stored):
            if len(one) > 7 and "at" in one[7]:
                self._join_told(seqs[at], first + at, one[7], happened)
        self.revision = seqs[-1]

    def _know_turn(self, turn_id: str, happened: Happened) -> None:
        if turn_id not in self._known_turns:
            self._known_turns.add(turn_id)
            happened.turns.add(turn_id)

    def _join_told(self, seq: int, number: int, part: Mapping[str, Any], happened: Happened) -> None:
        logical = part["at"]
        if "content" in part and part["content"].get("holds") == "text":
            self._show(logical, part["content"]["sha256"], self.timeline.heads[number][FLAGS])
        artifact = self.artifacts.get(logical)
        head = self.timeline.heads[number]
        if artifact is None:
            if head[FLAGS] & SHOWN:
                return  # a copy of what is no artifact: a file outside every turn was read
            path = parse_logical(logical)
            assert isinstance(path, FilePath)
            artifact = self.artifacts.at(path)
        self.artifacts.tell(artifact, head, part, number)
        if artifact.sid is None:
            artifact.sid = self.pool.by_path(artifact.path.physical)
        if artifact.versions:
            self._changed(seq, logical, artifact, happened)

    def _show(self, logical: str, sha256: str, flags: int) -> None:
        if flags & HIDDEN:
            self.shown.pop(logical, None)
        else:
            self.shown[logical] = sha256

    def _changed(self, seq: int, logical: str, artifact: Artifact, happened: Happened) -> None:
        happened.artifacts[logical] = artifact
        self.log.add(Change(seq, "artifact", logical))
        if artifact.visibility == "pending":
            self.pending[logical] = artifact
        elif self.pending:
            self.pending.pop(logical, None)

    def _apply(self, seq: int, entry: Entry, happened: Happened) -> None:
        match entry:
            case SourceSet(row):
                self._apply_source(seq, row, happened)
            case FileSeen() | FileGone():
                self._apply_file(seq, entry, happened)
            case TurnBegun() | TurnEnded():
                self._apply_turn(seq, entry, happened)
            case CallBegun() | CallEnded():
                self._apply_call(seq, entry)
            case Noticed(notice):
                happened.notices.append(notice)
                if "name" in notice:
                    self.noticed.add((notice["code"], notice["name"]))
                if notice["code"] == "kept_evicted":
                    self._forget_kept(notice["path"], notice["sha256"])
                self.log.add(Change(seq, "notice", notice["code"]))
            case HostingWanted() | Hosted() | HostingWaived():
                self._apply_hosting(seq, entry, happened)
            case BlocksHidden(numbers) | BlocksShown(numbers):
                self._apply_veil(seq, numbers, entry.replacement if isinstance(entry, BlocksHidden) else None, happened)
            case BlockTold():
                raise AssertionError("a block is applied from its head")
            case _:
                self._keep_in_mind(seq, entry)

    def _keep_in_mind(self, seq: int, entry: FolderAdopted | Remembered | Promised | Answered | Embedded) -> None:
        """What later decisions go by, and nobody is told of."""
        match entry:
            case FolderAdopted(turn_id):
                self.adopted.add(turn_id)
            case Remembered(facts):
                self.facts.update(facts)
                for key in facts.keys() & self._latest_facts.keys():
                    if self._latest_facts[key] == facts[key]:
                        del self._latest_facts[key]
                self._known_turns.update(facts.get("turn_ids", ()))
            case Promised(path, call, visibility):
                self.promised.settle(path, (call, visibility), seq)
            case Answered(request_id, params):
                self.answers.settle(request_id, (params, seq), seq)
                if len(self.answers.durable) > limits.ANSWERS_KEPT:
                    del self.answers.durable[next(iter(self.answers.durable))]
            case Embedded(turn_id, kind):
                self.vectors[turn_id, kind] = seq

    def _apply_turn(self, seq: int, entry: TurnBegun | TurnEnded, happened: Happened) -> None:
        turn_id = entry.turn_id
        if isinstance(entry, TurnBegun):
            self._know_turn(turn_id, happened)
            self.turns.settle(turn_id, Turn(turn_id, entry.params), seq)
            self._current_turn.settle("", turn_id, seq)
            return
        known = self.turns.durable.get(turn_id)
        self.turns.settle(turn_id, Turn(turn_id, known.params if known else "", ended=True), seq)
        if self.durable_turn_id == turn_id:
            self._current_turn.settle("", "", seq)

    def _apply_call(self, seq: int, entry: CallBegun | CallEnded) -> None:
        name = entry.tool_call_id
        if isinstance(entry, CallBegun):
            self.calls.settle(name, Call(name, entry.turn_id, entry.tool_id), seq)
            return
        self._ending.discard(name)
        if (begun := self.calls.durable.get(name)) is not None:
            self.calls.settle(name, Call(name, begun.turn_id, begun.tool_id, open=False), seq)

    def _apply_source(self, seq: int, row: dict[str, Any], happened: Happened) -> None:
        sid: int = row["sid"]
        if self.pool.settle(row, seq):
            happened.sources[sid] = row
        self.log.add(Change(seq, "source", sid))
        logical = row.get("artifact_path")
        artifact = self.artifacts.get(logical) if isinstance(logical, str) else None
        if artifact is not None and artifact.sid != sid:
            artifact.sid = sid
            self._changed(seq, str(logical), artifact, happened)

    def _apply_file(self, seq: int, entry: FileSeen | FileGone, happened: Happened) -> None:
        self._arrived(_path_of(entry))
        if isinstance(entry, FileGone):
            self.files.pop(entry.path, None)
            artifact = self.artifacts.lose(parse_physical(entry.path))
        else:
            if not entry.fact.incomplete:
                self.files[entry.fact.path] = entry.fact.key
                self.promised.durable.pop(entry.fact.path, None)
            path = parse_physical(entry.fact.path)
            artifact = self.artifacts.see(path, entry.fact, ts=entry.ts, call=entry.call, visibility=entry.visibility)
            if artifact.sid is None:
                artifact.sid = self.pool.by_path(entry.fact.path)
        if artifact is not None and (logical := artifact.path.logical) is not None:
            self._changed(seq, logical, artifact, happened)

    def _forget_kept(self, physical: str, sha256: str) -> None:
        artifact = self.artifact(parse_physical(physical))
        if artifact is not None and artifact.fact is not None and artifact.fact.sha256 == sha256:
            artifact.fact = replace(artifact.fact, kept=False)

    def _apply_hosting(self, seq: int, entry: HostingWanted | Hosted | HostingWaived, happened: Happened) -> None:
        if isinstance(entry, HostingWanted):
            self.hosting[entry.path, entry.sha256] = None
            return
        self.hosting.pop((entry.path, entry.sha256), None)
        if isinstance(entry, HostingWaived):
            return
        self.handles[entry.rn] = entry
        self.contents[entry.sha256] = entry.key
        self.keys.add(entry.key)
        artifact = self.artifact(parse_physical(entry.path))
        if artifact is not None and artifact.versions:
            artifact.host(entry.sha256, {"hosted_uri": entry.hosted_uri, "rn": entry.rn, "key": entry.key})
            self._changed(seq, str(artifact.path.logical), artifact, happened)

    def _apply_veil(self, seq: int, numbers: Iterable[int], replacement: str | None, happened: Happened) -> None:
        """Artifacts whose blocks are hidden, or shown again, say so; so does what the agent is known to see."""
        chosen = set(numbers)
        self.timeline.veil(chosen, replacement)
        hidden = replacement is not None
        for logical in {self.timeline.heads[number][PATH] for number in chosen}:
            if hidden:
                self.shown.pop(logical, None)
            artifact = self.artifacts.get(logical)
            if artifact is None or not artifact.versions:
                continue
            for version in artifact.versions:
                if not chosen.isdisjoint(version.blocks.values()):
                    version.hidden = hidden
            newest = artifact.latest
            if not hidden and newest.blocks.get("text") in chosen and newest.sha256 is not None:
                self.shown[logical] = newest.sha256
            self._changed(seq, logical, artifact, happened)

    def _arrived(self, path: str) -> None:
        others = self._arriving.pop(path, 1) - 1
        if others:
            self._arriving[path] = others


def _path_of(entry: FileSeen | FileGone) -> str:
    return entry.path if isinstance(entry, FileGone) else entry.fact.path
