"""Blocks told and files seen, joined by logical path: what an artifact is now, and every version it had.

A *told* version is a group of blocks of one call at one path: its digest and its content. A *seen* version is a state
of the file's bytes. Whichever comes first gives the version its number; the other one adds its fields. The latest
version wins as a whole: nothing of an older group shows through (spec section 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from sidecar.core.blocks import CALL, FLAGS, HIDDEN, SHOWN, TS, Head, iso
from sidecar.core.inventory import FileFact
from sidecar.core.paths import FilePath

Visibility = Literal["external", "internal", "pending"]


class Version:
    """One state of an artifact."""

    __slots__ = ("blocks", "call", "facts", "hidden", "seen", "seen_as", "seen_at", "sha256", "size", "told", "ts")

    def __init__(self, *, ts: float, call: str) -> None:
        self.ts = ts
        self.call = call
        self.told = False
        self.seen = False
        self.hidden = False
        self.sha256: str | None = None
        self.size: int | None = None
        self.facts: dict[str, Any] = {}
        self.blocks: dict[str, int] = {}  # "digest", "text", "base64", "bare", "extract" -> block number
        self.seen_as, self.seen_at = (ts, call), 0  # when, by which call and after how many blocks the disk showed it

    @property
    def is_hosted(self) -> bool:
        """Whether anybody said where in a store its bytes are."""
        return "hosted_uri" in self.facts or "key" in self.facts

    @property
    def origin(self) -> Literal["told", "seen", "both"]:
        if self.told and self.seen:
            return "both"
        return "told" if self.told else "seen"


class Artifact:
    """Everything known at one `fi:` path."""

    __slots__ = ("fact", "on_disk", "owner", "path", "sid", "versions", "visibility")

    def __init__(self, path: FilePath) -> None:
        self.path = path
        self.versions: list[Version] = []
        self.fact: FileFact | None = None  # the newest complete state of the file on disk
        self.on_disk = False
        self.visibility: Visibility = "external"
        self.owner = ""  # the open call that produced the pending state, if only one could have
        self.sid: int | None = None

    @property
    def latest(self) -> Version:
        return self.versions[-1]

    def sha256(self) -> str | None:
        """The hash of the latest version's bytes, when anybody knows it."""
        return self.latest.sha256 if self.versions else None

    def holds_latest(self) -> bool:
        """Whether the file on disk holds the bytes of the latest version."""
        return self.on_disk and self.fact is not None and bool(self.versions) and self.fact.sha256 == self.latest.sha256

    def host(self, sha256: str, hosting: Mapping[str, str | int]) -> None:
        """Bytes of this artifact stand in the store: every version that has them says where, and after which block."""
        for version in self.versions:
            if version.sha256 == sha256:
                version.facts.update(hosting)

    def hosting(self, sha256: str | None) -> dict[str, str]:
        """Where bytes of this artifact are hosted, as its newest version with them says; empty when nowhere known."""
        for version in reversed(self.versions):
            if sha256 is not None and version.sha256 == sha256 and version.is_hosted:
                return {key: version.facts[key] for key in _HOSTING if key in version.facts}
        return {}

    def knows(self, sha256: str | None) -> bool:
        return sha256 is not None and any(version.sha256 == sha256 for version in self.versions)


