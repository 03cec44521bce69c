"""What `row_index` asks of an engine within one transaction: SQL in one dialect or the other, and no decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sidecar.core.index_rows import Filters, IndexRow, Scope, Scored
from sidecar.stores.index_matching import Candidate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Conversation:
    """A row of `conv_conversations`; `number` is its key in the other tables, `expires` in microseconds."""

    number: int
    change: int = 0
    next_block: int = 0
    generation: int = 0
    holder: str = ""
    label: str = ""
    expires: int = 0


class Put(NamedTuple):
    """A row as it is to be stored, with its moment in microseconds, its words and its vector of length one."""

    row: IndexRow
    ts: int
    words: list[str]
    vector: NDArray[np.float32] | None


class Session(Protocol):
    """One transaction. Whoever holds a conversation is alone with it until the end."""

    def now(self) -> int:
        """The engine's clock, in microseconds since the epoch."""
        ...

    def find(self, scope: Scope) -> Conversation | None: ...

    def hold(self, scope: Scope) -> Conversation | None: ...

    def make(self, scope: Scope) -> Conversation:
        """Hold it; make it where it is not known yet."""
        ...

    def settle(self, conversation: Conversation) -> None:
        """Store how a conversation that is held stands now."""
        ...

    def announce(self, scope: Scope, change: int) -> None:
        """Wake who waits for changes, once this is committed."""
        ...

    def changes(self, number: int, message_ids: Sequence[str]) -> dict[str, int]:
        """The change that wrote each of these rows last; rows that are not there are left out."""
        ...

    def put(self, number: int, puts: Sequence[Put], change: int) -> None: ...

    def embed(self, number: int, message_id: str, vector: NDArray[np.float32], change: int) -> None: ...

    def remove(self, number: int, message_ids: Sequence[str]) -> None: ...

    def remove_all(self, number: int) -> None: ...

    def scrub(self) -> None:
        """Leave nothing behind of what was removed, as far as the engine can."""
        ...

    def put_facts(self, number: int, facts: Mapping[str, str]) -> None: ...

    def require_length(self, vector: NDArray[np.float32]) -> None:
        """Raises WrongDimension when the index holds vectors of another length; else no other comes in from now on."""
        ...

    def require_known_length(self, vector: NDArray[np.float32]) -> None:
        """The same for a question, which settles nothing."""
        ...

    def facts(self, scope: Scope) -> dict[str, str]: ...

    def row(self, scope: Scope, message_id: str) -> IndexRow | None: ...

    def rows(
        self, scope: Scope, filters: Filters, *, after_change: int = 0, limit: int | None = None
    ) -> list[IndexRow]: ...

    def latest_per_turn(self, scope: Scope, filters: Filters) -> list[IndexRow]:
        """`since` is exclusive here."""
        ...

    def nearest(self, scope: Scope, vector: NDArray[np.float32], filters: Filters, *, limit: int) -> list[Scored]: ...

    def holding(self, scope: Scope, words: Sequence[str], filters: Filters) -> list[Candidate]:
        """Every row that holds at least one of the words."""
        ...

    def by_id(self, numbers: Sequence[int]) -> dict[int, IndexRow]:
        """Rows by the engine's own numbers, as `Candidate.id` has them."""
        ...
