"""How a told block joins the versions of its artifact: a part of one that is there, or the first of a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from sidecar.core.blocks import CALL, FLAGS, HIDDEN, SHOWN, TS, Head

if TYPE_CHECKING:
    from sidecar.core.artifacts import Artifact


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
    def was_told_first(self) -> bool:
        """Whether a digest told of it before the disk showed it, as of what a client had us write."""
        return self.seen and self.blocks.get("digest", self.seen_at) < self.seen_at

    @property
    def origin(self) -> Literal["told", "seen", "both"]:
        if self.told and self.seen:
            return "both"
        return "told" if self.told else "seen"


def join(artifact: Artifact, head: Head, part: Mapping[str, Any], number: int) -> None:
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


_BODIES = frozenset({"text", "base64"})
HOSTING = ("hosted_uri", "rn", "key")
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
    told.facts = {key: value for key, value in group.facts.items() if key not in HOSTING}
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
        version.facts = {key: value for key, value in version.facts.items() if key not in HOSTING}


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
        version.facts.update((key, facts[key]) for key in HOSTING if isinstance(facts.get(key), str))
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
        if value is not None and key not in HOSTING and isinstance(value, _KINDS.get(key, object))
    }


_CONTENTS_OWN = ("digest", "holds", "extracted", "sha256", "size_bytes")
_KINDS: dict[str, type] = {
    **dict.fromkeys(("mime", "kind", "visibility", "channel", "description", "tool_call_id", "sha256"), str),
    "size_bytes": int,
    "sources_used": list,
}
