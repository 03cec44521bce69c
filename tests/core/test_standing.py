"""A block as it stands: what was told, and what became of it since."""

from __future__ import annotations

from typing import Any

import orjson

from sidecar.core.blocks import Defaults, tell
from sidecar.core.entries import BlocksHidden, BlocksShown, BlockTold, FileSeen, Hosted
from sidecar.core.happened import Happened
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.standing import as_it_stands, changes_since, with_changes
from sidecar.core.state import State

SHA = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"  # of "foo"
HOSTING = {"hosted_uri": "s3://b/k", "rn": "ef:x", "key": "k"}


class World:
    """A state that everything is applied to at once, with the JSON of its blocks."""

    def __init__(self) -> None:
        self.state = State()
        self.bodies: list[bytes] = []

    def apply(self, *entries: Any) -> None:
        for entry in entries:
            mark = self.state.revision + 1
            self.state.decide(entry, mark)
            self.state.apply(mark, entry, Happened())

    def tell(self, **block: Any) -> int:
        told = tell({"type": "react.tool.result", **block}, Defaults("turn_1", 1.0))
        self.apply(BlockTold(told))
        self.bodies.append(told.body)
        return len(self.bodies) - 1

    def see(self, path: str = "turn_1/files/a.txt", sha256: str = SHA) -> None:
        fact = FileFact(path, StatKey(1, 2, 3, 4, 5), sha256, "text/plain", kept=True)
        self.apply(FileSeen(fact, 1.0, "", "external"))

    def meta(self, number: int) -> dict[str, Any]:
        changes = changes_since(self.state.timeline, self.state.artifacts, number)
        return orjson.loads(as_it_stands(self.bodies[number], changes))["meta"]


def test_an_untouched_block_is_answered_byte_for_byte() -> None:
    world = World()
    number = world.tell(text="as told", odd=[1, {"x": None}])
    assert changes_since(world.state.timeline, world.state.artifacts, number) == {}
    assert as_it_stands(world.bodies[number], {}) is world.bodies[number]


def test_a_hidden_block_says_so_and_what_stands_in_its_place() -> None:
    world = World()
    number = world.tell(text="long", meta={"mine": 1})
    world.apply(BlocksHidden((number,), "HIDDEN — short"))
    assert world.meta(number) == {"mine": 1, "turn_id": "turn_1", "hidden": True, "replacement_text": "HIDDEN — short"}


def test_a_block_that_was_told_hidden_can_be_shown_again() -> None:
    world = World()
    number = world.tell(text="long", hidden=True, replacement_text="gone")
    world.apply(BlocksShown((number,)))
    assert world.meta(number) == {"turn_id": "turn_1"}


def test_the_content_of_a_file_that_was_hosted_later_says_where() -> None:
    world = World()
    world.see()
    number = world.tell(path="fi:turn_1.files/a.txt", text="foo", mime="text/plain", meta={"tool_call_id": "tc_1"})
    digest = world.tell(mime="application/json", text='{"artifact_path":"fi:turn_1.files/a.txt"}')
    world.apply(Hosted("turn_1/files/a.txt", SHA, *HOSTING.values()))
    assert world.meta(number).items() >= HOSTING.items()
    assert world.meta(digest).keys().isdisjoint(HOSTING)


def test_a_version_that_is_not_hosted_says_nothing_of_one_that_is() -> None:
    world = World()
    world.see()
    world.apply(Hosted("turn_1/files/a.txt", SHA, *HOSTING.values()))
    newer = world.tell(path="fi:turn_1.files/a.txt", text="other", mime="text/plain", meta={"tool_call_id": "tc_2"})
    assert world.meta(newer).keys().isdisjoint(HOSTING)


def test_changes_take_away_and_add_and_leave_the_rest() -> None:
    block = {"type": "x", "meta": {"a": 1, "b": 2}, "text": "t"}
    assert with_changes(block, {"a": None, "c": 3}) == {"type": "x", "meta": {"b": 2, "c": 3}, "text": "t"}
    assert with_changes(block, {}) is block
