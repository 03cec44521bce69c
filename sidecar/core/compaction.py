"""What is left to a summary: where the timeline may be cut, which turns that covers, what a summary has to keep.

A cut is the number of the first block that stays as it is. Nothing here removes anything: blocks before a cut are no
longer rendered, and everything in them still resolves (spec sections 10 and 12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from sidecar.core.artifacts import Artifact, describe
from sidecar.core.blocks import CALL, FLAGS, PATH, SHOWN, SUMMARY, TURN, TYPE, Head
from sidecar.core.errors import BadSelector, Stale
from sidecar.core.paths import SummaryPath, is_turn_id
from sidecar.core.timeline import Timeline

HEADER = "turn.header"
CALL_BLOCK = "react.tool.call"
CUT_POINTS = frozenset({"user.prompt", "assistant.completion", CALL_BLOCK, HEADER})


@dataclass(frozen=True, slots=True)
class Coverage:
    """The turns that a summary stands for, in order of their first block; one that is cut is named apart from them."""

    covered_turn_ids: tuple[str, ...]
    split_turn_id: str | None
    named_after: str

    @property
    def path(self) -> str:
        """The summary's own path: after the last covered turn, or the split one when no turn is covered whole."""
        return SummaryPath(self.named_after).logical


def is_cut_point(head: Head) -> bool:
    """Whether the kept part may begin here. A copy that a read showed is part of that read's result."""
    return head[TYPE] in CUT_POINTS and not head[FLAGS] & SHOWN


def choose_cut(heads: Sequence[Head], tokens: Sequence[int], *, start: int, keep: int) -> int | None:
    """The earliest cut after `start` that leaves at most `keep` tokens, or the latest one when all leave more.

    `tokens` counts the blocks from `start` on. None when no more than `keep` is there, or no cut point. A cut between a
    call and its results is second choice.
    """
    if sum(tokens) <= keep:
        return None
    within: int | None = None
    beyond: int | None = None
    is_whole = False
    for number, kept, is_torn in _cut_points(heads, tokens, start=start):
        if kept <= keep and not (is_torn and is_whole):
            within, is_whole = number, not is_torn
        elif kept > keep:
            if within is not None:
                break
            if beyond is None or not is_torn:
                beyond = number
            if not is_torn:
                break
    chosen = beyond if within is None else within
    return None if chosen is None else _before_header(heads, chosen, start=start)


def _cut_points(heads: Sequence[Head], tokens: Sequence[int], *, start: int) -> Iterator[tuple[int, int, bool]]:
    """Every cut point that leaves something to a summary, the latest first.

    Its number, the tokens it keeps, and whether it tears a call from its results.
    """
    end = start + len(tokens)
    said = next((number for number in range(start, end) if heads[number][TYPE] not in (HEADER, SUMMARY)), end)
    asked = {heads[number][CALL] for number in range(start, end) if _is_call(heads[number])}
    answered: set[str] = set()  # calls that have a block in the kept part and did not begin in it
    kept = 0
    for number in range(end - 1, said, -1):
        head = heads[number]
        kept += tokens[number - start]
        if _is_call(head):
            answered.discard(head[CALL])
        elif head[CALL] in asked:
            answered.add(head[CALL])
        if is_cut_point(head):
            yield number, kept, bool(answered)


def _is_call(head: Head) -> bool:
    return head[TYPE] == CALL_BLOCK and not head[FLAGS] & SHOWN


def _before_header(heads: Sequence[Head], cut: int, *, start: int) -> int:
    """A turn of which nothing but its header would be covered is not cut: the header is shown again anyway."""
    while cut - 1 > start and heads[cut - 1][TYPE] == HEADER and heads[cut - 1][TURN] == heads[cut][TURN]:
        cut -= 1
    return cut


def check_cut(timeline: Timeline, cut: int) -> None:
    """Raises Stale for a cut at or before the present one, BadSelector for a block that is no cut point."""
    if cut <= timeline.kept_from:
        raise Stale("cut", expected=str(cut), actual=str(timeline.kept_from))
    if cut >= len(timeline) or not is_cut_point(timeline.heads[cut]):
        raise BadSelector(f"cut {cut}", f"a cut is the index of a block of type {', '.join(sorted(CUT_POINTS))}")


