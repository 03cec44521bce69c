"""Hosting fields, and how they are kept from whoever must not have them (spec section 7).

The exec role gets none of them, editors and renderers get the download handle alone, the runtime gets all. The cut goes
through rows, artifacts, blocks, `meta`, and JSON held in text when that JSON describes an artifact or a source. In what
a tool was asked or answered, a field goes as well when its value is one that we gave out. A file's own contents are
never altered: whoever reads a file gets its bytes.
"""

from __future__ import annotations

from typing import Any

import orjson

from sidecar.core.blocks import (
    HOSTING_FIELDS,
    LEVELS,
    TEXT_LEVELS,
    holds_hosting,
    holds_ours,
    is_ours,
    is_said,
    json_said,
    record_in_text,
)

ALL = HOSTING_FIELDS
ALL_BUT_HANDLE = HOSTING_FIELDS - {"rn"}
CUT_FOR: dict[str, frozenset[str]] = {
    "runtime": frozenset(),
    "renderer": ALL_BUT_HANDLE,
    "editor": ALL_BUT_HANDLE,
    "exec": ALL,
}


class Verbatim(str):
    """A file's own text, which no cut looks into."""

    __slots__ = ()


def without(value: Any, fields: frozenset[str]) -> Any:
    """The value without these fields, at any depth. What nests deeper than anybody may write is left out."""
    return _without(value, fields, LEVELS)


def _without(value: Any, fields: frozenset[str], levels: int) -> Any:
    match value:
        case dict():
            if levels <= 0:
                return None
            cut = {key: _without(item, fields, levels - 1) for key, item in value.items() if key not in fields}
            text = cut.get("text")
            if fields and isinstance(text, str) and not isinstance(text, Verbatim) and is_said(value):
                cut["text"] = _said_without(text, fields, LEVELS)
            return cut
        case list() | tuple():
            return None if levels <= 0 else [_without(item, fields, levels - 1) for item in value]
        case Verbatim():
            return value
        case str():
            return _text_without(value, fields, levels)
        case _:
            return value


def without_hosting(value: dict[str, Any]) -> dict[str, Any]:
    """The value without any hosting field; the same object when there is none."""
    return without(value, ALL) if holds_hosting(value) else value


def _text_without(text: str, fields: frozenset[str], levels: int) -> str:
    record = record_in_text(text, levels)
    if record is None or not holds_hosting(record):
        return text
    return orjson.dumps(_without(record, fields, levels - TEXT_LEVELS)).decode()


def _said_without(text: str, fields: frozenset[str], levels: int) -> str:
    """What a tool was asked or answered without what we gave out; a member that is merely called so stays."""
    if not holds_ours(text, levels):
        return text
    return orjson.dumps(_ours_without(json_said(text, levels), fields, levels - TEXT_LEVELS)).decode()


def _ours_without(value: Any, fields: frozenset[str], levels: int) -> Any:
    match value:
        case dict():
            kept = ((key, item) for key, item in value.items() if not (key in fields and is_ours(key, item)))
            return {key: _ours_without(item, fields, levels - 1) for key, item in kept} if levels > 0 else None
        case list():
            return [_ours_without(item, fields, levels - 1) for item in value] if levels > 0 else None
        case str():
            return _said_without(value, fields, levels)
        case _:
            return value
