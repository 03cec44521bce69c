"""What the client of an editor may know of the workspace, and what the references of its document come to.

What may not be seen is answered exactly as what is not there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from sidecar.core.artifacts import Artifact
from sidecar.core.errors import Refusal
from sidecar.core.numbers import NumberSet
from sidecar.core.paths import FilePath, Path, PoolPath
from sidecar.core.references import Reading, Reference, chosen
from sidecar.pacing import Pace
from sidecar.server.methods.seeing import may_see, rows_for, sees_block, sees_path
from sidecar.services import Services

Row = dict[str, Any]
State = Literal["here", "absent", "gone", "told", "unknown", "unsafe", "cited"]
"""A file that is on disk, one that can be brought back, one that cannot; what is no file; nothing of ours."""

TITLE_CHARS = 200
ROWS_LOOKED_AT, NUMBERS_LOOKED_AT = 1000, 100  # of one citation


@dataclass(frozen=True, slots=True)
class Met:
    """A reference with what it leads to. `artifact` is there for a known file."""

    reference: Reference
    state: State
    path: Path | None = None
    artifact: Artifact | None = None


class Seen:
    """The workspace as one role sees it."""

    def __init__(self, services: Services, role: str) -> None:
        self._services = services
        self._workspace = services.workspace
        self._role = role

    def artifact(self, path: FilePath) -> Artifact | None:
        """The artifact at a path, if it may be shown."""
        artifact = self._workspace.artifact(path)
        return artifact if artifact is not None and artifact.versions and may_see(self._role, artifact) else None

    def row(self, sid: int) -> Row | None:
        """A row of the pool, if it may be shown."""
        row = self._workspace.pool.get(sid)
        return next(iter(rows_for(self._role, self._workspace, [row])), None) if row is not None else None

    def rows(self, numbers: NumberSet, most: int) -> list[Row]:
        """The first rows that a citation names, in order of their numbers."""
        sids = self._workspace.pool.sids
        found: list[Row] = []
        looked_at = 0
        for low, high in numbers.intervals():
            # A document may cite all of a large pool again and again: only the first ones are ever looked at.
            for at in range(bisect_left(sids, low), bisect_right(sids, high)):
                row = self.row(sids[at])
                found += [row] if row is not None else []
                looked_at += 1
                if len(found) == most or looked_at == ROWS_LOOKED_AT:
                    return found
        return found

    def unknown(self, numbers: NumberSet) -> list[int]:
        """The numbers that a citation names one by one and that lead nowhere, ascending; of the first hundred."""
        return sorted(sid for sid in set(numbers.singles[:NUMBERS_LOOKED_AT]) if self.row(sid) is None)

    def knows(self, path: Path) -> bool:
        """Whether a path leads to something that may be shown. The disk is not asked."""
        match path:
            case FilePath():
                return self.artifact(path) is not None
            case PoolPath():
                return bool(self.rows(path.numbers, 1))
            case _:
                sees = partial(sees_block, self._role, self._workspace)
                return self._workspace.timeline.told(path.logical, sees) is not None

    def may_be(self, path: Path) -> bool:
        """Whether a file that nobody has registered may be shown if it is there."""
        return isinstance(path, FilePath) and path.logical is not None and sees_path(self._role, self._workspace, path)

    async def met(self, found: Sequence[Reference]) -> list[Met]:
        """What references lead to. Long lists are worked off in pieces; the disk is asked in another thread."""
        answer: list[Met] = []
        pace = Pace()
        for one in found:
            await pace.rest()
            answer.append(self.meet(one))
        open_ones = [
            (at, readings)
            for at, one in enumerate(answer)
            if one.state == "unknown"
            and (readings := [reading for reading in one.reference.readings if self.may_be(reading.path)])
        ]
        if open_ones:
            for at, path in await self._services.looker.search(lambda: list(self._on_disk(open_ones))):
                reference, _ = chosen(answer[at].reference, lambda other, path=path: other == path)
                answer[at] = Met(reference, "here", path)
        return answer

    def meet(self, reference: Reference) -> Met:
        """What a reference leads to, as far as the workspace knows."""
        if reference.kind == "unsafe":
            return Met(reference, "unsafe")
        if reference.kind == "citation":
            return Met(reference, "cited")
        reference, path = chosen(reference, self.knows)
        if not isinstance(path, FilePath):
            return Met(reference, "told" if path is not None and self.knows(path) else "unknown", path)
        artifact = self.artifact(path)
        if artifact is None:
            return Met(reference, "unknown", path)
        return Met(reference, _state(artifact), path, artifact)

    def _on_disk(self, asked: Sequence[tuple[int, list[Reading]]]) -> Iterator[tuple[int, FilePath]]:
        for at, readings in asked:
            for reading in readings:
                path = reading.path
                if isinstance(path, FilePath) and self.is_there(path):
                    yield at, path
                    break

    def is_there(self, path: FilePath) -> bool:
        """Whether a regular file stands there. Blocks."""
        try:
            return self._services.outdir.key(path.physical) is not None
        except (Refusal, OSError):
            return False


def _state(artifact: Artifact) -> State:
    if artifact.on_disk:
        return "here"
    latest, fact = artifact.latest, artifact.fact
    is_kept = fact is not None and fact.kept and fact.sha256 == latest.sha256
    return "absent" if is_kept or latest.is_hosted or latest.blocks.keys() & {"text", "base64"} else "gone"


def title(row: Row) -> str:
    """How a source is called, on one line."""
    named = row.get("title") or row.get("url") or row.get("artifact_path") or f"Source {row['sid']}"
    return one_line(str(named), TITLE_CHARS)


def web_address(row: Row) -> str | None:
    """Where a browser finds a source. Rows come from agents: nothing but the web is ever opened by a click."""
    url = row.get("url")
    if not isinstance(url, str) or row.get("source_type") in ("file", "attachment"):
        return None
    url = url.strip()
    is_web = url.lower().startswith(("http://", "https://")) and url.isprintable() and " " not in url
    return url if is_web and len(url) <= _URL_CHARS else None


def file_of(row: Row) -> str | None:
    """The OUT_DIR-relative path of the file that a row stands for."""
    physical = row.get("physical_path")
    is_file = row.get("source_type") in ("file", "attachment")
    return physical if is_file and isinstance(physical, str) else None


def one_line(text: str, most: int) -> str:
    """A text without line breaks and control characters, cut where it is too long."""
    # Characters that reverse the direction of writing could make a name look like another one.
    plain = " ".join("".join(one if one.isprintable() else " " for one in text[: 4 * most]).split())
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


_URL_CHARS = 4096
