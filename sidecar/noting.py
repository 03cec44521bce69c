"""Which notices a call was given already: each code goes to the timeline once, however often it is asked for.

Several renderers may pull the same page within one call. What was noted is remembered for the calls of late, and read
from the timeline for any other, so that a restart changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import orjson

from sidecar.core.paths import CallPath
from sidecar.looking import Looker
from sidecar.workspace import Workspace

CALLS_REMEMBERED = 1000


class Noted:
    """The codes that were told of each call."""

    def __init__(self, workspace: Workspace, looker: Looker) -> None:
        self._workspace = workspace
        self._looker = looker
        self._calls: OrderedDict[str, set[str]] = OrderedDict()

    async def codes(self, turn_id: str, call_id: str) -> set[str]:
        """The codes so far. Add to the set what is about to be staged: then nobody else tells it."""
        known = self._calls.get(call_id)
        if known is None:
            told = await self._told(CallPath(turn_id, call_id, "notice").logical)
            known = self._calls.setdefault(call_id, told)
            while len(self._calls) > CALLS_REMEMBERED:
                self._calls.popitem(last=False)
        return known

    def forget(self, call_id: str) -> None:
        """What was about to be told was refused: the timeline knows."""
        self._calls.pop(call_id, None)

    async def _told(self, path: str) -> set[str]:
        numbers = self._workspace.timeline.at(path)
        bodies: Iterable[bytes] = ()
        if numbers:
            bodies = await self._looker.off_loop(self._workspace.bodies, list(numbers))
        return {code for body in bodies if (code := _code_of(orjson.loads(body)))}


def _code_of(block: dict[str, Any]) -> str:
    try:
        said = orjson.loads(block.get("text") or "{}")
    except orjson.JSONDecodeError:
        return ""  # a notice in other words than ours
    return str(said.get("code") or "") if isinstance(said, dict) else ""
