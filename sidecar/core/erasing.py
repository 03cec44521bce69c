"""What a journal has to lose when a turn, or everything, is forgotten: decided from its records, in two readings.

Numbers stay given. Blocks keep their place as hidden placeholders, sources as tombstones, ids of turns and calls stay
used. The last records say that something was erased, so that the revision never goes back, and that the turn is saved
as it is now, so that nobody saves what is left of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from sidecar.core.blocks import FLAGS, HIDDEN, PATH, SHOWN, SUMMARY, TS, TURN, TYPE, iso
from sidecar.core.citations import cited_numbers
from sidecar.core.conversation_names import conversation_prefix, execution_prefix
from sidecar.core.entries import Remembered, SourceSet, Stored, TurnSaved, encode
from sidecar.core.forgetting import Doomed, placeholder, tombstone
from sidecar.core.storage_names import Identity, encoded, key_prefix

Records = Iterable[tuple[int, str, bytes, bytes]]
"""Records of a journal in order: seq, kind, head, body."""

FACT = "erased"  # what the last record remembers: `{turns: [id], ts}`


@dataclass(frozen=True, slots=True)
class Journalled:
    """What the first reading found of a turn. `contents` are the hashes of bytes that others still name."""

    doomed: Doomed
    blocks: frozenset[int]
    files: frozenset[str]
    contents: frozenset[str]
    last: int
    change: int  # of the index, the latest one known
    generation: Any  # the fact `[*scope, number]`: in which the workspace wrote last
    erased: tuple[str, ...]
    is_known: bool


def read_turn(records: Records, turn_id: str) -> Journalled:
    """The first reading: what is there of the turn."""
    reading = _Reading(turn_id)
    for record in records:
        reading.take(*record)
    return reading.found()


def without_turn(
    records: Records, found: Journalled, *, ts: float, generation: Any = None
) -> Iterator[tuple[int, Stored | None]]:
    """The second reading: the records that change, by seq, and what they become; None for those that go.

    `generation` is what the workspace is to remember of its part in the index, if that changed. Nothing is answered
    when the turn was forgotten before and nothing is to be remembered.
    """
    number = 0
    told: set[int] = set()
    turn = ""
    changed = False
    for seq, kind, head, body in records:
        after: Stored | None = Stored(kind, head, body)
        match kind:
            case "block":
                if number in found.blocks:
                    after = _placeholder(orjson.loads(head))
                number += 1
            case "source":
                sid = orjson.loads(body).get("sid")
                if sid in found.doomed.sids:
                    after = None if sid in told else encode(SourceSet(tombstone(sid)))
                    told.add(sid)
            case "turn_begun":
                fields = orjson.loads(head)
                turn = fields[0]
                if turn == found.doomed.turn_id:
                    after = Stored(kind, orjson.dumps([*fields[:2], "", *fields[3:]]), body)
            case "turn_ended":
                turn = ""
            case _:
                after = _without(kind, head, body, found, open_turn=turn)
        if after is None or (after.kind, after.head, after.body) != (kind, head, body):
            changed = True
            yield seq, after
    if changed or generation is not None or found.doomed.turn_id not in found.erased:
        turns = [*dict.fromkeys((*found.erased, found.doomed.turn_id))]
        wrote = {"generation": generation} if generation is not None else {}
        yield found.last + 1, encode(Remembered({**wrote, FACT: {"turns": turns, "ts": iso(ts)}}))
        yield found.last + 2, encode(TurnSaved(found.doomed.turn_id, found.last + 1, found.change, ()))


def without_anything(records: Records, *, ts: float) -> Iterator[tuple[int, Stored | None]]:
    """The same for a whole conversation: what stays is whose it is, where it is saved, and the highest sid."""
    facts: dict[str, Any] = {}
    highest = last = 0
    for seq, kind, _, body in records:
        last = seq
        if kind == "source":
            highest = max(highest, orjson.loads(body)["sid"])
        elif kind == "remembered":
            facts |= orjson.loads(body)
        yield seq, None
    whose = {part: said for part, said in facts.get("conversation", {}).items() if part != "title"}
    kept = {"conversation": whose} if whose else {}
    kept |= {"named": facts["named"]} if "named" in facts else {}
    highest = max(highest, facts.get("max_sid", 0))
    yield last + 1, encode(Remembered({**kept, "max_sid": highest, FACT: {"turns": [], "ts": iso(ts)}}))
    if "archived_in" in facts:
        # By itself, as a daemon tells it: beside whose it is nobody would hear of it.
        yield last + 2, encode(Remembered({"archived_in": facts["archived_in"]}))


class Whose(NamedTuple):
    """What a journal knows of its conversation, each empty where it does not.

    `archived_in` is the index and the store that it was saved to, as `stores.index_location.saved_to` puts it. `roles`
    are the user types that keys of it may hold: it is the same conversation whatever they are.
    """

    identity: dict[str, str]
    holder: str
    held_at: str  # where that id was made; empty where it is not known
    archived_in: str
    roles: frozenset[str]


def whose(records: Records) -> Whose:
    """The identity of the conversation, the id of its writer, and where to look for it."""
    facts: dict[str, Any] = {}
    before: list[dict[str, str]] = []
    keys: list[str] = []
    for _, kind, head, body in records:
        if kind == "remembered":
            told = orjson.loads(body)
            facts |= told
            before.append(told.get("conversation", {}))
        elif kind == "hosted":
            keys.append(orjson.loads(head)[KEY])
    identity: dict[str, str] = facts.get("conversation", {})
    roles: set[str] = set()
    if identity:
        ours = Identity.of(identity)
        once = (Identity.of(one) for one in before if one)
        roles |= {one.user_type for one in once if replace(one, user_type=ours.user_type) == ours}
        roles |= {role for key in keys if (role := role_in(key, ours))}
    return Whose(
        identity, facts.get("holder", ""), facts.get("held_at", ""), facts.get("archived_in", ""), frozenset(roles)
    )


KEY = 4  # in the head of a hosted file


def role_in(key: str, identity: Identity) -> str:
    """The user type that a key of this conversation holds, whichever it is; empty for any other key."""
    parts = key.split("/")
    role = unquote(parts[ROLE]) if len(parts) > ROLE else ""
    own = replace(identity, user_type=role)
    places = (conversation_prefix(own), execution_prefix(own), key_prefix(own))
    return role if encoded(role) not in _NO_SEGMENT and key.startswith(places) else ""


ROLE = 6  # `cb/tenants/<tenant>/projects/<project>/<what>/<user type>/…`
_NO_SEGMENT = ("", ".", "..")


def in_roles(identity: Identity, roles: Iterable[str]) -> list[Identity]:
    """The identity as it is now, and then as keys may spell it that were made under other user types."""
    others = {role for role in roles if encoded(role) not in _NO_SEGMENT} - {identity.user_type}
    return [identity, *(replace(identity, user_type=role) for role in sorted(others))]


class _Reading:
    """Takes the records of a journal in order and finds what belongs to one turn."""

    def __init__(self, turn_id: str) -> None:
        self._turn_id = turn_id
        self._own = Doomed(turn_id)
        self._blocks: set[int] = set()
        self._summaries: list[tuple[int, int, str]] = []  # number, cut, turn
        self._count = 0
        self._open = ""
        self._files: set[str] = set()
        self._contents: set[str] = set()
        self._by_path: set[int] = set()
        self._told_here: set[int] = set()  # first told while the turn was open
        self._told_elsewhere: set[int] = set()
        self._cited: dict[int, set[int]] = {}  # by the blocks of other turns
        self._known = False
        self._last = self._change = 0
        self._facts: dict[str, Any] = {}

    def take(self, seq: int, kind: str, head: bytes, body: bytes) -> None:
        self._last = seq
        match kind:
            case "block":
                self._take_block(orjson.loads(head), body)
            case "source":
                self._take_source(orjson.loads(body))
            case "turn_begun":
                self._open = orjson.loads(head)[0]
                self._known = self._known or self._open == self._turn_id
            case "turn_ended":
                self._open = ""
            case "file" | "hosted" | "hosting_wanted":
                path = orjson.loads(head)[0]
                if self._own.owns_path(path):
                    self._files.add(path)
                else:
                    self._contents.update(_hashes(head))
            case "remembered":
                self._facts |= orjson.loads(body)
            case "saved":
                self._change = max(self._change, orjson.loads(head)[2])
            case _:
                pass

    def _take_block(self, head: list[Any], body: bytes) -> None:
        number, self._count = self._count, self._count + 1
        part: dict[str, Any] = head[7] if len(head) > 7 else {}
        self._known = self._known or head[TURN] == self._turn_id
        if head[TYPE] == SUMMARY and not head[FLAGS] & SHOWN:
            self._summaries.append((number, part.get("cut", number), head[TURN]))
        abouts = (head[PATH], part.get("at"), *part.get("about", ()))
        if head[TURN] == self._turn_id or any(map(self._own.owns_path, abouts)):
            self._blocks.add(number)
            return
        self._contents.update(_hashes(orjson.dumps(part)))
        if b"sources_used" in body or b"[S:" in body:
            self._cited[number] = _cited(orjson.loads(body))

    def _take_source(self, row: Mapping[str, Any]) -> None:
        sid: int = row["sid"]
        if self._own.owns_source(row):
            self._by_path.add(sid)
        elif self._open == self._turn_id and sid not in self._told_elsewhere:
            self._told_here.add(sid)
        elif self._open or sid not in self._told_here:
            self._told_elsewhere.add(sid)

    def found(self) -> Journalled:
        first = min(self._blocks, default=self._count)
        telling = {number: turn for number, cut, turn in self._summaries if first < min(cut, number)}
        cited = {sid for number, sids in self._cited.items() if number not in telling for sid in sids}
        return Journalled(
            doomed=Doomed(
                self._turn_id,
                frozenset(self._by_path | (self._told_here - self._told_elsewhere - cited)),
                frozenset(telling.values()) - {self._turn_id},
            ),
            blocks=frozenset(self._blocks | telling.keys()),
            files=frozenset(self._files),
            contents=frozenset(self._contents),
            last=self._last,
            change=self._change,
            generation=self._facts.get("generation"),
            erased=tuple(self._facts.get(FACT, {}).get("turns", ())),
            is_known=self._known or bool(self._files),
        )


def _without(kind: str, head: bytes, body: bytes, found: Journalled, *, open_turn: str) -> Stored | None:
    """What a record that is neither a block, a source nor a turn becomes."""
    doomed = found.doomed
    fields: Any = orjson.loads(head) if head else []
    match kind:
        case "call_begun" if fields[1] == doomed.turn_id:
            return Stored(kind, orjson.dumps([*fields[:2], "", *fields[3:]]), body)
        case "hidden" | "shown":
            numbers = [number for number in fields[0] if number not in found.blocks]
            return Stored(kind, orjson.dumps([numbers, *fields[1:]]), body) if numbers else None
        case "notice" | "answered":
            said = orjson.loads(body)
            return None if open_turn == doomed.turn_id or _names(said, doomed) else Stored(kind, head, body)
        case "embedded":
            return None if fields[0] == doomed.turn_id else Stored(kind, head, body)
        case "saved":
            return Stored(kind, head, b"[]") if fields[0] == doomed.turn_id else Stored(kind, head, body)
        case "remembered" | "adopted" | "call_begun" | "call_ended":
            return Stored(kind, head, body)
        case _:
            # Facts of files by their path, and whatever a later version adds about a turn or one of its files.
            own = any(doomed.owns_path(field) for field in fields) if isinstance(fields, list) else False
            return None if own else Stored(kind, head, body)


def _placeholder(head: list[Any]) -> Stored:
    turn, ts = head[TURN], head[TS]
    return Stored(
        "block",
        orjson.dumps(["erased", turn, ts, "text/plain", "", "", HIDDEN]),
        orjson.dumps(placeholder(turn, iso(ts))),
    )


def _names(value: Any, doomed: Doomed) -> bool:
    """Whether a path of the turn stands anywhere inside."""
    match value:
        case dict():
            return any(_names(one, doomed) for one in value.values())
        case list():
            return any(_names(one, doomed) for one in value)
        case _:
            return doomed.owns_path(value)


def _hashes(text: bytes) -> Iterator[str]:
    return (found.decode() for found in _SHA256.findall(text))


_SHA256 = re.compile(rb"\b[0-9a-f]{64}\b")


def _cited(block: Mapping[str, Any]) -> set[int]:
    """The sids that a block cites, or says that it used."""
    meta = block.get("meta")
    used = meta.get("sources_used") if isinstance(meta, dict) else None
    cited = {sid for sid in used if isinstance(sid, int)} if isinstance(used, list) else set[int]()
    text = block.get("text")
    if isinstance(text, str):
        for low, high in cited_numbers(text, str(block.get("mime") or "text/markdown")).intervals():
            cited.update(range(low, min(high, low + _RANGE) + 1))
    return cited


_RANGE = 100_000  # a range as a text may write it is without bound; so many sources are in no pool
