"""The records of the older context in few words: for the timeline as the agent sees it, and for its journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from sidecar.core.hosting import ALL, without
from sidecar.core.labels import one_line
from sidecar.core.older_values import rows_in, sid_of, text_of, used_by
from sidecar.core.slotting import implied_text
from sidecar.core.sources import render_row

TEXT_CHARS = 2000
_FIELD_CHARS = 300


def text_for(block: Mapping[str, Any]) -> str:
    """What a block of the older context says in few words. No hosting field is in it."""
    block = without(dict(block), ALL)
    match block["type"]:
        case "context.artifact":
            return artifact_text(block, TEXT_CHARS)
        case "context.slot":
            return slot_text(block, TEXT_CHARS)
        case "context.event":
            return f"{block['event']}: {brief(block.get('data'), TEXT_CHARS)}"
        case _:
            return "\n".join(_budget(block))


def artifact_text(record: Mapping[str, Any], most: int) -> str:
    """An artifact: who made it of what, its summary, and as much of what it holds as `most` characters."""
    kind = record.get("artifact_kind") or "inline"
    maker = record.get("tool_id") or record.get("producer")
    lines = [f"{record.get('artifact_id')} ({kind}{f', by {one_line(str(maker))}' if maker else ''})"]
    lines += _facts(record, record.get("value"))
    if record.get("error"):
        lines.append(f"error: {brief(record['error'], _FIELD_CHARS)}")
    body = search_text(record.get("value")) if kind == "search" else implied_text(record)
    return clipped("\n".join([*lines, *([body] if body else [])]), most)


def slot_text(record: Mapping[str, Any], most: int) -> str:
    """A slot: whether it is a draft and what it lacks, its summary, and as much of its text as `most` characters."""
    value = record.get("value")
    held: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    words = ["draft" if held.get("draft") else "", str(held.get("type") or "")]
    lines = [f"{record.get('slot')} ({', '.join(word for word in words if word) or 'slot'})"]
    lines += _facts(held, held)
    if held.get("gaps"):
        lines.append(f"gaps: {brief(held['gaps'], _FIELD_CHARS)}")
    body = held.get("text") or held.get("content")
    return clipped("\n".join([*lines, *([text_of(body)] if body else [])]), most)


def search_text(value: Any) -> str:
    """The sources of a search, one per line as the pool shows them."""
    rows = rows_in(value)
    lines = [render_row({**row, "sid": sid}) for row in rows if (sid := sid_of(row)) is not None]
    unnumbered = len(rows) - len(lines)
    return "\n".join([*lines, *([f"({unnumbered} more without a number)"] if unnumbered else [])])


def brief(value: Any, most: int) -> str:
    """A value on one line."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode() if value is not None else ""
    return clipped(" ".join(text.split()), most)


def clipped(text: str, most: int) -> str:
    """A text of at most so many characters, which says that it was cut."""
    return text if len(text) <= most else f"{text[: most - 20].rstrip()} … ({len(text)} characters)"


def _facts(record: Mapping[str, Any], value: Any) -> Iterator[str]:
    summary = record.get("summary") or record.get("description")
    if isinstance(summary, str) and summary:
        yield clipped(summary, _FIELD_CHARS)
    if isinstance(value, Mapping) and isinstance(value.get("path"), str):
        mime = value.get("mime")
        yield f"file: {one_line(value['path'])}{f' | {one_line(mime)}' if isinstance(mime, str) else ''}"
    used = used_by(record)
    if used:
        yield f"sources: {', '.join(f'[S:{sid}]' for sid in used[:100])}"


def _budget(block: Mapping[str, Any]) -> Iterator[str]:
    caps, used = block.get("caps"), block.get("used")
    spent: Mapping[str, Any] = used if isinstance(used, Mapping) else {}
    for name, cap in caps.items() if isinstance(caps, Mapping) else ():
        yield f"{one_line(str(name))}: {spent.get(name, 0)} of {cap}"
