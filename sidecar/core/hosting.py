"""Hosting fields, and how they are kept from whoever must not have them (spec section 7).

The exec role gets none of them, editors and renderers get the download handle alone, the runtime gets all. The cut goes
through rows, artifacts, blocks, `meta`, and JSON held in text when that JSON describes an artifact or a source. A
file's own contents are never altered: whoever reads a file gets its bytes.
"""

from __future__ import annotations

from typing import Any

import orjson

from sidecar.core.blocks import HOSTING_FIELDS, LEVELS, TEXT_LEVELS, holds_hosting, record_in_text

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
            return {key: _without(item, fields, levels - 1) for key, item in value.items() if key not in fields}
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
