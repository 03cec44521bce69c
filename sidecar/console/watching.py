"""`watch`: what lands in a workspace, as it happens. A live table on a terminal, plain lines anywhere else."""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from typing import Any

from sidecar.console.following import AWAY, BACK, FRESH, IDLE, STATUS, Following
from sidecar.console.output import cell, complain, on_terminal, say
from sidecar.console.place import Place

RECENT = 1000  # changes before now that a table begins with
IDLE_SECONDS = 1.0
REPAINT_SECONDS = 0.25
STATUS_SECONDS = 5.0
NEVER = float("inf")


def watch(place: Place, asked: argparse.Namespace) -> int:
    """What lands, until interrupted. With `--json` one object per line."""
    if on_terminal() and not asked.json and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", ""):
        return _table(place, asked)
    for method, params in Following(place, since=asked.since, idle=IDLE_SECONDS, status=NEVER):
        match method:
            case _ if method == IDLE:
                if _nobody_reads():
                    raise BrokenPipeError
            case _ if method in (STATUS, AWAY, BACK, FRESH):
                if method in _SAID:
                    complain(_SAID[method])
            case _ if asked.json:
                # A name may hold what turns a terminal's line around; JSON alone escapes only some of it.
                say(json.dumps({"method": method, "params": params}, ensure_ascii=on_terminal()))
            case _:
                for line in lines(method, params):
                    say(line)
        sys.stdout.flush()
    return 0


_SAID = {
    AWAY: "the daemon is away; waiting for the next one",
    BACK: "the daemon is back",
    FRESH: "more changed than is remembered; `artifact-sidecar ls` shows how it is",
}


def lines(method: str, params: dict[str, Any]) -> Iterator[str]:
    """One line for each thing that an event tells: what it is, then its columns, parted by tabs. A `-` is nothing."""
    match method:
        case "artifacts/changed":
            for artifact in params["artifacts"]:
                yield _columns("artifact", *(artifact.get(name) for name in _ARTIFACT), where(artifact))
        case "sources/added":
            for row in params["rows"]:
                yield _columns("source", row["sid"], row.get("artifact_path") or row.get("url"), row.get("title"))
        case "timeline/appended":
            for block in params["blocks"]:
                yield _columns("block", block["index"], block["type"], block.get("path"))
        case "notice/posted":
            yield _columns("notice", params["notice"]["code"], params["notice"]["message"])
        case _:
            yield _columns(method)


_ARTIFACT = ("ts", "turn_id", "tool_call_id", "artifact_path", "size_bytes", "mime", "sid", "version", "visibility")


def where(artifact: dict[str, Any]) -> str | None:
    """Where an artifact's bytes are, as far as the daemon says; None for what never was a file."""
    if artifact.get("rn") or artifact.get("hosted_uri"):
        state = "hosted"
    elif not artifact.get("physical_path"):
        return None
    else:
        state = "disk only" if artifact.get("kept") is False else "kept"
    return state if artifact["on_disk"] else f"{state}, deleted"


def _columns(*values: object) -> str:
    return "\t".join(map(cell, values))


def _nobody_reads() -> bool:
    """Whether the pipe that we print into has lost its reader: with nothing to say we would never find out."""
    poll = select.poll()
    poll.register(1, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _table(place: Place, asked: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.live import Live

    from sidecar.console.board import Board

    console = Console()
    board = Board(console, out_dir=place.settings.out_dir)
    happened = Following(
        place, since=asked.since, recent=RECENT, idle=REPAINT_SECONDS, status=STATUS_SECONDS
    )  # fmt: skip
    # A signal that ends us at once would leave the terminal on its other screen.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    with Live(board, console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        for method, params in happened:
            board.take(method, params)
            if board.wants_painting(idle=method == IDLE):
                live.refresh()
    return 0


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)
