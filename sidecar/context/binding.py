"""`context/bind`: what older paths lead to becomes the params of a tool (seed 002, Param Binding)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidecar.context.finding import Finder
from sidecar.context.found import Found
from sidecar.core import limits
from sidecar.core.context_blocks import event_block
from sidecar.core.entries import Entry
from sidecar.core.errors import Refusal
from sidecar.core.mime import is_packed
from sidecar.core.notices import Notice, notice
from sidecar.core.older_paths import OlderRefusal
from sidecar.core.older_values import is_envelope, opened, rows_in, sid_of, text_of, used_by
from sidecar.core.paths import FilePath, parse_physical
from sidecar.core.slotting import implied_text
from sidecar.core.source_lists import capped, merged
from sidecar.core.sources import Row
from sidecar.pacing import Pace
from sidecar.rehost import Missing, Rehoster
from sidecar.settling import told
from sidecar.within import require_turn
from sidecar.workspace import Workspace

SOURCES = "sources_list"


@dataclass(frozen=True, slots=True)
class Asked:
    """Which paths go into which params of which tool, and what is known of the tool."""

    tool_id: str
    params: Mapping[str, Any]
    paths: Sequence[tuple[str, str]]  # path, name of the param
    budget_tokens: int | None = None
    citation_aware: bool = False
    generator: bool = False
    write_tool: bool = False


@dataclass(slots=True)
class Bound:
    """The params as the tool gets them, where they come from, in today's names, and what is worth knowing."""

    params: dict[str, Any]
    content_lineage: list[str] = field(default_factory=list[str])
    notices: list[Notice] = field(default_factory=list[Notice])


