"""What the index of a conversation holds and answers: rows, filters, hits, and who may write (seed 004, spec 10).

A row is known by its `message_id`. Every transaction on a conversation is one *change*, numbered from 1 without a gap,
and each row carries the number of the change that wrote it last: a reader who knows a number reads what came after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

INDEX_ONLY = "index_only"  # the `hosted_uri` of a row without a blob
TTL_DAYS = 365


class Scope(NamedTuple):
    """Whose rows: one conversation of one user."""

    tenant: str
    project: str
    user_id: str
    conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """One row of `conv_messages`. `ts` is in seconds since the epoch; `tags` are without duplicates.

    `key` is the blob's key in the store, empty without one. `origin` is `user` or `machine` for a reaction.
    """

    message_id: str
    kind: str
    turn_id: str
    ts: float
    text: str
    tags: tuple[str, ...]
    role: Literal["user", "assistant", "artifact"] = "artifact"
    hosted_uri: str = INDEX_ONLY
    key: str = ""
    rn: str = ""
    origin: str = ""
    user_type: str = "registered"
    bundle_id: str = ""
    ttl_days: int = TTL_DAYS
    change: int = 0  # as the index answers it; what is given here is not stored
    has_embedding: bool = False  # the same


@dataclass(frozen=True, slots=True)
class Written:
    """A row to be put under its `message_id`, new or in place of what stood there.

    `embedding` None keeps a vector that the row has already. With `expected` the row is put only where its `change` is
    still this number (0: where no row of this id is yet).
    """

    row: IndexRow
    embedding: Sequence[float] | None = None
    expected: int | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """Which rows: all that is given must hold. `kinds` and `turn_ids` are any of them, `tags` all of them.

    `since` and `until` are inclusive, in seconds since the epoch. An empty `kinds` or `turn_ids` means any. Rows of
    `but_kinds` never pass, whatever `kinds` says.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    turn_ids: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    but_kinds: tuple[str, ...] = ()


class Scored(NamedTuple):
    """A row that a search found, and how well it fits: larger is better, engine by engine."""

    row: IndexRow
    score: float


@dataclass(frozen=True, slots=True)
class Standing:
    """How a conversation stands in the index.

    `change` is the number of its latest change, `next_block` how many blocks of its timeline are saved, `generation`
    how often its writer has become another one. `holder` is empty when nobody holds the lease; `label` says to people
    who it is; `expires_in` is in seconds.
    """

    change: int = 0
    next_block: int = 0
    generation: int = 0
    holder: str = ""
    label: str = ""
    expires_in: float = 0.0


class LeaseLost(Exception):  # noqa: N818 - an answer, not a malfunction
    """Somebody else writes this conversation by now; nothing was changed."""


class RowChanged(Exception):  # noqa: N818 - the same
    """A row is not as it was expected, or is not there; nothing was changed. `message_id` says which."""

    def __init__(self, message_id: str) -> None:
        super().__init__(message_id)
        self.message_id = message_id


class WrongDimension(ValueError):  # noqa: N818 - the same
    """A vector of another length than those that the index has; `expected` says which it has."""

    def __init__(self, expected: int, given: int) -> None:
        super().__init__(f"vectors here have {expected} numbers, and this has {given}")
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Fence:
    """Who writes, by the lease taken: a commit by anybody else is refused as LeaseLost."""

    holder: str
    generation: int


@dataclass(frozen=True, slots=True)
class Commit:
    """What one transaction changes. `next_block` never goes back; `remove` are message ids."""

    rows: Sequence[Written] = ()
    remove: Sequence[str] = ()
    next_block: int | None = None
    facts: Mapping[str, str] | None = None  # small texts kept with the conversation, by name; others stay
