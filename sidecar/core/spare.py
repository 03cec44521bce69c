"""Which kept bytes can be spared: what nobody knows, what the store has as well, and old versions over the limit.

The latest version of an artifact that is nowhere else is never spared, nor is what is on its way to the store. Of the
store only records are spared whose kind says that they have a row, or had one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from sidecar.core.artifacts import Artifact, Version
from sidecar.core.conversation_names import spelled


@dataclass(frozen=True, slots=True)
class Spare:
    """Hashes that can go, each list in the order of going."""

    strays: tuple[str, ...]
    hosted: tuple[str, ...]
    superseded: tuple[str, ...]


def spare(
    artifacts: Iterable[Artifact],
    sizes: Mapping[str, int],
    is_hosted: Callable[[Version], bool],
    *,
    awaited: Collection[str],
    keep_bytes: int,
) -> Spare:
    """What of the kept bytes, `sizes` by hash, can go. `awaited` are those on their way to the store.

    Superseded versions go oldest first, and only until what is left is not more than `keep_bytes`.
    """
    known: dict[str, float] = {}
    hosted: set[str] = set()
    latest: set[str] = set()
    for artifact in artifacts:
        for version in artifact.versions:
            if version.sha256 is not None and version.sha256 in sizes:
                known.setdefault(version.sha256, version.ts)
                if is_hosted(version):
                    hosted.add(version.sha256)
        if artifact.versions and (sha256 := artifact.latest.sha256) is not None:
            latest.add(sha256)
        if artifact.fact is not None and artifact.fact.sha256 is not None:
            latest.add(artifact.fact.sha256)
    strays = tuple(sorted(sizes.keys() - known.keys() - latest - set(awaited)))
    twice = tuple(sorted(hosted - set(awaited), key=lambda sha256: (known[sha256], sha256)))
    left = sum(sizes.values()) - sum(sizes[sha256] for sha256 in (*strays, *twice))
    old: list[str] = []
    for sha256 in sorted(known.keys() - hosted - latest - set(awaited), key=lambda one: (known[one], one)):
        if left <= keep_bytes:
            break
        left -= sizes[sha256]
        old.append(sha256)
    return Spare(strays, twice, tuple(old))


def kind_in(key: str) -> str:
    """The kind at the end of a record's key (`conversation_names.message_id`); empty where the key tells none."""
    match = _RECORD.search(spelled(key))
    return match["kind"] if match else ""


_RECORD = re.compile(r"/artifact-[\dT-]{19}-[0-9a-f]{12}-(?P<kind>[^/]+)\.json\Z")