class Artifacts:
    """The artifacts by logical path, in the order they became known."""

    __slots__ = ("_by_path",)

    def __init__(self) -> None:
        self._by_path: dict[str, Artifact] = {}

    def __len__(self) -> int:
        return len(self._by_path)

    def __iter__(self) -> Iterator[Artifact]:
        return iter(self._by_path.values())

    def get(self, logical: str) -> Artifact | None:
        return self._by_path.get(logical)

    def at(self, path: FilePath) -> Artifact:
        logical = path.logical
        assert logical is not None, "an ambiguous file has no artifact"
        artifact = self._by_path.get(logical)
        if artifact is None:
            artifact = self._by_path[logical] = Artifact(path)
        return artifact

    def tell(self, artifact: Artifact, head: Head, part: Mapping[str, Any], number: int) -> None:
        """Join one told block. `part` is what `blocks.tell` extracted from it."""
        if head[FLAGS] & SHOWN:
            if artifact.versions:
                artifact.latest.hidden = False
            return
        slot, facts = _slot(artifact, part)
        version = _told_version(artifact, head, slot, facts)
        if slot in _BODIES and version.blocks.keys() & _BODIES:
            _make_way(version, facts)
        version.blocks[slot] = number
        if slot != "digest" or len(version.blocks) == 1:
            version.hidden = bool(head[FLAGS] & HIDDEN)
        _merge_facts(version, slot, facts)
        visibility = version.facts.get("visibility")
        # What an open call makes stays pending until the call ends, whatever is told of it meanwhile.
        if visibility in ("external", "internal") and version is artifact.latest and artifact.visibility != "pending":
            artifact.visibility = visibility

    def see(
        self, path: FilePath, fact: FileFact, *, ts: float, call: str, visibility: Visibility, at: int = 0
    ) -> Artifact:
        """Join one complete state of a file on disk, seen when `at` blocks had been told.

        Bytes of an older version that no open call brought are a stale copy, not a new version (spec section 8).
        """
        artifact = self.at(path)
        newest = artifact.versions[-1] if artifact.versions else None
        before = artifact.fact
        artifact.fact = fact
        artifact.on_disk = True
        artifact.visibility = visibility
        artifact.owner = call if visibility == "pending" else ""
        if newest is not None and before is not None and (before.key, before.sha256) == (fact.key, fact.sha256):
            if newest.seen and newest.sha256 == fact.sha256:
                newest.call = newest.call or call
            return artifact  # the same state again: its call has ended, and only now is known whose it is
        same = newest is not None and fact.sha256 is not None and newest.sha256 == fact.sha256
        if not same and not call and artifact.knows(fact.sha256):
            for version in artifact.versions:
                # It was seen after all, so that no block told later takes these bytes from it.
                if not version.seen and version.sha256 == fact.sha256:
                    version.seen, version.seen_as, version.seen_at = True, (ts, call), at
            return artifact
        described = newest is not None and newest.told and not newest.seen and newest.sha256 is None
        completed = newest is not None and newest.seen and before is not None and before.incomplete
        if newest is None or not (same or described or completed):
            is_display = newest is not None and newest.facts.get("kind") == "display"
            newest = Version(ts=ts, call=call)
            # A file produced at a display's path is that artifact (spec section 8).
            newest.facts.update({"kind": "display"} if is_display else {})
            artifact.versions.append(newest)
        if not newest.seen:
            newest.seen_as, newest.seen_at = (ts, call), at
        newest.seen = True
        newest.sha256 = fact.sha256
        newest.size = fact.key.size
        newest.facts.setdefault("mime", fact.mime)
        newest.call = newest.call or call
        return artifact

    def lose(self, path: FilePath) -> Artifact | None:
        """The file is gone from disk; the artifact stays."""
        artifact = self._by_path.get(path.logical or "")
        if artifact is not None:
            artifact.on_disk = False
        return artifact


_BODIES = frozenset({"text", "base64"})
_HOSTING = ("hosted_uri", "rn", "key")
# A block may come late, after blocks of other calls at its path; only so many calls run side by side.
_SIDE_BY_SIDE = 64


