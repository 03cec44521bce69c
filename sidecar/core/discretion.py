"""What of something saved may be shown to people, who do not see every artifact (spec section 7, Roles).

What the runtime saves is JSON of its own making. Wherever in it something speaks of an artifact by its path, and that
artifact is not for the onlooker, it goes; JSON held in a text is looked into as well. So JSON is never cut in the
middle when it is kept as a text: half of it could not be looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from sidecar.core.blocks import LEVELS, TEXT_LEVELS
from sidecar.core.errors import Refusal
from sidecar.core.paths import FilePath, parse

Sees = Callable[[str], bool]
"""Whether the artifact at this logical path may be shown. What nobody knows is nobody's secret."""

_PATHS = ("artifact_path", "physical_path", "path", "local_path", "artifact_name")
_MARKS = ("artifact_path", "physical_path", "local_path", "hosted_uri")
_PATH_CHARS = 4200
_NOTHING = object()


def discreet(value: Any, sees: Sees, *, turn_id: str = "") -> Any:
    """The value without what speaks of artifacts that are not seen; None when all of it does.

    The streams of a turn call its files by name: `turn_id` says whose these are.
    """
    left = _Eyes(sees, turn_id).left(value, LEVELS)
    return None if left is _NOTHING else left


def discreet_text(text: str, sees: Sees, *, turn_id: str = "") -> str:
    """The same for a text, which may hold JSON; empty when all of that speaks of what is not seen.

    A text that began as JSON and is none, and speaks of artifacts, cannot be looked into and is empty as well.
    """
    left = _Eyes(sees, turn_id).text_left(text, LEVELS)
    return "" if left is _NOTHING else left


@dataclass(frozen=True, slots=True)
class _Eyes:
    sees: Sees
    turn_id: str

    def left(self, value: Any, levels: int) -> Any:
        if levels <= 0:
            return _NOTHING
        match value:
            case dict():
                if self._is_unseen(value.get("artifact_name"), named=True) or any(
                    self._is_unseen(value.get(key)) for key in _PATHS
                ):
                    return _NOTHING
                return dict(self._members(value, levels - 1))
            case list():
                items = (self.left(item, levels - 1) for item in value)
                return [item for item in items if item is not _NOTHING]
            case str():
                return self.text_left(value, levels)
            case _:
                return value

    def text_left(self, text: str, levels: int) -> Any:
        if self._is_unseen(text):
            return _NOTHING  # a list of paths names what it lists
        if text[:1] not in ("{", "[") and text.lstrip()[:1] not in ("{", "["):
            return text
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return _NOTHING if any(mark in text for mark in _MARKS) else text
        left = self.left(value, levels - TEXT_LEVELS)
        if left is _NOTHING:
            return _NOTHING
        return text if left == value else orjson.dumps(left).decode()

    def _members(self, value: dict[str, Any], levels: int) -> Iterator[tuple[str, Any]]:
        for key, item in value.items():
            if self._is_unseen(key):
                continue
            if key == "artifact_names" and isinstance(item, list):
                item = [name for name in item if not self._is_unseen(name, named=True)]
            left = self.left(item, levels)
            if left is not _NOTHING:
                yield key, left

    def _is_unseen(self, text: Any, *, named: bool = False) -> bool:
        """Whether a text is the path of an artifact that is not seen, or its name within the turn."""
        if not isinstance(text, str) or not text or len(text) > _PATH_CHARS:
            return False
        if named:
            if not self.turn_id:
                return False
            text = f"fi:{self.turn_id}.files/{text}"
        elif "/" not in text and not text.startswith("fi:"):
            return False
        try:
            path = parse(text)
        except Refusal:
            return False
        logical = path.logical if isinstance(path, FilePath) else None
        return logical is not None and not self.sees(logical)


# Keeping JSON as a text of bounded length


def bounded_json(value: Any, chars: int) -> str:
    """The value as JSON of about so many characters at most: what comes late, or is long, is left out or cut.

    It is JSON in any case, and what is left of an object still says which artifact it is about.
    """
    whole = orjson.dumps(value).decode()
    return whole if len(whole) <= chars else orjson.dumps(_Bounding(chars).of(value, LEVELS)).decode()


class _Bounding:
    __slots__ = ("_room",)

    def __init__(self, chars: int) -> None:
        self._room = chars

    def of(self, value: Any, levels: int) -> Any:
        if levels <= 0:
            return None
        match value:
            case dict():
                named = {key: value[key] for key in _PATHS if key in value}
                kept: dict[str, Any] = {}
                for key, item in (named | value).items():
                    if self._room <= 0 and key not in named:
                        break
                    self._room -= len(key) + 4
                    kept[key] = item if key in named and isinstance(item, str) else self.of(item, levels - 1)
                return kept
            case list():
                items: list[Any] = []
                for item in value:
                    if self._room <= 0:
                        break
                    items.append(self.of(item, levels - 1))
                return items
            case str():
                cut = value if len(value) <= max(self._room, 0) else _cut(value, self._room)
                self._room -= len(cut) + 3
                return cut
            case _:
                self._room -= 8
                return value


def _cut(text: str, chars: int) -> str:
    """The beginning of a text; of JSON nothing, for half of it could not be looked into."""
    return "" if text.lstrip()[:1] in ("{", "[") else text[: max(chars, 0)]
