"""The sources pool: rows with numbers that are given once."""

from __future__ import annotations

from typing import Any

from protocol.base import NoParams
from protocol.requests.sources import MergeParams, SourcesListParams
from sidecar.core.blocks import HOSTING_FIELDS, holds_hosting
from sidecar.core.counting import count_tokens
from sidecar.core.entries import SourceSet
from sidecar.core.hosting import without_hosting
from sidecar.core.notices import for_selector, notice
from sidecar.core.numbers import parse_selector, print_numbers
from sidecar.core.sources import plan_merge
from sidecar.core.sources import render as render_pool
from sidecar.server.caller import Caller
from sidecar.server.methods.changing import Decided, change
from sidecar.server.methods.seeing import rows_for
from sidecar.services import Services


async def merge(services: Services, caller: Caller, params: MergeParams) -> dict[str, Any]:
    """Only the runtime may propose numbers and bring hosting fields (spec sections 6 and 10)."""
    pool = services.workspace.pool
    trusted = caller.role == "runtime"

    def decide() -> Decided:
        rows = [dict(row) for row in params.rows]
        hosted = 0 if trusted else sum(holds_hosting(row) for row in rows)
        merged = plan_merge(pool, rows if trusted else [without_hosting(row) for row in rows], proposals=trusted)
        stand = {row["sid"]: row for row in merged.changed}
        result: dict[str, Any] = {
            "rows": [stand[sid] for sid in merged.order],
            "sid_map": {str(proposed): given for proposed, given in merged.sid_map.items()},
            "added": list(merged.added),
            "path": f"so:sources_pool[{print_numbers(merged.order)}]",
        }
        if hosted:
            result["notices"] = [notice("hosting_ignored", fields=sorted(HOSTING_FIELDS), count=hosted)]
        changed = [row for row in merged.changed if pool.rows.latest(row["sid"]) != row]
        return [SourceSet(row) for row in changed], result

    return await change(services.workspace, caller, params, decide)


def list_sources(services: Services, caller: Caller, params: SourcesListParams) -> dict[str, Any]:
    pool = services.workspace.pool
    if params.selector is None:
        return {"rows": rows_for(caller.role, services.workspace, pool.all_rows()), "missing": []}
    numbers = parse_selector(params.selector)
    selection = numbers.select(pool.sids)
    rows = rows_for(caller.role, services.workspace, (pool.rows.durable[sid] for sid in selection.found))
    shown = {row["sid"] for row in rows}
    missing = sorted({*selection.missing, *(sid for sid in selection.found if sid not in shown)})
    answer: dict[str, Any] = {"rows": rows, "missing": missing}
    return answer | ({"notices": list(for_selector(numbers.malformed, ()))} if numbers.malformed else {})


def render(services: Services, caller: Caller, _: NoParams) -> dict[str, Any]:
    text = render_pool(rows_for(caller.role, services.workspace, services.workspace.pool.all_rows()))
    return {"text": text, "tokens": count_tokens(text)}
