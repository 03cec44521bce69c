"""What belongs to a turn that is to be forgotten, and what stands in its place where something has to stand.

A number that was given stays given: a block leaves a hidden placeholder, a source leaves a tombstone. Everything else
of the turn is simply not there any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from sidecar.core.blocks import SUMMARY

GONE: Final = object()
"""What `Doomed.cleaned` answers for a value that has to go without leaving anything."""

_FAMILIES = ("fi", "ar", "tc", "su")
_PLACES = ("path", "artifact_path", "physical_path", "local_path")


def placeholder(turn_id: str, ts: str) -> dict[str, Any]:
    """The block that holds the number of one that was forgotten. `ts` is ISO 8601 UTC."""
    return {
        "type": "erased",
        "author": "system",
        "turn_id": turn_id,
        "ts": ts,
        "mime": "text/plain",
        "text": "",
        "meta": {"hidden": True, "erased": True, "turn_id": turn_id},
    }


def tombstone(sid: int) -> dict[str, Any]:
    """The row that holds the number of a source that was forgotten. It is nobody's URL and nobody's file."""
    return {"sid": sid, "source_type": "manual", "title": "(erased)", "erased": True}


@dataclass(frozen=True, slots=True)
class Doomed:
    """One turn, the sources that were its alone, and the turns whose summaries tell of it."""

    turn_id: str
    sids: frozenset[int] = field(default_factory=frozenset[int])
    summaries: frozenset[str] = field(default_factory=frozenset[str])

    def owns_path(self, text: object) -> bool:
        """Whether a path, logical or physical, names something of the turn, or a summary that tells of it."""
        if not isinstance(text, str):
            return False
        family, colon, rest = text.partition(":")
        if colon and family in _FAMILIES:
            named = rest.partition(".")[0]
            own = named == self.turn_id or rest.startswith(f"{self.turn_id}/")
            return own or (family == "su" and self._tells(named))
        return text.removeprefix("./").startswith(f"{self.turn_id}/")

    def owns_block(self, block: Mapping[str, Any]) -> bool:
        """Whether a block was told in the turn, lies at one of its paths, or shows something of it."""
        meta = block.get("meta")
        about = meta.get("about") if isinstance(meta, dict) else None
        return (
            block.get("turn_id") == self.turn_id
            or self.owns_path(block.get("path"))
            or (isinstance(about, list) and any(map(self.owns_path, about)))
            or (block.get("type") == SUMMARY and self._tells(str(block.get("turn_id"))))
        )

    def owns_source(self, row: Mapping[str, Any]) -> bool:
        return row.get("sid") in self.sids or any(self.owns_path(row.get(name)) for name in _PLACES)

    def cleaned(self, value: Any) -> Any:
        """JSON of a record without what belongs to the turn. Answers the same object when nothing did, else a new one.

        A block becomes a placeholder and a source a tombstone; what else lies at one of the turn's paths leaves its
        list or its object.
        """
        match value:
            case {"type": str(), "turn_id": str() as turn_id, "ts": ts} if self.owns_block(value):
                return placeholder(turn_id, str(ts))
            case {"sid": int() as sid} if self.owns_source(value):
                return tombstone(sid)
            case dict():
                if any(self.owns_path(value.get(name)) for name in _PLACES):
                    return GONE
                after = {key: kept for key, one in value.items() if (kept := self.cleaned(one)) is not GONE}
                same = len(after) == len(value) and all(after[key] is value[key] for key in after)
                return value if same else after
            case list():
                items = [kept for one in value if (kept := self.cleaned(one)) is not GONE]
                same = len(items) == len(value) and all(map(_is, items, value))
                return value if same else items
            case _:
                return value

    def cleaned_text(self, text: str) -> str:
        """The same for a text that holds JSON, as the text of an index row does; any other text stays."""
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
        after = self.cleaned(value)
        return text if after is value else orjson.dumps(None if after is GONE else after).decode()

    def _tells(self, turn_id: str) -> bool:
        return turn_id in self.summaries


def _is(one: object, other: object) -> bool:
    return one is other
