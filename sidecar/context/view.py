"""What of the older context is written into OUT_DIR: context.json and sources_pool.json, whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from sidecar.core.artifacts import Artifact, describe
from sidecar.core.blocks import FLAGS, SHOWN, TS, iso
from sidecar.core.context_file import ToolIndex, TurnTold, prior_turn, rest
from sidecar.core.operational import Operational
from sidecar.core.paths import MessagePath
from sidecar.pieces import listed, members
from sidecar.workspace import Workspace

Shown = Callable[[int, bytes], bytes]
"""A block's JSON as a reader of OUT_DIR may see it, from its number and its JSON."""

ShownRow = Callable[[dict[str, Any]], dict[str, Any]]
"""A row of the pool as a reader of OUT_DIR may see it."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn and the numbers of the blocks that are written of it."""

    turn_id: str
    prompt: int | None
    completion: int | None
    records: Sequence[int]


class ContextView:
    """Takes stock on the loop, and then writes in a hand what was there."""

    def __init__(self, workspace: Workspace, shown: Shown, shown_row: ShownRow) -> None:
        self._workspace = workspace
        self._shown = shown
        self._shown_row = shown_row
        self._operational = Operational()

    def pool_pieces(self) -> Iterator[bytes]:
        """sources_pool.json: every row, without hosting fields and what internal files say."""
        return self._pool_written(self._workspace.pool.all_rows())

    def _pool_written(self, rows: Sequence[dict[str, Any]]) -> Iterator[bytes]:
        yield b'{"sources_pool":'
        yield from listed(rows, self._shown_row)
        yield b"}"

    def pieces(self) -> Iterator[bytes]:
        """context.json, turn by turn, so that a long session is never held whole."""
        workspace = self._workspace
        self._operational.catch_up(workspace.timeline.heads)
        turns = [self._turn(turn_id) for turn_id in workspace.turn_ids]
        if workspace.turn_id:
            turns.sort(key=lambda turn: turn.turn_id == workspace.turn_id)  # the open one is the current one
        return self._written(turns, workspace.pool.all_rows(), workspace.pool.highest, dict(workspace.timeline.tools))

    def _written(
        self, turns: Sequence[_Turn], rows: Sequence[dict[str, Any]], max_sid: int, tools: dict[str, str]
    ) -> Iterator[bytes]:
        artifacts = list(self._workspace.artifacts)
        by_turn: dict[str, list[Artifact]] = {}
        for one in artifacts:
            if one.visibility == "external" and any(version.seen for version in one.versions):
                by_turn.setdefault(one.path.turn_id, []).append(one)
        index = ToolIndex(tools)
        yield b'{"prior_turns":{'
        last: TurnTold | None = None
        for at, turn in enumerate(turns):
            told = self._told(turn, by_turn.get(turn.turn_id, []))
            index.take(told.blocks)
            if at == len(turns) - 1:
                last = told
                break
            yield (b"," if at else b"") + orjson.dumps(turn.turn_id) + b":"
            yield from members(prior_turn(told))
        yield b'},"sources_pool":'
        yield from listed(rows, self._shown_row)
        yield b"," + orjson.dumps(rest(last, max_sid=max_sid, tools=index.calls, now=time.time()))[1:]

    def _turn(self, turn_id: str) -> _Turn:
        prompt = self._newest(MessagePath(turn_id, "user.prompt").logical)
        completion = self._newest(MessagePath(turn_id, "assistant.completion").logical)
        return _Turn(turn_id, prompt, completion, self._operational.of_turn(turn_id))

    def _newest(self, logical: str) -> int | None:
        timeline = self._workspace.timeline
        return next((one for one in reversed(timeline.at(logical)) if not timeline.heads[one][FLAGS] & SHOWN), None)

    def _told(self, turn: _Turn, artifacts: Sequence[Artifact]) -> TurnTold:
        timeline = self._workspace.timeline
        first = next(iter(timeline.of_turn(turn.turn_id)), None)
        said = [number for number in (turn.prompt, turn.completion) if number is not None]
        blocks = self._blocks([*said, *turn.records])
        records = [blocks[number] for number in turn.records]
        return TurnTold(
            turn_id=turn.turn_id,
            ts=iso(timeline.heads[first][TS]) if first is not None else None,
            prompt=blocks.get(turn.prompt) if turn.prompt is not None else None,
            completion=blocks.get(turn.completion) if turn.completion is not None else None,
            attachments=[_file(one) for one in artifacts if one.path.place == "attachments"],
            files=[_file(one) for one in artifacts if one.path.place == "files"],
            blocks=records,
        )

    def _blocks(self, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
        read: dict[int, dict[str, Any]] = {}
        for number, body in zip(numbers, self._workspace.bodies_in_turn(numbers), strict=True):
            read[number] = orjson.loads(self._shown(number, body))
        return read


def _file(artifact: Artifact) -> dict[str, Any]:
    """A file as the older generation lists it; its bytes lie where its path says."""
    record = describe(artifact, {})
    listed = {
        "filename": artifact.path.rel.rpartition("/")[2],
        "path": record["physical_path"],
        "artifact_path": record["artifact_path"],
        "mime": record["mime"],
        "size_bytes": record.get("size_bytes"),
        "sid": record.get("sid"),
        "summary": record.get("description"),
        "sources_used": record["sources_used"] or None,
    }
    return {key: value for key, value in listed.items() if value is not None}
