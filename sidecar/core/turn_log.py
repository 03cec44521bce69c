"""What a turn leaves behind as its log: blocks as they stand, its calls, and every state of its files that was seen.

Whoever reads a log back tells the same blocks under the same numbers and sees the same files between them, and ends
with the same artifacts, versions and handles (seed 004, `turn.log`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson

from sidecar.core import limits
from sidecar.core.artifacts import Artifact, Version
from sidecar.core.blocks import CALL, FLAGS, PATH, SHOWN, TS, Head, iso
from sidecar.core.counting import binary_tokens, count_tokens, packed_size
from sidecar.core.happened import Call, Turn
from sidecar.core.spelled import Spelled
from sidecar.core.uses import Uses

VERSION = 1
_HOSTING = ("hosted_uri", "rn", "key", "hosted_at")  # the last one is how many blocks had been told by then
USES_BYTES = limits.RECORD_BYTES // 8  # what the uses in one log may come to, beside its blocks

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The blocks of a turn: their JSON as it stands, their conversation-wide numbers, and what was counted in them.

    `truncated` says that the last of them did not fit into one record.
    """

    bodies: Sequence[bytes]
    numbers: Sequence[int]
    tokens: int
    sources_used: Sequence[int]
    truncated: bool = False


def turn_log(
    turn: Turn,
    told: Told,
    *,
    heads: Sequence[Head],
    tools: Mapping[str, str],
    files: Iterable[Artifact],
    used: ToldUses,
    executions: Sequence[Mapping[str, Any]] = (),
) -> Payload:
    """The payload of `turn.log`, its blocks spliced in. Reactions are mirrored into it afterwards.

    A turn that nobody began, whose blocks were told all the same, has no status and began with its first block.
    """
    calls, made_of = used.calls(told.numbers, heads, tools), used.made_of(turn.turn_id, told.numbers, heads)
    began = turn.began or (heads[told.numbers[0]][TS] if told.numbers else 0.0)
    payload: Payload = {
        "version": VERSION,
        "turn_id": turn.turn_id,
        "ts": iso(began),
        "end_ts": iso(turn.ended_at) if turn.ended_at is not None else None,
        "status": turn.status,
        "params": turn.params,
        "blocks": Spelled(told.bodies),
        "indexes": list(told.numbers),
        "sources_used": list(told.sources_used),
        "blocks_count": len(told.numbers),
        "tokens": told.tokens,
        "calls": calls,
        "files": files_of(files),
        "executions": [dict(one) for one in executions],
        "turn_log": {"feedbacks": [], "entries": []},
    }
    payload |= {"made_of": made_of} if made_of else {}
    return payload | ({"truncated": True} if told.truncated else {})


def row_text(payload: Mapping[str, Any]) -> str:
    """The compact JSON that the row of a turn's log says (seed 004); its feedback comes beside it."""
    fields = ("turn_id", "ts", "end_ts", "sources_used", "blocks_count", "tokens")
    return orjson.dumps({field: payload[field] for field in fields}).decode()


def tokens_of(block: Mapping[str, Any]) -> int:
    """What a block counts as: its text, and a quarter of the bytes that its base64 stands for."""
    text, packed = block.get("text"), block.get("base64")
    counted = count_tokens(text) if isinstance(text, str) else 0
    return counted + (binary_tokens(packed_size(packed)) if isinstance(packed, str) else 0)


class ToldUses:
    """What is told of uses in one log, as far as there is room. Make it for each log anew.

    Where there is none left a call is told as one that was not watched, and what says by itself what it was made of is
    not told at all: whoever reads the log knows then that not all is known.
    """

    def __init__(self, begun: Mapping[str, Call], uses: Uses) -> None:
        self._begun = begun
        self._uses = uses
        self._room = USES_BYTES

    def calls(self, numbers: Iterable[int], heads: Sequence[Head], tools: Mapping[str, str]) -> list[Payload]:
        """The calls that blocks of a turn name and whose tool is known, in order of their first block."""
        named = dict.fromkeys(heads[number][CALL] for number in numbers)
        return [{"tool_call_id": call, "tool_id": tools[call], **self._of(call)} for call in named if call in tools]

    def made_of(self, turn_id: str, numbers: Iterable[int], heads: Sequence[Head]) -> list[Payload]:
        """What says by itself what it was made of: what this turn told, its files, and what was told in its calls.

        `calls` are those of this turn that told it, and in the end the latest of all, or the empty text for none.
        """
        own = [heads[number] for number in numbers]
        paths, calls = {head[PATH] for head in own if not head[FLAGS] & SHOWN}, {head[CALL] for head in own} - {""}
        made = {call: frozenset(list(self._uses.made.get(call, ()))) for call in sorted(calls)}
        theirs = frozenset[str]().union(*made.values())
        told: list[Payload] = []
        for path, call in list(self._uses.told_in.items()):
            if path in paths or path in theirs or path.startswith((f"fi:{turn_id}.", f"ar:{turn_id}.")):
                uses = self._spelled(path)
                before = [one for one, things in made.items() if path in things and one != call]
                told += [{"path": path, "calls": [*before, call], "uses": uses}] if uses is not None else []
        return told

    def _of(self, call: str) -> Payload:
        uses, known = self._spelled(call), self._begun.get(call)
        if uses is None:
            return {}
        watched: Payload = {"watched": True} if known is not None and known.watched else {}
        return watched | ({"uses": uses} if uses else {})

    def _spelled(self, user: str) -> list[Payload] | None:
        """The uses of one user in their order; None where they do not fit."""
        used = list(self._uses.of.get(user, {}).items())
        self._room -= sum(len(node.encode("utf-8", "surrogatepass")) for node, _ in used)
        if self._room < 0:
            return None
        return [{"how": how, "nodes": [node for node, _ in run]} for how, run in groupby(used, itemgetter(1))]


def files_of(artifacts: Iterable[Artifact]) -> list[Payload]:
    """Every state of these files that was seen on a disk, oldest first, and between which blocks; told ones are blocks.

    `before` is the number of the block that was told next.
    """
    files: list[Payload] = []
    for artifact in artifacts:
        versions = [_version(version) for version in artifact.versions if version.seen]
        if versions:
            files.append(
                {
                    "physical_path": artifact.path.physical,
                    "visibility": artifact.visibility,
                    "versions": versions,
                }
            )
    return files


def _version(version: Version) -> Payload:
    moment, call = version.seen_as
    row: Payload = {
        "before": version.seen_at,
        "ts": moment,
        "call": call if version.told else version.call or call,
        "sha256": version.sha256,
        "size_bytes": version.size,
        "mime": version.facts.get("mime"),
        "told": version.told,
    }
    return row | {field: version.facts[field] for field in _HOSTING if version.facts.get(field) is not None}
