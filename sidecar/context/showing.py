"""`context/show_artifacts`: chosen artifacts for the agent's journal, in few words and with at most two pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidecar.context.finding import Finder
from sidecar.context.found import Found
from sidecar.core import limits
from sidecar.core.context_text import artifact_text, clipped, search_text, slot_text
from sidecar.core.errors import Refusal
from sidecar.core.hosting import ALL, without
from sidecar.core.mime import is_packed, mime_by_name
from sidecar.core.older_paths import OlderRefusal
from sidecar.core.older_values import text_of
from sidecar.core.paths import FilePath, parse_physical
from sidecar.pacing import Pace
from sidecar.rehost import Missing, Rehoster

MOST_ATTACHMENTS = 2


@dataclass(slots=True)
class Shown:
    """`items` are `{path, text}`, `attachments` `{path, mime, physical_path}`, `missing` `{path, reason}`."""

    items: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    attachments: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    missing: list[dict[str, str]] = field(default_factory=list[dict[str, str]])


class Shower:
    """Shows things of both generations; paths are answered in today's names."""

    def __init__(self, finder: Finder, rehoster: Rehoster) -> None:
        self._finder = finder
        self._rehoster = rehoster

    async def show(self, paths: Sequence[str]) -> Shown:
        shown = Shown()
        pace = Pace()
        for text in paths:
            await pace.rest()
            try:
                found = await self._finder.find(text)
            except OlderRefusal as refusal:
                shown.missing.append({"path": self._finder.respelled(text), "reason": refusal.code})
                continue
            shown.items.append({"path": found.path, "text": compact(found, limits.SHOWN_ARTIFACT_CHARS)})
            await self._attach(shown, found)
        return shown

    async def _attach(self, shown: Shown, found: Found) -> None:
        """Add the pictures and documents of what is shown, one per media type, as far as they can be brought."""
        for path, mime in _packed(found):
            taken = {one["mime"] for one in shown.attachments}
            if len(taken) >= MOST_ATTACHMENTS:
                return
            if mime in taken or path.logical is None or isinstance(await self._rehoster.rehost(path), Missing):
                continue
            shown.attachments.append({"path": path.logical, "mime": mime, "physical_path": path.physical})


def compact(found: Found, most: int) -> str:
    """What was found in at most so many characters. No hosting field is in it."""
    record: dict[str, Any] = without(dict(found.record), ALL)
    if found.is_sliced:
        return clipped(search_text(without(found.value, ALL)), most)
    if found.leaf and found.leaf != ("value",):
        return clipped(text_of(without(found.value, ALL)), most)
    match found.kind:
        case "artifact":
            return artifact_text(record, most)
        case "slot":
            return slot_text({"slot": record["name"], "value": record}, most)
        case "file":
            facts = [f"{record['filename']} | {record['mime']}", f"file: {record['path']}"]
            facts += [record["summary"]] if record.get("summary") else []
            return clipped("\n".join([*facts, *([record["text"]] if record.get("text") else [])]), most)
        case _:
            return clipped(str(record.get("text") or ""), most)


def _packed(found: Found) -> Iterator[tuple[FilePath, str]]:
    """The pictures and documents that something is, or has in its rows."""
    if found.file is not None and found.kind in ("file", "artifact", "slot"):
        held = found.record.get("value")
        mime = held.get("mime") if found.kind == "artifact" and isinstance(held, dict) else found.record.get("mime")
        yield from _one(found.file, mime)
    rows = found.value if found.is_sliced else held_rows(found)
    for row in rows:
        try:
            yield from _one(parse_physical(str(row.get("physical_path") or "")), row.get("mime"))
        except Refusal:
            continue


def held_rows(found: Found) -> list[Any]:
    """The rows of a search that is shown whole."""
    value = found.record.get("value")
    return [row for row in value if isinstance(row, dict)] if found.is_search and isinstance(value, list) else []


def _one(path: FilePath, told: object) -> Iterator[tuple[FilePath, str]]:
    mime = told if isinstance(told, str) else mime_by_name(path.physical)
    mime = mime.partition(";")[0].strip().lower()
    if is_packed(mime):
        yield path, mime
