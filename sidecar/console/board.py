"""The live table of `watch`: the newest on top, as many rows and columns as the terminal has room for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from sidecar.console.following import AWAY, BACK, FRESH, IDLE, STATUS
from sidecar.console.output import cell, printable, size
from sidecar.console.watching import where

HISTORY = 500  # rows that are remembered, for a terminal that grows
PAINT_SECONDS = 0.1
GAP = 2
NARROWEST_PATH = 24
WIDEST = {"turn": 20, "call": 20, "type": 24, "where": 18}

# In the order in which they stand; the number says how soon a narrow terminal does without it.
COLUMNS: dict[str, tuple[int, str]] = {
    "time": (5, "left"),
    "turn": (3, "left"),
    "call": (1, "left"),
    "path": (0, "left"),
    "size": (7, "right"),
    "type": (2, "left"),
    "sid": (6, "right"),
    "where": (8, "left"),
    "ver": (4, "right"),
}
_GOOD, _FAIR, _BAD = "green", "yellow", "red"


class Board:
    """What is known, and how it is drawn. Nothing of it grows without bound."""

    def __init__(self, console: Console, *, out_dir: str) -> None:
        self._console = console
        self._out_dir = out_dir
        self._artifacts: OrderedDict[tuple[str, int], dict[str, Any]] = OrderedDict()  # the newest last
        self._status: dict[str, Any] = {}
        self._away = False
        self._notice = ""
        self._changed = True
        self._painted = (0.0, self._console.size)

    def take(self, method: str, params: dict[str, Any]) -> None:
        """Note what was told."""
        match method:
            case "artifacts/changed":
                for artifact in params["artifacts"]:
                    self._note(artifact)
            case "notice/posted":
                self._notice = f"{params['notice']['code']}: {params['notice']['message']}"
            case _ if method in (STATUS, BACK):
                self._status = params
                self._notice = "the daemon is back" if self._away else self._notice
                self._away = False
            case _ if method == AWAY:
                self._away = True
            case _ if method == FRESH:
                self._notice = "more changed than is remembered; `artifact-sidecar ls` shows how it is"
        self._changed = self._changed or method != IDLE

    def wants_painting(self, *, idle: bool) -> bool:
        """Whether to paint now: something is different, and the last painting was a moment ago or nothing follows."""
        at, size_then = self._painted
        if self._console.size == size_then and not self._changed:
            return False
        if not idle and monotonic() - at < PAINT_SECONDS:
            return False
        self._painted, self._changed = (monotonic(), self._console.size), False
        return True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or options.size.height
        for line in self.drawn(width, height):
            line.no_wrap, line.overflow = True, "crop"
            yield line

    def drawn(self, width: int, height: int) -> list[Text]:
        """The whole screen, line by line: at most `height` lines of at most `width` cells."""
        above = [*self._head(width), Text()]
        below = [Text(), Text(_right_cut(printable(self._notice) or "Ctrl-C ends", width), style="dim")]
        room = height - len(above) - len(below) - 1
        if room < 1:
            return (above + self._table(width, max(1, height - len(above) - 1)))[:height]
        table = self._table(width, room)
        return [*above, *table, *[Text()] * (room + 1 - len(table)), *below]

    def _note(self, artifact: dict[str, Any]) -> None:
        key = (artifact["artifact_path"], artifact["version"])
        self._artifacts[key] = artifact
        while len(self._artifacts) > HISTORY:
            self._artifacts.popitem(last=False)

    def _head(self, width: int) -> list[Text]:
        title = Text("artifact-sidecar  ", style="bold")
        title.append(_left_cut(printable(self._out_dir), max(8, width - 18)), style="not bold dim")
        if self._away:
            return [title, Text("● the daemon is away; waiting for the next one", style=_BAD), Text()]
        said = self._status
        if not said:
            return [title, Text("connecting", style="dim"), Text()]
        counts = said["counts"]
        parts = [f"{counts[name]} {name}" for name in ("turns", "artifacts", "versions", "sources")]
        parts += [f"turn {said['turn_id']} is open"] if said.get("turn_id") else []
        return [title, _fitting([(part, "") for part in parts], width), _fitting(list(_health(said)), width)]

    def _table(self, width: int, room: int) -> list[Text]:
        shown = list(reversed(self._artifacts.values()))[:room]
        rows = [_row(artifact) for artifact in shown]
        names, widths = fitted(rows, width)
        head = _line([_padded(name, widths[name], COLUMNS[name][1]) for name in names], ["bold"] * len(names))
        found = [head]
        for artifact, row in zip(shown, rows, strict=True):
            cells = [
                _padded(_left_cut(row[name], widths[name]) if name == "path" else row[name], widths[name], at)
                for name, (_, at) in COLUMNS.items()
                if name in names
            ]
            found.append(_line(cells, [_style(name, artifact) for name in names]))
        return found


def fitted(rows: Sequence[dict[str, str]], width: int) -> tuple[list[str], dict[str, int]]:
    """Which columns fit, in their order, and how wide each is. The path gets what the others leave."""
    widths = {
        name: min(WIDEST.get(name, 12), max([cell_len(name), *(cell_len(row[name]) for row in rows)]))
        for name in COLUMNS
        if name != "path"
    }
    names = sorted(widths, key=lambda name: COLUMNS[name][0])
    while names and width - sum(widths[name] + GAP for name in names) < NARROWEST_PATH:
        names.pop(0)
    longest = max([cell_len("path"), *(cell_len(row["path"]) for row in rows)])
    left = width - sum(widths[name] + GAP for name in names)
    widths["path"] = max(1, min(left, max(longest, NARROWEST_PATH)))
    return [name for name in COLUMNS if name in names or name == "path"], widths


def _row(artifact: dict[str, Any]) -> dict[str, str]:
    state = where(artifact) or "-"
    if artifact["visibility"] != "external":
        state = f"{state}, {artifact['visibility']}"
    return {
        "time": _clock(artifact["ts"]),
        "turn": cell(artifact.get("turn_id")),
        "call": cell(artifact.get("tool_call_id")),
        "path": cell(artifact["artifact_path"]),
        "size": size(artifact.get("size_bytes")),
        "type": cell(artifact["mime"]),
        "sid": cell(artifact.get("sid")),
        "where": state,
        "ver": cell(artifact["version"]),
    }


def _clock(ts: str) -> str:
    """The time of day here."""
    try:
        return datetime.fromisoformat(ts).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return "-"


def _style(column: str, artifact: dict[str, Any]) -> str:
    gone = not artifact["on_disk"] and artifact.get("physical_path")
    match column:
        case "path":
            return "dim" if gone else "bold"
        case "where":
            state = where(artifact) or ""
            return _GOOD if state.startswith("hosted") else _FAIR if state.startswith("disk only") else ""
        case "sid":
            return "cyan"
        case "size" | "ver":
            return ""
        case _:
            return "dim"


def _health(said: dict[str, Any]) -> list[tuple[str, str]]:
    watcher, store, index = said["watcher"], said["store"], said.get("conversation_store", {})
    reason = f" ({watcher['reason']})" if watcher.get("reason") else ""
    over = f", {watcher['over_limit']} over a limit" if watcher["over_limit"] else ""
    waiting = f", {store['waiting']} to be hosted" if store.get("waiting") else ""
    told = [
        (f"● watcher {watcher['state']}{reason}{over}", _colour(watcher["state"], fair=("degraded", "polling"))),
        (f"● store {store['kind']} {store['state']}{waiting}", _colour(store["state"], fair=("unset",))),
    ]
    if index:
        told.append((f"● index {index['kind']} {index['state']}", _colour(index["state"])))
        if index["lease"] != "writer":
            told.append((f"● {index['lease']}", _FAIR))
    return told


def _colour(state: str, *, fair: Sequence[str] = ()) -> str:
    return _GOOD if state == "ok" else _FAIR if state in fair else _BAD


def _fitting(parts: Sequence[tuple[str, str]], width: int) -> Text:
    """As many of the parts as fit into a line."""
    line = Text()
    for text, style in parts:
        lead = "   " if line else ""
        if line and line.cell_len + len(lead) + cell_len(text) > width:
            break
        line.append(lead).append(_right_cut(printable(text), width), style=style)
    return line


def _line(cells: Sequence[str], styles: Sequence[str]) -> Text:
    line = Text()
    for at, (text, style) in enumerate(zip(cells, styles, strict=True)):
        line.append(" " * GAP if at else "").append(text, style=style)
    line.rstrip()
    return line


def _padded(text: str, width: int, at: str) -> str:
    text = _right_cut(text, width)
    blank = " " * (width - cell_len(text))
    return blank + text if at == "right" else text + blank


def _right_cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)) + "…"


def _left_cut(text: str, width: int) -> str:
    """The end of a text, which is what tells one path from another."""
    if cell_len(text) <= width:
        return text
    while text and cell_len(text) > width - 1:
        text = text[max(1, (cell_len(text) - width + 1) // 2) :]
    return "…" + text
