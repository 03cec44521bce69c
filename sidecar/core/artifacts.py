"""Blocks told and files seen, joined by logical path: what an artifact is now, and every version it had.

A *told* version is a group of blocks of one call at one path: its digest and its content. A *seen* version is a state
of the file's bytes. Whichever comes first gives the version its number; the other one adds its fields. The latest
version wins as a whole: nothing of an older group shows through (spec section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import orjson

from sidecar.core.blocks import CALL, FLAGS, SHOWN, TS, Head, iso
from sidecar.core.inventory import FileFact
from sidecar.core.joining import HOSTING, Version, join
from sidecar.core.paths import FilePath, parse_logical

_NOTED_BYTES = 2**16  # what is noted is written anew each time

Visibility = Literal["external", "internal", "pending"]


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
                return {key: version.facts[key] for key in HOSTING if key in version.facts}
        return {}

    def knows(self, sha256: str | None) -> bool:
        return sha256 is not None and any(version.sha256 == sha256 for version in self.versions)


class Artifacts:
    """The artifacts by logical path, in the order they became known.

    What a start tells is only noted, and joined when somebody asks for that artifact.
    """

    __slots__ = ("_by_path", "_sid_of")

    def __init__(self, sid_of: Callable[[str], int | None] = lambda _: None) -> None:
        self._by_path: dict[str, Artifact | bytes] = {}  # bytes: what was told so far, as JSON
        self._sid_of = sid_of

    def __len__(self) -> int:
        return len(self._by_path)

    def __iter__(self) -> Iterator[Artifact]:
        """All that are known now, each joined when its turn comes; others may become known meanwhile."""
        for logical in list(self._by_path):
            known = self._by_path[logical]
            yield known if isinstance(known, Artifact) else self._join(logical, known)

    def seen(self) -> Iterator[Artifact]:
        """Those that a disk can have shown: what was only told is left out as long as nobody asked for it."""
        return (known for known in list(self._by_path.values()) if isinstance(known, Artifact))

    def of_turn(self, turn_id: str) -> Iterator[Artifact]:
        """Those whose path names this turn."""
        named = [logical for logical in self._by_path if logical.startswith(f"fi:{turn_id}.")]
        return (one for logical in named if (one := self.get(logical)) is not None and one.path.turn_id == turn_id)

    def get(self, logical: str) -> Artifact | None:
        known = self._by_path.get(logical)
        return self._join(logical, known) if isinstance(known, bytes) else known

    def at(self, path: FilePath) -> Artifact:
        logical = path.logical
        assert logical is not None, "an ambiguous file has no artifact"
        artifact = self.get(logical)
        if artifact is None:
            artifact = self._by_path[logical] = Artifact(path)
        return artifact

    def note(self, logical: str, head: Head, part: Mapping[str, Any], number: int) -> bool:
        """Keep a told block for when the artifact is asked for; False when it must be told at once.

        So it is where others need to know at once what the artifact became: it is joined already, cites, or has a long
        story.
        """
        known = self._by_path.get(logical, b"")
        if head[FLAGS] & SHOWN or isinstance(known, Artifact) or len(known) > _NOTED_BYTES:
            return False
        said = orjson.dumps((number, head[TS], head[CALL], head[FLAGS], part.get("digest"), part.get("content")))
        if b'"sources_used"' in said:
            return False
        self._by_path[logical] = known + b"," + said if known else said
        return True

    def _join(self, logical: str, noted: bytes) -> Artifact:
        path = parse_logical(logical)
        assert isinstance(path, FilePath)
        artifact = self._by_path[logical] = Artifact(path)
        artifact.sid = self._sid_of(path.physical)
        for number, ts, call, flags, digest, content in orjson.loads(b"[%b]" % noted):
            part = {"content": content} if digest is None else {"digest": digest}
            self.tell(artifact, ("", "", ts, "", "", call, flags), part, number)
        return artifact

    def tell(self, artifact: Artifact, head: Head, part: Mapping[str, Any], number: int) -> None:
        """Join one told block. `part` is what `blocks.tell` extracted from it."""
        join(artifact, head, part, number)

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
        artifact = self.get(path.logical or "")
        if artifact is not None:
            artifact.on_disk = False
        return artifact


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
