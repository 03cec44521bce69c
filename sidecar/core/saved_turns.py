"""What of every turn is saved to the conversation store, and what is not yet: cheap to ask, however long the story is.

A turn is unsaved from the first thing that becomes of it until a save that saw all of it. So is the conversation as a
whole, which is its pool and what is remembered of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sidecar.core.blocks import SUMMARY, TURN, Head
from sidecar.core.conversation_kinds import TURN_LOG
from sidecar.core.entries import (
    BlocksHidden,
    BlocksShown,
    Embedded,
    Entry,
    FileGone,
    FileSeen,
    Hosted,
    HostingWaived,
    Remembered,
    SourceSet,
    TurnBegun,
    TurnEnded,
    TurnSaved,
)
from sidecar.core.paths import parse_physical

# Neither is the id of any turn: one is empty, the other has dots.
WHOLE = ""  # the conversation's pool and facts
SUMMARIES = SUMMARY  # the rows of its summaries

# What is remembered of a conversation and told in what is saved of it.
TOLD_FACTS = frozenset({
    "conversation", "conversation_title", "conversation_started_at", "turn_ids", "max_sid", "cache_last_touch_at",
    "cache_last_ttl_seconds", "last_known_feedback_ts",
})  # fmt: skip
_IDENTITY = ("tenant", "project", "user_id", "user_type", "conversation_id")


class Saving(NamedTuple):
    """The latest save of a turn: what it saw, the index's number of it, and the revision that lists what it wrote."""

    revision: int
    change: int
    seq: int


class SavedTurns:
    """Which turns have something unsaved; `unsaved` maps each to the latest revision that touched it."""

    __slots__ = ("_identity", "_place", "_saved", "last_ended", "unlogged", "unsaved")

    def __init__(self) -> None:
        self.unsaved: dict[str, int] = {}
        self.unlogged: set[str] = set()  # turns that were saved where there was no store for their logs
        self.last_ended = ""
        self._saved: dict[str, Saving] = {}
        self._identity: tuple[str, ...] = ()
        self._place = ""  # the index and the store that saves go to

    def at(self, turn_id: str) -> Saving | None:
        """The latest save of this turn, of `WHOLE` or of `SUMMARIES`."""
        return self._saved.get(turn_id)

    @property
    def latest_change(self) -> int:
        """The latest change of the index that saved something of ours; 0 when nothing is saved."""
        return max((saving.change for saving in self._saved.values()), default=0)

    def is_saved(self, turn_id: str) -> bool:
        """Whether all that became of this turn is saved."""
        return turn_id in self._saved and turn_id not in self.unsaved

    def touch(self, turn_id: str, seq: int) -> None:
        self.unsaved[turn_id] = seq

    def touch_all(self, turns: Mapping[str, int]) -> None:
        """The same for many turns, at a start."""
        self.unsaved.update(turns)

    def note(self, seq: int, entry: Entry, heads: Sequence[Head]) -> None:
        """Take note of a durable entry that is no block."""
        match entry:
            case TurnSaved(turn_id, revision, change, items):
                self._settle(turn_id, Saving(revision, change, seq), items)
            case TurnBegun(turn_id) | TurnEnded(turn_id) | Embedded(turn_id):
                self.unsaved[turn_id] = seq
                if isinstance(entry, TurnEnded):
                    self.last_ended = turn_id
            case FileSeen(fact):
                self._touch_file(fact.path, seq)
            case FileGone(path) | Hosted(path) | HostingWaived(path):
                self._touch_file(path, seq)
            case BlocksHidden(numbers) | BlocksShown(numbers):
                self.unsaved.update(dict.fromkeys((heads[number][TURN] for number in numbers), seq))
            case SourceSet():
                self.unsaved[WHOLE] = seq
            case Remembered({"set_back": _}):
                self._forget(seq)  # the index lost what it had taken
            case Remembered(facts) if not TOLD_FACTS.isdisjoint(facts):
                self.unsaved[WHOLE] = seq
                if "conversation" in facts:
                    self._belong(facts["conversation"], seq)
            case Remembered({"archived_in": place}):
                if self._place not in ("", place):
                    self._forget(seq)
                self._place = place
            case _:
                pass

    def _belong(self, conversation: Mapping[str, str], seq: int) -> None:
        """Whose conversation it is. When that changes nothing of it is saved: not under that name."""
        identity = tuple(conversation.get(part, "") for part in _IDENTITY)
        if self._identity not in ((), identity):
            self._forget(seq)
        self._identity = identity

    def _forget(self, seq: int) -> None:
        """Nothing is saved: not where saves go from now on."""
        self.unsaved.update(dict.fromkeys(self._saved.keys() - {SUMMARIES}, seq))
        self._saved.clear()
        self.unlogged.clear()

    def _settle(self, turn_id: str, saving: Saving, items: Iterable[Mapping[str, object]]) -> None:
        had_log = turn_id in self._saved and turn_id not in self.unlogged
        self._saved[turn_id] = saving
        if self.unsaved.get(turn_id, 0) <= saving.revision:
            self.unsaved.pop(turn_id, None)
        kinds = {item.get("kind") for item in items}
        # A save of the conversation at the end of a turn names no log where the one that is there is still right.
        if turn_id in (WHOLE, SUMMARIES) or not kinds or TURN_LOG in kinds or had_log:
            self.unlogged.discard(turn_id)
        else:
            self.unlogged.add(turn_id)

    def _touch_file(self, physical: str, seq: int) -> None:
        turn_id = parse_physical(physical).turn_id
        if turn_id:  # a file outside every turn is in no turn's log
            self.unsaved[turn_id] = seq
