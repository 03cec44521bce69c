"""The state of a workspace: what every entry changes, first as decided, then as durable.

`stage` puts an entry on top, where the next decision finds it; `apply` makes it what readers see. Both are plain
functions of the entries in order, so that a restart, which applies the journal, ends where the daemon was.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from sys import intern
from typing import Any, cast

from sidecar.core import limits
from sidecar.core.artifacts import Artifact, Artifacts
from sidecar.core.blocks import CALL, FLAGS, HIDDEN, PART, PATH, SHOWN, Head, Told
from sidecar.core.changelog import Change, ChangeLog
from sidecar.core.deciding import Deciding, path_of
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
    Promised,
    Remembered,
    SourceSet,
    TurnBegun,
    TurnEnded,
    TurnSaved,
    Used,
)
from sidecar.core.happened import Call, Happened, Turn
from sidecar.core.inventory import StatKey
from sidecar.core.paths import FilePath, is_turn_id, parse_logical, parse_physical
from sidecar.core.saved_turns import SavedTurns


class State(Deciding):
    """Timeline, artifacts, pool, turns and calls of one OUT_DIR. Readers see what is durable."""

    def __init__(self) -> None:
        super().__init__()
        self.artifacts = Artifacts(self.pool.by_path)
        self.log = ChangeLog()
        self.saved = SavedTurns()  # which of the turns are in the conversation store
        self.revision = 0
        self.files: dict[str, StatKey] = {}  # complete files on disk, by physical path
        self.pending: dict[str, Artifact] = {}  # what open calls produced so far, by logical path
        self.adopted: set[str] = set()
        self.shown: dict[str, str] = {}  # the hash of the text that the agent sees at a file's path
        self.noticed: set[tuple[str, str]] = set()  # oddities reported so far, by code and name
        self.unclaimed: dict[str, dict[str, None]] = {}  # by open call: files settled as nobody's ahead of its end
        # What is to be hosted: physical path, sha256. Its first ones go all the time, which a dict would search for.
        self.hosting: OrderedDict[tuple[str, str], None] = OrderedDict()
        self.handles: dict[str, Hosted] = {}  # every rn given out
        self.keys: set[str] = set()  # every key given to hosted bytes
        self.contents: dict[str, str] = {}  # sha256 -> a key under which these bytes stand in the store
        self.vectors: dict[tuple[str, str], int] = {}  # (turn, kind) -> the revision that holds the vector
        self._known_turns: set[str] = set()
        self._begun: dict[str, None] = {}  # the calls that are open for readers

    @property
    def turn_ids(self) -> tuple[str, ...]:
        """Every turn that is known: from a foreign timeline, from a block, or begun."""
        known = (*self.facts.get("turn_ids", ()), *self.timeline.turns, *self.turns.durable)
        return tuple(dict.fromkeys(known))

    def is_turn(self, folder: str) -> bool:
        """Whether a top-level folder is a turn's (spec section 5)."""
        named = folder.startswith("turn_") or folder in self._known_turns or folder in self.adopted
        return named and is_turn_id(folder)

    def artifact(self, path: FilePath) -> Artifact | None:
        logical = path.logical
        return self.artifacts.get(logical) if logical is not None else None

    # Applying

    def apply(self, seq: int, entry: Entry, happened: Happened) -> int | None:
        """Make a durable entry what readers see. Answers the number of a block."""
        number = None
        if isinstance(entry, BlockTold):
            number = len(self.timeline)
            self.apply_told((seq,), (entry.told,), happened)
        else:
            self._apply(seq, entry, happened)
            self.saved.note(seq, entry, self.timeline.heads)
        self.revision = seq
        return number

    def apply_told(self, seqs: Sequence[int], run: Sequence[Told], happened: Happened) -> None:
        """The same for a run of blocks."""
        stored: list[Sequence[Any]] = [(*told.head, told.part) if told.part else told.head for told in run]
        first = len(self.timeline)
        self._know_turns(self.timeline.extend(seqs, stored), happened)
        for number, one in enumerate(stored, first):
            if len(one) > PART and "at" in one[PART]:
                self._join_told(seqs[number - first], number, one[PART], happened)
            elif one[PATH].startswith("fi:") and (known := self.artifacts.get(one[PATH])) is not None:
                happened.artifacts[one[PATH]] = known
        happened.blocks.extend(range(first, len(self.timeline)))
        self.revision = seqs[-1]

    def apply_blocks(self, seqs: Sequence[int], stored: Sequence[Sequence[Any]], happened: Happened) -> None:
        """The same at a start, for a run of blocks as the journal stores their heads; nobody hears of them."""
        first = len(self.timeline)
        self._know_turns(self.timeline.extend(seqs, stored), happened)
        for number, one in enumerate(stored, first):
            if len(one) > PART and "at" in one[PART]:
                self._note_told(seqs[number - first], number, one, happened)
        self.revision = seqs[-1]

    def _know_turns(self, turns: Mapping[str, int], happened: Happened) -> None:
        """These turns were told of, up to a revision each."""
        self.saved.touch_all(turns)
        happened.turns.update(turns.keys() - self._known_turns)
        self._known_turns.update(turns)

    def _note_told(self, seq: int, number: int, stored: Sequence[Any], happened: Happened) -> None:
        """Join what a block told of an artifact, or leave it for when that is asked for."""
        logical, call, part = intern(stored[PART]["at"]), self.timeline.heads.calls[number], stored[PART]
        if not self.artifacts.note(logical, cast("Head", stored), part, number):
            self._join_told(seq, number, part, happened)
            return
        if "content" in part and part["content"].get("holds") == "text":
            self._show(logical, part["content"]["sha256"], stored[FLAGS])
        self.uses.make(call, logical)
        self.log.add(Change(seq, "artifact", logical))

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
        if not head[FLAGS] & SHOWN:
            self.uses.make(head[CALL], logical)  # its version may be an older one, of a call beside another
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
        self.uses.look(logical, artifact)
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
                if notice["code"] == "attribution_ambiguous" and len(self._begun) == 1:
                    self.unclaimed.setdefault(next(iter(self._begun)), {})[notice["path"]] = None
                if notice["code"] == "kept_evicted":
                    self._forget_kept(notice["path"], notice["sha256"])
                self.log.add(Change(seq, "notice", notice["code"]))
            case HostingWanted() | Hosted() | HostingWaived():
                self._apply_hosting(seq, entry, happened)
            case BlocksHidden(numbers) | BlocksShown(numbers):
                self._apply_veil(seq, numbers, entry.replacement if isinstance(entry, BlocksHidden) else None, happened)
            case BlockTold():
                raise AssertionError("a block is applied from its head")
            case TurnSaved():
                pass  # `saved` takes note of it
            case _:
                self._keep_in_mind(seq, entry)

    def _keep_in_mind(self, seq: int, entry: _Kept) -> None:
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
                self.pool.reserve(facts.get("max_sid", 0))
            case Promised(path, call, visibility):
                self.promised.settle(path, (call, visibility), seq)
            case Answered(request_id, params):
                self.answers.settle(request_id, (params, seq), seq)
                if len(self.answers.durable) > limits.ANSWERS_KEPT:
                    del self.answers.durable[next(iter(self.answers.durable))]
            case Embedded(turn_id, kind):
                self.vectors[turn_id, kind] = seq
            case Used(call, nodes, how, by):
                self.uses.settle(call, nodes, how, by=by)

    def _apply_turn(self, seq: int, entry: TurnBegun | TurnEnded, happened: Happened) -> None:
        turn_id = entry.turn_id
        if isinstance(entry, TurnBegun):
            self._know_turn(turn_id, happened)
            self.turns.settle(turn_id, Turn(turn_id, entry.params, entry.ts), seq)
            self._current_turn.settle("", turn_id, seq)
            return
        known = self.turns.durable.get(turn_id) or Turn(turn_id, "")
        self.turns.settle(turn_id, known.over(entry.ts, entry.status), seq)
        if self.durable_turn_id == turn_id:
            self._current_turn.settle("", "", seq)

    def _apply_call(self, seq: int, entry: CallBegun | CallEnded) -> None:
        name = entry.tool_call_id
        if isinstance(entry, CallBegun):
            self.calls.settle(name, Call(name, entry.turn_id, entry.tool_id, watched=entry.watched), seq)
            self._begun[name] = None
            return
        self._ending.discard(name)
        self._begun.pop(name, None)
        self.unclaimed.pop(name, None)
        if (begun := self.calls.durable.get(name)) is not None:
            self.calls.settle(name, replace(begun, open=False), seq)

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
        self._arriving.arrived(path_of(entry))
        if isinstance(entry, FileGone):
            self.files.pop(entry.path, None)
            artifact = self.artifacts.lose(parse_physical(entry.path))
        else:
            if not entry.fact.incomplete:
                self.files[entry.fact.path] = entry.fact.key
                self.promised.durable.pop(entry.fact.path, None)
            path = parse_physical(entry.fact.path)
            artifact = self.artifacts.see(
                path, entry.fact, ts=entry.ts, call=entry.call, visibility=entry.visibility, at=len(self.timeline)
            )
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
            place = {"hosted_uri": entry.hosted_uri, "rn": entry.rn, "key": entry.key}
            artifact.host(entry.sha256, {**place, "hosted_at": len(self.timeline)})
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


_Kept = FolderAdopted | Remembered | Promised | Answered | Embedded | Used
