"""`context/map_slots`: what was made becomes a deliverable (seed 002, Slot Mapping)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar.context.finding import Finder
from sidecar.context.found import Found
from sidecar.context.records import Record, Records
from sidecar.core.citations import extract
from sidecar.core.context_blocks import Place, event_block, files_of_row, place_at, slot_block
from sidecar.core.entries import Entry
from sidecar.core.notices import Notice, notice
from sidecar.core.older_paths import OlderRefusal
from sidecar.core.older_values import text_of, used_by
from sidecar.core.paths import FilePath
from sidecar.core.slotting import Source, Wanted, best_summary, implied_text, slot_value
from sidecar.pacing import Pace
from sidecar.settling import told
from sidecar.within import require_turn
from sidecar.workspace import Workspace

_STEPS = 8  # how far back a summary is looked for
_RECORDS = 1000  # that many records are looked at for the summaries of one request


@dataclass(frozen=True, slots=True)
class Asked:
    """One slot, the path of what goes into it, and what the contract says of it."""

    slot: str
    path: str
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Mapped:
    """One slot that something was mapped into. `mapped_from` is in today's names.

    `about` are the artifacts that it shows something of: who must not see these must not see the slot.
    """

    slot: str
    mapped_from: str
    value: Mapping[str, Any]
    about: Sequence[str] = ()


_Met = dict[str, Record | None]
"""By path: what a request has seen of the records that its summaries come from."""


class SlotMapper:
    """Decides what slots become; the open turn's are told."""

    def __init__(self, workspace: Workspace, records: Records, finder: Finder) -> None:
        self._workspace = workspace
        self._records = records
        self._finder = finder

    async def prepare(self, wanted: Sequence[Asked], contract: Sequence[str]) -> tuple[list[Mapped], list[Notice]]:
        """What each slot becomes; one that nothing can be mapped into is a notice. `contract` names what is due."""
        mapped: list[Mapped] = []
        notices: list[Notice] = []
        pace = Pace()
        met: _Met = {}
        for one in wanted:
            await pace.rest()
            try:
                found = await self._as_artifact(await self._finder.find(one.path))
                source = await self._source(found, met)
                value = slot_value(source, one.wanted)
            except OlderRefusal as refusal:
                notices.append(self._unmapped(one, f"{refusal.code}: {refusal.message}"))
                continue
            if value is None:
                notices.append(self._unmapped(one, "there is neither a file nor a text to map"))
                continue
            if value.get("draft") and not one.wanted.draft:
                notices.append(notice("slot_drafted", name=one.slot, path=found.path))
            mapped.append(Mapped(one.slot, found.path, value, self._about(found)))
        due = [name for name in contract if name not in {one.slot for one in mapped}]
        return mapped, [*notices, *([notice("slots_missing", missing=due)] if due else [])]

    def tell(self, mapped: Sequence[Mapped]) -> tuple[list[Entry], list[dict[str, Any]]]:
        """The blocks that say so, and the slots as they are answered. Raises UnknownTurn."""
        turn, now = require_turn(self._workspace), time.time()
        entries: list[Entry] = []
        answered: list[dict[str, Any]] = []
        for one in mapped:
            meta = {"about": list(one.about)} if one.about else None
            block = slot_block(turn, one.slot, one.value, content_lineage=[one.mapped_from], meta=meta)
            fields = {"slot": one.slot, "mapped_from": one.mapped_from, "draft": bool(one.value.get("draft"))}
            entries += [told(block, turn, now), told(event_block(turn, "slot_mapped", fields), turn, now)]
            answered.append(
                {"slot": one.slot, "path": block["path"], "mapped_from": one.mapped_from, "value": one.value}
            )
        return entries, answered

    def _about(self, found: Found) -> list[str]:
        """The artifacts that something found is, or shows something of: a part of it has no path to tell."""
        timeline = self._workspace.timeline
        named = [found.file.logical or ""] if found.file is not None else []
        numbers = timeline.at(found.path)
        # A record told again stands for itself alone; of anything else all that was told may be in the text.
        newest = numbers[-1:] if found.kind in ("artifact", "slot") else numbers
        named += [path for number in newest for path in timeline.abouts.get(number, ())]
        if found.kind == "rows":
            named += [path for row in found.value for path in files_of_row(row)]
        return sorted({path for path in named if path})

    def _unmapped(self, one: Asked, reason: str) -> Notice:
        return notice("slot_not_mapped", name=one.slot, path=self._finder.respelled(one.path), reason=reason)

    async def _as_artifact(self, found: Found) -> Found:
        """`files.<filename>` is the artifact of that file, where its turn was told of one."""
        name = found.record.get("artifact_id") if found.kind == "file" and not found.leaf else None
        if not isinstance(name, str):
            return found
        return await self._finder.find(Place(found.turn_id, "artifact", name).logical)

    async def _source(self, found: Found, met: _Met) -> Source:
        record = found.record
        is_file = found.file is not None and (found.kind != "artifact" or record.get("artifact_kind") == "file")
        is_object = found.leaf in ((), ("value",), ("path",), ("value", "path"))
        held = record.get("value")
        facts: Mapping[str, Any] = held if found.kind == "artifact" and isinstance(held, Mapping) else record
        there = await self._facts(found.file) if is_file and found.file is not None else None
        text = self._text(found, there, is_object=is_object)
        mime = _word(facts, "mime") or (there or {}).get("mime")
        used = used_by(record) or (there or {}).get("sources_used")
        used = used or extract(text, "text/markdown", self._workspace.pool.sids)
        return Source(
            text=text,
            file=found.file if there is not None else None,
            is_file=is_file,
            is_object=is_object,
            mime=mime,
            format=_word(facts, "format") or (there or {}).get("format"),
            size_bytes=(there or {}).get("size_bytes"),
            sources_used=tuple(used),
            summary=await self._summary(record, met, is_file=is_file),
            description=_word(record, "description") or _word(facts, "description"),
        )

    def _text(self, found: Found, there: Mapping[str, Any] | None, *, is_object: bool) -> str:
        if found.is_sliced:
            return text_of(found.value)
        if not is_object:
            return text_of(found.value)
        if found.kind == "artifact":
            return implied_text(found.record) or str((there or {}).get("text") or "")
        return text_of(found.record.get("text") or "")

    async def _facts(self, path: FilePath) -> Mapping[str, Any] | None:
        """What is known of a file that is there, or can be brought; None when it is missing."""
        try:
            return (await self._finder.file(path, ())).record if await self._finder.is_there(path) else None
        except OlderRefusal:
            return None

    async def _summary(self, record: Mapping[str, Any], met: _Met, *, is_file: bool) -> str | None:
        """A file's best summary is that of what it was made of; any other thing's is its own."""
        own = _word(record, "summary")
        if own and not is_file:
            return own
        level = [record]
        seen: set[str] = set()
        for _ in range(_STEPS):
            paths = dict.fromkeys(path for one in level for path in _lineage(one) if path not in seen)
            seen.update(paths)
            level = [one for path in paths if (one := await self._record_at(path, met)) is not None]
            if summary := best_summary(level):
                return summary
        return own

    async def _record_at(self, path: str, met: _Met) -> Record | None:
        """What there is to know of a record on the way to a summary; each is read once, and not too many are."""
        place = place_at(path)
        if place is None or place.kind not in ("artifact", "slot"):
            return None
        if path not in met:
            if len(met) >= _RECORDS:
                return None
            record = await self._read_at(place)
            keys = ("summary", "artifact_kind", "content_lineage")
            met[path] = {key: record[key] for key in keys if key in record} if record is not None else None
        return met[path]

    async def _read_at(self, place: Place) -> Record | None:
        record = await (self._records.artifact if place.kind == "artifact" else self._records.slot)(*place[::2])
        if record is not None and place.kind == "slot":
            value = record.get("value")
            return {**record, "summary": value.get("summary")} if isinstance(value, dict) else record
        return record


def _lineage(record: Mapping[str, Any]) -> list[str]:
    told_of = record.get("content_lineage")
    return [path for path in told_of if isinstance(path, str)] if isinstance(told_of, list) else []


def _word(record: Mapping[str, Any], key: str) -> str | None:
    value = record.get(key)
    return value if isinstance(value, str) and value else None