def _slot(artifact: Artifact, part: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Which part of a version a told block is, and what it says."""
    if "digest" in part:
        return "digest", part["digest"]
    content: Mapping[str, Any] = part["content"]
    if content.get("extracted") and artifact.versions and _is_extract(artifact.latest, content):
        return "extract", {}
    return content.get("holds", "bare"), content


def _is_extract(version: Version, content: Mapping[str, Any]) -> bool:
    """Whether the text of an attachment was made from the file, and is not the file."""
    size = version.facts.get("size_bytes")
    if "base64" in version.blocks or (size is not None and size != content.get("size_bytes")):
        return True
    return size is None and not str(version.facts.get("mime", "text/")).startswith("text/")


def _told_version(artifact: Artifact, head: Head, slot: str, facts: Mapping[str, Any]) -> Version:
    """The version that a told block belongs to: its call's group, a file seen with these bytes, or a new one."""
    group = _group_of(artifact, head[CALL], slot, facts)
    if group is not None:
        if slot in _BODIES and group.seen and group.sha256 != facts["sha256"] and not group.facts.get("sha256"):
            return _part_ways(artifact, group, head)
        return group
    seen = _seen_twin(artifact, head[CALL], facts)
    if seen is not None:
        seen.seen_as = (seen.seen_as[0], seen.call)
        seen.call, seen.ts, seen.told = head[CALL] or seen.call, head[TS], True
        return seen
    return _new_told(artifact, head)


def _new_told(artifact: Artifact, head: Head) -> Version:
    version = Version(ts=head[TS], call=head[CALL])
    version.told = True
    artifact.versions.append(version)
    return version


def _group_of(artifact: Artifact, call: str, slot: str, facts: Mapping[str, Any]) -> Version | None:
    """The told version that this block is a part of. Blocks without a call go to the newest, while there is room."""
    if call:
        recent = reversed(artifact.versions[-_SIDE_BY_SIDE:])
        group = next((version for version in recent if version.told and version.call == call), None)
        named = facts.get("sha256") if slot == "digest" and group is not None and "digest" in group.blocks else None
        # A call may write one file twice: a second digest that names other bytes is of a further version.
        return None if group is None or (named and group.sha256 and named != group.sha256) else group
    newest = artifact.versions[-1] if artifact.versions else None
    if newest is None or not newest.told or newest.call:
        return None
    taken = newest.blocks.keys() & _BODIES if slot in _BODIES and not facts.get("attachment") else slot in newest.blocks
    return None if taken else newest


def _seen_twin(artifact: Artifact, call: str, facts: Mapping[str, Any]) -> Version | None:
    """The file that was seen before it was told of: the newest one, or an older one that is surely meant."""
    sha256, size = facts.get("sha256"), facts.get("size_bytes")
    newest = artifact.versions[-1] if artifact.versions else None
    if newest is not None and not newest.told:
        same_call = newest.call in ("", call) or not call
        if newest.sha256 == sha256 if sha256 is not None else same_call and size in (None, newest.size):
            return newest
    if not call or sha256 is None:
        return None
    recent = reversed(artifact.versions[-_SIDE_BY_SIDE:])
    return next((one for one in recent if not one.told and one.call == call and one.sha256 == sha256), None)


def _part_ways(artifact: Artifact, group: Version, head: Head) -> Version:
    """The content of a group is not what was seen on disk: the seen state stays, what was told is the next version."""
    told = _new_told(artifact, head)
    told.facts = {key: value for key, value in group.facts.items() if key not in _HOSTING}
    told.blocks = {slot: number for slot, number in group.blocks.items() if slot == "digest"}
    if not group.blocks.keys() & _BODIES:
        # Nothing but a digest had been told of the state seen, and it was meant for this content.
        group.told, group.hidden, group.blocks = False, False, {}
        group.ts, group.call = group.seen_as
        group.facts = {"mime": artifact.fact.mime} if artifact.fact is not None else {}
    return told


def _make_way(version: Version, facts: Mapping[str, Any]) -> None:
    """Within one call a later content block replaces the earlier one, whatever form it had, and where it was hosted."""
    version.blocks = {slot: number for slot, number in version.blocks.items() if slot not in _BODIES}
    if version.sha256 != facts.get("sha256"):
        version.facts = {key: value for key, value in version.facts.items() if key not in _HOSTING}


def _merge_facts(version: Version, slot: str, facts: Mapping[str, Any]) -> None:
    """The digest describes, the content fills in what the digest does not say; hosting comes from the content alone."""
    if slot == "digest":
        version.facts.update(_described(facts))
    else:
        copied = _described(facts.get("digest") or {})
        told = {key: value for key, value in facts.items() if key not in _CONTENTS_OWN}
        version.facts = {**_described(told), **copied, **version.facts}
        if facts.get("holds") and version.blocks.get("digest") is None and not copied:
            version.facts["mime"] = facts["mime"]
        version.facts.update((key, facts[key]) for key in _HOSTING if isinstance(facts.get(key), str))
    if not version.seen:
        _identify(version, slot, facts)


def _identify(version: Version, slot: str, facts: Mapping[str, Any]) -> None:
    """Which bytes a told version means: those its digest names by hash, else those that its content holds."""
    named = version.facts.get("sha256")
    held = facts.get("sha256") if slot in _BODIES else None
    if held is not None and named in (None, held):
        version.sha256, version.size = held, facts["size_bytes"]
    elif version.size is None or named not in (None, version.sha256):
        version.sha256 = named or version.sha256
        version.size = version.facts.get("size_bytes", version.size)


def _described(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a digest says, as far as it may say it: no hosting field, and no field of a kind that it cannot have."""
    return {
        key: value
        for key, value in facts.items()
        if value is not None and key not in _HOSTING and isinstance(value, _KINDS.get(key, object))
    }


_CONTENTS_OWN = ("digest", "holds", "extracted", "sha256", "size_bytes")
_KINDS: dict[str, type] = {
    **dict.fromkeys(("mime", "kind", "visibility", "channel", "description", "tool_call_id", "sha256"), str),
    "size_bytes": int,
    "sources_used": list,
}


def call_of(version: Version) -> str:
    """The call that made a version: whose it was when it appeared, else the one that it was told with; or no text."""
    return version.call or version.facts.get("tool_call_id") or ""


_TOLD_FIELDS = ("channel", "description", "rn", "hosted_uri", "key", "error")


def describe(artifact: Artifact, tools: Mapping[str, str]) -> dict[str, Any]:
    """The artifact record of spec section 7, whole: the connection cuts it to the role."""
    path, version = artifact.path, artifact.versions[-1]
    facts, count, fact = version.facts, len(artifact.versions), artifact.fact
    used = facts.get("sources_used")
    record: dict[str, Any] = {
        "artifact_path": path.logical,
        "physical_path": path.physical,
        "name": path.rel.rpartition("/")[2],
        "kind": _kind(version),
        "mime": facts.get("mime") or "application/octet-stream",
        "visibility": artifact.visibility,
        "edited": count > 1 or bool(facts.get("edited")),
        "version": count,
        "origin": version.origin,
        "on_disk": artifact.on_disk,
        "hidden": version.hidden,
        "ts": iso(version.ts),
        "sources_used": sorted({sid for sid in used if isinstance(sid, int)}) if used else [],
    }
    if path.turn_id:
        record["turn_id"] = path.turn_id
    if call := call_of(version):
        record["tool_call_id"] = call
        if call in tools:
            record["tool_id"] = tools[call]
    if version.size is not None:
        record["size_bytes"] = version.size
    if version.sha256 is not None:
        record["sha256"] = version.sha256
    if artifact.sid is not None:
        record["sid"] = artifact.sid
    for key in _TOLD_FIELDS:
        if key in facts:
            record[key] = facts[key]
    if fact is not None and fact.incomplete:
        record["incomplete"] = True
    if fact is not None and not fact.kept and artifact.on_disk and not version.is_hosted:
        record["kept"] = False
    return record


def describe_versions(artifact: Artifact) -> list[dict[str, Any]]:
    """Every version, oldest first, as `artifact/versions` answers them."""
    rows: list[dict[str, Any]] = []
    for index, version in enumerate(artifact.versions):
        row: dict[str, Any] = {
            "version": index + 1,
            "origin": version.origin,
            "edited": is_edited(artifact, index),
            "ts": iso(version.ts),
        }
        known = {"tool_call_id": version.call or None, "sha256": version.sha256, "size_bytes": version.size}
        rows.append(row | {key: value for key, value in known.items() if value is not None})
    return rows


def is_edited(artifact: Artifact, index: int) -> bool:
    """Whether a version changed an artifact that was there before, by our count or by its own word."""
    return index > 0 or bool(artifact.versions[index].facts.get("edited"))


def _kind(version: Version) -> str:
    kind = version.facts.get("kind")
    if kind in ("file", "display"):
        return kind
    if version.seen or "base64" in version.blocks or version.facts.get("attachment"):
        return "file"
    return "display"
