"""What is decided and not durable yet: each entry on top of those before it, so that the next one is decided on them.

What was staged and refused is forgotten again. Readers see none of this, but for what is marked as the latest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sidecar.core.arrivals import Arrivals
from sidecar.core.blocks import TURN
from sidecar.core.entries import (
    Answered,
    BlockTold,
    CallBegun,
    CallEnded,
    Entry,
    FileGone,
    FileSeen,
    Promise,
    Promised,
    Remembered,
    SourceSet,
    TurnBegun,
    TurnEnded,
    Used,
)
from sidecar.core.happened import Call, Turn
from sidecar.core.layered import Layered
from sidecar.core.sources import SourcesPool
from sidecar.core.timeline import Timeline
from sidecar.core.uses import Uses


class Deciding:
    """The part of a state that changes are decided by."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.pool = SourcesPool()
        self.uses = Uses()
        self.turns: Layered[str, Turn] = Layered()
        self.calls: Layered[str, Call] = Layered()
        # By request_id, the newest `limits.ANSWERS_KEPT`: a hash of the params, and the revision that holds the result.
        self.answers: Layered[str, tuple[str, int]] = Layered()
        self.facts: dict[str, Any] = {}
        self.promised: Layered[str, Promise] = Layered()  # files a call was to make and had not finished when it ended
        self._current_turn: Layered[str, str] = Layered()
        self._latest_facts: dict[str, Any] = {}  # what is remembered as the next change will find it
        self._naming: set[str] = set()  # turns that blocks on their way to the journal name
        self._open_calls: dict[str, Call] = {}
        self._ending: set[str] = set()  # calls whose end is on its way to the journal
        self._arriving = Arrivals()

    @property
    def turn_id(self) -> str:
        """The open turn as the next change will find it, or the empty text."""
        return self._current_turn.latest("") or ""

    @property
    def durable_turn_id(self) -> str:
        return self._current_turn.durable.get("", "")

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
        return self._arriving.any_of(paths)

    @property
    def latest_facts(self) -> dict[str, Any]:
        """What is remembered, as the next change will find it."""
        return {**self.facts, **self._latest_facts}

    @property
    def has_turns(self) -> bool:
        """Whether the next change will find that any turn was begun."""
        return bool(self.turns.durable) or bool(self.turn_id)

    def has_turn(self, turn_id: str) -> bool:
        """Whether the next change will find this turn known: open, begun, or named by a block."""
        begun = self.turns.latest(turn_id) is not None
        return begun or self.timeline.knows(turn_id) or turn_id in self._naming

    def decide(self, entry: Entry, mark: int) -> None:
        """Put an entry on top of what is durable; `mark` is the revision it will get."""
        match entry:
            case BlockTold(told):
                self._naming.add(told.head[TURN])
            case SourceSet(row):
                self.pool.stage(row, mark)
            case TurnBegun(turn_id, ts, params):
                self.turns.stage(turn_id, Turn(turn_id, params, ts), mark)
                self._current_turn.stage("", turn_id, mark)
            case TurnEnded(turn_id, ts, status):
                known = self.turns.latest(turn_id) or Turn(turn_id, "")
                self.turns.stage(turn_id, known.over(ts, status), mark)
                if self.turn_id == turn_id:
                    self._current_turn.stage("", "", mark)
            case CallBegun(call, turn_id, tool_id, _, watched):
                begun = self._open_calls[call] = Call(call, turn_id, tool_id, watched=watched)
                self.calls.stage(call, begun, mark)
            case CallEnded(call) if (begun := self._open_calls.pop(call, None)) is not None:
                self._ending.add(call)
                self.calls.stage(call, replace(begun, open=False), mark)
            case Answered(request_id, params):
                self.answers.stage(request_id, (params, mark), mark)
            case FileSeen() | FileGone():
                self._arriving.expect(path_of(entry))
            case Remembered(facts):
                self._latest_facts.update(facts)
            case Promised(path, call, visibility):
                self.promised.stage(path, (call, visibility), mark)
            case Used(call, nodes, how, by):
                self.uses.stage(by or call, nodes, how)
            case _:
                pass  # nothing is decided on the strength of the others before they are durable

    def drop(self) -> None:
        """Forget what was staged and is not durable: the journal refused it."""
        for layered in (self.turns, self.calls, self._current_turn, self.answers, self.promised, self.pool, self.uses):
            layered.drop()
        for staged in (self._ending, self._arriving, self._naming, self._latest_facts):
            staged.clear()
        self.recall()

    def recall(self) -> None:
        """The calls that are open, by what is durable."""
        self._open_calls = {name: call for name, call in self.calls.durable.items() if call.open}


def path_of(entry: FileSeen | FileGone) -> str:
    """The physical path of the file that an entry is about."""
    return entry.path if isinstance(entry, FileGone) else entry.fact.path
