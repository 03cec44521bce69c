"""What is decided alike on every engine of the index: who may write, what is expected, how changes are numbered.

An engine lends a session, which is one transaction and knows SQL; everything that could be decided in two ways is
decided here, once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from sidecar.core import limits
from sidecar.core.conversation_kinds import REACTION
from sidecar.core.index_rows import (
    Commit,
    Fence,
    Filters,
    IndexRow,
    LeaseLost,
    RowChanged,
    Scope,
    Scored,
    Standing,
    Written,
    WrongDimension,
)  # fmt: skip
from sidecar.core.ranking import words_of
from sidecar.stores.index_matching import asked, ranked
from sidecar.stores.index_session import Conversation, Put, Session
from sidecar.stores.index_texts import (
    MICROSECONDS,
    askable,
    checked,
    checked_scope,
    holdable,
    micros,
    storable,
    storable_row,
)  # fmt: skip
from sidecar.stores.index_vectors import require_length, unit

T = TypeVar("T")

GIVEN_UP = 0  # the moment at which a lease ended that was released
ANSWERS = (LeaseLost, RowChanged, WrongDimension)
"""What is raised and is no failure: the connection is as good as before."""


class RowIndex(ABC):
    """The port `Index` but for what differs by engine: how a session is had, `open`, `changed` and `close`."""

    @abstractmethod
    def _ask(self, work: Callable[[Session], T]) -> T:
        """Run what only reads. Raises StoreUnavailable."""

    @abstractmethod
    def _change(self, work: Callable[[Session], T]) -> T:
        """Run in a transaction: all of it, or nothing when `work` raises. Raises StoreUnavailable."""

    # Who writes

    def standing(self, scope: Scope) -> Standing:
        """How a conversation stands; one that nobody knows stands at zero."""
        checked_scope(scope)

        def look(session: Session) -> Standing:
            conversation = session.find(scope)
            return _standing(conversation, session.now()) if conversation else Standing()

        return self._ask(look)

    def claim(self, scope: Scope, holder: str, label: str, *, seconds: float) -> Standing:
        """Take the lease, or go on holding it, for so long by the engine's own clock; see the port.

        One that is to last longer than any lease does was taken before that clock was set back. It is cut to the usual
        length: its holder renews it, if there still is one.
        """
        if not holder:
            raise ValueError("somebody holds a lease")
        scope, holder, label = checked_scope(scope), checked(holder), storable(label)

        def take(session: Session) -> Standing:
            conversation, now = session.make(scope), session.now()
            if conversation.holder in ("", holder) or conversation.expires <= now:
                conversation = replace(
                    conversation,
                    holder=holder,
                    label=label,
                    generation=conversation.generation + (conversation.holder != holder),
                    expires=now + round(seconds * MICROSECONDS),
                )
                session.settle(conversation)
            elif conversation.expires - now > limits.LONGEST_LEASE * MICROSECONDS:
                conversation = replace(conversation, expires=now + round(seconds * MICROSECONDS))
                session.settle(conversation)
            return _standing(conversation, now)

        return self._change(take)

    def release(self, scope: Scope, holder: str) -> None:
        """Give the lease up, if it is this holder's; whoever takes it again was not away in between."""
        checked_scope(scope)

        def give_up(session: Session) -> None:
            conversation = session.hold(scope)
            if conversation is not None and conversation.holder == holder:
                session.settle(replace(conversation, expires=GIVEN_UP))

        self._change(give_up)

    # Writing

    def commit(self, scope: Scope, commit: Commit, *, fence: Fence | None = None) -> int:
        """One change, all of it or nothing; answers its number.

        Raises LeaseLost, RowChanged and WrongDimension, in this order, and ValueError for what no engine can hold.
        Rows of one commit are put in their order, after the removals.
        """
        scope = checked_scope(scope)
        puts = [_put(written) for written in commit.rows]
        facts = {checked(name): storable(text) for name, text in (commit.facts or {}).items()}
        remove = list(filter(holdable, dict.fromkeys(commit.remove)))
        expected = [written for written in commit.rows if written.expected is not None]

        def write(session: Session) -> int:
            conversation = session.make(scope)
            standing = (conversation.holder, conversation.generation)
            if fence is not None and (standing != fence_of(fence) or conversation.expires == GIVEN_UP):
                raise LeaseLost
            _require(expected, session.changes(conversation.number, [one.row.message_id for one in expected]))
            change = conversation.change + 1
            session.remove(conversation.number, remove)
            _put_all(session, conversation.number, puts, change)
            if facts:
                session.put_facts(conversation.number, facts)
            saved = max(conversation.next_block, commit.next_block or 0)
            session.settle(replace(conversation, change=change, next_block=saved))
            session.announce(scope, change)
            return change

        return self._change(write)

    def react(self, scope: Scope, row: IndexRow, *, alone: bool) -> tuple[int, list[IndexRow]]:
        """Put a reaction; with `alone` the others of its turn, kind and origin go: the second part of the answer."""
        scope = checked_scope(scope)
        put = _put(Written(row))

        def write(session: Session) -> tuple[int, list[IndexRow]]:
            conversation = session.make(scope)
            gone = session.rows(scope, Filters(kinds=(row.kind,), turn_ids=(row.turn_id,))) if alone else []
            gone = [one for one in gone if one.origin == row.origin and one.message_id != row.message_id]
            session.remove(conversation.number, [one.message_id for one in gone])
            change = conversation.change + 1
            _put_all(session, conversation.number, [put], change)
            session.settle(replace(conversation, change=change))
            session.announce(scope, change)
            return change, gone

        return self._change(write)

    def embed(self, scope: Scope, message_id: str, embedding: Sequence[float]) -> bool:
        """Give a row its vector, which is a change of it; False when there is no such row. Raises WrongDimension."""
        checked_scope(scope)
        vector = unit(embedding)
        if not holdable(message_id):
            return False

        def write(session: Session) -> bool:
            conversation = session.hold(scope)
            if conversation is None or not session.changes(conversation.number, [message_id]):
                return False
            change = conversation.change + 1
            session.require_length(vector)
            session.embed(conversation.number, message_id, vector, change)
            session.settle(replace(conversation, change=change))
            session.announce(scope, change)
            return True

        return self._change(write)

    def forget(self, scope: Scope, *, turn_id: str | None = None) -> list[str]:
        """Remove the rows of a turn, or everything of the conversation, its standing included; answers their keys."""
        checked_scope(scope)
        if turn_id is not None and not holdable(turn_id):
            return []

        def remove(session: Session) -> list[str]:
            conversation = session.hold(scope)
            if conversation is None:
                return []
            rows = session.rows(scope, Filters() if turn_id is None else Filters(turn_ids=(turn_id,)))
            if turn_id is None:
                session.remove_all(conversation.number)
            elif rows:
                session.remove(conversation.number, [row.message_id for row in rows])
                change = conversation.change + 1
                session.settle(replace(conversation, change=change))
                session.announce(scope, change)
            session.scrub()
            return sorted({row.key for row in rows if row.key})

        return self._change(remove)

    # Reading

    def facts(self, scope: Scope) -> dict[str, str]:
        """The small texts kept with the conversation."""
        checked_scope(scope)
        return self._ask(lambda session: session.facts(scope))

    def rows(
        self, scope: Scope, filters: Filters, *, after_change: int = 0, limit: int | None = None
    ) -> list[IndexRow]:
        """Rows that pass, newest first (`ts`, then `change`, then `message_id`, each descending)."""
        checked_scope(scope)
        asked_for = askable(filters)
        if asked_for is None or limit == 0:
            return []
        return self._ask(lambda session: session.rows(scope, asked_for, after_change=after_change, limit=limit))

    def row(self, scope: Scope, message_id: str) -> IndexRow | None:
        """The row of this id."""
        checked_scope(scope)
        if not holdable(message_id):
            return None
        return self._ask(lambda session: session.row(scope, message_id))

    def latest_reactions(
        self, scope: Scope, *, turn_ids: Sequence[str] = (), since: float | None = None
    ) -> list[IndexRow]:
        """The latest reaction per turn: by `ts`, ties by arrival; newest first. `since` is exclusive."""
        checked_scope(scope)
        asked_for = askable(Filters(kinds=(REACTION,), turn_ids=tuple(turn_ids), since=since))
        if asked_for is None:
            return []
        return self._ask(lambda session: session.latest_per_turn(scope, asked_for))

    def nearest(self, scope: Scope, embedding: Sequence[float], filters: Filters, *, limit: int) -> list[Scored]:
        """The rows whose vectors are nearest, best first; the score is the cosine similarity, to six digits."""
        checked_scope(scope)
        vector, asked_for = unit(embedding), askable(filters)

        def look(session: Session) -> list[Scored]:
            session.require_known_length(vector)
            return session.nearest(scope, vector, asked_for, limit=limit) if asked_for and limit > 0 else []

        return self._ask(look)

    def matching(self, scope: Scope, words: Sequence[str], filters: Filters, *, limit: int) -> list[Scored]:
        """The rows whose text holds the words: all of them, else any; best first (see `index_matching`)."""
        checked_scope(scope)
        wanted, asked_for = asked(words), askable(filters)
        if not wanted or asked_for is None or limit <= 0:
            return []

        def look(session: Session) -> list[Scored]:
            best = ranked(session.holding(scope, wanted, asked_for), len(wanted), limit=limit)
            rows = session.by_id([number for number, _ in best])
            return [Scored(rows[number], score) for number, score in best if number in rows]

        return self._ask(look)


def fence_of(fence: Fence) -> tuple[str, int]:
    return fence.holder, fence.generation


def _standing(conversation: Conversation, now: int) -> Standing:
    held = bool(conversation.holder) and conversation.expires > now
    return Standing(
        change=conversation.change,
        next_block=conversation.next_block,
        generation=conversation.generation,
        holder=conversation.holder if held else "",
        label=conversation.label if held else "",
        expires_in=(conversation.expires - now) / MICROSECONDS if held else 0.0,
    )


def _put(written: Written) -> Put:
    row = storable_row(written.row)
    vector = None if written.embedding is None else unit(written.embedding)
    return Put(row, micros(row.ts), words_of(row.text), vector)


def _put_all(session: Session, number: int, puts: Sequence[Put], change: int) -> None:
    vectors = [put.vector for put in puts if put.vector is not None]
    if vectors:
        session.require_length(vectors[0])
    for vector in vectors:
        require_length(vector, len(vectors[0]))
    session.put(number, puts, change)


def _require(expected: Sequence[Written], changes: dict[str, int]) -> None:
    for written in expected:
        if changes.get(written.row.message_id, 0) != written.expected:
            raise RowChanged(written.row.message_id)
