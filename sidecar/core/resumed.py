"""A conversation as it was saved, taken apart into the entries that rebuild it here. Nothing in it can make this raise.

One way serves a workspace that has nothing, one that was killed while it took things in, and a reader that follows a
writer: whatever the state has already is left out. Blocks come in the order of their conversation-wide numbers, and a
state of a file stands before the block that was told next, so that both join exactly as they did (see `artifacts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar.core.blocks import FLAGS, HIDDEN, TURN, Defaults, moment_of, tell
from sidecar.core.entries import (
    BlocksHidden,
    BlocksShown,
    BlockTold,
    CallBegun,
    CallEnded,
    Entry,
    Noticed,
    Remembered,
    SourceSet,
    TurnBegun,
    TurnEnded,
    Used,
)
from sidecar.core.errors import Refusal
from sidecar.core.lineage import is_node
from sidecar.core.notices import notice
from sidecar.core.paths import is_call_id, is_turn_id
from sidecar.core.resumed_files import Files
from sidecar.core.sources import complete
from sidecar.core.state import State
from sidecar.core.storage_names import Identity
from sidecar.core.uses import HOWS, Uses

Json = Mapping[str, Any]

IMPORTED = "imported"  # the fact that says up to where somebody else's saves were taken in
FACTS = (
    "conversation_title", "conversation_started_at", "cache_last_touch_at", "cache_last_ttl_seconds",
    "last_known_feedback_ts",
)  # fmt: skip
_SID_MOST = 2**53


@dataclass(frozen=True, slots=True)
class Reach:
    """Up to where something is known: the number of a change, of the first block beyond, and the highest sid."""

    change: int = 0
    next_block: int = 0
    max_sid: int = 0

    def fact(self) -> dict[str, int]:
        return {"change": self.change, "next_block": self.next_block, "max_sid": self.max_sid}

    @classmethod
    def of(cls, fact: object) -> Reach:
        said = fact if isinstance(fact, dict) else {}
        return cls(*(_number(said.get(name)) or 0 for name in cls.__slots__))

    def and_also(self, other: Reach) -> Reach:
        return Reach(
            max(self.change, other.change),
            max(self.next_block, other.next_block),
            max(self.max_sid, other.max_sid),
        )


class Resuming:
    """Takes turn logs in, oldest first, and gives the entries for what is whole by then. Use it once.

    `next_block` is how many blocks of the conversation are saved: beyond it nothing is taken in, since a block that is
    not there yet may still come.
    """

    def __init__(self, state: State, identity: Identity, next_block: int) -> None:
        self.left_out = 0  # pieces that could not be taken in
        self.lost = 0  # blocks that no log has
        self.held_over = False  # whether a log had blocks beyond `next_block`, so that it has to be read again
        self._state = state
        self._end = next_block
        self._next = len(state.timeline)
        self._blocks: dict[int, Json] = {}
        self._defaults = Defaults("turn_0", 0.0)  # of a block that does not say; as the block before it
        self._files = Files(state, identity, next_block)
        self._runs: dict[str, dict[int, str]] = {}  # hidden blocks by path, and what stands in their place
        self._shown: set[int] = set()  # blocks that were hidden here and are not any more
        self._begun: set[str] = set()
        self._uses = Uses()  # those that were given on the way
        self._told_in: dict[str, str] = {}  # and in which call the things were told that say so by themselves

    def take(self, log: object) -> list[Entry]:
        """The entries that one more turn log brings."""
        if not isinstance(log, dict) or not _is_turn(log.get("turn_id")):
            self.left_out += 1
            return []
        entries = [*self._turn(log), *self._blocks_in(log)]
        self.left_out += self._files.take(log)
        while self._next in self._blocks:
            entries += self._one_block(self._blocks.pop(self._next))
        return entries

    def finish(self, pool: object, timeline: object) -> list[Entry]:
        """The entries for all that is left, once every log was taken: gaps, veils, hosting, the pool, the facts."""
        entries: list[Entry] = []
        while self._next < self._end:
            block = self._blocks.pop(self._next, None)
            entries += self._one_block(block) if block is not None else self._placeholder()
        for path in list(self._runs):
            entries += self._hide(path)
        entries += self._files.finish()
        entries += self._rows(pool)
        facts = self._facts(timeline)
        facts |= _highest(pool, timeline)
        entries += [Remembered(facts)] if facts else []
        if self.left_out or self.lost:
            reason = "malformed" if self.left_out else "lost"
            entries.append(Noticed(notice("conversation_incomplete", count=self.left_out + self.lost, reason=reason)))
        return entries

    # Turns and calls -------------------------------------------------------------------------------------------------

    def _turn(self, log: Json) -> Iterator[Entry]:
        """A turn begins and ends at once, so that nobody finds it open whatever happens in between."""
        turn, began = log["turn_id"], _moment(log.get("ts"), self._defaults.ts)
        ended, status = _moment(log.get("end_ts"), began), log.get("status")
        known = self._state.turns.durable.get(turn)
        if known is None and turn not in self._begun and isinstance(status, str) and status:
            self._begun.add(turn)
            params = log.get("params")
            yield TurnBegun(turn, began, params if isinstance(params, str) else "")
            yield TurnEnded(turn, ended, status)
        for call in _mappings(log.get("calls")):
            name, tool = call.get("tool_call_id"), call.get("tool_id")
            if not isinstance(name, str) or not is_call_id(name) or not isinstance(tool, str):
                self.left_out += 1
                continue
            used, whole = self._used(name, call.get("uses"))
            if name not in self._state.calls.durable:
                yield CallBegun(name, turn, tool, began, watched=call.get("watched") is True and whole)
            yield from used
            if name not in self._state.calls.durable:
                yield CallEnded(name, ended)
        for record in _mappings(log.get("made_of")):
            yield from self._made_of(record)

    def _made_of(self, record: Json) -> Iterator[Entry]:
        """What one thing says that it was made of. It is told by several calls, and most of what it says is known."""
        path, calls = record.get("path"), _list(record.get("calls"))
        named = [call for call in calls if isinstance(call, str) and (not call or is_call_id(call))]
        if not isinstance(path, str) or not is_node(path) or not named or len(named) < len(calls):
            self.left_out += 1
            return
        *before, latest = named
        uses = self._state.uses
        yield from (Used(call, (), "declared", path) for call in before if path not in uses.made.get(call, ()))
        used, whole = self._used(latest, record.get("uses"), by=path)
        yield from used
        told_in = self._told_in.get(path, uses.told_in.get(path))
        if not used and whole and (before or told_in != latest):
            yield Used(latest, (), "declared", path)  # it is known that it was made of nothing else
        if used or whole:
            self._told_in[path] = latest

    def _used(self, call: str, told: object, by: str = "") -> tuple[list[Entry], bool]:
        """The uses that are not known yet, of a call or of one thing told in it, and whether all could be taken in.

        No user has more of them than the journal of the daemon that saved them could have.
        """
        user, entries, before = by or call, list[Entry](), self.left_out
        for one in _mappings(told):
            how, nodes = one.get("how"), _list(one.get("nodes"))
            if how not in HOWS:
                self.left_out += 1
                continue
            good = [node for node in nodes if is_node(node)]
            self.left_out += len(good) < len(nodes)
            fresh = self._uses.fresh(user, self._state.uses.fresh(user, good, how), how)
            self._uses.stage(user, fresh, how)
            entries += [Used(call, fresh, how, by)] if fresh else []
        return entries, self.left_out == before

    # Blocks ----------------------------------------------------------------------------------------------------------

    def _blocks_in(self, log: Json) -> list[Entry]:
        """Note the blocks of a log; the answer shows again what was hidden here and is not hidden any more."""
        blocks, indexes = _list(log.get("blocks")), _list(log.get("indexes"))
        self.left_out += abs(len(blocks) - len(indexes))
        shown: set[int] = set()
        for index, block in zip(indexes, blocks, strict=False):
            number = _number(index)
            if number is None or not isinstance(block, dict):
                self.left_out += 1
            elif number >= self._end:
                self.held_over = True
            elif number >= self._next:
                self._blocks.setdefault(number, {"turn_id": log["turn_id"], **block})
            elif _is_hidden(block) and self._words(number) != _words_in(block):
                self._note_hidden(number, self._state.timeline.heads[number][4], block)
            elif not _is_hidden(block) and self._state.timeline.heads[number][FLAGS] & HIDDEN:
                shown.add(number)
        self._shown |= shown
        return [BlocksShown(tuple(sorted(shown)))] if shown else []

    def _words(self, number: int) -> str | None:
        """What stands in the place of a block that is hidden here; None for one that is not."""
        timeline = self._state.timeline
        return (timeline.veils.get(number) or "") if timeline.heads[number][FLAGS] & HIDDEN else None

    def _one_block(self, block: Json) -> list[Entry]:
        """The block that comes next, after the files that were seen before it was told."""
        bare = self._files.as_told(_bare(block) if _is_hidden(block) else block)
        try:
            told = tell(bare, self._defaults)
        except (Refusal, TypeError, ValueError, KeyError, AttributeError):
            self.left_out += 1
            self.lost -= 1  # it is counted as malformed
            return self._placeholder()
        head = told.head
        self._defaults = Defaults(head[TURN], head[2])
        entries: list[Entry] = list(self._files.before(self._next))
        if _is_hidden(block):
            self._note_hidden(self._next, head[4], block)
        elif head[4] in self._runs:
            entries += self._hide(head[4])
        self._files.told(told.part)
        self._next += 1
        return [*entries, BlockTold(told)]

    def _placeholder(self) -> list[Entry]:
        """The place of a block that is lost, so that every other one keeps its number."""
        block = {
            "type": "system.message",
            "author": "system",
            "text": "This block was not found in what was saved.",
            "meta": {"hidden": True, "lost": True},
        }
        self.lost += 1
        entries: list[Entry] = list(self._files.before(self._next))
        self._next += 1
        return [*entries, BlockTold(tell(block, self._defaults))]

    def _note_hidden(self, number: int, path: str, block: Json) -> None:
        """Blocks at a path are hidden once the last of them is told, before the next one that is not.

        Those that are hidden already are hidden again: a copy that was shown in between made their artifact visible.
        """
        if path not in self._runs:
            known = ((one, self._words(one)) for one in self._state.timeline.at(path) if one not in self._shown)
            self._runs[path] = {one: words for one, words in known if words is not None}
        self._runs[path][number] = _words_in(block)

    def _hide(self, path: str) -> Iterator[Entry]:
        run = self._runs.pop(path)
        for words in dict.fromkeys(run.values()):
            yield BlocksHidden(tuple(number for number, said in run.items() if said == words), words)

    # The pool and the facts ------------------------------------------------------------------------------------------

    def _rows(self, pool: object) -> Iterator[Entry]:
        for row in _list(pool.get("sources_pool") if isinstance(pool, dict) else None):
            try:
                whole = complete(row)
            except (Refusal, TypeError, ValueError, AttributeError):
                self.left_out += 1
                continue
            sid = _number(whole.get("sid"))
            if not sid or sid > _SID_MOST:
                self.left_out += 1
            elif self._state.pool.get(sid) != whole:
                yield SourceSet(whole)

    def _facts(self, timeline: object) -> dict[str, Any]:
        said = timeline if isinstance(timeline, dict) else {}
        facts = {name: said[name] for name in FACTS if said.get(name) is not None}
        turns = [turn for turn in _list(said.get("turn_ids")) if _is_turn(turn)]
        if turns:
            facts["turn_ids"] = list(dict.fromkeys(turns))
        return {name: value for name, value in facts.items() if self._state.facts.get(name) != value}


def _highest(pool: object, timeline: object) -> dict[str, int]:
    """The highest sid that was ever given, as either of the two knows it."""
    known = [_number(said.get("max_sid")) or 0 for said in (pool, timeline) if isinstance(said, dict)]
    highest = max(known, default=0)
    return {"max_sid": highest} if 0 < highest <= _SID_MOST else {}


def sids_in(pool: object) -> int:
    """The highest sid that a saved pool speaks of."""
    rows = pool.get("sources_pool") if isinstance(pool, dict) else None
    told = [_number(row.get("sid")) or 0 for row in _mappings(rows)]
    return max([_highest(pool, None).get("max_sid", 0), *told])


def _is_hidden(block: Json) -> bool:
    """Whether it was hidden from the agent; a placeholder never was anything else."""
    meta = block.get("meta")
    return isinstance(meta, dict) and bool(meta.get("hidden")) and not meta.get("lost")


def _words_in(block: Json) -> str:
    words = block["meta"].get("replacement_text")
    return words if isinstance(words, str) else ""


def _bare(block: Json) -> dict[str, Any]:
    """The block as it is without being hidden, which is said in an entry of its own."""
    meta = {key: value for key, value in block["meta"].items() if key not in ("hidden", "replacement_text")}
    return {**block, "meta": meta}


def _is_turn(value: object) -> bool:
    return isinstance(value, str) and is_turn_id(value)


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _mappings(value: object) -> Iterable[dict[str, Any]]:
    return (one for one in _list(value) if isinstance(one, dict))


def _number(value: object) -> int | None:
    """A number from 0, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _moment(value: object, fallback: float) -> float:
    try:
        return moment_of(value, fallback)
    except Refusal:
        return fallback
