"""A turn begins with what the user said and attached, and ends with what the agent answered."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from sidecar.attaching import Attached
from sidecar.calls import Calls
from sidecar.core import limits
from sidecar.core.blocks import MIME, PATH, TYPE
from sidecar.core.citations import extract
from sidecar.core.entries import Embedded, Entry, FileSeen, Remembered, SourceSet, TurnBegun, TurnEnded
from sidecar.core.errors import NotPermitted, UnknownTurn, UnsafePath
from sidecar.core.inventory import FileFact
from sidecar.core.mime import is_packed, mime_by_name
from sidecar.core.notices import notice
from sidecar.core.paths import FilePath, MessagePath, parse_physical
from sidecar.core.registration import register
from sidecar.core.sources_used import numbers_in, sources_used_in, speaks
from sidecar.hosting import Hosting
from sidecar.looking import Looker
from sidecar.ports import OutDir
from sidecar.reading import Reader
from sidecar.settling import told
from sidecar.workspace import Workspace

Decided = tuple[Sequence[Entry], dict[str, Any]]
BODIES_AT_ONCE = 16
# What makes it this conversation and no other; the user's type stands in every key.
WHOSE = ("tenant", "project", "user_id", "user_type", "conversation_id")


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a turn is to begin. `params` is a hash of the whole request, so that asking again can be told."""

    turn_id: str
    prompt: str | None
    conversation: Mapping[str, str]
    ts: float
    params: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn is to end: what the agent answered and cites, how it went, and vectors by kind."""

    turn_id: str
    completion: str | None
    sources_used: Sequence[int] | None
    status: str
    embeddings: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Files that are still being written when their turn ends, by physical path; facts for those nobody knows yet."""

    paths: tuple[str, ...]
    facts: tuple[FileFact, ...]


