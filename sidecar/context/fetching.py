"""`context/fetch`: what stands at an older path, with the sources that it used in full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sidecar.context.finding import Finder
from sidecar.core.older_values import opened, sids_in
from sidecar.workspace import Workspace

Answer = dict[str, Any]


class Fetcher:
    """Answers values as programs of the older generation expect them."""

    def __init__(self, workspace: Workspace, finder: Finder) -> None:
        self._workspace = workspace
        self._finder = finder

    async def fetch(self, text: str) -> tuple[str, Any]:
        """Today's name of what a path leads to, and the value there. Raises OlderRefusal."""
        found = await self._finder.find(text)
        is_used = bool(found.leaf) and found.leaf[-1] == "sources_used"
        return found.path, self._rows(found.value) if is_used else self._expanded(found.value)

    def _expanded(self, value: Any) -> Any:
        """A record with rows in place of the numbers in its `sources_used`, there and in its value."""
        if not isinstance(value, Mapping):
            return value
        whole = {key: self._expanded(item) if key == "value" else item for key, item in value.items()}
        return whole | ({"sources_used": self._rows(value["sources_used"])} if "sources_used" in value else {})

    def _rows(self, used: Any) -> list[Answer]:
        """The rows of these numbers, ascending, each once. A number that the pool does not know stands alone."""
        told = opened(used)
        own = (
            {row["sid"]: row for row in told if isinstance(row, dict) and "sid" in row}
            if isinstance(told, list)
            else {}
        )
        pool = self._workspace.pool
        return [pool.get(sid) or own.get(sid) or {"sid": sid} for sid in sids_in(told)]
