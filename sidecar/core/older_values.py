"""What stands inside an older value: leaves by key and index, rows by sid, and the text that a value comes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from sidecar.core.blocks import HOSTING_FIELDS, is_shallow
from sidecar.core.older_paths import OlderRefusal, Slice, shown
from sidecar.core.sources import Row

_DEEPEST = 64


def descend(value: Any, leaf: Sequence[str]) -> Any:
    """What stands at a leaf: keys of objects, indexes of lists, JSON held in a text on the way. Raises OlderRefusal.

    A hosting field is no leaf, for nobody: alone it would be a bare text, which no cut knows again.
    """
    for at, step in enumerate(leaf[:_DEEPEST]):
        value = opened(value)
        if isinstance(value, Mapping) and step in value and step not in HOSTING_FIELDS:
            value = value[step]
        elif isinstance(value, list) and step.isascii() and step.isdigit() and int(step[:16]) < len(value):
            value = value[int(step[:16])]
        else:
            raise OlderRefusal("not_found", f"there is no {shown('.'.join(leaf[: at + 1]))} in it")
    if len(leaf) > _DEEPEST:
        raise OlderRefusal("not_found", f"a leaf is at most {_DEEPEST} steps deep")
    return value


def opened(value: Any) -> Any:
    """The object or list that a text holds as JSON; any other value, and what nests too deep to be written again, as it
    is.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            held = orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
        return held if is_shallow(held) else value
    return value


def rows_in(value: Any) -> list[Row]:
    """The source records of a search or fetch: the objects in a list, or the members of an object."""
    value = opened(value)
    if isinstance(value, Mapping):
        if isinstance(value.get("sid"), int) or isinstance(value.get("url"), str):
            return [dict(value)]
        value = list(value.values())
    return [dict(row) for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def sliced(rows: Iterable[Row], chosen: Slice) -> list[Row]:
    """The rows with these sids, in the order asked; a row without a sid is in no slice."""
    by_sid = {sid: row for row in rows if (sid := sid_of(row)) is not None}
    return [by_sid[sid] for sid in chosen.select(by_sid)]


def sid_of(row: Any) -> int | None:
    """The number of a row; older tools wrote it as text."""
    sid = row.get("sid") if isinstance(row, Mapping) else row
    if isinstance(sid, str) and sid.isascii() and sid.isdigit() and len(sid) <= 16:
        sid = int(sid)
    return sid if isinstance(sid, int) and not isinstance(sid, bool) and sid >= 1 else None


def sids_in(value: Any) -> list[int]:
    """The numbers in a list of sids or rows, ascending, each once."""
    value = opened(value)
    items = value if isinstance(value, list) else []
    return sorted({sid for item in items if (sid := sid_of(item)) is not None})


def used_by(record: Mapping[str, Any]) -> list[int]:
    """The sids that an artifact or slot carries: in its value, or at the root as older ones have it."""
    value = opened(record.get("value"))
    inside = sids_in(value.get("sources_used")) if isinstance(value, Mapping) else []
    return inside or sids_in(record.get("sources_used"))


def text_of(value: Any) -> str:
    """What a value says as text: a text itself, the content of an envelope, anything else as JSON."""
    if isinstance(value, str):
        return value
    for content in contents_of(value):
        return content
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() if value is not None else ""


def contents_of(value: Any) -> Iterator[str]:
    """The texts that an object is made to carry, the first one being meant."""
    value = opened(value)
    if isinstance(value, Mapping):
        for key in ("content", "text"):
            held = value.get(key)
            if isinstance(held, str):
                yield held
            elif key == "content" and isinstance(held, dict | list):
                yield orjson.dumps(held, option=orjson.OPT_INDENT_2).decode()


def is_envelope(value: Any) -> bool:
    """Whether a value is what a model answered with its content wrapped in it: a write tool wants the content alone."""
    value = opened(value)
    return isinstance(value, Mapping) and "content" in value
