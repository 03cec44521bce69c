"""Ours beside an MCP file system server: the one of the MCP project itself, on Node.

Equal: the files, and for the rows "by MCP" the protocol and the measuring client, which parses every answer. Not
equal: the rival lists bare names and reads what is on the disk now; ours lists records (kind, media type, hash,
version, number) in pages of at most 1,000 from its index, and reads with a status and a digest before the text; by MCP
every answer of ours stands in it twice, for programs and for models. The rows "by stdio" are our own protocol.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

from tests.bench.figures import Figure, Size, against, in_turns, seconds
from tests.bench.pipe import Pipe, daemon_pipe, request
from tests.bench.places import folder, served
from tests.bench.rivals.installed import filesystem_server
from tests.bench.rivals.linear_scans import door
from tests.bench.rivals.lines import Lines
from tests.daemon_process import Workspace

RIVAL = "MCP server-filesystem"
PAGE = 1000
LINE = "A line of a file that is read.\n"
TEXTS = {"2 kB": 66, "1 MB": 33_800}


def measure(size: Size) -> Iterator[Figure]:
    command = filesystem_server()
    with folder() as place, ExitStack() as stack:
        workspace = stack.enter_context(served(place / "ours"))
        for name, lines in TEXTS.items():
            workspace.write(f"texts/files/{name}.txt", LINE * lines)
        counts = [size.of(full, least=5) for full in (1000, 10_000)]
        for count in counts:
            for number in range(count):
                workspace.write(f"turn_{count}/files/{number:05d}.txt", f"{count} {number}\n")
        with daemon_pipe(workspace) as pipe:
            pipe.ask(request(2, "workspace/sync", {}))
        theirs = stack.enter_context(Lines([*command, str(workspace.out_dir)]))
        by_mcp = stack.enter_context(Lines([sys.executable, "-m", "sidecar", "mcp", *workspace.arguments]))
        by_door = stack.enter_context(Pipe.through(door(workspace)).shake_hands())
        for count in counts:
            yield from _listed(size, count, workspace, theirs, by_mcp, by_door)
        for name in TEXTS:
            yield from _read(size, name, workspace, theirs, by_mcp, by_door)


def _listed(
    size: Size, count: int, workspace: Workspace, theirs: Lines, by_mcp: Lines, by_door: Pipe
) -> Iterator[Figure]:
    where = str(workspace.out_dir / f"turn_{count}/files")
    found = theirs.call("list_directory", {"path": where})["content"][0]["text"].count("\n") + 1
    if found != count:
        raise ValueError(f"{found} of {count} files were listed")
    rounds = in_turns(
        size.rounds,
        partial(_spent, lambda: _pages(lambda asked: by_mcp.call("list_artifacts", asked)["structuredContent"], count)),
        partial(_spent, lambda: _pages(lambda asked: by_door.ask(request(7, "artifact/list", asked)), count)),
        partial(_spent, lambda: theirs.call("list_directory", {"path": where})),
    )
    name = f"list of {count:,} files"
    yield Figure(f"{name}, by MCP", RIVAL, seconds, against(rounds, ours=0, rival=2))
    yield Figure(f"{name}, by stdio", RIVAL, seconds, against(rounds, ours=1, rival=2))


def _pages(ask: Callable[[dict[str, Any]], Any], count: int) -> None:
    """All of a turn's files, page by page."""
    found, asked = 0, {"turn_id": f"turn_{count}", "limit": PAGE}
    while True:
        page = ask(asked)
        found += len(page["artifacts"])
        if page["next_cursor"] is None:
            break
        asked = {**asked, "cursor": page["next_cursor"]}
    if found != count:
        raise ValueError(f"{found} of {count} files were listed")


def _read(size: Size, name: str, workspace: Workspace, theirs: Lines, by_mcp: Lines, by_door: Pipe) -> Iterator[Figure]:
    path, often = f"texts/files/{name}.txt", size.of(20, least=1)
    asked = {"paths": [path], "max_bytes": 4 << 20}
    if (
        theirs.call("read_text_file", {"path": str(workspace.out_dir / path)})["content"][0]["text"]
        != LINE * TEXTS[name]
    ):
        raise ValueError("the rival read something else")
    rounds = in_turns(
        size.rounds,
        lambda: by_mcp.one_at_a_time([("read_artifacts", asked)] * often),
        lambda: median(_spent(lambda: by_door.ask(request(7, "artifact/read", asked))) for _ in range(often)),
        lambda: theirs.one_at_a_time([("read_text_file", {"path": str(workspace.out_dir / path)})] * often),
    )
    yield Figure(f"read of a {name} text, by MCP", RIVAL, seconds, against(rounds, ours=0, rival=2))
    yield Figure(f"read of a {name} text, by stdio", RIVAL, seconds, against(rounds, ours=1, rival=2))


def _spent(step: Callable[[], object]) -> float:
    began = perf_counter()
    step()
    return perf_counter() - began
