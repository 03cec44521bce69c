"""What calls made gets its visibility, its number and its blocks; of very much of it, some at a time.

All that one change settles is decided, journalled and applied without a pause, while nobody else is served. So what a
call or a turn made beyond `WHOLE` files is settled ahead of its end, `PIECE` files in each change.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any

from sidecar.core.artifacts import Artifact, Visibility
from sidecar.core.blocks import Defaults, tell
from sidecar.core.citations import extract
from sidecar.core.entries import BlockTold, Entry, FileSeen, SourceSet
from sidecar.core.happened import Call
from sidecar.core.paths import parse_physical
from sidecar.core.registration import Settled, in_order, settling, told_visibility
from sidecar.core.told_blocks import content_block, digest_block, digest_of
from sidecar.hosting import Hosting
from sidecar.looking import Looker
from sidecar.pacing import at_once
from sidecar.produced import as_on_disk, sha256_on_disk
from sidecar.reading import Held, Reader
from sidecar.workspace import Workspace

WHOLE, PIECE = 1000, 250  # files
ROUNDS = 5  # of settling ahead, when ever more is made meanwhile

Made = Sequence[tuple[Artifact, Visibility]]
Record = dict[str, Any]
Blocks = dict[str, tuple[Mapping[str, Any], Held, list[Entry]]]
"""By physical path: a digest and a content, and the blocks that tell of them."""
_NOT_HELD = Held()


class Settling:
    """Decides what becomes of what calls made. What decides answers the entries to stage."""

    def __init__(
        self, workspace: Workspace, looker: Looker, reader: Reader, hosting: Hosting, *, eligible: Sequence[str]
    ) -> None:
        self._workspace = workspace
        self._looker = looker
        self._reader = reader
        self._hosting = hosting
        self._eligible = eligible

    async def ahead(
        self,
        made: Callable[[], Iterable[Artifact]],
        decide: Callable[[Sequence[Artifact]], Sequence[Entry]],
        place: Callable[[Artifact], int],
    ) -> bool:
        """Have most of what was `made` decided and staged some at a time, by `place` and path, when it is very much.

        Answers whether it was. What is settled meanwhile, or has gone, is left out; of what comes meanwhile it is asked
        again, a few times. Raises what staging raises.
        """
        workspace = self._workspace
        for round_ in range(ROUNDS):
            order = await self._looker.off_loop(_placed, list(made()), place)
            if len(order) <= WHOLE:
                return round_ > 0
            for at in range(0, len(order) - PIECE, PIECE):
                paths = [one.path for one in order[at : at + PIECE]]
                while workspace.arriving([path.physical for path in paths]):
                    await workspace.stage()  # settling an older state would bury the newer one
                began = time.monotonic()
                known = (workspace.pending.get(path.logical or "") for path in paths)
                pending = [artifact for artifact in known if artifact is not None]
                entries = decide(pending) if pending else ()
                if entries:
                    await workspace.stage(*entries)
                    await asyncio.sleep(time.monotonic() - began)  # half of the time is for others
        return True

    async def abandon(self, begun: Callable[[], None]) -> bool:
        """Settle ahead what open calls made, as `abandoned` settles the rest of it when their turn ends.

        `begun` is called before anything is settled.
        """

        def decide(some: Sequence[Artifact]) -> Sequence[Entry]:
            begun()
            return self.abandoned(some, time.time())

        owners = self._owners()
        return await self.ahead(self._workspace.pending.values, decide, lambda one: owners.get(one.owner, len(owners)))

    def abandoned(self, pending: Iterable[Artifact], now: float) -> list[Entry]:
        """What open calls made that will not end, and what is nobody's: for all, unless it was told to be internal."""
        owners = self._owners()
        mine = sorted((one for one in in_order(pending) if one.owner in owners), key=lambda one: owners[one.owner])
        entries = at_once(self._settled([(one, told_visibility(one), one.owner) for one in mine], now))
        seen = [entry for entry in entries if isinstance(entry, FileSeen) and entry.visibility == "external"]
        for entry in seen:
            entries += self._hosting.wanted(parse_physical(entry.fact.path), entry.fact.sha256)
        return entries

    def _owners(self) -> dict[str, int]:
        """The open calls in order, and nobody after them."""
        return {owner: at for at, owner in enumerate([*(one.tool_call_id for one in self._workspace.open_calls), ""])}

    def of_call(
        self,
        call: Call,
        made: Made,
        others: Sequence[Artifact],
        now: float,
        *,
        held: Mapping[str, Held],
        descriptions: Mapping[str, str],
        blocks: Blocks,
    ) -> Generator[None, None, tuple[list[Entry], list[Record]]]:
        """Settle, number, tell and host what a call made, in order of path, and `others`, which no call claims.

        Answers the entries, and the records of what it made; a pause is possible at every file. `descriptions` are by
        physical path. `blocks` are used again where they still fit.
        """
        made = sorted(made, key=lambda pair: pair[0].path.physical.encode())
        settled: list[Settled] = [(artifact, visibility, call.tool_call_id) for artifact, visibility in made]
        nobodys: list[Settled] = [(artifact, "external", "") for artifact in in_order(others)]
        settled += nobodys
        entries = yield from self._settled(settled, now)
        sids = {entry.row["artifact_path"]: entry.row["sid"] for entry in entries if isinstance(entry, SourceSet)}
        records: list[Record] = []
        for artifact, visibility in made:
            physical = artifact.path.physical
            content = held.get(sha256_on_disk(artifact), _NOT_HELD)
            record = self._record(artifact, visibility, call, sids, content)
            record |= {"description": descriptions[physical]} if physical in descriptions else {}
            records.append(record)
            digest, known = digest_of(record), blocks.get(physical)
            if known is None or known[0] != digest or known[1] is not content:
                known = blocks[physical] = (digest, content, _blocks_of(call, digest, content, now))
            entries += known[2]
            yield
        for artifact, visibility, _ in settled:
            if visibility == "external":
                entries += self._hosting.wanted(artifact.path, sha256_on_disk(artifact) or None)
                yield
        return entries, records

    def _settled(self, made: Iterable[Settled], now: float) -> Generator[None, None, list[Entry]]:
        workspace = self._workspace
        return settling(made, artifacts=workspace.artifacts, pool=workspace.pool, eligible=self._eligible, ts=now)

    def _record(
        self, artifact: Artifact, visibility: Visibility, call: Call, sids: Mapping[str, int], content: Held
    ) -> Record:
        """The artifact as it will stand when the end of its call is applied."""
        record = self._reader.record(as_on_disk(artifact))
        sid = sids.get(record["artifact_path"], artifact.sid)
        # The digest that is told beside it makes it an artifact both told and seen.
        record |= {
            "visibility": visibility,
            "origin": "both",
            "tool_call_id": call.tool_call_id,
            "tool_id": call.tool_id,
        }
        if content.text is not None and not record["sources_used"]:
            record["sources_used"] = extract(content.text, record["mime"], self._workspace.pool.sids)
        return record | ({"sid": sid} if sid is not None else {})


def told(block: Mapping[str, Any], turn_id: str, now: float) -> BlockTold:
    """A block of ours, ready to be staged."""
    return BlockTold(tell(block, Defaults(turn_id, now)))


def _placed(made: list[Artifact], place: Callable[[Artifact], int]) -> list[Artifact]:
    return sorted(in_order(made), key=place)


def _blocks_of(call: Call, digest: Mapping[str, Any], content: Held, now: float) -> list[Entry]:
    """The digest of what a call made, and its content."""
    said = digest_block(digest, turn_id=call.turn_id, tool_call_id=call.tool_call_id, tool_id=call.tool_id)
    block = content_block(digest, content=content.text, packed=content.packed, tool_id=call.tool_id)
    return [told(said, call.turn_id, now), told(block, call.turn_id, now)]
