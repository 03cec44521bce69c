"""Leaving the beginning of the timeline to a summary: where, what it must keep, and the summary that the caller brings.

No model is called here. Nothing is removed either: what is cut is no longer rendered, and still resolves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from sidecar.core import limits
from sidecar.core.artifacts import Artifact
from sidecar.core.blocks import FLAGS, HIDDEN, PATH, SUMMARY, TYPE, Defaults, tell
from sidecar.core.citations import extract
from sidecar.core.compaction import (
    Coverage,
    artifact_digest,
    artifacts_list,
    check_cut,
    choose_cut,
    coverage,
    files_lists,
    is_of,
    tool_outputs,
)
from sidecar.core.entries import BlockTold, Embedded, Entry
from sidecar.core.errors import Refusal, TooLarge
from sidecar.core.mentions import mentions
from sidecar.core.notices import Notice, notice
from sidecar.core.paths import FilePath, Path, PoolPath, parse
from sidecar.core.render import NEVER_SHOWN, as_text, decode, forgotten_by, replacement_of, summary_text
from sidecar.looking import Looker
from sidecar.pacing import Pace
from sidecar.pages import Pages, Sight
from sidecar.recall import recall_as_they_stand
from sidecar.rendering import Rendering
from sidecar.workspace import Workspace

BODIES_AT_ONCE = 32
LOOKS = 1000  # at the disk, for names that only the disk may know

Decided = tuple[Sequence[Entry], dict[str, Any]]


class Compacting:
    """Plans and decides. One compaction at a time: hold `turn` from deciding until it is durable."""

    def __init__(self, workspace: Workspace, looker: Looker, rendering: Rendering) -> None:
        self._workspace = workspace
        self._looker = looker
        self._rendering = rendering
        self.turn = asyncio.Lock()

    async def plan(self, sight: Sight, keep_recent_tokens: int) -> dict[str, Any]:
        """`{cut, text, digest, covered_turn_ids, split_turn_id?}`; `cut` is None when nothing is to be cut.

        Raises TooLarge when the text to summarise is more than a message can carry.
        """
        async with self._rendering.pages(sight) as pages:
            await pages.settle()
            heads, start = self._workspace.timeline.heads, pages.start
            cut = choose_cut(heads, pages.tokens(), start=start, keep=keep_recent_tokens)
            await asyncio.sleep(0)
            if cut is None:
                nothing: dict[str, Any] = {"artifacts": [], "tool_outputs": [], "hidden_blocks": []}
                return {"cut": None, "text": "", "digest": nothing, "covered_turn_ids": []}
            before = await self._summary()
            covered = coverage(heads, start=start, cut=cut, before=before.get("meta") or {})
            await asyncio.sleep(0)
            digest = await self._digest(covered, start=start, cut=cut)
            told = [text async for text in self._texts(pages, cut)]
            await asyncio.sleep(0)
        files = files_lists(self._workspace.timeline, digest["artifacts"], start=start, cut=cut)
        parts = [summary_text(before), *told, *artifacts_list(digest["artifacts"]), *files]
        split = {"split_turn_id": covered.split_turn_id} if covered.split_turn_id is not None else {}
        return {
            "cut": cut,
            "text": "\n\n".join(filter(None, parts)),
            "digest": digest,
            "covered_turn_ids": list(covered.covered_turn_ids),
            **split,
        }

    async def decide(self, cut: int, summary: str, embedding: Sequence[float] | None) -> Decided:
        """The summary as a block at its path, and what is to be said of it.

        Raises Stale for a cut at or before the present one, BadSelector for a block that is no cut point.
        """
        timeline = self._workspace.timeline
        check_cut(timeline, cut)
        start = timeline.kept_from
        before = await self._summary()
        covered = coverage(timeline.heads, start=start, cut=cut, before=before.get("meta") or {})
        await asyncio.sleep(0)
        named, unresolved = await self._named(summary, covered.path)
        digest = await self._digest(covered, start=start, cut=cut)
        forgotten = [path for path in await self._in_sight(before, covered, cut) if path not in named]
        meta: dict[str, Any] = {
            "covered_turn_ids": list(covered.covered_turn_ids),
            "cut": cut,
            "compaction_digest": digest | {"forgotten": forgotten, "unresolved": unresolved},
        }
        if covered.split_turn_id is not None:
            meta["split_turn_id"] = covered.split_turn_id
        block = {"type": SUMMARY, "author": "system", "path": covered.path, "text": summary, "meta": meta}
        told = await self._looker.off_loop(tell, block, Defaults(covered.named_after, time.time()))
        check_cut(timeline, cut)
        entries: list[Entry] = [BlockTold(told)]
        if embedding is not None:
            entries.append(Embedded(covered.named_after, SUMMARY, tuple(embedding)))
        return entries, {"path": covered.path, "cut": cut, "notices": _notices(forgotten, unresolved)}

    async def _summary(self) -> dict[str, Any]:
        """The latest summary as it stands, or an empty block."""
        number = self._workspace.timeline.summary
        return {} if number is None else (await self._blocks([number]))[0]

    async def _blocks(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        return await recall_as_they_stand(self._workspace, self._looker, numbers)

    async def _texts(self, pages: Pages, cut: int) -> AsyncIterator[str]:
        """What the agent sees of the blocks before the cut, message by message."""
        room = limits.MESSAGE_BYTES
        for message in (pages.lead or [])[-pages.restored :] if pages.restored else []:
            yield as_text(message)
        for index in range(pages.page_of(cut - 1) + 1):
            messages = decode(await pages.body(index))
            whole = pages.messages_before(cut, index)
            for message in islice(messages, whole):
                text = as_text(message)
                room -= len(text)
                if room < 0:
                    raise TooLarge("the text to summarise", "ask for less of it with a larger keep_recent_tokens")
                yield text
            await asyncio.sleep(0)

    # What a summary must keep

    async def _artifacts(self, covered: Coverage, *, start: int, cut: int) -> AsyncIterator[Artifact]:
        turns = frozenset(filter(None, (*covered.covered_turn_ids, covered.split_turn_id)))
        pace = Pace()
        for artifact in self._workspace.artifacts:
            await pace.rest()
            if is_of(artifact, turns, start=start, cut=cut):
                yield artifact

    async def _digest(self, covered: Coverage, *, start: int, cut: int) -> dict[str, Any]:
        """`{artifacts, tool_outputs, hidden_blocks}` of the blocks from `start` to the cut."""
        timeline = self._workspace.timeline
        artifacts = self._artifacts(covered, start=start, cut=cut)
        digests = [artifact_digest(artifact, timeline.tools) async for artifact in artifacts]
        await asyncio.sleep(0)
        outputs = tool_outputs(timeline, start=start, cut=cut)
        await asyncio.sleep(0)
        return {
            "artifacts": digests,
            "tool_outputs": outputs,
            "hidden_blocks": await self._hidden(start=start, cut=cut),
        }

    async def _hidden(self, *, start: int, cut: int) -> list[dict[str, Any]]:
        """What is hidden, a row per path: how many blocks, and the first text that stands in their place."""
        heads = self._workspace.timeline.heads
        numbers = [n for n in range(start, cut) if heads[n][FLAGS] & HIDDEN and heads[n][TYPE] != NEVER_SHOWN]
        rows: dict[str, dict[str, Any]] = {}
        for at in range(0, len(numbers), BODIES_AT_ONCE):
            some = numbers[at : at + BODIES_AT_ONCE]
            for number, block in zip(some, await self._blocks(some), strict=True):
                path = heads[number][PATH]
                named = {"path": path} if path else {"index": number}
                row = rows.setdefault(path or str(number), {**named, "blocks": 0})
                row["blocks"] += 1
                if words := replacement_of(block):
                    row.setdefault("replacement_text", words)
        return list(rows.values())

    # What a summary names

    async def _in_sight(self, before: Mapping[str, Any], covered: Coverage, cut: int) -> dict[str, None]:
        """The artifacts that the agent may know of before a compaction: of all that is covered, or in the summary."""
        told = [artifact async for artifact in self._artifacts(covered, start=0, cut=cut)]
        names = [artifact.path.logical for artifact in told]
        earlier, _ = await self._named(str(before.get("text") or ""), "")
        names += sorted(path for path in earlier if self._workspace.artifacts.get(path) is not None)
        names += forgotten_by(before)
        return dict.fromkeys(name for name in names if name is not None)

    async def _named(self, summary: str, own: str) -> tuple[set[str], list[str]]:
        """The logical paths that a summary names, and what it names in vain."""
        named: set[str] = set()
        vain: dict[str, None] = {}
        pace = Pace()
        for mention in mentions(summary, lambda path: self._resolves(path, own)):
            await pace.rest()
            logical = mention.path.logical if mention.path is not None else None
            if logical is None:
                vain[mention.text] = None
            else:
                named.add(logical)
        lost = [text for at, text in enumerate(vain) if at >= LOOKS or not await self._is_on_disk(text)]
        sids = self._workspace.pool.sids
        unknown = [sid for sid in extract(summary, "text/markdown", sids) if self._workspace.pool.get(sid) is None]
        return named, [*lost, *(f"[[S:{sid}]]" for sid in unknown)]

    def _resolves(self, path: Path, own: str) -> bool:
        match path:
            case FilePath():
                artifact = self._workspace.artifact(path)
                return artifact is not None and bool(artifact.versions)
            case PoolPath(numbers):
                selection = numbers.select(self._workspace.pool.sids)
                return bool(selection.found) and not selection.missing and not numbers.malformed
            case _:
                return path.logical == own or bool(self._workspace.timeline.at(path.logical))

    async def _is_on_disk(self, text: str) -> bool:
        """Whether a file is there that nobody registers, such as a log."""
        try:
            path = parse(text)
            return isinstance(path, FilePath) and await self._looker.look_at(path) is not None
        except Refusal:
            return False


def _notices(forgotten: Sequence[str], unresolved: Iterable[str]) -> list[Notice]:
    told = [notice("refs_forgotten", missing=list(forgotten))] if forgotten else []
    lost = list(unresolved)
    return told + ([notice("refs_unresolved", missing=lost)] if lost else [])
