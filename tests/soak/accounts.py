"""What was asked, what was refused and what was promised; at the end, whether every promise was kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from tests.rpc_client import AsyncClient

EXAMPLES, EXAMPLES_EACH = 40, 3
PATHS_AT_ONCE = 200


@dataclass(slots=True)
class Accounts:
    """Every operation by name. `unexpected` is what nobody reckoned with, with the first examples word for word."""

    counts: Counter[str] = field(default_factory=Counter[str])
    refusals: Counter[str] = field(default_factory=Counter[str])
    unexpected: Counter[str] = field(default_factory=Counter[str])
    examples: list[str] = field(default_factory=list[str])
    events: Counter[str] = field(default_factory=Counter[str])
    latencies: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def refused(self, what: str, kind: str) -> None:
        self.refusals[f"{what}: {kind}"] += 1

    def surprised(self, what: str, error: object) -> None:
        key = f"{what}: {type(error).__name__}"
        self.unexpected[key] += 1
        if self.unexpected[key] <= EXAMPLES_EACH and len(self.examples) < EXAMPLES:
            self.examples.append(f"{what}: {error!r}"[:1000])

    def took(self, what: str, began: float) -> None:
        """An operation of the probe that began at this moment of the monotonic clock has just been answered."""
        now = monotonic()
        self.latencies[what].append((now, now - began))


@dataclass(slots=True)
class Ledger:
    """What the daemon acknowledged. `lost` compares it with what a daemon knows now."""

    blocks: dict[int, str] = field(default_factory=dict[int, str])
    files: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    sources: dict[int, str] = field(default_factory=dict[int, str])
    reactions: dict[str, str] = field(default_factory=dict[str, str])
    saved: set[str] = field(default_factory=set[str])
    turns: set[str] = field(default_factory=set[str])

    @property
    def entries(self) -> int:
        return sum(map(len, (self.blocks, self.sources, self.reactions, self.saved, self.turns))) + sum(
            map(len, self.files.values())
        )

    async def lost(self, client: AsyncClient) -> list[str]:
        """One sentence for each thing that was acknowledged and is not there, or is something else."""
        return [
            *await self._lost_blocks(client),
            *await self._lost_files(client),
            *await self._lost_sources(client),
            *await self._lost_of_turns(client),
        ]

    async def _lost_blocks(self, client: AsyncClient) -> list[str]:
        told: list[str] = []
        while True:
            page = await client.call("timeline/blocks", {"since": len(told)})
            told += [block.get("text", "") for block in page["blocks"]]
            if not page["blocks"]:
                break
        return [
            f"block {index} was {text!r} and is {told[index] if index < len(told) else None!r}"
            for index, text in self.blocks.items()
            if index >= len(told) or told[index] != text
        ]

    async def _lost_files(self, client: AsyncClient) -> list[str]:
        lost: list[str] = []
        for path, hashes in self.files.items():
            answer = (await client.ask("artifact/versions", {"path": path})).get("result", {"versions": []})
            known = {version.get("sha256") for version in answer["versions"]}
            lost += [f"{path} had a version {sha256}, known are {sorted(map(str, known))}" for sha256 in hashes - known]
        return lost

    async def _lost_sources(self, client: AsyncClient) -> list[str]:
        rows = (await client.call("sources/list"))["rows"]
        known = {row["sid"]: row.get("url") for row in rows}
        return [
            f"source {sid} was {url}, is {known.get(sid)}" for sid, url in self.sources.items() if known.get(sid) != url
        ]

    async def _lost_of_turns(self, client: AsyncClient) -> list[str]:
        lost: list[str] = []
        for part in _parts(sorted(self.turns)):
            items = (
                await client.call("conversation/recent", {"turn_ids": part, "kinds": ["turn.log"], "limit": 1000})
            )["items"]
            lost += [f"{turn} was saved and has no log" for turn in {*part} - {item.get("turn_id") for item in items}]
            given = await client.call("conversation/reactions", {"turn_ids": part})
            known = {one["turn_id"]: one["text"] for one in given["reactions"]}
            wanted = {turn: self.reactions[turn] for turn in part if turn in self.reactions}
            lost += [
                f"{turn}: {text!r} became {known.get(turn)!r}"
                for turn, text in wanted.items()
                if known.get(turn) != text
            ]
        items = (await client.call("conversation/recent", {"kinds": ["soak.note"], "limit": 1000}))["items"]
        newest = {item["message_id"] for item in items}
        if len(self.saved) <= len(items):
            lost += [f"{message} was saved and is not listed" for message in self.saved - newest]
        return lost


def _parts(names: list[str]) -> Iterable[list[str]]:
    return (names[at : at + PATHS_AT_ONCE] for at in range(0, len(names), PATHS_AT_ONCE))


def kind_of(error: Any) -> str:
    """The kind of a refusal, whichever client met it."""
    return str(getattr(error, "kind", None) or getattr(error, "code", None) or type(error).__name__)