class Binder:
    """Binds; it changes nothing but what it is asked to tell of a call."""

    def __init__(self, workspace: Workspace, finder: Finder, rehoster: Rehoster) -> None:
        self._workspace = workspace
        self._finder = finder
        self._rehoster = rehoster

    async def bind(self, asked: Asked) -> Bound:
        """What leads nowhere is a notice and no error. Raises JournalUnavailable or ShuttingDown."""
        bound = Bound(dict(asked.params))
        values: dict[str, list[Any]] = {}
        rows: list[Row] = await self._given(bound, asked.params.get(SOURCES))
        carried: list[Row] = []
        pace = Pace()
        for path, param in asked.paths:
            await pace.rest()
            found = await self._found(bound, path)
            if found is None:
                continue
            if found.is_search and found.is_whole:
                bound.notices.append(notice("unsliced_search_skipped", path=found.path, name=param))
                continue
            if param == SOURCES:
                if not self._take_rows(bound, found, rows):
                    continue
            elif (value := self._value(bound, found, asked)) is not None:
                values.setdefault(param, []).append(value)
            else:
                bound.notices.append(notice("binding_skipped", path=found.path, reason="it has no text", name=param))
                continue
            if found.content is not None and found.content.truncated and param != SOURCES:
                bound.notices.append(notice("binding_truncated", path=found.path, name=param))
            bound.content_lineage.append(found.path)
            carried += self._carried(bound, found) if asked.citation_aware else ()
        for param, held in values.items():
            bound.params[param] = _joined(asked.params.get(param), held)
        if rows or carried or SOURCES in asked.params:
            bound.params[SOURCES] = await self._sources(bound, asked, [*rows, *carried])
        bound.content_lineage = list(dict.fromkeys(bound.content_lineage))
        return bound

    def tell(self, asked: Asked, bound: Bound, tool_call_id: str) -> list[Entry]:
        """The event that says what was bound in a call. Raises UnknownTurn."""
        turn, now = require_turn(self._workspace), time.time()
        fields = {
            "tool_id": asked.tool_id,
            "fetch_context": [{"path": self._finder.respelled(path), "param_name": name} for path, name in asked.paths],
            "content_lineage": bound.content_lineage,
        }
        return [told(event_block(turn, "param_binding", fields, tool_call_id=tool_call_id), turn, now)]

    async def _found(self, bound: Bound, path: str) -> Found | None:
        try:
            return await self._finder.find(path)
        except OlderRefusal as refusal:
            shown = self._finder.respelled(path)
            bound.notices.append(
                notice("context_path_missing", path=shown, reason=f"{refusal.code}: {refusal.message}")
            )
            return None

    def _value(self, bound: Bound, found: Found, asked: Asked) -> Any:
        """What a param gets; None for what has no text. The thing itself stands for its text."""
        record = found.record
        if found.kind == "artifact" and found.is_whole and record.get("artifact_kind") != "file":
            if asked.write_tool and is_envelope(record.get("value")):
                older = f"{found.turn_id}.artifacts.{record['artifact_id']}"
                leaf = "".join(f".{step}" for step in found.leaf)
                said = {"original": f"{older}{leaf}", "normalized": f"{older}.value.content"}
                bound.notices.append(notice("llm_envelope_content_leaf_required", **said))
                return text_of(opened(record["value"])["content"])
            return implied_text(record) if not found.leaf else found.value
        if found.leaf or found.kind == "rows" or found.is_sliced:
            return found.value
        if found.kind == "artifact":
            return implied_text(record) or None
        return record.get("text")

    async def _given(self, bound: Bound, value: Any) -> list[Row]:
        """The sources that stand in the params already: rows, numbers, a path, or any of these as JSON."""
        if isinstance(value, str) and value.strip()[:1] not in ("[", "{", ""):
            found = await self._found(bound, value)
            rows: list[Row] = []
            if found is not None and not (found.is_search and found.is_whole):
                self._take_rows(bound, found, rows)
                bound.content_lineage.append(found.path)
            elif found is not None:
                bound.notices.append(notice("unsliced_search_skipped", path=found.path, name=SOURCES))
            return rows
        return self._rows_of(bound, opened(value))

    def _take_rows(self, bound: Bound, found: Found, rows: list[Row]) -> bool:
        """Add the sources that something is or carries; what has none is skipped with a notice."""
        taken = self._sources_in(bound, found)
        if found.missing:
            bound.notices.append(notice("source_unknown", missing_sids=list(found.missing)))
        if not taken and not found.is_sliced:
            bound.notices.append(notice("binding_skipped", path=found.path, reason="it has no sources", name=SOURCES))
            return False
        rows += taken
        return True

    def _sources_in(self, bound: Bound, found: Found) -> list[Row]:
        if found.is_sliced:
            return list(found.value)
        if found.kind == "file":
            return self._row_of_file(found)
        return self._rows_of(bound, found.value) if found.leaf else self._carried(bound, found)

    def _row_of_file(self, found: Found) -> list[Row]:
        """A file as a source: its row of the pool, or, where it has no number, one that says what it is."""
        sid = found.record.get("sid")
        row = self._workspace.pool.get(sid) if isinstance(sid, int) else None
        if row is not None:
            return [row]
        keys = ("physical_path", "artifact_path", "mime", "size_bytes", "text")
        facts = {key: found.record[key] for key in keys if key in found.record}
        return [{"source_type": "file", "title": found.record.get("filename"), **facts}]

    def _rows_of(self, bound: Bound, value: Any) -> list[Row]:
        """Rows of a list of rows or numbers, in its order; numbers that nobody has are told."""
        items = value if isinstance(value, list) else rows_in(value)
        rows: list[Row] = []
        missing: list[int] = []
        for item in items:
            sid = sid_of(item)
            known = self._workspace.pool.get(sid) if sid is not None else None
            if isinstance(item, Mapping):
                rows.append(dict(item))
            elif known is not None:
                rows.append(known)
            elif sid is not None:
                missing.append(sid)
        if missing:
            bound.notices.append(notice("source_unknown", missing_sids=sorted(set(missing))))
        return rows

    def _carried(self, bound: Bound, found: Found) -> list[Row]:
        """The sources that something was made of, as it says itself."""
        return self._rows_of(bound, list(used_by(found.record)))

    async def _sources(self, bound: Bound, asked: Asked, rows: Iterable[Row]) -> list[Row]:
        """The list as the tool gets it: each source once, its file in place, cut to the budget of a generator."""
        whole = merged(rows, self._workspace.pool)
        missing = [path for row in whole if (path := await self._bring(row)) is not None]
        if missing:
            bound.notices.append(notice("read_paths_missing", missing=missing))
        if not asked.generator and asked.budget_tokens is None:
            return whole
        budget = limits.BOUND_SOURCES_TOKENS if asked.budget_tokens is None else asked.budget_tokens
        fitting = capped(whole, budget)
        if fitting.cut:
            bound.notices.append(notice("sources_capped", count=len(fitting.cut), limit=f"{budget} tokens"))
        return list(fitting.rows)

    async def _bring(self, row: Row) -> str | None:
        """Have the file of a picture or a document in place; its path when it cannot be brought."""
        physical = row.get("physical_path")
        if not isinstance(physical, str) or not is_packed(str(row.get("mime") or "")) or row.get("base64"):
            return None
        try:
            path: FilePath = parse_physical(physical)
        except Refusal:
            return physical
        return physical if isinstance(await self._rehoster.rehost(path), Missing) else None


def is_write_tool(tool_id: str) -> bool:
    """Whether a tool is one of `write_*` by its name, behind the name of its module."""
    return tool_id.rpartition(".")[2].startswith("write_")


def _joined(given: Any, held: Sequence[Any]) -> Any:
    """Several texts are joined by two newlines, behind what the param said itself; one alone stays what it is."""
    values = [given, *held] if isinstance(given, str) and given else list(held)
    return values[0] if len(values) == 1 else "\n\n".join(map(text_of, values))
