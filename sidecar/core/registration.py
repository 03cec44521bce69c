"""What becomes of a file that was found complete: whose it is, who may know of it, and which number it gets.

Decides only (spec section 5): the answer is the entries that make it so.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sidecar.core.artifacts import Artifact, Artifacts, Visibility
from sidecar.core.blocks import HOSTING_FIELDS
from sidecar.core.entries import Entry, FileGone, FileSeen, Promise, SourceSet
from sidecar.core.inventory import FileFact
from sidecar.core.paths import FilePath, parse_physical
from sidecar.core.sources import SourcesPool, is_citable, merge_row


def register(
    facts: Iterable[FileFact],
    *,
    artifacts: Artifacts,
    pool: SourcesPool,
    open_calls: Mapping[str, str],
    eligible: Sequence[str],
    ts: float,
    promised: Mapping[str, Promise] = MappingProxyType({}),
    above: int = 0,
) -> list[Entry]:
    """The entries for newly complete files, in the order given. `open_calls` maps calls to their turns.

    `promised` says of files, by physical path, whose they are although their call has ended. New numbers are `above`
    the highest that the same change gave already.

    With one call open a new or changed file is that call's and pending; with several it is pending and nobody's until a
    call ends and names it; with none it is external at once, unless it is known to be internal.
    """
    entries: list[Entry] = []
    external: list[tuple[FilePath, FileFact]] = []
    for fact in facts:
        path = parse_physical(fact.path)
        known = artifacts.get(path.logical or "")
        call, visibility = promised.get(fact.path) or _whose(path, known, fact, open_calls)
        entries.append(FileSeen(fact, ts, call, visibility))
        if visibility == "external":
            external.append((path, fact))
    return entries + source_entries(external, artifacts=artifacts, pool=pool, eligible=eligible, above=above)


def source_entries(
    files: Iterable[tuple[FilePath, FileFact]],
    *,
    artifacts: Artifacts,
    pool: SourcesPool,
    eligible: Sequence[str],
    above: int = 0,
) -> list[Entry]:
    """See `numbering`; all at once."""
    return _at_once(numbering(files, artifacts=artifacts, pool=pool, eligible=eligible, above=above))


def numbering(
    files: Iterable[tuple[FilePath, FileFact]],
    *,
    artifacts: Artifacts,
    pool: SourcesPool,
    eligible: Sequence[str],
    above: int = 0,
) -> Generator[None, None, list[Entry]]:
    """Rows for the cite-eligible ones: one file, one number, however often it changes. New numbers are over `above`.

    A row says where the bytes that stand on disk are hosted, and nothing about those that stood there before.
    """
    fresh: list[dict[str, Any]] = []
    entries: list[Entry] = []
    for path, fact in files:
        yield
        if fact.incomplete or not is_citable(fact.mime, eligible):
            continue
        row = file_row(path, fact)
        sid = pool.keys.latest(f"file:{path.physical}")
        if sid is None:
            fresh.append(row)
            continue
        prior = pool.rows.latest(sid) or {}
        # What stands on disk decides about size and type; a file's name is no better title than a told one.
        after = merge_row(prior, {**row, "title": prior.get("title") or row["title"]})
        after |= {"size_bytes": row["size_bytes"], "mime": row["mime"]}
        known = artifacts.get(path.logical or "")
        if known is not None and known.versions:
            after = {key: value for key, value in after.items() if key not in HOSTING_FIELDS}
            after |= known.hosting(fact.sha256)
        if after != prior:
            entries.append(SourceSet(after))
    # Every one is new, each is another file, and what we say of it is complete: there is nothing to merge.
    entries.extend(SourceSet({"sid": sid, **row}) for sid, row in enumerate(fresh, max(pool.highest, above) + 1))
    return entries


def file_row(path: FilePath, fact: FileFact) -> dict[str, Any]:
    """A source row for a file (seed 003, Source item shapes)."""
    return {
        "source_type": "attachment" if path.place == "attachments" else "file",
        "title": path.rel.rpartition("/")[2],
        "physical_path": path.physical,
        "artifact_path": path.logical,
        "mime": fact.mime,
        "size_bytes": fact.key.size,
        "turn_id": path.turn_id,
    }


Settled = tuple[Artifact, Visibility, str]
"""A file, who may see it, and the call that made it; the empty text for none."""


def settle(
    produced: Iterable[Settled], *, artifacts: Artifacts, pool: SourcesPool, eligible: Sequence[str], ts: float
) -> list[Entry]:
    """See `settling`; all at once."""
    return _at_once(settling(produced, artifacts=artifacts, pool=pool, eligible=eligible, ts=ts))


def settling(
    produced: Iterable[Settled], *, artifacts: Artifacts, pool: SourcesPool, eligible: Sequence[str], ts: float
) -> Generator[None, None, list[Entry]]:
    """What calls produced gets its visibility and, where eligible, its number, in the order given.

    All that one change settles is settled in one go, so that no number is given twice.
    """
    entries: list[Entry] = []
    external: list[tuple[FilePath, FileFact]] = []
    for artifact, visibility, owner in produced:
        yield
        if artifact.fact is None:
            continue
        entries.append(FileSeen(artifact.fact, ts, owner, visibility))
        if not artifact.on_disk:
            entries.append(FileGone(artifact.path.physical))
        if visibility == "external":
            external.append((artifact.path, artifact.fact))
    numbered = yield from numbering(external, artifacts=artifacts, pool=pool, eligible=eligible)
    return entries + numbered


def in_order(artifacts: Iterable[Artifact]) -> list[Artifact]:
    """By the bytes of their paths, which is the order in which what a call made is numbered (spec section 5)."""
    return sorted(artifacts, key=lambda one: one.path.physical.encode())


def _at_once(steps: Generator[None, None, list[Entry]]) -> list[Entry]:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def told_visibility(artifact: Artifact) -> Visibility:
    """Who may see what a call made and did not speak of: nobody where that was told, else everybody."""
    told = artifact.latest.facts.get("visibility") if artifact.versions else None
    return "internal" if told == "internal" else "external"


def _whose(
    path: FilePath, known: Artifact | None, fact: FileFact, open_calls: Mapping[str, str]
) -> tuple[str, Visibility]:
    if known is not None and known.visibility != "pending" and known.knows(fact.sha256):
        is_latest = known.sha256() == fact.sha256
        # Bytes of an older version are a program's work only where a call of the same turn is open (spec section 8).
        if is_latest or path.turn_id not in open_calls.values():
            return "", known.visibility
    same = known is not None and fact.sha256 is not None and known.sha256() == fact.sha256
    maker = known.owner if same and known is not None else next(iter(open_calls)) if len(open_calls) == 1 else ""
    if known is not None and known.visibility == "internal":
        return maker, "internal"  # what was made for nobody to see is not shown because it changed
    return maker, "pending" if open_calls else "external"
