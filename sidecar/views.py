"""Views of the timeline for readers without a client, and the way in from foreign ones.

`timeline.json` is written whole, at rest and when asked, never once per block; what the older generation reads,
`context.json` and `sources_pool.json`, when asked and at the end of a turn. They hold no hosting field and no contents
of internal files, because a sandbox may own OUT_DIR. Once a journal exists no view is read back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from sidecar.context.view import ContextView
from sidecar.core import limits
from sidecar.core.blocks import (
    FLAGS,
    HOSTING,
    HOSTING_FIELDS,
    INTERNAL,
    PATH,
    SUMMARY,
    TYPE,
    Defaults,
    digest_in,
    is_shallow,
    iso,
    tell,
)
from sidecar.core.compaction import cut_summary
from sidecar.core.context_blocks import TYPES, completed, files_of_row, without_contents
from sidecar.core.context_file import CONTEXT_FILE, POOL_FILE, as_timeline
from sidecar.core.entries import BlockTold, Entry, Noticed, Remembered, SourceSet
from sidecar.core.errors import NotFound, Refusal
from sidecar.core.happened import Happened
from sidecar.core.hosting import without_hosting
from sidecar.core.notices import notice
from sidecar.core.paths import is_turn_id
from sidecar.core.sources import complete
from sidecar.core.standing import changes_since, with_changes
from sidecar.looking import Looker
from sidecar.pacing import unhurried
from sidecar.pieces import gathered, listed, spliced
from sidecar.ports import OutDir
from sidecar.workspace import Workspace

log = logging.getLogger(__name__)

FILE = "timeline.json"
QUIET_SECONDS = 1.0
LONGEST_SECONDS = 15.0
LONGEST_REST = 60.0  # seconds
FOREIGN_BYTES = limits.GIB

_FACTS = (
    "conversation_title", "conversation_started_at", "cache_last_touch_at", "cache_last_ttl_seconds",
    "last_known_feedback_ts",
)  # fmt: skip


_ROW_OF_INTERNAL = ("sid", "source_type", "physical_path", "artifact_path", "local_path", "mime", "size_bytes")


class Views:
    """Keeps the views current without being in anybody's way."""

    def __init__(self, workspace: Workspace, looker: Looker, outdir: OutDir) -> None:
        self._workspace = workspace
        self._looker = looker
        self._outdir = outdir
        self._changed_at = 0.0
        self._written: dict[str, int] = {}  # name of a view -> the revision that it shows
        context = ContextView(workspace, self._shown, self._shown_row)
        self._made: dict[str, Callable[[], Iterator[bytes]]] = {
            FILE: lambda: self._pieces(len(workspace.timeline), workspace.pool.all_rows()),
            CONTEXT_FILE: context.pieces,
            POOL_FILE: context.pool_pieces,
        }
        self._writing = asyncio.Lock()
        self._stirred = asyncio.Event()
        workspace.listeners.append(self._hear)

    async def run(self) -> None:
        """Write timeline.json whenever the timeline has been quiet for a second, until cancelled.

        A long one takes its time, and is written the less often.
        """
        while True:
            await self._stirred.wait()
            await self._rest()
            self._stirred.clear()
            began = time.monotonic()
            try:
                await self.refresh()
            except (OSError, Refusal) as fault:
                log.warning("timeline.json was not written: %s", fault)
            await asyncio.sleep(rest_after(time.monotonic() - began))

    async def flush(self) -> list[str]:
        """Write all views now. Answers their files, relative to OUT_DIR. Raises OSError or UnsafePath."""
        for name in self._made:
            await self._write(name)
        return list(self._made)

    async def refresh(self) -> None:
        """Write timeline.json now, and nothing else. Raises OSError or UnsafePath."""
        await self._write(FILE)

    async def _write(self, name: str) -> None:
        async with self._writing:
            revision = self._workspace.revision
            if revision != self._written.get(name) or not await self._looker.off_loop(self._stands, name):
                await self._looker.write_long(self._outdir.write_whole, name, unhurried(gathered(self._made[name]())))
                self._written[name] = revision

    def _stands(self, name: str) -> bool:
        return self._outdir.key(name) is not None

    async def _rest(self) -> None:
        """Wait until nothing changed for a second, though not for ever under a steady stream."""
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                while await self._changes_within(QUIET_SECONDS):
                    pass
        except TimeoutError:
            pass

    async def _changes_within(self, seconds: float) -> bool:
        await asyncio.sleep(seconds)
        return time.monotonic() - self._changed_at < seconds

    def _hear(self, happened: Happened) -> None:
        if happened.blocks or happened.sources or happened.artifacts:
            self._changed_at = time.monotonic()
            self._stirred.set()

    def _pieces(self, count: int, rows: list[dict[str, Any]]) -> Iterator[bytes]:
        """The view in pieces, so that a long timeline is never held whole. Runs in a hand, reads append-only state."""
        workspace = self._workspace
        yield b'{"version":1,"ts":' + orjson.dumps(iso(time.time())) + b',"blocks":'
        bodies = zip(range(count), workspace.bodies_in_turn(range(count)), strict=True)
        yield from spliced(self._shown(number, body) for number, body in bodies)
        last = workspace.timeline.heads[count - 1][2] if count else None
        yield b',"sources_pool":'
        yield from listed(rows, self._shown_row)
        tail = {
            "turn_ids": list(workspace.turn_ids),
            "last_activity_at": iso(last) if last is not None else None,
            **{key: workspace.facts.get(key) for key in _FACTS},
        }
        yield b"," + orjson.dumps(tail)[1:]

    def _shown(self, number: int, body: bytes) -> bytes:
        head = self._workspace.timeline.heads[number]
        timeline = self._workspace.timeline
        about = (head[PATH], *timeline.abouts.get(number, ()))
        internal = bool(head[FLAGS] & INTERNAL) or not all(map(self._is_external, about))
        changes = changes_since(timeline, self._workspace.artifacts, number)
        untouched = not internal and not head[FLAGS] & HOSTING and head[TYPE] != SUMMARY
        if untouched and HOSTING_FIELDS.issuperset(changes):
            return body
        block = with_changes(orjson.loads(body), changes)
        if internal and digest_in(block) is None:
            block = {key: value for key, value in block.items() if key not in ("text", "base64")}
            block = without_contents(block) if head[TYPE] in TYPES else block
        return orjson.dumps(without_hosting(cut_summary(block, self._may_name)))

    def _shown_row(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row as whoever opens the file may see it: of an internal artifact its number and its path alone."""
        if all(map(self._is_external, self._files_of(row))):
            return without_hosting(row)
        return {key: row[key] for key in _ROW_OF_INTERNAL if key in row}

    def _files_of(self, row: dict[str, Any]) -> Iterable[str]:
        """The artifacts that a row is. Most rows of files name the same one by each of their paths, in full."""
        logical = row.get("artifact_path")
        artifact = self._workspace.artifacts.get(logical) if isinstance(logical, str) else None
        if artifact is not None:
            physical = artifact.path.physical
            if row.get("physical_path") == physical and row.get("local_path") in (None, "", physical):
                return (artifact.path.logical or "",)
        return files_of_row(row)

    def _is_external(self, logical: str) -> bool:
        artifact = self._workspace.artifacts.get(logical)
        return artifact is None or artifact.visibility == "external"

    def _may_name(self, name: str | int) -> bool:
        """Whether a summary's digest may name this to whoever opens the file, who may be anybody."""
        timeline = self._workspace.timeline
        if isinstance(name, str) and name.startswith("fi:"):
            return self._is_external(name)
        numbers = timeline.at(name) if isinstance(name, str) else range(name, min(name + 1, len(timeline)))
        return not numbers or not all(
            timeline.heads[one][FLAGS] & INTERNAL or not all(map(self._is_external, timeline.abouts.get(one, ())))
            for one in numbers
        )


def rest_after(seconds: float) -> float:
    """How long nothing is written by itself after it took so long: so it is a tenth of the time at most."""
    return min(9 * seconds, LONGEST_REST)


def read_foreign(outdir: OutDir, *, trusted: bool) -> list[Entry]:
    """The entries that a timeline.json found in OUT_DIR stands for, when the workspace has no journal yet.

    Where there is none, those of a context.json and sources_pool.json. What cannot be taken in is left out and told in
    a notice; a file that is no timeline at all is an empty one. Blocking.
    """
    try:
        told = _read_view(outdir, FILE)
        if told is None:
            context, pool = _read_view(outdir, CONTEXT_FILE), _read_view(outdir, POOL_FILE)
            told = as_timeline(context or {}, pool or {}) if context is not None or pool is not None else None
    except ValueError as fault:
        return [Noticed(notice("timeline_malformed", reason=str(fault)))]
    return _Foreign(told, trusted=trusted).entries() if told is not None else []


def _read_view(outdir: OutDir, name: str) -> dict[str, Any] | None:
    """What a view holds, or None where there is none. Raises ValueError for what is no view."""
    try:
        with outdir.open(name) as stream:
            raw = stream.read(FOREIGN_BYTES + 1)
    except NotFound:
        return None
    except (Refusal, OSError) as fault:
        raise ValueError(str(fault)) from fault
    try:
        told = orjson.loads(raw) if len(raw) <= FOREIGN_BYTES else None
    except orjson.JSONDecodeError:
        told = None
    if not isinstance(told, dict):
        raise ValueError(f"{name} is no JSON object")
    return told


class _Foreign:
    """Takes a foreign timeline apart, counting what does not fit."""

    def __init__(self, told: Mapping[str, Any], *, trusted: bool) -> None:
        self._told = told
        self._trusted = trusted
        self._left_out = 0
        self._hosting = 0

    def entries(self) -> list[Entry]:
        entries: list[Entry] = [*self._blocks(), *self._rows()]
        facts = {key: self._told[key] for key in _FACTS if self._told.get(key) is not None}
        facts = {key: fact for key, fact in facts.items() if is_shallow(fact)}
        turns = [turn for turn in _list(self._told.get("turn_ids")) if isinstance(turn, str) and is_turn_id(turn)]
        if turns:
            facts["turn_ids"] = turns
        if facts:
            entries.append(Remembered(facts))
        if self._left_out:
            entries.append(Noticed(notice("timeline_malformed", count=self._left_out)))
        if self._hosting:
            entries.append(Noticed(notice("hosting_ignored", fields=sorted(HOSTING_FIELDS), count=self._hosting)))
        return entries

    def _blocks(self) -> Iterator[Entry]:
        turn = "turn_0"  # a block of before there were turns
        for block in _list(self._told.get("blocks")):
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                self._left_out += 1
                continue
            try:
                block = completed(block, turn) if block["type"] in TYPES else block
                told = tell(self._without_hosting(block), Defaults(turn, 0.0))
            except (Refusal, TypeError, ValueError, KeyError, AttributeError):
                self._left_out += 1
                continue
            turn = told.head[1]
            yield BlockTold(told)

    def _rows(self) -> Iterator[Entry]:
        taken: set[int] = set()
        unnumbered: list[dict[str, Any]] = []
        for row in _list(self._told.get("sources_pool")):
            if not isinstance(row, dict):
                self._left_out += 1
                continue
            try:
                whole = complete(self._without_hosting(row))
            except (Refusal, TypeError, ValueError, KeyError, AttributeError):
                self._left_out += 1
                continue
            sid = whole.get("sid")
            if isinstance(sid, int) and not isinstance(sid, bool) and 1 <= sid <= 2**53 and sid not in taken:
                taken.add(sid)
                yield SourceSet(whole)
            else:
                unnumbered.append(whole)
        for sid, whole in enumerate(unnumbered, start=max(taken, default=0) + 1):
            yield SourceSet({**whole, "sid": sid})

    def _without_hosting(self, value: dict[str, Any]) -> dict[str, Any]:
        if self._trusted:
            return value
        cleaned = without_hosting(value)
        self._hosting += cleaned != value
        return cleaned


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
