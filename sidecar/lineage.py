"""Lineage: what is used in a call is written down as it happens, and what was made of what is answered from that.

Nobody waits for a use to be durable: it goes to the journal with whatever goes there next, at most once for each call
and path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from sidecar.core.blocks import CALL, PATH, TURN, TYPE, Head, Told
from sidecar.core.context_blocks import file_named
from sidecar.core.entries import Entry, Used
from sidecar.core.errors import BadPath, Refusal, ShuttingDown
from sidecar.core.lineage import DECLARING, Direction, Edge, Sees, Trace, is_known, named_in, nodes_of, source_node
from sidecar.core.paths import FilePath, Path, parse
from sidecar.core.uses import How
from sidecar.pacing import paced
from sidecar.workspace import Applied, Workspace


class Lineage:
    """Notes uses, and follows them. `declared` and its kin decide; `observed` stages by itself."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def observed(self, call_id: str, paths: Iterable[str]) -> None:
        """These paths were read, pulled or brought back for this call. What is no path, and a call that is not open,
        count for nothing.
        """
        workspace = self._workspace
        if not any(call.tool_call_id == call_id for call in workspace.open_calls):
            return
        nodes = (node for path in _parsed(paths) for node in nodes_of(workspace, path))
        for entry in self._used(call_id, nodes, "observed"):
            try:
                workspace.stage(entry).add_done_callback(_forget)
            except ShuttingDown:
                return

    def in_params(self, call_id: str, params: Mapping[str, Any]) -> list[Entry]:
        """What a call is said to use, because its params name it."""
        return self._used(call_id, named_in(self._workspace, dict(params)), "declared")

    def declared(self, told: Iterable[Told]) -> list[Entry]:
        """What blocks of the older context say they were made of; stage it with them."""
        entries: list[Entry] = []
        for one in told:
            if one.head[TYPE] in DECLARING and one.head[PATH]:
                entries += self._declared(one.head, orjson.loads(one.body))
        return entries

    async def trace(self, path: Path, direction: Direction, depth: int, sees: Sees) -> tuple[list[Edge], bool]:
        """The edges around a path, and whether these are all. Raises BadPath for a file that has no name."""
        if isinstance(path, FilePath) and path.logical is None:
            raise BadPath(path.physical, "this file has no logical path, so that nothing can be known of it")
        trace = Trace(self._workspace, direction, sees)
        await paced(trace.follow((node for node in nodes_of(self._workspace, path) if sees(node)), depth))
        return trace.edges, trace.complete

    def knows(self, path: Path, sees: Sees) -> bool:
        """Whether anything stands at a path, for one who sees so much."""
        return any(is_known(self._workspace, node) and sees(node) for node in nodes_of(self._workspace, path))

    def _declared(self, head: Head, record: Mapping[str, Any]) -> list[Entry]:
        workspace, call_id, at = self._workspace, head[CALL], head[PATH]
        lineage, used = record.get("content_lineage"), record.get("sources_used")
        # What is named in full may have been told a moment ago, and is not durable yet.
        whole = (
            [one for one in lineage if isinstance(one, str) and one[2:3] == ":"] if isinstance(lineage, list) else []
        )
        nodes = [node for path in _parsed(whole) for node in nodes_of(workspace, path)]
        nodes += [*named_in(workspace, lineage), *named_in(workspace, record.get("inputs"))]
        nodes += [source_node(workspace, sid) for sid in _sids(used)]
        entries: list[Entry] = []
        for by in (at, *_file_of(record, head[TURN])):
            # What uses nothing is told as well: it is something that the call made.
            fresh = self._used(call_id, (node for node in nodes if node != by), "declared", by=by)
            entries += fresh or ([Used(call_id, (), "declared", by)] if by not in workspace.uses.told_in else [])
        return entries

    def _used(self, call_id: str, nodes: Iterable[str], how: How, by: str = "") -> list[Entry]:
        fresh = self._workspace.uses.fresh(by or call_id, nodes, how)
        return [Used(call_id, fresh, how, by)] if fresh else []


def _file_of(record: Mapping[str, Any], turn_id: str) -> Sequence[str]:
    """The file that a record of kind `file` stands for: it was made of the same."""
    value = record.get("value")
    said = value.get("path") if isinstance(value, Mapping) and record.get("artifact_kind") == "file" else None
    path = file_named(said, turn_id) if isinstance(said, str) else None
    return [path.logical] if path is not None and path.place and path.logical else []


def _sids(used: Any) -> Iterable[int]:
    """The numbers of sources that a record gives as numbers or as rows."""
    for one in used if isinstance(used, list) else ():
        sid = one.get("sid") if isinstance(one, Mapping) else one
        if type(sid) is int:
            yield sid


def _parsed(texts: Iterable[str]) -> Iterable[Path]:
    for text in texts:
        try:
            yield parse(text)
        except Refusal:
            continue  # it names nothing


def _forget(staged: asyncio.Future[Applied]) -> None:
    """A use that could not be written down is written down the next time."""
    if not staged.cancelled():
        staged.exception()
