"""A workspace's state made of entries as the daemon makes them, saved as it saves them, taken in again elsewhere."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from sidecar.core.artifacts import Visibility, describe, describe_versions
from sidecar.core.blocks import Defaults, tell
from sidecar.core.entries import (
    BlocksHidden,
    BlocksShown,
    BlockTold,
    CallBegun,
    CallEnded,
    Entry,
    FileGone,
    FileSeen,
    Hosted,
    SourceSet,
    TurnBegun,
    TurnEnded,
    Used,
    decode,
    encode,
)
from sidecar.core.happened import Happened, Turn
from sidecar.core.inventory import FileFact, StatKey
from sidecar.core.paths import parse_physical
from sidecar.core.registration import file_row
from sidecar.core.resumed import Resuming
from sidecar.core.snapshots import Conversation, Kept, kept_numbers, pool_payload, timeline_payload
from sidecar.core.standing import as_it_stands, changes_since
from sidecar.core.state import State
from sidecar.core.storage_names import Identity, handle_for, key_for
from sidecar.core.told_blocks import content_block, digest_block
from sidecar.core.turn_log import Told, ToldUses, turn_log
from sidecar.core.uses import How
from sidecar.pieces import members

IDENTITY = Identity("acme", "inn", "ann", "registered", "c-1")
START = 1_770_000_000.0


class Story:
    """A state, the bodies of its blocks, and what the agent and its programs do to it."""

    def __init__(self) -> None:
        self.state = State()
        self.bodies: list[bytes] = []
        self.now = START
        self._seq = 0

    # What happens

    def apply(self, *entries: Entry) -> None:
        """As the journal would have it: written, read back, applied."""
        for entry in entries:
            self._seq += 1
            self.state.decide(entry, self._seq)
            if isinstance(entry, BlockTold):
                self.bodies.append(entry.told.body)
            else:
                entry = decode(*encode(entry))
            self.state.apply(self._seq, entry, Happened())

    def tell(self, block: dict[str, Any], turn: str) -> int:
        self.now += 1
        self.apply(BlockTold(tell(block, Defaults(turn, self.now))))
        return len(self.bodies) - 1

    def begin(self, turn: str) -> None:
        self.apply(TurnBegun(turn, self.now, f"params of {turn}"))
        self.tell({"type": "turn.header", "author": "system", "text": f"[TURN {turn}]"}, turn)
        self.tell({"type": "user.prompt", "author": "user", "path": f"ar:{turn}.user.prompt", "text": turn}, turn)

    def end(self, turn: str) -> None:
        path = f"ar:{turn}.assistant.completion"
        self.tell({"type": "assistant.completion", "author": "assistant", "path": path, "text": "Done."}, turn)
        self.apply(TurnEnded(turn, self.now, "completed"))

    def call(self, name: str, turn: str, *, watched: bool = False) -> None:
        said = {"tool_id": "exec.run", "tool_call_id": name, "params": {}}
        self.apply(CallBegun(name, turn, "exec.run", self.now, watched))
        path, meta = f"tc:{turn}.{name}.call", {"tool_call_id": name}
        block = {"type": "react.tool.call", "mime": "application/json", "path": path, "meta": meta}
        self.tell({**block, "text": orjson.dumps(said).decode()}, turn)

    def use(self, call: str, path: str, how: How, *, by: str = "") -> None:
        fresh = self.state.uses.fresh(by or call, [path] if path else [], how)
        if fresh or (by and by not in self.state.uses.told_in):
            self.apply(Used(call, fresh, how, by))

    def record(self, name: str, call: str, path: str) -> None:
        """A record of the older context says what it was made of; the first time it may be nothing."""
        at = f"ar:turn_1.context.artifact.{name}"
        self.tell({"type": "context.artifact", "path": at, "text": "{}", "meta": {"tool_call_id": call}}, "turn_1")
        self.use(call, path, "declared", by=at)

    def end_call(self, name: str) -> None:
        self.apply(CallEnded(name, self.now))

    def see(self, physical: str, content: str, call: str = "", visibility: Visibility = "external") -> None:
        self.now += 1
        sha256 = hashlib.sha256(content.encode()).hexdigest()
        key = StatKey(1, 1, len(content.encode()), int(self.now * 1e9), 0)
        self.apply(FileSeen(FileFact(physical, key, sha256, "text/plain", kept=True), self.now, call, visibility))
        path = parse_physical(physical)
        if visibility == "external" and self.state.pool.keys.latest(f"file:{physical}") is None:
            fact = self.state.artifacts.at(path).fact
            assert fact is not None
            self.apply(SourceSet({"sid": self.state.pool.highest + 1, **file_row(path, fact)}))

    def lose(self, physical: str) -> None:
        if physical in self.state.files:
            self.apply(FileGone(physical))

    def host(self, physical: str) -> None:
        """The bytes that stand on disk, unless a version says already where they are."""
        artifact = self.state.artifact(parse_physical(physical))
        if artifact is None or artifact.fact is None or artifact.hosting(artifact.fact.sha256):
            return
        assert artifact.fact.sha256 is not None
        sha256, path = artifact.fact.sha256, artifact.path
        key = key_for(path, sha256, IDENTITY)
        self.apply(Hosted(physical, sha256, f"s3://bucket/{key}", handle_for(path, sha256, IDENTITY), key))

    def digest(self, physical: str, call: str, content: str | None, visibility: str = "external") -> None:
        self.tell(digest_block(self._facts(physical, call, content, visibility), **_at(physical, call)), "turn_1")

    def content(self, physical: str, call: str, content: str, visibility: str = "external") -> None:
        facts = self._facts(physical, call, content, visibility)
        self.tell(
            content_block(facts, content=content, packed=None, tool_id="exec.run"), parse_physical(physical).turn_id
        )

    def shown(self, physical: str, content: str, call: str) -> None:
        """A read shows a copy."""
        path = parse_physical(physical)
        meta = {"tool_call_id": call, "rel": "read"}
        block = {"type": "react.tool.result", "path": path.logical, "text": content, "meta": meta}
        self.tell(block, path.turn_id)
        hidden = [n for n in self.state.timeline.at(str(path.logical)) if self.state.timeline.heads[n][6] & 1]
        if hidden:
            self.apply(BlocksShown(tuple(hidden)))

    def hide(self, logical: str, words: str) -> None:
        seen = self.state.timeline.visible(logical)
        if seen:
            self.apply(BlocksHidden(tuple(seen), words))

    def _facts(self, physical: str, call: str, content: str | None, visibility: str) -> dict[str, Any]:
        path = parse_physical(physical)
        facts: dict[str, Any] = {
            "artifact_path": path.logical,
            "physical_path": physical,
            "mime": "text/plain",
            "kind": "file",
            "visibility": visibility,
            "tool_call_id": call,
        }
        if content is not None:
            facts |= {
                "size_bytes": len(content.encode()),
                "sha256": hashlib.sha256(content.encode()).hexdigest(),
            }
        return facts

    # What is saved of it

    def logs(self) -> list[dict[str, Any]]:
        """The logs of all turns, those of files alone among them, as they are read back from the store."""
        turns = (*self.state.turn_ids, *(artifact.path.turn_id for artifact in self.state.artifacts))
        return [self.log(turn) for turn in dict.fromkeys(turns)]

    def log(self, turn: str) -> dict[str, Any]:
        state = self.state
        numbers = list(state.timeline.of_turn(turn))
        bodies = [self.as_it_stands(number) for number in numbers]
        told = Told(bodies=bodies, numbers=numbers, tokens=0, sources_used=())
        files = [one for one in state.artifacts if one.path.turn_id == turn]
        known = state.turns.durable.get(turn) or Turn(turn, "")
        heads, tools, used = state.timeline.heads, state.timeline.tools, ToldUses(state.calls.durable, state.uses)
        payload = turn_log(known, told, heads=heads, tools=tools, files=files, used=used)
        return orjson.loads(b"".join(members(payload)))

    def pool(self) -> dict[str, Any]:
        about = Conversation(turn_ids=self.state.turn_ids)
        return orjson.loads(orjson.dumps(pool_payload(self.state.pool.all_rows(), about)))

    def timeline(self) -> dict[str, Any]:
        state = self.state
        numbers = kept_numbers(state.timeline, len(state.timeline))
        kept = Kept(bodies=[self.as_it_stands(n) for n in numbers], numbers=numbers, next_block=len(state.timeline))
        about = Conversation(turn_ids=state.turn_ids, started_at="2026-02-02T00:00:00Z")
        return orjson.loads(b"".join(members(timeline_payload("", kept, state.pool.all_rows(), about))))

    def as_it_stands(self, number: int) -> bytes:
        state = self.state
        return as_it_stands(self.bodies[number], changes_since(state.timeline, state.artifacts, number))

    # What is known of it

    def known(self) -> dict[str, Any]:
        """Everything that a client could ask, without what says where files lie just now."""
        state = self.state
        records: dict[str, Any] = {}
        for artifact in state.artifacts:
            if artifact.versions:
                record = describe(artifact, state.timeline.tools)
                records[str(artifact.path.logical)] = {k: v for k, v in record.items() if k not in ("on_disk", "kept")}
        return {
            "blocks": [orjson.loads(self.as_it_stands(number)) for number in range(len(self.bodies))],
            "heads": [head[:6] for head in state.timeline.heads],
            "hidden": [head[6] & 1 for head in state.timeline.heads],
            "paths": {head[4]: list(state.timeline.at(head[4])) for head in state.timeline.heads if head[4]},
            "told": {head[4]: state.timeline.told(head[4]) for head in state.timeline.heads if head[4]},
            "records": records,
            "versions": {path: describe_versions(state.artifacts.get(path)) for path in records},  # type: ignore[arg-type]
            "pool": state.pool.all_rows(),
            "highest": state.pool.highest,
            "turns": state.turn_ids,
            "ended": {turn: known.ended for turn, known in state.turns.durable.items()},
            "params": {turn: known.params for turn, known in state.turns.durable.items()},
            "calls": dict(sorted((name, call.tool_id) for name, call in state.calls.durable.items())),
            "watched": {name for name, call in state.calls.durable.items() if call.watched},
            "uses": [(user, list(used.items())) for user, used in sorted(state.uses.of.items()) if used],
            "users": state.uses.users,
            "told_in": state.uses.told_in,
            "made": state.uses.made,
            "handles": {rn: state.handles[rn] for rn in sorted(self._named_handles())},
        }

    def _named_handles(self) -> set[str]:
        """The handles that a version has. One whose content was told anew in the same call is nobody's any more."""
        versions = [version for artifact in self.state.artifacts for version in artifact.versions]
        return {version.facts["rn"] for version in versions if "rn" in version.facts}


def take_over(story: Story, into: Story | None = None, *, end: int | None = None) -> Story:
    """The story as another daemon has it that takes in what is saved, on top of what it has already."""
    other = into or Story()
    resuming = Resuming(other.state, IDENTITY, len(story.bodies) if end is None else end)
    for log in story.logs():
        other.apply(*resuming.take(log))
    other.apply(*resuming.finish(story.pool(), story.timeline()))
    assert (resuming.left_out, resuming.lost) == (0, 0)
    return other


def _at(physical: str, call: str) -> dict[str, str]:
    return {"turn_id": parse_physical(physical).turn_id, "tool_call_id": call, "tool_id": "exec.run"}
