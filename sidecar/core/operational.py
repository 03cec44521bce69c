"""The index over the blocks of the older context: which turn has which artifacts, slots, events and budget.

It is made of the heads of blocks alone, so that keeping it current costs a look at what is new. What a block holds is
read when somebody asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.core.blocks import FLAGS, PATH, SHOWN, TYPE, Head
from sidecar.core.context_blocks import TYPES, place_at


class Operational:
    """Numbers of blocks by turn and name; of a record told again, the latest."""

    __slots__ = ("artifacts", "budgets", "events", "seen", "slots")

    def __init__(self) -> None:
        self.artifacts: dict[str, dict[str, int]] = {}
        self.slots: dict[str, dict[str, int]] = {}
        self.events: dict[str, list[int]] = {}
        self.budgets: dict[str, int] = {}
        self.seen = 0  # how many heads it knows

    def catch_up(self, heads: Sequence[Head]) -> None:
        """Take in the heads that are new; heads are only ever added."""
        for number, head in enumerate(heads[self.seen :], start=self.seen):
            if head[TYPE] in TYPES and not head[FLAGS] & SHOWN:
                self._add(number, head)
        self.seen = len(heads)

    def _add(self, number: int, head: Head) -> None:
        place = place_at(head[PATH])
        if place is None:
            return  # told under this type before it had a meaning
        match place.kind:
            case "artifact":
                self.artifacts.setdefault(place.turn_id, {})[place.name] = number
            case "slot":
                self.slots.setdefault(place.turn_id, {})[place.name] = number
            case "event":
                self.events.setdefault(place.turn_id, []).append(number)
            case "budget":
                self.budgets[place.turn_id] = number

    def artifact(self, turn_id: str, name: str) -> int | None:
        return self.artifacts.get(turn_id, {}).get(name)

    def slot(self, turn_id: str, name: str) -> int | None:
        return self.slots.get(turn_id, {}).get(name)

    def of_turn(self, turn_id: str) -> list[int]:
        """Every block of a turn that counts, in the order told."""
        numbers = [*self.artifacts.get(turn_id, {}).values(), *self.slots.get(turn_id, {}).values()]
        numbers += self.events.get(turn_id, [])
        numbers += [self.budgets[turn_id]] if turn_id in self.budgets else []
        return sorted(numbers)
