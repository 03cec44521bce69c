"""The titles of cited sources, shown behind each citation without being in the text."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from sidecar.core.happened import Happened
from sidecar.pacing import Pace
from sidecar.server.editor.documents import Documents
from sidecar.server.editor.seen import Row, Seen, one_line, title
from sidecar.server.lsp import Editor, Feature
from sidecar.services import Services

HINTS = 500  # of one range
TITLE_CHARS = 32
TOOLTIP_ROWS = 20
REFRESH_SECONDS = 0.3  # sources come in numbers; editors are asked once to look again


def features(services: Services, documents: Documents) -> list[Feature]:
    services.workspace.listeners.append(_Refreshing(documents).hear)
    return [Feature("textDocument/inlayHint", partial(_hints, services, documents))]


async def _hints(services: Services, documents: Documents, editor: Editor, params: Any) -> list[dict[str, Any]]:
    """The hints of the asked range alone."""
    opened = await documents.opened(editor, params.text_document.uri)
    if opened is None:
        return []
    seen = Seen(services, editor.client.role)
    hints: list[dict[str, Any]] = []
    pace = Pace()
    for reference in opened.within(params.range):
        await pace.rest()
        numbers = reference.numbers if reference.kind == "citation" else None
        rows = seen.rows(numbers, TOOLTIP_ROWS + 1) if numbers is not None else []
        if not rows:
            continue
        line, character = opened.lines.position(reference.end)
        hints.append({
            "position": {"line": line, "character": character},
            "label": _label(rows),
            "tooltip": _tooltip(rows),
            "paddingLeft": True,
        })  # fmt: skip
        if len(hints) == HINTS:
            break
    return hints


def _label(rows: list[Row]) -> str:
    first = one_line(title(rows[0]), TITLE_CHARS)
    more = f"{TOOLTIP_ROWS}+" if len(rows) > TOOLTIP_ROWS else str(len(rows) - 1)
    return f"{first} and {more} more" if len(rows) > 1 else first


def _tooltip(rows: list[Row]) -> str:
    lines = [f"S:{row['sid']} · {title(row)}" for row in rows[:TOOLTIP_ROWS]]
    return "\n".join([*lines, *(["…"] if len(rows) > TOOLTIP_ROWS else [])])


class _Refreshing:
    """Asks editors to ask again when there are new titles."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._waiting: asyncio.TimerHandle | None = None

    def hear(self, happened: Happened) -> None:
        if happened.sources and self._waiting is None and self._documents.editors:
            self._waiting = asyncio.get_running_loop().call_later(REFRESH_SECONDS, self._refresh)

    def _refresh(self) -> None:
        self._waiting = None
        for editor in list(self._documents.editors.values()):
            workspace = editor.client_capabilities.workspace
            hints = workspace.inlay_hint if workspace is not None else None
            if hints is not None and hints.refresh_support:
                editor.protocol.send_request("workspace/inlayHint/refresh")