def coverage(heads: Sequence[Head], *, start: int, cut: int, before: Mapping[str, Any]) -> Coverage:
    """Which turns a summary up to `cut` stands for. `before` is the `meta` of the summary before it, if any.

    The turn of the cut is split when anything of it but its header is left to the summary.
    """
    earlier = [turn for turn in _texts(before.get("covered_turn_ids")) if is_turn_id(turn)]
    told = [head for head in heads[start:cut] if head[TYPE] != SUMMARY]
    turn = heads[cut][TURN]
    is_split = turn in earlier or any(head[TURN] == turn and head[TYPE] != HEADER for head in told)
    turns = dict.fromkeys([*earlier, *(head[TURN] for head in told)])
    covered = tuple(one for one in turns if one != turn)
    return Coverage(covered, turn if is_split else None, covered[-1] if covered else turn)


# What a summary has to keep.

_DIGEST_FIELDS = (
    "artifact_path", "physical_path", "mime", "kind", "visibility", "channel", "tool_call_id", "tool_id", "edited",
    "version", "ts", "size_bytes", "sha256", "sid", "description", "error",
)  # fmt: skip


def artifact_digest(artifact: Artifact, tools: Mapping[str, str]) -> dict[str, Any]:
    """The metadata of an artifact as a summary may name it: its latest version, without any hosting field."""
    record = describe(artifact, tools)
    digest = {field: record[field] for field in _DIGEST_FIELDS if record.get(field) is not None}
    return digest | ({"sources_used": record["sources_used"]} if record["sources_used"] else {})


def is_of(artifact: Artifact, turns: frozenset[str], *, start: int, cut: int) -> bool:
    """Whether blocks between `start` and `cut` tell of an artifact, or it was found in one of these turns' folders."""
    if not artifact.versions:
        return False
    if any(start <= number < cut for version in artifact.versions for number in version.blocks.values()):
        return True
    untold = not any(version.blocks for version in artifact.versions)
    return untold and bool(artifact.path.place) and artifact.path.turn_id in turns


def tool_outputs(timeline: Timeline, *, start: int, cut: int) -> list[dict[str, str]]:
    """The results of calls between `start` and `cut`, one row per path, in order."""
    rows: dict[str, dict[str, str]] = {}
    for head in timeline.heads[start:cut]:
        path, call = head[PATH], head[CALL]
        if head[TYPE] == "react.tool.result" and path.startswith("tc:") and not head[FLAGS] & SHOWN:
            tool = timeline.tools.get(call)
            rows[path] = {"path": path, "tool_call_id": call, **({"tool_id": tool} if tool else {})}
    return list(rows.values())


def files_lists(timeline: Timeline, artifacts: Iterable[Mapping[str, Any]], *, start: int, cut: int) -> Iterator[str]:
    """Which files were read and which were changed, as a list each; nothing for an empty one."""
    read = dict.fromkeys(
        head[PATH] for head in timeline.heads[start:cut] if head[FLAGS] & SHOWN and head[PATH].startswith("fi:")
    )
    changed = [digest["artifact_path"] for digest in artifacts if digest["edited"]]
    for name, paths in (("read-files", read), ("modified-files", changed)):
        if paths:
            yield "\n".join([f"<{name}>", *paths, f"</{name}>"])


def artifacts_list(digests: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The metadata JSON of every artifact, one per line, so that a summary can name it; nothing when there is none."""
    lines = [orjson.dumps(digest).decode() for digest in digests]
    if lines:
        yield "\n".join(["<artifacts>", *lines, "</artifacts>"])


def cut_summary(block: dict[str, Any], sees: Callable[[str | int], bool]) -> dict[str, Any]:
    """A summary whose `meta.compaction_digest` names only what may be named; any other block as it is.

    `sees` is asked for a path, or for the number of a block that has none.
    """
    meta: dict[str, Any] = block.get("meta") or {}
    digest = meta.get("compaction_digest")
    if block.get("type") != SUMMARY or not isinstance(digest, dict):
        return block
    cut = {
        key: [row for row in rows if _may_stand(row, sees)] if isinstance(rows, list) and key in _NAMING else rows
        for key, rows in digest.items()
    }
    return {**block, "meta": {**meta, "compaction_digest": cut}}


_NAMING = ("artifacts", "tool_outputs", "hidden_blocks", "forgotten")


def _may_stand(row: Any, sees: Callable[[str | int], bool]) -> bool:
    name = row
    if isinstance(row, dict):
        name = next((row[key] for key in ("artifact_path", "path", "index") if key in row), None)
    return isinstance(name, str | int) and sees(name)


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
