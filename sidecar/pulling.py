"""Bring everything a page needs into OUT_DIR: the files it refers to, those it cites, and what those refer to in turn.

Only the files that are named are looked at. A page with holes is an answer: what is missing says why, and whoever
renders decides. What was used is listed with its hash, so that the same page can be made again, byte for byte.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from sidecar.core import limits
from sidecar.core.asset_reference import Wanted
from sidecar.core.assets import Document, Plan, Room, follows, plan
from sidecar.core.entries import Entry
from sidecar.core.errors import NotFound, Refusal, UnsafePath
from sidecar.core.inventory import FileFact
from sidecar.core.mime import mime_by_name
from sidecar.core.numbers import NumberSet
from sidecar.core.paths import FilePath, parse
from sidecar.core.registration import source_entries
from sidecar.core.sources import Row
from sidecar.looking import Looker
from sidecar.ports import OutDir
from sidecar.rehost import Missing, Rehosted, Rehoster
from sidecar.workspace import Workspace

CHOSEN_AT_ONCE = 256
ROWS_AT_ONCE = 4096


class Sight(Protocol):
    """What the one who asks may see; anything else is as if it were not there."""

    def path(self, path: FilePath) -> bool: ...

    def rows(self, rows: Iterable[Row]) -> list[Row]: ...


@dataclass(frozen=True, slots=True)
class Brought:
    """A file that is in OUT_DIR now. `asked` is how it is first referred to, `spelled` how the page writes it."""

    file: Rehosted
    asked: str
    spelled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hole:
    """A file that is not there, and why. `sid` is the citation that asks for it, if nothing else does.

    `path` is where it would be; None for what is no legal path.
    """

    asked: str
    path: FilePath | None
    why: Missing
    sid: int | None = None

    @property
    def name(self) -> str:
        return self.path.physical if self.path is not None else self.asked


@dataclass(slots=True)
class Pulled:
    """What a pull came to. `document` is the page itself where it was a file."""

    document: Rehosted | None = None
    brought: dict[FilePath, Brought] = field(default_factory=dict[FilePath, Brought])
    holes: dict[FilePath | str, Hole] = field(default_factory=dict[FilePath | str, Hole])
    files_of_sources: dict[int, FilePath] = field(default_factory=dict[int, FilePath])
    sources_used: set[int] = field(default_factory=set[int])
    missing_sids: set[int] = field(default_factory=set[int])
    exceeded: tuple[str, ...] = ()

    @property
    def lock(self) -> list[tuple[str, str]]:
        """Every file that was used with the hash of its bytes, in order of path."""
        files = [one.file for one in self.brought.values()]
        used = {file.path.physical: file.sha256 for file in [*files, *([self.document] if self.document else [])]}
        return sorted(used.items(), key=lambda pair: pair[0].encode())


class Puller:
    """Pulls for any number of clients at once; one file is fetched once for all of them."""

    def __init__(
        self, workspace: Workspace, looker: Looker, rehoster: Rehoster, outdir: OutDir, *, eligible: Sequence[str]
    ) -> None:
        self.workspace = workspace
        self.looker = looker
        self.rehoster = rehoster
        self.outdir = outdir
        self.eligible = eligible

    async def text(self, text: str, mime: str, sight: Sight, tell: Callable[[str], None]) -> Pulled:
        """Pull what a text needs. Without a mime it is HTML or Markdown, as it looks."""
        pulled = Pulled()
        pull = _Pull(self, sight, tell, pulled)
        await pull.run([pull.sent(text, mime, self.workspace.turn_id)])
        return pulled

    async def file(self, path: FilePath, mime: str, sight: Sight, tell: Callable[[str], None]) -> Pulled | Missing:
        """Pull what a file needs, the file first. Missing when it is not there; bytes that are no text need nothing."""
        page = await self.bring(path, sight)
        if isinstance(page, Missing):
            return page
        pulled = Pulled(document=page)
        pull = _Pull(self, sight, tell, pulled)
        pull.read.add(path)
        document = await pull.document(path, mime or self.mime_of(path))
        await pull.run([document] if document is not None else [])
        return pulled

    async def bring(self, path: FilePath, sight: Sight) -> Rehosted | Missing:
        """One file, unless the one who asks may not see it, before it came or now that it is known."""
        if path.logical is None or not sight.path(path):
            return Missing("unknown")
        brought = await self.rehoster.rehost(path)
        return brought if isinstance(brought, Missing) or sight.path(path) else Missing("unknown")

    def joining(self, pulled: Pulled) -> list[Entry]:
        """Rows for the files that are used and have none, where such files are citable (seed 002, Sources Pool)."""
        workspace = self.workspace
        fresh: list[tuple[FilePath, FileFact]] = []
        for path in pulled.brought:
            artifact = workspace.artifact(path)
            if artifact is None or artifact.fact is None or artifact.visibility != "external" or not path.place:
                continue
            if workspace.pool.keys.latest(f"file:{path.physical}") is None:
                fresh.append((path, artifact.fact))
        eligible = self.eligible if self.looker.numbers() else ()
        return source_entries(fresh, artifacts=workspace.artifacts, pool=workspace.pool, eligible=eligible)

    def mime_of(self, path: FilePath) -> str:
        artifact = self.workspace.artifact(path)
        told = artifact.latest.facts.get("mime") if artifact is not None and artifact.versions else None
        return str(told or mime_by_name(path.physical))


class _Pull:
    """One pull under way: document by document, each after what it needs has come."""

    def __init__(self, puller: Puller, sight: Sight, tell: Callable[[str], None], pulled: Pulled) -> None:
        self.read: set[FilePath] = set()  # documents that were followed, so that no circle is walked twice
        self._traps: set[FilePath] = set()  # links and the like, which stand where a file was asked for
        self._puller = puller
        self._sight = sight
        self._tell = tell
        self._pulled = pulled
        self._room = Room()
        self._over = time.monotonic() + limits.ASSET_SECONDS
        self._given_up = threading.Event()

    async def run(self, documents: list[Document]) -> None:
        """The documents, then what they refer to, five levels deep."""
        for depth in range(limits.ASSET_DEPTH + 1):
            arrived: list[FilePath] = []
            for document in documents:
                found = await self._plan(document)
                arrived += await self._files(found.wanted, is_page=depth == 0)
                arrived += await self._cited(found.numbers)
            documents = await self._following(dict.fromkeys(arrived), depth)
            if not documents:
                break
        self._pulled.exceeded = tuple(self._room.exceeded)

    def sent(self, text: str, mime: str, turn_id: str) -> Document:
        """A text that came with the request, as a document."""
        most = self._room.bytes
        if len(text) > most:
            self._room.meet("asset_bytes")
        self._room.bytes -= min(len(text), most)
        return Document(text[:most], mime, turn_id=turn_id)

    async def document(self, path: FilePath, mime: str) -> Document | None:
        """A file as a document; None when it is no text, or when there is no room left to look at it."""
        most = self._room.bytes
        text, whole = await self._puller.looker.off_loop(_read, self._puller.outdir, path, most)
        if not whole:
            self._room.meet("asset_bytes")
        self._room.bytes -= min(len(text), most)
        return Document(text, mime, path) if text else None

    async def _following(self, arrived: Iterable[FilePath], depth: int) -> list[Document]:
        """What came that refers to something in turn, and was not read yet."""
        following = [path for path in arrived if path not in self.read and follows(self._puller.mime_of(path))]
        if depth == limits.ASSET_DEPTH and following:
            self._room.meet("asset_depth")
            return []
        self.read.update(following)
        documents = [await self.document(path, self._puller.mime_of(path)) for path in following]
        return [document for document in documents if document is not None]

    async def _plan(self, document: Document) -> Plan:
        try:
            return await self._puller.looker.search(lambda: plan(document, self._room, stop=self._stop))
        except asyncio.CancelledError:
            self._given_up.set()
            raise

    def _stop(self) -> bool:
        return self._given_up.is_set() or time.monotonic() > self._over

    async def _files(self, wanted: Sequence[Wanted], *, is_page: bool) -> list[FilePath]:
        """Bring what is referred to; answers what came."""
        asked: dict[FilePath, str] = {}
        spelled: dict[FilePath, dict[str, None]] = {}
        for at in range(0, len(wanted), CHOSEN_AT_ONCE):
            some = wanted[at : at + CHOSEN_AT_ONCE]
            for one, path in zip(some, await self._chosen(some), strict=True):
                if path is None:
                    self._not_there(one, is_page=is_page)
                    continue
                asked.setdefault(path, one.asked if is_page else path.physical)
                if is_page and one.spelled and one.spelled != path.physical:
                    spelled.setdefault(path, {})[one.spelled] = None
        arrived = await self._bring(list(asked))
        for path, outcome in arrived.items():
            if isinstance(outcome, Missing):
                self._hole(asked[path], path, outcome)
            elif path not in self._pulled.brought:
                self._pulled.brought[path] = Brought(outcome, asked[path], tuple(spelled.get(path, ())))
        return [path for path, outcome in arrived.items() if not isinstance(outcome, Missing)]

    async def _chosen(self, wanted: Sequence[Wanted]) -> list[FilePath | None]:
        """For each the file that is meant: the first that is known, else the first that is on disk, else none."""
        known = [next(filter(self._is_known, one.paths), None) for one in wanted]
        unknown = (path for one, path in zip(wanted, known, strict=True) if path is None for path in one.paths)
        doubtful = [path for path in dict.fromkeys(unknown) if self._sight.path(path)]
        seen = await self._puller.looker.off_loop(_seen, self._puller.outdir, doubtful)
        self._traps.update(path for path, is_file in seen.items() if not is_file)
        return [
            path or next((other for other in one.paths if seen.get(other)), None)
            for one, path in zip(wanted, known, strict=True)
        ]

    def _is_known(self, path: FilePath) -> bool:
        workspace = self._puller.workspace
        artifact = workspace.artifact(path)
        known = (artifact is not None and artifact.versions) or workspace.pool.by_path(path.physical) is not None
        return bool(known) and self._sight.path(path)

    def _not_there(self, one: Wanted, *, is_page: bool) -> None:
        """Nothing is known of it. A word in prose, or a link, need not have meant a file."""
        path = one.usual
        if path is None:
            self._hole(one.asked, None, Missing(one.refused or "bad_path"))
        elif one.how == "embedded" or (path.place and (one.how == "linked" or self._is_turn(path))):
            why: Missing = Missing("unsafe_path" if path in self._traps else "unknown")
            self._hole(one.asked if is_page else path.physical, path, why)

    def _is_turn(self, path: FilePath) -> bool:
        return self._puller.workspace.is_turn(path.turn_id)

    def _hole(self, asked: str, path: FilePath | None, why: Missing, sid: int | None = None) -> None:
        self._pulled.holes.setdefault(path or asked, Hole(asked, path, why, sid))

    async def _bring(self, paths: Sequence[FilePath]) -> dict[FilePath, Rehosted | Missing]:
        outcomes: dict[FilePath, Rehosted | Missing] = {}
        for at in range(0, len(paths), limits.REHOSTS_AT_ONCE):
            some = paths[at : at + limits.REHOSTS_AT_ONCE]
            came = await asyncio.gather(*(self._puller.bring(path, self._sight) for path in some))
            outcomes.update(zip(some, came, strict=True))
            self._tell(f"{len(outcomes)} of {len(paths)} files")
        return outcomes

    async def _cited(self, numbers: NumberSet) -> list[FilePath]:
        """Bring the files of cited sources, and note what nobody has."""
        pool, pulled = self._puller.workspace.pool, self._pulled
        selection = numbers.select(pool.sids)
        pulled.missing_sids.update(selection.missing)
        files: dict[int, FilePath] = {}
        for at in range(0, len(selection.found), ROWS_AT_ONCE):
            found = selection.found[at : at + ROWS_AT_ONCE]
            rows = {row["sid"]: row for row in self._sight.rows(pool.rows.durable[sid] for sid in found)}
            pulled.sources_used.update(rows)
            pulled.missing_sids.update(sid for sid in found if sid not in rows)
            files.update((sid, path) for sid, row in rows.items() if (path := _file_of(row)) is not None)
            await asyncio.sleep(0)
        if len(files) > self._room.references:
            self._room.meet("asset_references")
            files = dict(islice(files.items(), max(0, self._room.references)))
        self._room.references -= len(files)
        outcomes = await self._bring(list(dict.fromkeys(files.values())))
        for sid, path in files.items():
            outcome = outcomes[path]
            if isinstance(outcome, Missing):
                self._hole(path.physical, path, outcome, sid)
                continue
            pulled.files_of_sources[sid] = path
            pulled.brought.setdefault(path, Brought(outcome, path.physical))
        return [path for path, outcome in outcomes.items() if not isinstance(outcome, Missing)]


def _read(outdir: OutDir, path: FilePath, most: int) -> tuple[str, bool]:
    """The text of a file, at most so many bytes of it, and whether that is all. Bytes that are no text are none."""
    try:
        with outdir.open(path.physical) as stream:
            raw = stream.read(most + 1)
    except (NotFound, UnsafePath, OSError):
        return "", True  # it was there a moment ago, and has nothing to say now
    text = "" if b"\0" in raw else raw[:most].decode("utf-8", "replace").removeprefix("\ufeff")
    return text, len(raw) <= most


def _seen(outdir: OutDir, paths: Iterable[FilePath]) -> dict[FilePath, bool]:
    """What is there: True for a file, False for a link, a folder and what else is no file of ours."""
    return {path: is_file for path in paths if (is_file := _is_file(outdir, path)) is not None}


def _is_file(outdir: OutDir, path: FilePath) -> bool | None:
    try:
        return True if outdir.key(path.physical) is not None else None
    except UnsafePath:
        return False
    except OSError:
        return None


def _file_of(row: Row) -> FilePath | None:
    """The file that a row stands for, or None."""
    text = row.get("artifact_path") or row.get("physical_path") or row.get("local_path")
    if not isinstance(text, str) or not text:
        return None
    try:
        path = parse(text)
    except Refusal:
        return None
    return path if isinstance(path, FilePath) else None
