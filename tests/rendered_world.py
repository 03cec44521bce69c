"""A timeline in memory that is rendered: nothing is slow here, and every read of a block lets others go first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import orjson

from sidecar.compacting import Compacting
from sidecar.core.blocks import Defaults, tell
from sidecar.core.entries import BlockTold, Entry, FileSeen
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.paths import FilePath
from sidecar.pages import Room, Sight
from sidecar.rendering import Asked, Rendering
from sidecar.server.methods.seeing import sees_head, sees_logical
from sidecar.server.wire import encode_in_pieces
from sidecar.workspace import Workspace
from tests.memory_journal import MemoryJournal

T = TypeVar("T")

SMALL = Room(blocks=3, held_bytes=600)
TURNS = ("turn_1", "turn_2")
FILES = tuple(f"fi:{turn}.files/{name}" for turn in TURNS for name in "ab")


class Counting(MemoryJournal):
    """Counts the bodies that were asked of it, and is never read without waiting."""

    asked = 0

    def bodies(self, seqs: Sequence[int]) -> Iterator[bytes]:
        self.asked += len(seqs)
        return super().bodies(seqs)

    def bodies_now(self, seqs: Sequence[int]) -> list[bytes] | None:
        return None  # there is always a commit under way


class Here:
    """A looker that works where it is asked, after everybody else had a turn."""

    async def off_loop(self, work: Callable[..., T], *args: Any) -> T:
        await asyncio.sleep(0)
        return work(*args)

    async def look_at(self, path: FilePath) -> None:
        """Nothing is on a disk."""


class World:
    def __init__(self) -> None:
        self.journal = Counting()
        self.workspace = Workspace(self.journal)
        self.rendering = self.from_scratch()

    def from_scratch(self) -> Rendering:
        return self.rendered_in(SMALL)

    def rendered_in(self, room: Room) -> Rendering:
        return Rendering(self.workspace, Here(), room=room)  # type: ignore[arg-type]

    def compacting(self) -> Compacting:
        return Compacting(self.workspace, Here(), self.rendering)  # type: ignore[arg-type]

    def sight(self, role: str = "runtime") -> Sight:
        return Sight(role, partial(sees_head, role, self.workspace), partial(sees_logical, role, self.workspace))

    async def stage(self, *entries: Entry) -> None:
        await self.workspace.stage(*entries)

    async def tell(self, *blocks: dict[str, Any]) -> None:
        await self.stage(*(told(**block) for block in blocks))

    async def render(self, rendering: Rendering | None = None, role: str = "runtime") -> dict[str, Any]:
        answer = await (rendering or self.rendering).render(self.sight(role), Asked())
        return orjson.loads(b"".join(encode_in_pieces(answer, "runtime")))

    async def texts(self, role: str = "runtime") -> list[str]:
        """The last line of every message."""
        return [message["text"].splitlines()[-1] for message in (await self.render(role=role))["messages"]]


def told(**block: Any) -> BlockTold:
    return BlockTold(tell({"type": "note", "turn_id": "turn_1", **block}, Defaults("turn_1", 1.0)))


def seen(path: str, visibility: Any, sha256: str = "aa") -> FileSeen:
    return FileSeen(FileFact(path, StatKey(1, 2, 3, 4, 5), sha256, "text/plain"), 1.0, "", visibility)


def digest(path: str, visibility: str) -> str:
    return orjson.dumps({"artifact_path": path, "visibility": visibility, "mime": "text/plain"}).decode()