class Turns:
    """Decides what turns change. What decides answers the entries to stage and the result to give."""

    def __init__(
        self,
        workspace: Workspace,
        looker: Looker,
        reader: Reader,
        outdir: OutDir,
        calls: Calls,
        hosting: Hosting,
        *,
        eligible: Sequence[str],
    ) -> None:
        self._workspace = workspace
        self._looker = looker
        self._reader = reader
        self._outdir = outdir
        self._calls = calls
        self._hosting = hosting
        self._eligible = eligible

    def is_open(self, beginning: Beginning) -> bool:
        """Whether this very turn is open already, so that beginning it again changes nothing.

        Raises NotPermitted for an ended turn, an open one with other params, and another conversation.
        """
        workspace = self._workspace
        known = workspace.turns.latest(beginning.turn_id)
        if known is not None and known.ended:
            raise NotPermitted(beginning.turn_id, "this turn has ended; begin another one")
        if known is not None and workspace.turn_id == beginning.turn_id:
            if known.params != beginning.params:
                raise NotPermitted(beginning.turn_id, "this turn is open and was begun with other params")
            return True
        self._identify(beginning.conversation)
        return False

    def begin(self, beginning: Beginning, attached: Sequence[Attached]) -> Decided:
        """Begin a turn, or answer again when it is open with equal params. Raises what `is_open` raises."""
        turn_id = beginning.turn_id
        if self.is_open(beginning):
            return (), {"turn_id": turn_id, "attachments": self._attachments_of(turn_id), "notices": []}
        now = beginning.ts
        entries: list[Entry] = [*self._identify(beginning.conversation), *self._abandon(now)]
        highest = max((entry.row["sid"] for entry in entries if isinstance(entry, SourceSet)), default=0)
        entries.append(TurnBegun(turn_id, now, beginning.params))
        header = {"type": "turn.header", "author": "system", "text": f"[TURN {turn_id}]"}
        entries.append(told(header, turn_id, now))
        if beginning.prompt is not None:
            path = MessagePath(turn_id, "user.prompt").logical
            block = {"type": "user.prompt", "author": "user", "path": path, "text": beginning.prompt}
            entries.append(told(block, turn_id, now))
        registered = self._register(attached, now, above=highest)
        entries += registered
        sids = {entry.row["physical_path"]: entry.row["sid"] for entry in registered if isinstance(entry, SourceSet)}
        answered: list[dict[str, Any]] = []
        for one in attached:
            entries += one.told
            entries += self._hosting.wanted(one.path, one.fact.sha256)
            sid = sids.get(one.path.physical) or self._workspace.pool.keys.latest(f"file:{one.path.physical}")
            answered.append(_answer(one.path, one.fact.mime, one.fact.key.size, sid))
        return entries, {"turn_id": turn_id, "attachments": answered, "notices": []}

    async def look(self, turn_id: str) -> Unfinished:
        """Look at the disk for the end of a turn; answers what is still being written. Raises as `end` does."""
        self._require_open(turn_id)
        await self._looker.look("")
        still_open = await self._looker.wait_closed(limits.STILL_OPEN_WAIT)
        await self._calls.files_have_arrived()
        return Unfinished(still_open, await self._looker.off_loop(self._facts_of, still_open))

    async def read(self, ending: Ending) -> Ending:
        """The same with what its completion cites, if that was not said. A long one is read off the loop."""
        if ending.sources_used is not None or ending.completion is None:
            return ending
        sids = tuple(self._workspace.pool.sids)
        cited = await self._looker.off_loop(extract, ending.completion, "text/markdown", sids)
        return replace(ending, sources_used=cited)

    async def sources_used(self, ending: Ending) -> list[int]:
        """The sources used in a turn whose end was `read`, ascending: cited in its answer, or named in its blocks."""
        workspace = self._workspace
        heads = workspace.timeline.heads
        used = set(ending.sources_used or ())
        numbers: list[int] = []
        for number in workspace.timeline.of_turn(ending.turn_id):
            known = self._named_beside(number) if is_packed(heads[number][MIME]) else None
            if known is not None:
                used |= known
            elif speaks(heads[number]):
                numbers.append(number)
        for at in range(0, len(numbers), BODIES_AT_ONCE):
            some = numbers[at : at + BODIES_AT_ONCE]
            used |= await self._looker.off_loop(self._used_in, some, workspace.pool.sids)
        return sorted(used)

    def _named_beside(self, number: int) -> set[int] | None:
        """What was told beside a content that is no text, as its artifact knows it; the block itself is not read."""
        workspace = self._workspace
        artifact = workspace.artifacts.get(workspace.timeline.heads[number][PATH])
        versions = artifact.versions if artifact is not None else ()
        mine = next((one for one in versions if number in one.blocks.values()), None)
        return numbers_in(mine.facts.get("sources_used")) if mine is not None else None

    def _used_in(self, numbers: Sequence[int], sids: Sequence[int]) -> set[int]:
        """The sources that these blocks use. Blocking."""
        used: set[int] = set()
        for body in self._workspace.bodies_in_turn(numbers):
            used |= sources_used_in(orjson.loads(body), sids)
        return used

    def end(self, ending: Ending, unfinished: Unfinished, sources_used: Sequence[int]) -> Decided:
        """End the open turn: settle what is left, tell the completion, want everything hosted.

        Raises UnknownTurn, and NotPermitted for a turn that is not the open one.
        """
        turn_id = ending.turn_id
        self._require_open(turn_id)
        now = time.time()
        entries: list[Entry] = self._calls.abandon_all(now)
        entries += [FileSeen(fact, now, "", "external") for fact in unfinished.facts]
        if ending.completion is not None:
            entries.append(told(self._completion(ending), turn_id, now))
        entries += self._hosting.left_over()
        entries += [Embedded(turn_id, kind, tuple(vector)) for kind, vector in ending.embeddings.items()]
        entries.append(TurnEnded(turn_id, now, ending.status))
        notices = [notice("still_open", paths=list(unfinished.paths))] if unfinished.paths else []
        unknown = [sid for sid in sources_used if self._workspace.pool.get(sid) is None]
        if unknown:
            notices.append(notice("source_unknown", missing_sids=unknown[: limits.LIST_PAGE]))
        return entries, {"saved": [], "sources_used": list(sources_used), "notices": notices}

    def _completion(self, ending: Ending) -> dict[str, Any]:
        cited = sorted(set(ending.sources_used or ()))
        block: dict[str, Any] = {
            "type": "assistant.completion",
            "author": "assistant",
            "path": MessagePath(ending.turn_id, "assistant.completion").logical,
            "text": ending.completion,
        }
        return block | ({"meta": {"sources_used": cited}} if cited else {})

    def _require_open(self, turn_id: str) -> None:
        workspace = self._workspace
        if workspace.turn_id == turn_id:
            return
        if workspace.turns.latest(turn_id) is None and not workspace.has_turn(turn_id):
            raise UnknownTurn(turn_id, "no turn of this id was begun")
        raise NotPermitted(turn_id, "this turn is not the open one")

    def _facts_of(self, still_open: Iterable[str]) -> tuple[FileFact, ...]:
        """What can be said of files that are still being written and that nobody has registered. Blocking."""
        facts: list[FileFact] = []
        for physical in still_open:
            path = parse_physical(physical)
            known = self._workspace.artifact(path)
            if not self._looker.registers(path) or (known is not None and known.versions):
                continue  # what is known of it stands until it is closed
            try:
                key = self._outdir.key(physical)
            except UnsafePath:
                continue
            if key is not None:
                facts.append(FileFact(physical, key, None, mime_by_name(physical), incomplete=True))
        return tuple(facts)

    def _register(self, attached: Sequence[Attached], now: float, *, above: int) -> list[Entry]:
        workspace = self._workspace
        return register(
            [one.fact for one in attached],
            artifacts=workspace.artifacts,
            pool=workspace.pool,
            open_calls={},
            eligible=self._eligible,
            ts=now,
            above=above,
        )

    def _attachments_of(self, turn_id: str) -> list[dict[str, Any]]:
        """What a turn that is open already was begun with, in order."""
        workspace = self._workspace
        heads = workspace.timeline.heads
        answered: list[dict[str, Any]] = []
        for number in workspace.timeline.of_turn(turn_id):
            if heads[number][TYPE] == "user.attachment.meta":
                artifact = workspace.artifacts.get(heads[number][PATH])
                if artifact is not None and artifact.versions:
                    record = self._reader.record(artifact)
                    answered.append(_answer(artifact.path, record["mime"], record.get("size_bytes", 0), artifact.sid))
        return answered

    def _abandon(self, now: float) -> list[Entry]:
        """Another turn is open: it ends as abandoned, with the calls in it."""
        if not self._workspace.turn_id:
            return []
        return [
            *self._calls.abandon_all(now),
            *self._hosting.left_over(),
            TurnEnded(self._workspace.turn_id, now, "abandoned"),
        ]

    def _identify(self, asked: Mapping[str, str]) -> list[Entry]:
        """The first turn may name the conversation, whatever the settings say; another one is refused afterwards."""
        facts = self._workspace.latest_facts
        open_now: dict[str, str] = facts.get("conversation", {})
        wanted = {key: value for key, value in asked.items() if value}
        if not wanted:
            return []
        if facts.get("named") or self._workspace.has_turns:
            for part in WHOSE:
                if wanted.get(part, open_now.get(part)) != open_now.get(part):
                    raise NotPermitted(wanted[part], "another conversation needs another OUT_DIR")
            if facts.get("named") and wanted.items() <= open_now.items():
                return []
        return [Remembered({"conversation": {**open_now, **wanted}, "named": True})]


def _answer(path: FilePath, mime: str, size: int, sid: int | None) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "artifact_path": path.logical,
        "physical_path": path.physical,
        "mime": mime,
        "size_bytes": size,
    }
    return answer | ({"sid": sid} if sid is not None else {})
