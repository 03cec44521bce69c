"""What a deliverable becomes when something is mapped into it: a text, a file, or a draft that says its gaps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sidecar.core.older_values import contents_of, text_of
from sidecar.core.paths import FilePath

SlotType = Literal["inline", "file"]
NO_FILE = "the file was not rendered; this is its text"


@dataclass(frozen=True, slots=True)
class Source:
    """What is to be mapped, as it was found.

    `file` is set when it is a file that is there. `text` is its text or surrogate, or what stands at the leaf.
    `is_object` says that the path named the thing itself, so that its leaf is implied.
    """

    text: str
    file: FilePath | None
    is_file: bool
    is_object: bool
    mime: str | None = None
    format: str | None = None
    size_bytes: int | None = None
    sources_used: tuple[int, ...] = ()
    summary: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a slot is to be. Without `type` it is what its source is; `draft` is None where nobody said."""

    type: SlotType | None = None
    mime: str | None = None
    format: str | None = None
    description: str | None = None
    draft: bool | None = None
    gaps: str | Sequence[str] | None = None


def slot_value(source: Source, wanted: Wanted) -> dict[str, Any] | None:
    """The value of the slot, or None when nothing is there to map: neither a file nor any text."""
    wants_file = wanted.type == "file" or (wanted.type is None and source.is_file and source.is_object)
    is_draft = bool(wanted.draft)
    value: dict[str, Any] = {
        "type": "file" if wants_file else "inline",
        "description": wanted.description or source.description,
        "format": wanted.format or source.format,
        "mime": wanted.mime or source.mime,
        "summary": source.summary,
        "sources_used": list(source.sources_used),
    }
    if wants_file and source.file is not None:
        rel = source.file.rel.rpartition("/")[2]
        value |= {"path": source.file.physical, "filename": rel, "size_bytes": source.size_bytes}
        value |= {"mime": source.mime or wanted.mime, "format": source.format or wanted.format}
    elif wants_file:
        is_draft = True
    if not source.text and "path" not in value:
        return None
    if source.text:
        value["text"] = source.text
    gaps = wanted.gaps or (NO_FILE if wants_file and "path" not in value else None)
    if is_draft:
        value["draft"] = True
    if gaps and (is_draft or wanted.gaps):
        value["gaps"] = gaps if isinstance(gaps, str) else list(gaps)
    return {key: item for key, item in value.items() if item not in (None, [], "")}


def best_summary(inputs: Iterable[Mapping[str, Any]]) -> str | None:
    """The best summary among records, the nearest inputs first: of one step the written ones, then the longest.

    A search's summary says what was looked for, so it is taken only where nothing was written of it.
    """
    chosen: str | None = None
    rank = (False, 0)
    for record in inputs:
        summary = record.get("summary")
        if not isinstance(summary, str) or not summary.strip():
            continue
        mine = (record.get("artifact_kind") != "search", len(summary))
        if mine > rank:
            chosen, rank = summary, mine
    return chosen


def implied_text(record: Mapping[str, Any]) -> str:
    """The text of an artifact when its leaf is implied: its surrogate, else the content of its value."""
    surrogate = record.get("text_surrogate")
    if isinstance(surrogate, str):
        return surrogate
    value = record.get("value")
    if record.get("artifact_kind") == "file":
        return text_of(value["text"]) if isinstance(value, Mapping) and value.get("text") else ""
    return next(contents_of(value), None) or text_of(value)
